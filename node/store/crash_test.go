package store

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"atoll/gossip/wire"
)

// names lists the files in one of the store's folders and those below it.
func names(t interface{ Fatal(...any) }, dir, sub string) (all []string) {
	root := filepath.Join(dir, sub)
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			all = append(all, strings.TrimPrefix(filepath.ToSlash(path), filepath.ToSlash(root)+"/"))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestEnoughPendingIsCommitted(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, dir)
	for round := uint32(1); round <= maxPending+5; round++ {
		must(t, s.PutRound(0, round, Round{}))
	}
	kill(t, s)
	s = openTest(t, dir)
	if last, err := s.LastRound(0); err != nil || last != maxPending {
		t.Errorf("last round %d, %v, want %d", last, err, maxPending)
	}
}

func TestOpenCleansUp(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, dir)
	d := makeDelta(1, 0, 1)
	must(t, d.put(s), s.PutBase(1, 2, []byte("tip")), s.Close())
	for _, name := range []string{"tmp/123", "deltas/zz", "deltas/" + hexName(wire.Digest{9}), "bases/1-2-00", "bases/1-3-0011223344556677", "bases/x"} {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600))
	}
	s = openTest(t, dir)
	for sub, want := range map[string]int{tmpDir: 0, deltasDir: 1, basesDir: 1} {
		if left := names(t, dir, sub); len(left) != want {
			t.Errorf("%s has %v, want %d files", sub, left, want)
		}
	}
	_, err := s.Payload(d.id)
	must(t, err)
	_, err = s.Base(1, 2)
	must(t, err)
}

func TestDamagedBase(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, dir)
	must(t, s.PutBase(5, 16, []byte("an encoded tip")))
	damage(t, filepath.Join(dir, basesDir, names(t, dir, basesDir)[0]))
	_, err := s.Base(5, 16)
	wantErr(t, err, ErrCorrupt, "fragment 5", "round 16")
}

func TestDamagedCheckpointAndChunk(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, dir)
	must(t, s.PutCheckpoint([]byte("one")), s.PutCheckpoint([]byte("two")))
	if b, err := s.Checkpoint(); err != nil || string(b) != "two" {
		t.Errorf("checkpoint is %q, %v", b, err)
	}
	damage(t, filepath.Join(dir, checkpointFile))
	_, err := s.Checkpoint()
	wantErr(t, err, ErrCorrupt)
	must(t, os.Truncate(filepath.Join(dir, checkpointFile), 3))
	_, err = s.Checkpoint()
	wantErr(t, err, ErrCorrupt)

	chunk := []byte("part of a tip")
	d := wire.Sum(chunk)
	path := filepath.Join(dir, chunksDir, hexName(d))
	must(t, s.PutChunk(d, chunk))
	damage(t, path)
	_, err = s.Chunk(d)
	wantErr(t, err, ErrCorrupt, d.String())
	must(t, os.Truncate(path, wire.ChunkSize+1))
	_, err = s.Chunk(d)
	wantErr(t, err, ErrCorrupt, d.String())
	must(t, s.PutChunk(d, chunk))
	_, err = s.Chunk(d)
	must(t, err, s.DropChunks())
	if s.HasChunk(d) {
		t.Error("the chunk is still there")
	}
}

func TestStepLog(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, stepsFile)
	if sum, err := SumSteps(dir); err != nil || sum != (Steps{}) {
		t.Errorf("no log sums to %v, %v", sum, err)
	}
	s := openTest(t, dir)
	l, err := s.OpenStepLog()
	must(t, err)
	for i := uint64(1); i <= 3; i++ {
		must(t, l.Append(Step{Number: i, Tokens: 512, EndMs: int64(1000 + i), Micros: 7}))
	}
	want := Steps{Steps: 3, Tokens: 1536, Micros: 21, Last: Step{3, 512, 1003, 7}}
	if sum, err := SumSteps(dir); err != nil || sum != want || l.Sum() != want {
		t.Errorf("sums are %v and %v, %v", sum, l.Sum(), err)
	}
	must(t, os.Truncate(path, 3*stepSize-5)) // a torn last record
	want = Steps{Steps: 2, Tokens: 1024, Micros: 14, Last: Step{2, 512, 1002, 7}}
	if sum, err := SumSteps(dir); err != nil || sum != want {
		t.Errorf("torn: %v, %v", sum, err)
	}
	must(t, l.Close())
	l, err = s.OpenStepLog()
	must(t, err, l.Append(Step{Number: 4, Tokens: 100, Micros: 1}), l.Close())
	damage(t, path) // the middle one of three
	sum, err := SumSteps(dir)
	must(t, err)
	if want := (Steps{Steps: 2, Tokens: 612, Micros: 8, Last: Step{4, 100, 0, 1}, Damaged: 1}); sum != want {
		t.Errorf("damaged: %v, want %v", sum, want)
	}
}
