package replica_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"atoll/gossip/wire"
	"atoll/node/core"
	"atoll/node/replica"
	"atoll/optimizer/outer"
	"atoll/optimizer/rounds"
)

// wanted is a fold of the first rounds of fragment 0, whose deltas it puts on the disk.
func (g *rig) wanted(n uint32, keep ...uint32) rounds.WantFold {
	w := rounds.WantFold{Job: job, Keep: keep}
	for round := range n {
		w.Sets = append(w.Sets, g.set(0, round+1))
	}
	return w
}

func TestFold(t *testing.T) {
	g, same := newRig(t).start(), newRig(t).write(3, false)
	tip, err := g.fold(g.wanted(3, 2))
	g.check(err)
	f := saw[replica.TipFolded](g)[0]
	if want := same.tips[0]; tip.State != want.State || tip.Chain != want.Chain || len(f.States) != 3 || f.States[2] != want.State {
		t.Errorf("folded to round %d, state %x", tip.Round, tip.State[:4])
	}
	wantRounds(t, "kept", g.inMemory(0), 0, 2, 3)
	for i, l := range f.Links {
		if disk, ok := g.disk.Record(0, l.Round); !ok || disk.Chain != l.Chain || len(l.Folded) != 2 || l.Tokens != uint64(200*(i+1)) {
			t.Errorf("record %d: %+v, on disk %v", i, l, ok)
		}
	}
	var sum float64
	for _, share := range f.Shares {
		sum += share
	}
	if len(f.Shares) != 2 || math.Abs(sum-1) > 1e-9 {
		t.Errorf("shares by author %v", f.Shares)
	}
}

// A fold without rounds reads the tip again; it records nothing.
func TestFoldOfNoRounds(t *testing.T) {
	g := newRig(t).write(4, true).start()
	tip, err := g.base(0, 4)
	g.check(err)
	want(t, "state", tip.State, g.tips[0].State)
	wantRounds(t, "records", g.records(0), 1, 2, 3, 4)
}

// A node that stops ends a fold between two rounds, and nobody hears of it.
func TestFoldIsCut(t *testing.T) {
	g := newRig(t).start()
	g.cut = true
	g.do(g.wanted(3))
	if len(saw[replica.TipFolded](g))+len(saw[replica.FoldFailed](g))+len(g.records(0)) > 0 {
		t.Error("something came of the fold")
	}
}

// A payload that the disk has damaged is dropped there, told of, and no longer held:
// repair brings it again.
func TestLostPayload(t *testing.T) {
	g := newRig(t).write(4, true).write(2, false)
	id, _, _ := g.signed(0, 6, g.keys[1])
	g.errs["Payload "+id.String()] = replica.ErrGone
	g.start()
	if g.disk.Holds(id) {
		t.Error("the disk still has it")
	}
	if known, held := g.Machine().Rounds().Fragment(0).Known(6, outer.ID(id)); !known || held {
		t.Errorf("the machine knows it: %v, and holds it: %v", known, held)
	}
	if told := saw[replica.Damaged](g); len(told) == 0 || g.failed != nil {
		t.Errorf("told %v, failed with %v", told, g.failed)
	}
}

// A base that is gone is forgotten, and what was to be folded from it is folded from
// an older one.
func TestLostBase(t *testing.T) {
	g := newRig(t).write(2, true).write(2, true).write(2, true).start()
	id, _, _ := g.signed(0, 5, g.keys[1])
	g.Machine().Lost(g.now, id)    // the rounds from there on have to be folded again
	g.check(g.disk.DropBase(0, 4)) // while the replica takes it for written
	g.finish()
	wantRounds(t, "on disk", g.onDisk(0), 2, 6)
	want(t, "kept", g.KeptBases(0), len(g.Machine().Rounds().Fragment(0).Bases()))
	failed := saw[replica.FoldFailed](g)
	if len(failed) != 1 || failed[0].Want.Start != 4 || len(saw[replica.Damaged](g)) != 1 {
		t.Fatalf("failed %v", failed)
	}
	wantError(t, "the fold", failed[0].Err, replica.ErrNoBase)
	g.tick(3_600_000)
	if f := saw[replica.TipFolded](g); len(f) != 1 || f[0].Want.Start != 2 {
		t.Errorf("then folded %+v", f)
	}
}

// Global parameters that memory has damaged are not folded from: the machine hears of it, and
// the next fold begins at what the disk has.
func TestDamagedMemory(t *testing.T) {
	g := newRig(t).write(4, true).start()
	tip := g.Machine().Rounds().Fragment(0).Tip()
	tip.Global[0]++
	g.closes(0, 1)
	if told := saw[replica.Damaged](g); len(told) != 1 || !errors.Is(told[0].Err, outer.ErrDamaged) {
		t.Fatalf("told %v", told)
	}
	g.tick(3_600_000)
	if repaired := g.Machine().Rounds().Fragment(0).Tip(); repaired.Round != 5 || !repaired.Sound() {
		t.Errorf("the tip is of round %d, sound %t", repaired.Round, repaired.Sound())
	}
}

// Where the tip is the only base it is read again.
func TestDamagedTipIsReadAgain(t *testing.T) {
	g := newRig(t).start()
	tip := g.Machine().Rounds().Fragment(0).Tip()
	tip.Global[0]++
	g.Machine().Damaged(g.now, 0, rounds.DamagedTip, 0)
	g.finish().tick(3_600_000)
	if repaired := g.Machine().Rounds().Fragment(0).Tip(); repaired == tip || !repaired.Sound() || g.failed != nil {
		t.Errorf("the tip is sound: %t; failed with %v", repaired.Sound(), g.failed)
	}
}

// An error that may pass costs nothing; one of the index ends the node.
func TestErrorsOfPayloads(t *testing.T) {
	passing := errors.New("too many open files")
	for _, c := range []struct {
		err    error
		failed bool
	}{{passing, false}, {core.ErrOvertaken, false}, {replica.ErrFatal, true}} {
		g := newRig(t).start()
		w := g.wanted(1)
		g.errs["Payload"] = c.err
		_, err := g.fold(w)
		wantError(t, "the fold", err, c.err)
		want(t, "the node ends", g.failed != nil, c.failed)
		if !g.disk.Holds(wire.Digest(w.Sets[0][0].ID)) || len(saw[replica.Damaged](g)) > 0 {
			t.Errorf("%v: a payload was dropped", c.err)
		}
	}
}

// A fold that comes to another chain than the headers ends the node.
func TestAnotherChainIsFatal(t *testing.T) {
	g := newRig(t).write(4, true).write(2, false)
	g.check(g.tryStart())
	for _, e := range g.Machine().Effects() {
		work, _ := e.(core.Work)
		if w, is := work.Effect.(rounds.WantFold); is && w.Fragment == 0 {
			w.Sets = slices.Clone(w.Sets)
			w.Sets[0] = w.Sets[0][:1]
			g.do(w)
		}
	}
	if g.failed == nil || !strings.Contains(g.failed.Error(), "memory corruption or a bug") {
		t.Errorf("failed with %v", g.failed)
	}
}
