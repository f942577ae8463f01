package replica_test

import (
	"slices"
	"testing"

	"atoll/node/replica"
	"atoll/optimizer/outer"
	"atoll/optimizer/rounds"
	"atoll/testnet/sim/memory"
)

// Every fourth base is on disk, and all that the machine keeps are at hand.
func TestBasesByPolicy(t *testing.T) {
	g := newRig(t).start().closes(0, 9)
	wantRounds(t, "on disk", g.onDisk(0), 4, 8)
	kept := g.Machine().Rounds().Fragment(0).Bases()
	wantRounds(t, "in memory", g.inMemory(0), kept...)
	want(t, "kept", g.KeptBases(0), len(kept))
	for _, round := range kept {
		if tip, err := g.base(0, round); err != nil || tip.Round != round {
			t.Errorf("round %d: %v", round, err)
		}
	}
	_, err := g.base(1, 4)
	wantError(t, "a base of another fragment", err, replica.ErrNoBase)
	g.do(rounds.DropBase{Fragment: 0, Round: 4}, rounds.DropBase{Fragment: 0, Round: 9}, rounds.DropBase{Fragment: 0, Round: 9})
	wantRounds(t, "on disk after the drop", g.onDisk(0), 8)
	_, err = g.base(0, 9)
	wantError(t, "a dropped base", err, replica.ErrGone)
}

// A disk that refuses a base does not stop folds.
func TestBasesThatTheDiskRefuses(t *testing.T) {
	g := newRig(t).start().closes(0, 3)
	saw[replica.TipFolded](g)
	g.disk.Full = true
	g.closes(0, 1)
	want(t, "folds", len(saw[replica.TipFolded](g)), 1)
	if failed := saw[replica.FoldFailed](g); len(failed) != 0 {
		t.Errorf("failed %v", failed)
	}
	want(t, "in memory", slices.Contains(g.inMemory(0), 4), true)
	wantError(t, "told", g.checked[0], memory.ErrFull)
	g.disk.Full = false
	g.tick(3_600_000).closes(0, 4)
	want(t, "the tip's round after there is room", g.Machine().Rounds().Fragment(0).Tip().Round, 8)
}

// The newest base on disk outlives its use while the disk takes no newer one: a restart
// needs one.
func TestNewestBaseStaysOnDisk(t *testing.T) {
	g := newRig(t).start().closes(0, 7)
	g.disk.Full = true
	g.closes(0, 6)
	wantRounds(t, "on a full disk", g.onDisk(0), 4)
	want(t, "in memory", slices.Contains(g.inMemory(0), 4), false)
	g.disk.Full = false
	g.closes(0, 3)
	wantRounds(t, "with a newer one", g.onDisk(0), 16)
}

// One that outlived its use and came back is a base like all others.
func TestOutlivedBaseComesBack(t *testing.T) {
	g := newRig(t).start().closes(0, 4)
	g.do(rounds.DropBase{Fragment: 0, Round: 4})
	wantRounds(t, "the only one", g.onDisk(0), 4)
	g.do(rounds.WantFold{Job: job, Start: 3, Sets: make([][]outer.Delta, 1)}).closes(0, 4)
	wantRounds(t, "with a newer one", g.onDisk(0), 4, 8)
}

// A base above the tip is of rounds that are no longer closed. It goes, and the newest one
// below it stays.
func TestBaseAboveTheTip(t *testing.T) {
	g := newRig(t).start().closes(0, 4)
	g.do(rounds.WantFold{Job: job, Start: 4, Sets: make([][]outer.Delta, 4)})
	wantRounds(t, "on disk", g.onDisk(0), 4, 8)
	g.do(rounds.DropBase{Fragment: 0, Round: 4})
	wantRounds(t, "the newest one below the tip", g.onDisk(0), 4, 8)
	g.do(rounds.DropBase{Fragment: 0, Round: 8})
	wantRounds(t, "the one above", g.onDisk(0), 4)
}

// Memory has the newest bases within its budget, the disk gives the others.
func TestBasesWithinABudget(t *testing.T) {
	g := newRig(t).start()
	_, genesis := g.HeldBases(0)
	g.SetBaseBudget(genesis / 2 * 5) // one fragment's is half of it
	g.closes(0, 12)
	held, bytes := g.HeldBases(0)
	if held[8] || !held[11] || !held[12] || bytes > genesis/2*5 {
		t.Errorf("in memory: %v, %d bytes", held, bytes)
	}
	tip, err := g.base(0, 8)
	g.check(err)
	want(t, "read back", tip.Round, 8)
}

// Where the newest bases alone are over the budget, as those of a large model, memory has no others, and the
// disk has all that the machine keeps, round 0 among them. A restart that has no use for that drops it.
func TestBasesOfALargeModel(t *testing.T) {
	g := newRig(t).start()
	g.SetBaseBudget(1)
	g.closes(0, 11)
	wantRounds(t, "in memory", g.inMemory(0), 11)
	want(t, "round 0 on disk", g.onDisk(0)[0], 0)
	kept := g.Machine().Rounds().Fragment(0).Bases()
	for _, round := range kept {
		if tip, err := g.base(0, round); err != nil || tip.Round != round {
			t.Errorf("round %d: %v", round, err)
		}
	}
	want(t, "kept", g.KeptBases(0), len(kept))
	g.disk.Full = true
	g.closes(0, 1)
	want(t, "what a full disk does not take stays", slices.Contains(g.inMemory(0), 11), true)
}

// A base that is on disk is replaced there whatever its round, and goes where the disk
// does not take the new one.
func TestBasesReplaceWhatIsOnDisk(t *testing.T) {
	for full, left := range map[bool][]uint32{false: {2}, true: nil} {
		g := newRig(t).write(2, true)
		g.start()
		g.disk.Full = full
		tip, err := g.fold(rounds.WantFold{Job: job, Sets: make([][]outer.Delta, 2)})
		g.check(err)
		wantRounds(t, "on disk", g.onDisk(0), left...)
		if kept, err := g.disk.Base(0, 2); !full && (err != nil || kept.State != tip.State) {
			t.Errorf("on disk is another base: %v", err)
		}
	}
}

// A base that memory has damaged is not used, unless memory is trusted; then it is read
// from the disk.
func TestDamagedBaseInMemory(t *testing.T) {
	for _, trusted := range []bool{false, true} {
		g := newRig(t)
		g.policy.TrustMemory = trusted
		g.start().closes(0, 4)
		kept, _ := g.base(0, 4)
		copied, err := outer.DecodeTip(kept.Encode(), g.plan[0], g.params)
		g.check(err)
		g.check(g.disk.PutBase(0, copied))
		kept.Global[0]++
		_, err = g.base(0, 4)
		if trusted {
			g.check(err)
			continue
		}
		wantError(t, "damaged", err, outer.ErrDamaged)
		again, err := g.base(0, 4)
		g.check(err)
		want(t, "read again", again, copied)
	}
}

// Nothing but arithmetic is needed to have genesis again.
func TestDamagedGenesisIsMadeAnew(t *testing.T) {
	g := newRig(t).start()
	tip, err := g.base(0, 0)
	g.check(err)
	tip.Global[0]++
	_, err = g.base(0, 0)
	wantError(t, "damaged", err, outer.ErrDamaged)
	again, err := g.base(0, 0)
	if err != nil || again.State != tip.State || !again.Sound() {
		t.Errorf("made anew: %v", err)
	}
	wantRounds(t, "in memory", g.inMemory(0), 0)
}
