package store

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"atoll/gossip/wire"

	"go.etcd.io/bbolt"
)

// errDead is what a disk answers whose machine has died.
var errDead = errors.New("the machine is dead")

// faulty is a disk that counts its changes, fails those that fail says, and
// knows what a loss of power would take away.
type faulty struct {
	mu       sync.Mutex
	count    int
	fail     func(n int, op Op) error // n counts from 1
	unsynced map[string]bool          // files whose bytes are not on the platter
	names    map[string]name          // names that are not
}

// name is what a loss of power would leave under a name.
type name struct {
	was  bool
	data []byte
}

func newFaulty(fail func(n int, op Op) error) *faulty {
	return &faulty{fail: fail, unsynced: map[string]bool{}, names: map[string]name{}}
}

func (f *faulty) disk() Disk { return Disk{Before: f.before} }

func (f *faulty) before(op Op) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.count++
	if err := f.fail(f.count, op); err != nil {
		return err
	}
	f.record(op)
	return nil
}

// record keeps track of what is not durable after an op.
func (f *faulty) record(op Op) {
	switch op.Kind {
	case OpWrite, OpTruncate:
		f.unsynced[op.Path] = true
	case OpSync:
		delete(f.unsynced, op.Path)
	case OpMakeDir:
		f.changing(op.Path)
	case OpRename, OpLink:
		f.changing(op.Path)
		if op.Kind == OpRename {
			f.changing(op.From)
		}
		if f.unsynced[op.From] {
			f.unsynced[op.Path] = true
		} else {
			delete(f.unsynced, op.Path)
		}
		delete(f.unsynced, op.From)
	case OpRemove:
		f.changing(op.Path)
	case OpSyncDir:
		for path := range f.names {
			if filepath.Dir(path) == op.Path {
				delete(f.names, path)
			}
		}
	}
}

// changing remembers what is under a name before it changes.
func (f *faulty) changing(path string) {
	if _, known := f.names[path]; known {
		return
	}
	b, err := os.ReadFile(path)
	f.names[path] = name{was: err == nil, data: b}
}

// cutPower takes away what was not synced: bytes of files, then names.
func (f *faulty) cutPower(t *testing.T) {
	t.Helper()
	for path := range f.unsynced {
		if info, err := os.Stat(path); err == nil && filepath.Base(path) != stepsFile {
			must(t, os.Truncate(path, info.Size()/2))
		}
	}
	for path, n := range f.names {
		must(t, os.RemoveAll(path))
		if n.was {
			must(t, os.MkdirAll(filepath.Dir(path), 0o700))
			must(t, os.WriteFile(path, n.data, 0o600))
		}
	}
}

// die fails every change from the k-th on. torn leaves half of a write there.
func die(k int, torn bool) func(n int, op Op) error {
	return func(n int, op Op) error {
		if n < k {
			return nil
		}
		if n == k && torn && op.Kind == OpWrite {
			return errors.Join(errDead, appendFile(op.Path, op.Data[:len(op.Data)/2]))
		}
		return errDead
	}
}

func appendFile(path string, b []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	return errors.Join(err, f.Close())
}

// session is a node's life at its disk.
type session struct {
	own     []delta // that were made durable
	mark    map[int]uint32
	steps   int // logged
	sealed  bool
	dark    bool // it ended with a loss of power
	install bool
}

// live does a bit of everything, until something fails.
func (l *session) live(d Disk, dir string) error {
	if _, _, err := d.LoadKey(dir); err != nil {
		return err
	}
	if err := d.SaveGenesis(dir, []byte("genesis")); err != nil {
		return err
	}
	s, err := d.Open(dir, testRun)
	if err != nil {
		return err
	}
	s.perSegment = 2
	err = l.work(s)
	if err != nil { // as a kill leaves it
		return errors.Join(err, s.abandon())
	}
	return s.Close()
}

func (l *session) work(s *Store) error {
	log, err := s.OpenStepLog()
	if err != nil {
		return err
	}
	defer func() { _ = log.f.Close() }()
	for round := uint32(1); round <= 2; round++ {
		for fragment := range 2 {
			if err := l.round(s, log, fragment, round); err != nil {
				return err
			}
		}
	}
	if _, err := s.Seal([]uint32{2, 2}, tokensOf); err != nil {
		return err
	}
	l.sealed = true
	if err := s.DropPayload(makeDelta(2, 1, 1).id); err != nil {
		return err
	}
	if err := s.Install(tipsOf(9, 0)); err != nil {
		return err
	}
	l.install = true
	return errors.Join(s.PutCheckpoint(strings.NewReader("adam")), s.RaiseMark(1, 11))
}

// round is what a node does in a round of a fragment.
func (l *session) round(s *Store, log *StepLog, fragment int, round uint32) error {
	if err := log.Append(Step{Number: uint64(round), Tokens: 512}); err != nil {
		return err
	}
	l.steps++
	own, other := makeDelta(1, fragment, round), makeDelta(2, fragment, round)
	if err := own.putOwn(s, uint64(round)); err != nil {
		return err
	}
	l.own, l.mark[fragment] = append(l.own, own), round
	return errors.Join(other.put(s), s.PutRound(fragment, round, Round{}), s.PutBase(fragment, round, encoded{byte(round)}),
		s.PutCheckpoint(strings.NewReader("adam")), s.DropBase(fragment, round-1), s.ForgetOwn(makeDelta(1, 0, 1).id), s.Flush())
}

// check compares what is found after a crash with what was promised.
func (l *session) check(t *testing.T, dir string) {
	t.Helper()
	key, _, err := LoadKey(dir)
	must(t, err, SaveGenesis(dir, []byte("genesis")))
	again, created, err := LoadKey(dir)
	if must(t, err); created || !again.Equal(key) {
		t.Error("the key changes")
	}
	s, err := Open(dir, testRun)
	must(t, err)
	for _, d := range l.own {
		if got, err := s.Payload(d.id); err != nil || len(got) != len(d.payload) {
			t.Errorf("own %v: %v", d.id, err)
		}
		fragment, round := int(d.h.Header.Fragment), d.h.Header.Round
		if mark, err := s.Mark(fragment); err != nil || mark < round {
			t.Errorf("mark of fragment %d is %d, %v; round %d is signed", fragment, mark, err, round)
		}
		if other := deltaOf(1, fragment, round, []byte("another")); !errors.Is(other.putOwn(s, 99), ErrMark) {
			t.Errorf("fragment %d round %d can be signed twice", fragment, round)
		}
	}
	if sum, err := SumSteps(dir); err != nil || int(sum.Steps+sum.Damaged) < l.steps {
		t.Errorf("%+v steps of %d, %v", sum, l.steps, err)
	}
	l.checkFiles(t, s)
	if fresh := makeDelta(1, 0, 20); fresh.putOwn(s, 100) != nil {
		t.Error("nothing can be published any more")
	}
	must(t, s.Close(), Check(dir))
}

// checkFiles: index and files name each other, and every own delta that is
// listed is whole.
func (l *session) checkFiles(t *testing.T, s *Store) {
	t.Helper()
	own, err := s.Own()
	must(t, err)
	for _, o := range own {
		if _, err := s.Payload(o.ID); err != nil {
			t.Errorf("listed as own: %v", err)
		}
	}
	for p := range 2 {
		bases, err := s.Bases(p)
		must(t, err)
		if l.install && (len(bases) != 1 || bases[0] != 9) {
			t.Errorf("fragment %d: bases %v after a snapshot was installed", p, bases)
		}
		for _, round := range bases {
			if _, err := s.Base(p, round); err != nil && !errors.Is(err, ErrCorrupt) {
				t.Errorf("base %d: %v", round, err)
			}
		}
	}
	if left := names(t, s.Dir(), tmpDir); len(left) != 0 {
		t.Errorf("left over: %v", left)
	}
	whole, damaged, err := s.CheckSegments()
	if must(t, err); len(damaged) > 0 || l.sealed && whole != 2 || whole != len(names(t, s.Dir(), segmentsDir)) {
		t.Errorf("%d segments of %v are whole: %v", whole, names(t, s.Dir(), segmentsDir), damaged)
	}
	checkHeld(t, s)
	payloads := 0
	for p := range 2 {
		must(t, s.Held(p, 0, MaxRound, func(wire.Digest, wire.SignedHeader) error { payloads++; return nil }))
	}
	// Those of others are not synced: a loss of power may take the files.
	if files := names(t, s.Dir(), deltasDir); len(files) > payloads || len(files) < payloads && !l.dark {
		t.Errorf("%d payloads, and files %v", payloads, files)
	}
}

// A machine may die before any change to its disk, with or without what was
// synced, or in the middle of a write. Own deltas and marks whose call returned
// are there, nothing is half there, and the node can go on. ATOLL_LONG=1 has it die at each point in all ways, else in one of them.
func TestDeathAtEveryPoint(t *testing.T) {
	for i, way := range []struct {
		name       string
		torn, dark bool
	}{{"kill", false, false}, {"torn write", true, false}, {"power loss", false, true}, {"torn write and power loss", true, true}} {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			first, stride := 1+i, 4
			if long {
				first, stride = 1, 1
			}
			for k := first; ; k += stride {
				dir := t.TempDir()
				f := newFaulty(die(k, way.torn))
				l := session{mark: map[int]uint32{}, dark: way.dark}
				err := l.live(f.disk(), dir)
				if err == nil {
					if k < 80 {
						t.Fatalf("only %d changes: the session shows nothing", k)
					}
					t.Logf("all points below %d", k)
					return
				}
				if !errors.Is(err, errDead) {
					t.Fatalf("point %d: %v", k, err)
				}
				if way.dark {
					f.cutPower(t)
				}
				if l.check(t, dir); t.Failed() {
					t.Fatalf("after dying at change %d", k)
				}
			}
		})
	}
}

// seal puts the first round into a segment.
func seal(s *Store) error {
	s.perSegment = 1
	_, err := s.Seal([]uint32{1}, tokensOf)
	return err
}

// A disk that takes nothing for a while costs nothing that was there: calls
// fail and can be made again, and what waits for a commit stays readable.
func TestDiskThatFailsForAWhile(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.ENOSPC, syscall.EROFS, syscall.EIO} {
		var broken bool
		f := newFaulty(func(int, Op) error {
			if broken {
				return errno
			}
			return nil
		})
		dir := t.TempDir()
		s, err := f.disk().Open(dir, testRun)
		must(t, err)
		log, err := s.OpenStepLog()
		must(t, err)
		kept, own, lost := makeDelta(2, 0, 1), makeDelta(1, 0, 1), makeDelta(2, 0, 2)
		must(t, kept.put(s), own.putOwn(s, 1), s.PutRound(0, 1, Round{Tokens: 7}))

		broken = true
		for range 3 {
			next := makeDelta(1, 0, 2)
			for _, err := range []error{s.Flush(), lost.put(s), next.putOwn(s, 2), s.PutBase(0, 1, encoded("tip")), s.Install(tipsOf(9, 0)), seal(s), log.Append(Step{Tokens: 1}), s.disk.Probe(dir)} {
				if TroubleOf(err) == Well {
					t.Errorf("%v: error %v", errno, err)
				}
			}
			must(t, s.PutRound(0, 2, Round{Tokens: 8})) // waits in memory
		}
		if r, err := s.Round(0, 2); err != nil || r.Tokens != 8 {
			t.Errorf("%v: what waits is %+v, %v", errno, r, err)
		}
		if mark, err := s.Mark(0); err != nil || mark != 1 {
			t.Errorf("%v: mark %d, %v", errno, mark, err)
		}

		broken = false
		must(t, s.disk.Probe(dir), lost.put(s), makeDelta(1, 0, 2).putOwn(s, 2), log.Append(Step{Tokens: 1}), log.Close())
		kill(t, s)
		s = openTest(t, dir)
		if r, err := s.Round(0, 2); err != nil || r.Tokens != 8 {
			t.Errorf("%v: after the disk was well again: %+v, %v", errno, r, err)
		}
		if own, err := s.Own(); err != nil || len(own) != 2 {
			t.Errorf("%v: own deltas %v, %v", errno, own, err)
		}
		if sum, err := SumSteps(dir); err != nil || sum.Steps != 4 || sum.Damaged != 0 {
			t.Errorf("%v: steps %+v, %v", errno, sum, err)
		}
	}
}

// A slow disk takes minutes for a large file. Meanwhile deltas are signed, rounds recorded and payloads read: only the file
// itself is waited for.
func TestSlowFileHoldsUpNothing(t *testing.T) {
	scratch := func(s *Store) error {
		_, err := s.Scratch(func(w io.Writer) error { _, err := w.Write([]byte("chunk")); return err })
		return err
	}
	for _, c := range []struct {
		name   string
		at     OpKind
		change func(*Store) error
	}{
		{"checkpoint", OpWrite, func(s *Store) error { return s.PutCheckpoint(strings.NewReader("adam")) }},
		{"checkpoint", OpSync, func(s *Store) error { return s.PutCheckpoint(strings.NewReader("adam")) }},
		{"kept state", OpWrite, func(s *Store) error { return s.PutBase(0, 1, encoded("tip")) }},
		{"snapshot of a join", OpWrite, func(s *Store) error { return s.Install(tipsOf(9, 1)) }},
		{"snapshot of a join", OpSync, func(s *Store) error { return s.Install(tipsOf(9, 1)) }},
		{"segment", OpWrite, seal}, {"segment", OpSync, seal},
		{"payload", OpWrite, makeDelta(3, 0, 2).put},
		{"scratch", OpWrite, scratch},
	} {
		t.Run(c.name+", "+string(c.at), func(t *testing.T) {
			var slow atomic.Bool
			busy, ready := make(chan struct{}), make(chan struct{})
			s, err := Disk{Before: func(op Op) error {
				if op.Kind == c.at && slow.CompareAndSwap(true, false) {
					close(busy)
					<-ready
				}
				return nil
			}}.Open(t.TempDir(), testRun)
			own, next := makeDelta(1, 0, 1), makeDelta(1, 0, 2)
			must(t, err, own.putOwn(s, 1), makeDelta(2, 0, 1).put(s), s.PutRound(0, 1, Round{}))
			slow.Store(true)
			done := make(chan error)
			go func() { done <- c.change(s) }()
			<-busy
			must(t, next.putOwn(s, 2), s.PutRound(1, 1, Round{}), s.Flush())
			if _, err := s.Payload(own.id); err != nil {
				t.Error(err)
			}
			close(ready)
			must(t, <-done, s.Close())
		})
	}
}

// A commit that fails at its last step may stand. The delta that it was for is
// withdrawn all the same, before anything else can leave, and its round can be
// signed again.
func TestCommitThatFailsAndStands(t *testing.T) {
	failing := 0 // the commit that fails, counted down
	f := newFaulty(func(_ int, op Op) error {
		if op.Kind != OpCommitted {
			return nil
		}
		if failing--; failing == 0 {
			return syscall.EIO
		}
		return nil
	})
	dir := t.TempDir()
	s, err := f.disk().Open(dir, testRun)
	must(t, err)
	first, failed, second := makeDelta(1, 0, 1), makeDelta(1, 0, 2), deltaOf(1, 0, 2, []byte("another"))
	must(t, first.putOwn(s, 1))
	failing = 1
	wantErr(t, failed.putOwn(s, 2), syscall.EIO)
	if header, _ := s.Has(failed.id); header {
		t.Error("the delta is still there")
	}
	failing = 2
	must(t, s.Install(tipsOf(9, 0))) // stands, so it is done
	must(t, second.putOwn(s, 2))
	kill(t, s)
	s = openTest(t, dir)
	own, err := s.Own()
	must(t, err)
	if len(own) != 2 || own[1].ID != second.id {
		t.Errorf("own deltas %v", own)
	}
	if n := len(names(t, dir, deltasDir)); n != 2 {
		t.Errorf("%d payloads, want 2", n)
	}
	has(t, s, []uint32{9}, []uint32{9})
}

// What waits while nothing can be committed is bounded.
func TestWaitingIsBounded(t *testing.T) {
	broken := false
	f := newFaulty(func(_ int, op Op) error {
		if broken && op.Kind == OpCommit {
			return syscall.ENOSPC
		}
		return nil
	})
	s, err := f.disk().Open(t.TempDir(), testRun)
	must(t, err)
	broken = true
	s.pending = make([]change, maxWaiting)
	for i := range s.pending {
		s.pending[i] = func(*bbolt.Tx) error { return nil }
	}
	wantErr(t, s.Put("k", nil), ErrWaiting)
	broken = false
	must(t, s.Flush(), s.Put("k", nil), s.Close())
}

// The log of steps forgets none while it cannot be written, up to a bound.
func TestStepLogWaits(t *testing.T) {
	torn := false
	f := newFaulty(func(_ int, op Op) error {
		if !torn || op.Kind != OpWrite {
			return nil
		}
		return errors.Join(syscall.ENOSPC, appendFile(op.Path, op.Data[:len(op.Data)/2]))
	})
	dir := t.TempDir()
	s, err := f.disk().Open(dir, testRun)
	must(t, err)
	l, err := s.OpenStepLog()
	must(t, err, l.Append(Step{Number: 1, Tokens: 5}))
	torn = true
	wantErr(t, l.Append(Step{Number: 2, Tokens: 6}), syscall.ENOSPC)
	wantErr(t, l.Append(Step{Number: 3, Tokens: 7}), syscall.ENOSPC)
	torn = false
	must(t, l.Append(Step{Number: 4, Tokens: 8}))
	want := Steps{Steps: 4, Tokens: 26, Last: Step{Number: 4, Tokens: 8}}
	if sum, err := SumSteps(dir); err != nil || sum != want || l.Sum() != want {
		t.Errorf("%+v and %+v, %v", sum, l.Sum(), err)
	}
	l.waiting = make([]byte, maxWaitingSteps*stepSize)
	wantErr(t, l.Append(Step{}), ErrWaiting)
	l.waiting = nil
	must(t, l.Close(), s.Close())
}
