package store

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"atoll/gossip/wire"
)

// long is whether tests try all that they can, and not a sample.
var long = os.Getenv("ATOLL_LONG") != ""

// lived is a folder in which a bit of everything is kept.
func lived(t *testing.T) (dir string, own []delta) {
	t.Helper()
	dir = t.TempDir()
	s := openTest(t, dir)
	for round := uint32(1); round <= 40; round++ {
		d, other := makeDelta(1, int(round)%2, round), makeDelta(2, int(round)%2, round)
		must(t, d.putOwn(s, uint64(round)), other.put(s), s.PutRound(int(round)%2, round, Round{Tokens: uint64(round), Folded: []wire.Digest{d.id, other.id}}))
		own = append(own, d)
	}
	must(t, s.PutBase(0, 8, encoded("tip")), s.Put("k", []byte("v")), s.Close())
	return dir, own
}

// readAll reads what lived wrote; an error says that the damage was seen.
func readAll(t *testing.T, dir string, own []delta) error {
	t.Helper()
	s, err := OpenReadOnly(dir)
	if err != nil {
		return err
	}
	defer func() { must(t, s.Close()) }()
	for _, d := range own {
		fragment, round := int(d.h.Header.Fragment), d.h.Header.Round
		h, err := s.Header(d.id)
		if err != nil {
			return err
		}
		r, err := s.Round(fragment, round)
		if errors.Is(err, ErrNotFound) { // a restart folds it again
			return ErrIndex
		}
		if err != nil {
			return err
		}
		mark, err := s.Mark(fragment)
		if err != nil {
			return err
		}
		if h != d.h || mark < round || r.Tokens != uint64(round) || len(r.Folded) != 2 {
			t.Errorf("fragment %d round %d reads otherwise: mark %d, record %+v", fragment, round, mark, r)
		}
	}
	_, err = s.Own()
	return err
}

// Whichever bit of the index the disk flips: either it does not matter, or the
// store says that the index is damaged and what to do. It never reads anything
// else, and never panics.
func TestFlippedBitsOfTheIndex(t *testing.T) {
	dir, own := lived(t)
	path := filepath.Join(dir, indexFile)
	whole, err := os.ReadFile(path)
	must(t, err)
	stride, seen := 251, 0
	if long {
		stride = 1
	}
	for at := 0; at < len(whole); at += stride {
		spoilt := bytes.Clone(whole)
		spoilt[at] ^= 1 << (at % 8)
		must(t, os.WriteFile(path, spoilt, 0o600))
		err := readAll(t, dir, own)
		if err != nil && !errors.Is(err, ErrIndex) && !strings.Contains(err.Error(), "folder format") {
			t.Errorf("byte %d: %v", at, err)
		}
		if err != nil {
			seen++
		}
	}
	if seen < 50 {
		t.Errorf("%d flips were seen", seen)
	}
	must(t, os.WriteFile(path, whole, 0o600), readAll(t, dir, own))
}

// An index that is cut, emptied or gone is not taken for a new folder.
func TestCutIndex(t *testing.T) {
	dir, own := lived(t)
	path := filepath.Join(dir, indexFile)
	whole, err := os.ReadFile(path)
	must(t, err)
	for size := 0; size < len(whole); size += 4096 {
		must(t, os.WriteFile(path, whole[:size], 0o600))
		err := readAll(t, dir, own)
		if size == 0 {
			err = Check(dir)
		}
		if err != nil { // what is cut off may be free pages
			wantErr(t, err, ErrIndex, path, "atoll doctor "+dir+" --fix")
			_, err = Open(dir, testRun)
			wantErr(t, err, ErrIndex, path)
		}
	}
	must(t, os.Remove(path))
	_, err = Open(dir, testRun)
	wantErr(t, err, ErrIndex, path, "missing", "--fix")
	wantErr(t, Check(dir), ErrIndex)
}

// An index that is cut while it is open ends the store, not the process.
func TestIndexCutWhileOpen(t *testing.T) {
	dir, own := lived(t)
	s := openTest(t, dir)
	must(t, os.Truncate(filepath.Join(dir, indexFile), 4096))
	_, err := s.Header(own[0].id)
	for _, err := range []error{err, s.Put("k", nil), s.Flush(), makeDelta(1, 0, 99).putOwn(s, 99), s.Install(tipsOf(9, 0))} {
		wantErr(t, err, ErrIndex, dir, "--fix")
	}
	must(t, s.Close())
}

// bbolt that fails as it begins a transaction keeps its own locks: the store ends
// all the same, and gives the folder's lock back.
func TestIndexCutBeforeATransaction(t *testing.T) {
	dir, _ := lived(t)
	cut := false
	d := Disk{Before: func(op Op) error {
		if cut && op.Kind == OpCommitted {
			return os.Truncate(op.Path, 0)
		}
		return nil
	}}
	s, err := d.Open(dir, testRun)
	must(t, err)
	cut = true
	must(t, s.Put("k", nil))
	wantErr(t, s.Flush(), ErrIndex, dir, "--fix")
	wantErr(t, s.Put("k", nil), ErrIndex)
	must(t, s.Close())
	must(t, os.Remove(filepath.Join(dir, indexFile)))
	if _, err := Open(dir, testRun); errors.Is(err, ErrLocked) {
		t.Error(err)
	}
}

// A damaged index goes aside with what belongs to it, and makes room.
func TestSetAside(t *testing.T) {
	dir, own := lived(t)
	_, created, err := LoadKey(dir)
	must(t, err)
	must(t, os.Truncate(filepath.Join(dir, indexFile), 4096))
	aside, err := SetAside(dir, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	must(t, err)
	if !created || filepath.Base(aside) != "aside-20260102-030405" {
		t.Errorf("key created %v, aside %s", created, aside)
	}
	s := openTest(t, dir)
	if header, _ := s.Has(own[0].id); header {
		t.Error("the new index has a delta")
	}
	if n := len(names(t, aside, deltasDir)); n != 80 {
		t.Errorf("%d payloads aside, want 80", n)
	}
	if _, created, err := LoadKey(dir); err != nil || created {
		t.Errorf("the key was not kept: created %v, %v", created, err)
	}
	must(t, s.Close())
	if _, err := SetAside(dir, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)); err == nil {
		t.Error("set aside over another")
	}
}
