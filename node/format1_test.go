package node

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"atoll/node/inspect"
)

// unpack writes the files of an archive into a folder.
func unpack(t *testing.T, archive, dir string) {
	t.Helper()
	f, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		switch {
		case errors.Is(err, io.EOF):
			return
		case err == nil && h.Typeflag == tar.TypeDir:
			err = os.MkdirAll(filepath.Join(dir, h.Name), 0o700)
		case err == nil:
			err = write(filepath.Join(dir, h.Name), r)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func write(path string, r io.Reader) error {
	b, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	return os.WriteFile(path, b, 0o600)
}

// A folder that the program of protocol 1 and format 1 wrote, and that was killed, goes on:
// what others signed then keeps its ids and signatures, and the run its RunID.
func TestFolderOfFormat1GoesOn(t *testing.T) {
	if testing.Short() {
		t.Skip("replays and trains for two minutes under the race detector")
	}
	t.Parallel()
	dir := t.TempDir()
	unpack(t, "testdata/format1.tgz", dir)
	before, err := inspect.Verify(t.Context(), dir)
	if err != nil || before.Deltas != 32 {
		t.Fatalf("%+v, %v", before, err)
	}
	last := launch(t, Config{Dir: dir, Data: toyText(t)}).end()
	if !last.Finished {
		t.Errorf("it came to %+v", last)
	}
	after, err := inspect.Verify(t.Context(), dir)
	if err != nil || after.Deltas <= before.Deltas || after.Run != before.Run || !after.FromGenesis {
		t.Errorf("%+v, %v; before %+v", after, err, before)
	}
}
