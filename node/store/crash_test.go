package store

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

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
	must(t, d.put(s), s.PutBase(1, 2, encoded("tip")), s.Close())
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
	must(t, s.PutBase(5, 16, encoded("an encoded tip")))
	damage(t, filepath.Join(dir, basesDir, names(t, dir, basesDir)[0]))
	_, err := s.Base(5, 16)
	wantErr(t, err, ErrCorrupt, "fragment 5", "round 16")
}

func TestDamagedCheckpointAndChunk(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, dir)
	must(t, s.PutCheckpoint(strings.NewReader("one")), s.PutCheckpoint(strings.NewReader("two")))
	wantCheckpoint(t, s, "two")
	gone := errors.New("gone")
	err := s.PutCheckpoint(io.MultiReader(strings.NewReader("three"), iotest.ErrReader(gone)))
	wantErr(t, err, gone)
	wantCheckpoint(t, s, "two")
	if left := names(t, dir, tmpDir); len(left) > 0 {
		t.Errorf("%v are left", left)
	}
	damage(t, filepath.Join(dir, checkpointFile))
	_, err = s.Checkpoint()
	wantErr(t, err, ErrCorrupt)
	for _, size := range []int64{39, 33, 32, 3, 0} {
		must(t, os.Truncate(filepath.Join(dir, checkpointFile), size))
		_, err = s.Checkpoint()
		wantErr(t, err, ErrCorrupt)
	}

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

// wantCheckpoint compares the state that is kept.
func wantCheckpoint(t *testing.T, s *Store, want string) {
	t.Helper()
	c, err := s.Checkpoint()
	must(t, err)
	defer c.Close()
	if b, err := io.ReadAll(c); err != nil || string(b) != want {
		t.Errorf("checkpoint is %.40q, %v; want %.40q", b, err, want)
	}
}

// A state of several parts comes back, and so does one that a build before kept, with its digest first.
func TestCheckpointInParts(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, dir)
	for _, size := range []int{0, 1, checkpointPart - 1, checkpointPart, 2*checkpointPart + 3} {
		state := strings.Repeat("atoll", size/5+1)[:size]
		must(t, s.PutCheckpoint(iotest.HalfReader(strings.NewReader(state))))
		wantCheckpoint(t, s, state)
		sum := wire.Sum([]byte(state))
		must(t, os.WriteFile(filepath.Join(dir, checkpointFile), append(sum[:], state...), 0o600))
		wantCheckpoint(t, s, state)
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
