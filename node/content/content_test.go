package content

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"atoll/gossip/wire"
)

// blob is a file of so many bytes in parts.
type blob struct {
	bytes  []byte
	tree   []byte
	digest wire.Digest
}

func newBlob(t rapid.TB, size int, seed uint64) blob {
	b := blob{bytes: make([]byte, size)}
	r := rand.New(rand.NewPCG(seed, 3))
	for i := range b.bytes {
		b.bytes[i] = byte(r.Uint32())
	}
	var err error
	b.tree, b.digest, err = wire.TreeOf(bytes.NewReader(b.bytes), int64(size))
	ok(t, err)
	return b
}

func (b blob) part(i int) wire.Part {
	return wire.Part{Index: i, Tree: b.tree, Bytes: b.bytes[i*wire.PartSize:][:wire.PartLen(int64(len(b.bytes)), i)]}
}

func (b blob) parts() int { return wire.PartCount(int64(len(b.bytes))) }

func ok(t rapid.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func opened(t rapid.TB, dir string, limit int64) *Content {
	t.Helper()
	s, err := Open(dir, limit, nil)
	ok(t, err)
	return s
}

// whole reports whether a content store has a file as it is.
func (s *Content) isWhole(b blob) bool {
	got, err := s.Read(b.digest)
	return err == nil && bytes.Equal(got, b.bytes)
}

// Parts come in any order, with restarts between them; each that is there is given, and in the end
// the file is there with nothing around it.
func TestPartsInAnyOrderWithRestarts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "content")
		ok(t, err)
		defer os.RemoveAll(dir)
		b := newBlob(t, rapid.IntRange(1, 4*wire.PartSize).Draw(t, "size"), rapid.Uint64().Draw(t, "seed"))
		s := opened(t, dir, 0)
		order := rapid.Permutation(wire.AllParts(b.parts()).Indexes()).Draw(t, "order")
		for n, i := range order {
			if s.Has(b.digest) {
				t.Fatal("it is whole without all of its parts")
			}
			ok(t, s.PutPart(b.digest, b.part(i)))
			if rapid.Bool().Draw(t, "restart") {
				s = opened(t, dir, 0)
			}
			for _, j := range order[:n+1] {
				body, err := s.Part(b.digest, j)
				ok(t, err)
				if p, err := wire.OpenPart(b.digest, body); err != nil || p.Index != j {
					t.Fatalf("part %d: %v", j, err)
				}
			}
		}
		if !s.isWhole(b) {
			t.Fatal("it is not whole")
		}
		files, err := os.ReadDir(dir)
		ok(t, err)
		if len(files) != 1 || files[0].Name() != name(b.digest)+".bin" {
			t.Fatalf("the folder has %v", files)
		}
	})
}

// What a machine without power leaves of a file is dropped, and no part of it is given that does
// not hold.
func TestPartsThatDoNotHold(t *testing.T) {
	b := newBlob(t, 3*wire.PartSize, 1)
	for what, spoil := range map[string]struct {
		do   func(path string) error
		kept int
	}{
		"a byte changed":   {func(path string) error { return change(path, 5) }, 1},
		"the tree changed": {func(path string) error { return change(path, 3*wire.PartSize+9) }, 0},
		"cut off":          {func(path string) error { return os.Truncate(path, 100) }, 0},
		"without its tail": {func(path string) error { return os.Truncate(path, 3*wire.PartSize) }, 0},
		"empty":            {func(path string) error { return os.Truncate(path, 0) }, 0},
		"of nonsense":      {func(path string) error { return os.WriteFile(path, bytes.Repeat([]byte{255}, 5000), 0o600) }, 0},
	} {
		dir := t.TempDir()
		s := opened(t, dir, 0)
		ok(t, s.PutPart(b.digest, b.part(0)))
		ok(t, s.PutPart(b.digest, b.part(1)))
		ok(t, spoil.do(s.partPath(b.digest)))
		s = opened(t, dir, 0)
		kept := 0
		s.Partly(func(_ wire.Digest, parts wire.PartSet) { kept += parts.Len() })
		if kept != spoil.kept {
			t.Errorf("%s: %d parts are kept, want %d", what, kept, spoil.kept)
		}
		for i := range 3 {
			ok(t, s.PutPart(b.digest, b.part(i)))
		}
		if !s.isWhole(b) {
			t.Errorf("%s: it does not become whole", what)
		}
	}
}

// change changes a byte of a file.
func change(path string, at int64) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	var b [1]byte
	if _, err = f.ReadAt(b[:], at); err == nil {
		b[0] ^= 1
		_, err = f.WriteAt(b[:], at)
	}
	return errors.Join(err, f.Close())
}

// A damaged file is neither read nor given, and is dropped: an own one is deleted, one of the user is left alone.
func TestDamagedFiles(t *testing.T) {
	b := newBlob(t, 2*wire.PartSize+1, 2)
	for _, own := range []bool{true, false} {
		for _, by := range []string{"read", "part", "part with its tree known"} {
			s := opened(t, t.TempDir(), 0)
			path := filepath.Join(t.TempDir(), "mine")
			if own {
				ok(t, s.Put(b.digest, b.bytes))
				path, _ = s.Path(b.digest)
			} else {
				ok(t, os.WriteFile(path, b.bytes, 0o600))
				s.Link(b.digest, path, int64(len(b.bytes)))
			}
			if by == "part" {
				clear(s.trees)
			} else if _, err := s.Part(b.digest, 1); err != nil {
				t.Fatal(err)
			}
			ok(t, change(path, wire.PartSize+1))
			var err error
			if by == "read" {
				_, err = s.Read(b.digest)
			} else {
				_, err = s.Part(b.digest, 1)
			}
			_, there := os.Stat(path)
			if !errors.Is(err, ErrDamaged) || s.Has(b.digest) || (there == nil) == own {
				t.Errorf("own %v, by %s: %v, in the content store %v, file %v", own, by, err, s.Has(b.digest), there)
			}
		}
	}
}

// With too little room what nobody needs goes, longest unused first; what is needed stays, and
// files of the user do.
func TestTrim(t *testing.T) {
	s := opened(t, t.TempDir(), 300)
	var blobs []blob
	for i := range 5 {
		blobs = append(blobs, newBlob(t, 100, uint64(i+1)))
	}
	mine := filepath.Join(t.TempDir(), "mine")
	ok(t, os.WriteFile(mine, blobs[4].bytes, 0o600))
	s.Link(blobs[4].digest, mine, 100)
	for _, b := range blobs[:4] {
		ok(t, s.Put(b.digest, b.bytes))
	}
	if _, err := s.Read(blobs[0].digest); err != nil {
		t.Fatal(err)
	}
	s.Need([]wire.Digest{blobs[1].digest})
	dropped, err := s.Trim(0)
	ok(t, err)
	if !slices.Equal(dropped, []wire.Digest{blobs[2].digest}) {
		t.Errorf("dropped %v", dropped)
	}
	dropped, err = s.Trim(150)
	ok(t, err)
	if !slices.Equal(dropped, []wire.Digest{blobs[3].digest, blobs[0].digest}) {
		t.Errorf("for 150 bytes more dropped %v", dropped)
	}
	if used, limit := s.Usage(); used != 100 || limit != 300 || !s.isWhole(blobs[1]) || !s.isWhole(blobs[4]) {
		t.Errorf("%d of %d bytes are left", used, limit)
	}
	if dropped, err := s.Trim(1000); err != nil || len(dropped) != 0 {
		t.Errorf("dropped %v of what is needed, %v", dropped, err)
	}
}

// A disk that takes nothing for a while costs nothing that was there.
func TestFullDisk(t *testing.T) {
	b, full := newBlob(t, 2*wire.PartSize, 1), errors.New("full")
	s := opened(t, t.TempDir(), 0)
	ok(t, s.PutPart(b.digest, b.part(0)))
	s.before = func(string) error { return full }
	if err := s.PutPart(b.digest, b.part(1)); !errors.Is(err, full) || s.Has(b.digest) {
		t.Errorf("error %v", err)
	}
	s.before = func(string) error { return nil }
	ok(t, s.PutPart(b.digest, b.part(1)))
	if !s.isWhole(b) {
		t.Error("it is not whole")
	}
}

// A blob that the disk has no room to begin leaves nothing behind, and one that it cannot finish keeps its parts.
func TestFullDiskAtTheEnds(t *testing.T) {
	b, full, dir := newBlob(t, 2*wire.PartSize, 1), errors.New("full"), t.TempDir()
	s := opened(t, dir, 0)
	s.before = func(path string) error { return errors.Join(full, os.WriteFile(path, []byte("torn"), 0o600)) }
	if err := s.PutPart(b.digest, b.part(0)); !errors.Is(err, full) {
		t.Errorf("error %v", err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("%v are left", left)
	}
	s.before = func(path string) error {
		if strings.HasSuffix(path, wholeEnd) {
			return full
		}
		return nil
	}
	ok(t, s.PutPart(b.digest, b.part(0)))
	if !s.HasPart(b.digest, 0) || s.HasPart(b.digest, 1) {
		t.Error("of two parts the first is there")
	}
	if err := s.PutPart(b.digest, b.part(1)); !errors.Is(err, full) || s.Has(b.digest) {
		t.Errorf("error %v", err)
	}
	s.before = func(string) error { return nil }
	if ok(t, s.PutPart(b.digest, b.part(1))); !s.isWhole(b) {
		t.Error("it is not whole")
	}
}

// A blob whose process ended when it had all parts and not its name is whole when the store is opened again.
func TestEndedBeforeItWasWhole(t *testing.T) {
	b, ended, dir := newBlob(t, 2*wire.PartSize, 1), errors.New("ended"), t.TempDir()
	s := opened(t, dir, 0)
	s.before = func(path string) error {
		if strings.HasSuffix(path, wholeEnd) {
			return ended
		}
		return nil
	}
	ok(t, s.PutPart(b.digest, b.part(0)))
	if err := s.PutPart(b.digest, b.part(1)); !errors.Is(err, ended) {
		t.Errorf("error %v", err)
	}
	if s = opened(t, dir, 0); !s.isWhole(b) {
		t.Error("it is not whole")
	}
	s.Partly(func(d wire.Digest, _ wire.PartSet) { t.Errorf("%v is said to lack parts", d) })
}

// What nobody needs goes, whatever the limit; the files of the user stay where they are.
func TestShed(t *testing.T) {
	s := opened(t, t.TempDir(), 0)
	whole, partly, needed := newBlob(t, 100, 1), newBlob(t, 2*wire.PartSize, 2), newBlob(t, 100, 3)
	for _, b := range []blob{whole, partly, needed} {
		ok(t, s.PutPart(b.digest, b.part(0)))
	}
	mine := filepath.Join(t.TempDir(), "mine")
	ok(t, os.WriteFile(mine, []byte("mine"), 0o600))
	s.Link(wire.Sum([]byte("mine")), mine, 4)
	s.Need([]wire.Digest{needed.digest})
	dropped, err := s.Shed()
	ok(t, err)
	if len(dropped) != 2 || s.Has(whole.digest) || !s.isWhole(needed) || !s.Has(wire.Sum([]byte("mine"))) {
		t.Errorf("dropped %v", dropped)
	}
	if used, _ := s.Usage(); used != 100 {
		t.Errorf("%d bytes are left", used)
	}
}

func TestWhatIsNotThere(t *testing.T) {
	s := opened(t, t.TempDir(), 0)
	b := newBlob(t, 2*wire.PartSize, 1)
	ok(t, s.PutPart(b.digest, b.part(1)))
	_, whole := s.Read(b.digest)
	_, part := s.Part(b.digest, 0)
	_, none := s.Part(wire.Digest{1}, 0)
	for _, err := range []error{whole, part, none} {
		if !errors.Is(err, ErrMissing) {
			t.Errorf("error %v", err)
		}
	}
	if err := s.Put(b.digest, []byte("another")); !errors.Is(err, ErrDamaged) {
		t.Errorf("another file: %v", err)
	}
}

// Other files of the folder are left alone.
func TestOtherFiles(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"notes.txt", "manifest.json", "00.bin"} {
		ok(t, os.WriteFile(filepath.Join(dir, name), []byte("mine"), 0o600))
	}
	s := opened(t, dir, 1)
	if _, err := s.Trim(1000); err != nil {
		t.Fatal(err)
	}
	if files, _ := os.ReadDir(dir); len(files) != 3 {
		t.Errorf("%v are left", files)
	}
}

// FuzzPartial: whatever an earlier process left, nothing is given that does not hold.
func FuzzPartial(f *testing.F) {
	b := newBlob(f, wire.PartSize/2, 1)
	p := partial{size: int64(len(b.bytes)), tree: b.tree, has: wire.AllParts(1)}
	f.Add(append(slices.Clone(b.bytes), p.tail()...))
	f.Add(p.tail())
	f.Fuzz(func(t *testing.T, raw []byte) {
		path := filepath.Join(t.TempDir(), "x")
		ok(t, os.WriteFile(path, raw, 0o600))
		got, err := openPartial(path, b.digest)
		if err == nil && (got.size != p.size || got.has != p.has || !bytes.HasPrefix(raw, b.bytes)) {
			t.Errorf("%d bytes with parts %v", got.size, got.has.Indexes())
		}
	})
}
