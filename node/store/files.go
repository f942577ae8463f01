package store

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"atoll/gossip/wire"

	"go.etcd.io/bbolt"
)

// Folders under the store's.
const (
	tmpDir    = "tmp"
	deltasDir = "deltas"
	basesDir  = "bases"
	chunksDir = "chunks"
)

// Whether a file is synced before its name appears.
const (
	synced   = true
	unsynced = false
)

// writeFile writes b to dir/name so that the name shows either what was there
// before or all of b. With sync the file and its name are on the disk when it
// returns. The mode is 0600.
func writeFile(dir, name string, b []byte, sync bool) error {
	tmp, err := writeTemp(dir, b, sync)
	if err != nil {
		return err
	}
	path := filepath.Join(dir, name)
	if err := os.Rename(tmp, path); err != nil {
		return errors.Join(err, os.Remove(tmp))
	}
	if sync {
		return syncDir(filepath.Dir(path))
	}
	return nil
}

// writeTemp writes b to a new file under dir/tmp and returns its path.
func writeTemp(dir string, b []byte, sync bool) (string, error) {
	f, err := os.CreateTemp(filepath.Join(dir, tmpDir), "")
	if err != nil {
		return "", err
	}
	_, err = f.Write(b)
	if err == nil && sync {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return f.Name(), nil
}

// syncDir makes the names in a folder durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// readSized reads a file that must have size bytes: ErrCorrupt if it is absent
// or has another size, found before memory is taken.
func readSized(path string, size int64) ([]byte, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: file is missing", ErrCorrupt)
	}
	if err != nil {
		return nil, err
	}
	if info.Size() != size {
		return nil, fmt.Errorf("%w: file has %d bytes, not %d", ErrCorrupt, info.Size(), size)
	}
	return os.ReadFile(path)
}

// readVerified is readSized for a file that must have a certain hash.
func readVerified(path string, size int64, want wire.Digest) ([]byte, error) {
	b, err := readSized(path, size)
	if err != nil {
		return nil, err
	}
	if got := wire.Sum(b); got != want {
		return nil, fmt.Errorf("%w: content hashes to %v, not %v", ErrCorrupt, got, want)
	}
	return b, nil
}

// sweep empties tmp and removes payloads and bases that the index does not
// name: a crash came between the file and the commit.
func (s *Store) sweep() error {
	none := func(*bbolt.Tx, string) bool { return false }
	err := errors.Join(
		s.sweepDir(tmpDir, none),
		s.sweepDir(deltasDir, heldByIndex),
		s.sweepDir(basesDir, baseInIndex),
	)
	if err != nil {
		return fmt.Errorf("open store %s: clean up: %w", s.dir, err)
	}
	return nil
}

func (s *Store) sweepDir(sub string, keep func(tx *bbolt.Tx, name string) bool) error {
	entries, err := os.ReadDir(filepath.Join(s.dir, sub))
	if err != nil {
		return err
	}
	for _, e := range entries {
		if keep(s.tx, e.Name()) {
			continue
		}
		if err := remove(filepath.Join(s.dir, sub, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// hexName is the file name of a digest.
func hexName(d wire.Digest) string { return hex.EncodeToString(d[:]) }

// parseHexName is the inverse of hexName.
func parseHexName(name string) (d wire.Digest, ok bool) {
	return d, d.UnmarshalText([]byte(name)) == nil
}
