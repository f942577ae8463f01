package store

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"go.etcd.io/bbolt"
)

// encoded is a tip as a file has it.
type encoded []byte

// WriteTo implements io.WriterTo.
func (b encoded) WriteTo(w io.Writer) (int64, error) {
	n, err := w.Write(b)
	return int64(n), err
}

// tipsOf are two fragments' tips of a round, with the round's records.
func tipsOf(round, keep uint32) []Installed {
	in := make([]Installed, 2)
	for p := range in {
		in[p] = Installed{Round: round, Tip: encoded{byte(p), byte(round)}, Keep: keep, First: round, Rounds: []Round{{Tokens: uint64(round)}}}
	}
	return in
}

// has checks which rounds have records and which bases in both fragments.
func has(t *testing.T, s *Store, records, bases []uint32) {
	t.Helper()
	for p := range 2 {
		var got []uint32
		must(t, s.Rounds(p, 0, 100, func(round uint32, _ Round) error { got = append(got, round); return nil }))
		kept, err := s.Bases(p)
		must(t, err)
		if !slices.Equal(got, records) || !slices.Equal(kept, bases) {
			t.Errorf("fragment %d: records %v, bases %v, want %v and %v", p, got, kept, records, bases)
		}
		for _, round := range kept {
			_, err := s.Base(p, round)
			must(t, err)
		}
	}
}

// older is a folder with records 1 to 3 and bases 2 and 3.
func older(t *testing.T, dir string) *Store {
	s := openTest(t, dir)
	for p := range 2 {
		must(t, s.PutRounds(p, 1, make([]Round, 3)), s.PutBase(p, 2, encoded("old")), s.PutBase(p, 3, encoded("old")))
	}
	return s
}

func TestInstall(t *testing.T) {
	dir := t.TempDir()
	s := older(t, dir)
	must(t, s.Install(tipsOf(3, 2)))
	has(t, s, []uint32{1, 2, 3}, []uint32{3})
	must(t, s.Install(tipsOf(3, 2))) // once more, over itself
	kill(t, s)

	s = openTest(t, dir)
	has(t, s, []uint32{1, 2, 3}, []uint32{3})
	if left := names(t, dir, basesDir); len(left) != 2 {
		t.Errorf("files of bases: %v", left)
	}
	must(t, s.Install(tipsOf(9, 0)))
	has(t, s, []uint32{9}, []uint32{9})
}

// Whatever goes wrong before the change over, all fragments stay as they were.
func TestInstallIsAllOrNothing(t *testing.T) {
	dir := t.TempDir()
	s := older(t, dir)
	in := tipsOf(9, 0)
	tmp, entry, err := s.writeBase(unsynced, in[1].Tip)
	must(t, err, os.Remove(tmp))
	blocked := baseFile(roundKey(1, 9), entry)
	must(t, os.MkdirAll(filepath.Join(s.path(blocked), "x"), 0o700)) // the second tip cannot get its name
	if err := s.Install(in); err == nil {
		t.Fatal("installed where a file could not be written")
	}
	has(t, s, []uint32{1, 2, 3}, []uint32{2, 3})
	if left := names(t, dir, tmpDir); len(left) != 0 {
		t.Errorf("left over: %v", left)
	}
	must(t, os.RemoveAll(s.path(blocked)), s.PutRound(0, 4, Round{}), s.TruncateRounds(0, 3)) // it still works
	kill(t, s)

	s = openTest(t, dir)
	has(t, s, []uint32{1, 2, 3}, []uint32{2, 3})
	if left := names(t, dir, basesDir); len(left) != 4 {
		t.Errorf("files of bases: %v", left)
	}
	must(t, s.Install(in))
	has(t, s, []uint32{9}, []uint32{9})
}

// A crash right before the commit of the index leaves what was.
func TestInstallCutOffByACrash(t *testing.T) {
	dir := t.TempDir()
	s := older(t, dir)
	must(t, s.Flush())
	in := tipsOf(9, 0)
	for p, f := range in {
		tmp, entry, err := s.writeBase(synced, f.Tip)
		must(t, err, s.update(func(tx *bbolt.Tx) error { return s.installOne(tx, p, f, tmp, entry) }))
	}
	kill(t, s)
	s = openTest(t, dir)
	has(t, s, []uint32{1, 2, 3}, []uint32{2, 3})
	if left := names(t, dir, basesDir); len(left) != 4 {
		t.Errorf("files of bases: %v", left)
	}
}

func TestInstallNeedsFragments(t *testing.T) {
	s := openTest(t, t.TempDir())
	if s.Install(nil) == nil {
		t.Error("installed no fragments")
	}
	must(t, s.Close())
	wantErr(t, s.Install(tipsOf(1, 0)), ErrClosed)
}
