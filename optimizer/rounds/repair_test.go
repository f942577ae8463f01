package rounds

import (
	"slices"
	"testing"

	"atoll/optimizer/outer"
)

// spoil is a fold that came out wrong: the newest tip of fragment 0, and every
// record of it, are those of a machine that miscalculated.
func (g *rig) spoil() (right *outer.Tip) {
	f := g.m.frags[0]
	right = f.chain.tip
	bad := *right
	bad.Global = slices.Clone(right.Global)
	bad.Global[3] += 0.5
	spoilt, err := outer.DecodeTip(bad.Encode(), g.plan[0], g.p) // computes the digests of a tip
	if err != nil {
		g.t.Fatal(err)
	}
	f.chain.tip = spoilt
	f.chain.links[len(f.chain.links)-1].State = spoilt.State
	g.bases[0][right.Round] = spoilt
	return right
}

// recorded returns the effects of one kind that the machine asked for.
func watch[E Effect](g *rig) *[]E {
	var seen []E
	g.learner = func(e Effect) {
		if e, ok := e.(E); ok {
			seen = append(seen, e)
		}
	}
	return &seen
}

func TestRecheckFindsOwnFault(t *testing.T) {
	g := newRig(t, roundsParams(2))
	g.live(1)
	g.close(3)
	shared := g.m.Fragment(0).Closed() - 1
	right := g.spoil()
	checked := watch[Checked](g)
	g.m.Recheck(g.now, 0, shared)
	g.drain()
	if !slices.Equal(*checked, []Checked{{Fragment: 0, Wrong: true, Round: right.Round}}) {
		t.Fatalf("the check came to %+v", *checked)
	}
	a := g.lastAdopt()
	if !a.Repair || a.Tip.State != right.State {
		t.Errorf("adopted %x, repair %t; want %x to repair", a.Tip.State[:4], a.Repair, right.State[:4])
	}
	if l, _ := g.m.Fragment(0).Link(right.Round); l.State != right.State {
		t.Error("the record still has the wrong state")
	}
	g.close(1)
	if g.lastAdopt().Repair {
		t.Error("repaired twice")
	}
}

func TestRecheckClearsOfSuspicion(t *testing.T) {
	g := newRig(t, roundsParams(2))
	g.live(1)
	g.close(3)
	checked := watch[Checked](g)
	g.m.Recheck(g.now, 0, g.m.Fragment(0).Closed()-1)
	g.drain()
	if len(*checked) != 1 || (*checked)[0].Wrong {
		t.Fatalf("the check came to %+v, want that this node is right", *checked)
	}
	if g.lastAdopt().Repair {
		t.Error("a sound tip was repaired")
	}
	g.m.Recheck(g.now, 0, 77)
	g.m.Recheck(g.now, 0, g.m.Fragment(0).Closed())
	g.drain()
	if len(*checked) != 1 {
		t.Error("folded again from a base that is not kept, or from the tip")
	}
}

// A tip that memory damaged is folded again from the base below it.
func TestDamagedTipIsFoldedAgain(t *testing.T) {
	g := newRig(t, roundsParams(2))
	g.live(1)
	g.close(3)
	tip, folds := g.m.Fragment(0).Tip(), g.folds
	g.bases[0][tip.Round] = nil // whatever is read from it now fails the rig
	g.m.Damaged(g.now, 0, DamagedTip, 0)
	g.drain()
	if g.folds != folds {
		t.Fatal("a sound tip was folded again")
	}
	tip.Global = slices.Clone(tip.Global)
	tip.Global[0]++
	g.m.Damaged(g.now, 0, DamagedTip, 0)
	g.drain()
	if a := g.lastAdopt(); !a.Repair || a.Tip.State != tip.State || g.folds != folds+1 {
		t.Errorf("adopted %x with repair %t after %d folds", a.Tip.State[:4], a.Repair, g.folds-folds)
	}
}

// Where no older base is kept, the tip itself is read again.
func TestDamagedLoneTipIsReadAgain(t *testing.T) {
	g := newRig(t, roundsParams(2))
	wanted := watch[WantFold](g)
	damaged := *g.m.Fragment(1).Tip()
	damaged.Global = slices.Clone(damaged.Global)
	damaged.Global[0]++
	g.m.frags[1].chain.tip = &damaged
	g.m.Damaged(g.now, 1, DamagedTip, 0)
	g.drain()
	if len(*wanted) != 1 || (*wanted)[0].Start != 0 || len((*wanted)[0].Sets) != 0 {
		t.Fatalf("asked for %+v", *wanted)
	}
	if a := g.lastAdopt(); !a.Repair || a.Fragment != 1 || a.Tip != g.bases[1][0] {
		t.Errorf("adopted %+v", a)
	}
	g.close(2)
}

func TestLostLoneBaseNeedsAnotherNode(t *testing.T) {
	g := newRig(t, roundsParams(2))
	wanted := watch[WantSnapshot](g)
	g.m.Damaged(g.now, 0, DamagedBase, 5)
	g.drain()
	if len(*wanted) != 0 {
		t.Fatal("the loss of a base that is not kept matters to nobody")
	}
	g.m.Damaged(g.now, 0, DamagedBase, 0)
	g.drain()
	if len(*wanted) != 1 {
		t.Fatal("nobody was asked for the tips")
	}
}

// The base of the tip itself is what the local parameters stand on.
func TestLostBaseOfTheTipIsRepaired(t *testing.T) {
	g := newRig(t, roundsParams(2))
	g.live(1)
	g.close(3)
	g.m.Damaged(g.now, 0, DamagedBase, g.m.Fragment(0).Tip().Round)
	g.after(g.p.GraceMaxMs)
	if !g.lastAdopt().Repair {
		t.Error("not repaired")
	}
	g.m.Damaged(g.now, 0, DamagedBase, g.m.Fragment(0).Tip().Round-1)
	g.after(g.p.GraceMaxMs)
	if g.lastAdopt().Repair {
		t.Error("an older base says nothing about the tip")
	}
}

func TestHealedWorkIsNotPending(t *testing.T) {
	g := newRig(t, roundsParams(2))
	g.step(5)
	g.m.Repaired(g.now, 0, outer.Loss{Lost: outer.Work{Steps: 3, Tokens: 3 * 512}})
	if steps, tokens := g.m.Fragment(0).Pending(); steps != 2 || tokens != 2*512 {
		t.Errorf("%d steps, %d tokens are pending", steps, tokens)
	}
	g.m.Repaired(g.now, 0, outer.Loss{Lost: outer.Work{Steps: 9, Tokens: 9 * 512}})
	if steps, tokens := g.m.Fragment(0).Pending(); steps != 0 || tokens != 0 {
		t.Errorf("%d steps, %d tokens are pending", steps, tokens)
	}
}

// A draft that the disk refused is asked for again, but not at every step.
func TestRefusedDraftComesLater(t *testing.T) {
	g := newRig(t, roundsParams(1))
	g.step(8)
	g.expectDrafts(0)
	g.m.SettleDraft(g.now, 0, OwnDelta{}, errDisk)
	g.step(20)
	g.expectDrafts(0)
	if steps, _ := g.m.Fragment(0).Pending(); steps != 28 {
		t.Errorf("%d steps are pending of 28", steps)
	}
	g.now += draftRetryMs
	g.step(1)
	g.expectDrafts(0, 0)
}

// A damaged payload stops no fold for ever, not even of a round that left the
// window before it was folded: no repair brings it again.
func TestLostPayloadOfAFinalRound(t *testing.T) {
	p := roundsParams(1)
	p.WindowAccept, p.WindowUnion = 4, 8
	g := newRig(t, p)
	g.live(1)
	g.close(2)
	g.hold = true
	g.close(12)
	for round, lost := range map[uint32]bool{2: false, 4: true} { // the first is folded already
		id := g.delta(outer.Author{1}, 0, round).ID
		if !g.m.final(g.m.frags[0], round) {
			t.Fatalf("round %d is not final", round)
		}
		g.m.Payload(g.now, 0, round, id, PayloadLost)
		if _, held := g.m.Fragment(0).Known(round, id); held == lost {
			t.Errorf("the payload of round %d is held: %t", round, held)
		}
	}
	g.m.TakeFold(g.now, FoldResult{Fragment: 0, Job: g.wanted[0].Job, Err: errDisk})
	g.wanted, g.hold = nil, false
	g.after(p.GraceMaxMs)
	if !g.m.Status().Settled || g.m.Fragment(0).Tip().Round != 14 {
		t.Errorf("folded up to round %d of 14", g.m.Fragment(0).Tip().Round)
	}
}
