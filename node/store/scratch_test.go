package store

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"testing"
)

// scrapOf keeps some bytes.
func scrapOf(t *testing.T, s *Store, b []byte) *Scrap {
	t.Helper()
	scrap, err := s.Scratch(func(w io.Writer) error {
		_, err := w.Write(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return scrap
}

// reads fails unless a scrap has these bytes, from the second on.
func reads(t *testing.T, scrap *Scrap, want []byte) {
	t.Helper()
	got := make([]byte, len(want)-1)
	if _, err := scrap.ReadAt(got, 1); err != nil || !bytes.Equal(got, want[1:]) {
		t.Errorf("read %q, %v; want %q", got, err, want[1:])
	}
}

// Scraps are read until they are closed, and nothing of them is left when the store is.
func TestScratch(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, dir)
	one, two := scrapOf(t, s, []byte("one")), scrapOf(t, s, []byte("two"))
	reads(t, one, []byte("one"))
	reads(t, two, []byte("two"))
	must(t, one.Close())
	if _, err := one.ReadAt(make([]byte, 1), 0); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("read after it was closed: %v", err)
	}
	reads(t, two, []byte("two"))
	must(t, s.Close())
	if _, err := two.ReadAt(make([]byte, 1), 0); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("read after the store was closed: %v", err)
	}
	if left := names(t, dir, tmpDir); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	if _, err := s.Scratch(func(io.Writer) error { return nil }); !errors.Is(err, ErrClosed) {
		t.Errorf("scratch of a closed store: %v", err)
	}
}

// What was not written as a whole leaves no file.
func TestScratchThatFails(t *testing.T) {
	full := errors.New("full")
	for _, at := range []int{1, 2} {
		dir := t.TempDir()
		must(t, openTest(t, dir).Close())
		writes := 0
		s, err := newFaulty(func(_ int, op Op) error {
			if op.Kind == OpWrite && bytes.HasPrefix(op.Data, []byte("part")) {
				if writes++; writes == at {
					return full
				}
			}
			return nil
		}).disk().Open(dir, testRun)
		must(t, err)
		_, err = s.Scratch(func(w io.Writer) error {
			for range 2 {
				if _, err := w.Write([]byte("part")); err != nil {
					return err
				}
			}
			return nil
		})
		if !errors.Is(err, full) {
			t.Errorf("write %d: %v", at, err)
		}
		if left := names(t, dir, tmpDir); len(left) > 0 {
			t.Errorf("write %d: left: %v", at, left)
		}
		must(t, s.Close())
	}
}

// What a killed process leaves goes with the next start.
func TestScratchAfterAKill(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, dir)
	scrapOf(t, s, []byte("left"))
	kill(t, s)
	if got := names(t, dir, tmpDir); len(got) != 1 {
		t.Fatalf("files: %v", got)
	}
	must(t, openTest(t, dir).Close())
	if got := names(t, dir, tmpDir); len(got) > 0 {
		t.Errorf("after the next start: %v", got)
	}
}

// One that somebody else removed is gone, not closed: the caller has to make it anew.
func TestScratchThatIsGone(t *testing.T) {
	s := openTest(t, t.TempDir())
	scrap := scrapOf(t, s, []byte("gone"))
	must(t, os.Remove(scrap.path))
	if _, err := scrap.ReadAt(make([]byte, 1), 0); !errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrClosed) {
		t.Error(err)
	}
	must(t, scrap.Close())
}
