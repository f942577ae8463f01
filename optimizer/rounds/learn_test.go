package rounds

import (
	"slices"
	"testing"

	"atoll/optimizer/outer"
)

// Fragments are staggered: the counter of fragment p begins at p*H/P.
func TestProposesAtHStaggered(t *testing.T) {
	g := newRig(t, roundsParams(4)) // H 8: fragment 3 begins at 6, 2 at 4, ...
	g.step(1)
	g.expectDrafts()
	g.step(1)
	g.expectDrafts(3)
	g.step(2)
	g.expectDrafts(3, 2)
	g.step(4)
	g.expectDrafts(3, 2, 1, 0)
}

func TestProposesOncePerRound(t *testing.T) {
	g := newRig(t, roundsParams(1))
	g.live(1)
	g.step(8)
	g.expectDrafts(0)
	g.step(8)
	g.expectDrafts(0) // still on its way
	if d := g.publish(0); d.Round != 1 || d.Steps != 16 {
		t.Fatalf("published %+v", d)
	}
	g.step(9) // round 1 is open, for another 10 ms of grace, and has its delta
	g.expectDrafts()
	g.expectClosed(0)
	g.after(g.p.GraceMinMs)
	g.expectClosed(1)
	g.expectDrafts(0) // H steps since: proposes round 2 as soon as it may
}

func TestPublishesInAProposedRound(t *testing.T) {
	g := newRig(t, roundsParams(1))
	g.live(1)
	g.close(1)
	g.step(1)
	g.want(g.offer(g.delta(outer.Author{1}, 0, 2)), nil)
	g.expectDrafts() // one step is below h_min
	g.step(1)
	g.expectDrafts(0)
	if d := g.publish(0); d.Round != 2 || d.Steps != 2 {
		t.Fatalf("published %+v", d)
	}
}

// A header proposes and counts before its payload came only if the payload of the
// author's delta before it came.
func TestNoProposalWhilePayloadIsMissing(t *testing.T) {
	g := newRig(t, roundsParams(1))
	g.live(1)
	g.step(int(g.p.HMin))
	first := g.delta(outer.Author{1}, 0, 1)
	expect := func(made uint64, drafts ...int) {
		t.Helper()
		if got := g.m.Fragment(0).Projected(g.now); got != made {
			t.Fatalf("%d tokens are projected, want %d", got, made)
		}
		g.expectDrafts(drafts...)
	}
	g.want(g.offer(first), nil)
	expect(0)
	g.held(first)
	expect(first.Tokens, 0)
	g.publish(0)
	g.expectClosed(1)
	made := g.m.Fragment(0).Projected(g.now)
	g.step(int(g.p.HMin))
	g.want(g.offer(g.delta(outer.Author{1}, 0, 2)), nil)
	expect(made+first.Tokens, 0)
	g.publish(0)
	g.after(g.p.GraceMaxMs)
	g.expectClosed(2)
	made = g.m.Fragment(0).Projected(g.now)
	g.step(int(g.p.HMin))
	g.want(g.offer(g.delta(outer.Author{1}, 0, 3)), nil)
	expect(made)
}

func TestObserverPublishesNothing(t *testing.T) {
	g := newRig(t, roundsParams(1))
	g.m.learner = false
	g.give(g.delta(outer.Author{1}, 0, 1))
	g.m.SetStopped(g.now, true, true)
	g.step(20)
	g.expectDrafts()
}

// Deltas that no peer took stop further ones while there are peers, not when
// alone, and not for ever.
func TestLinkBusy(t *testing.T) {
	for _, peers := range []bool{true, false} {
		p := roundsParams(1)
		p.GraceMaxMs = 5000
		g := newRig(t, p)
		if peers {
			g.live(1)
		}
		first := outer.Delta{}
		for range maxUnsent {
			g.step(8)
			if d := g.publish(0); first.Round == 0 {
				first = d
			}
			g.after(500)
		}
		g.step(8)
		if busy := len(g.drafts) == 0; busy != peers {
			t.Fatalf("peers %v: busy %v", peers, busy)
		}
		if !peers {
			continue
		}
		g.m.HandedOver(g.now, 0, first.ID)
		g.drain()
		g.expectDrafts(0)
	}
}

// A leaver stays until a peer has what it published, though it folded that itself,
// unless nobody cared to take it.
func TestAllHanded(t *testing.T) {
	p := roundsParams(1)
	p.GraceMaxMs = 5000
	for _, handed := range []bool{true, false} {
		g := newRig(t, p)
		g.live(1)
		g.step(8)
		d := g.publish(0)
		g.give(g.delta(outer.Author{1}, 0, 1))
		g.expectClosed(1)
		if g.m.AllHanded(g.now) {
			t.Error("nobody else has what was folded here")
		}
		if handed {
			g.m.HandedOver(g.now, 0, d.ID)
		} else {
			g.after(p.GraceMaxMs)
		}
		if !g.m.AllHanded(g.now) {
			t.Errorf("handed %v: waits for nothing", handed)
		}
	}
}

func TestUntakenDeltasExpire(t *testing.T) {
	g := newRig(t, roundsParams(1))
	g.live(1)
	for range maxUnsent {
		g.step(8)
		g.publish(0)
		g.after(200)
	}
	g.step(8)
	g.expectDrafts()
	g.after(g.p.GraceMaxMs)
	g.expectDrafts(0)
}

func TestFlushPublishesAnyStep(t *testing.T) {
	g := newRig(t, roundsParams(2))
	g.step(1)
	g.expectDrafts()
	if g.m.Status().Flushed {
		t.Fatal("flushed with a step pending")
	}
	g.m.SetStopped(g.now, true, true)
	g.drain()
	g.expectDrafts(0, 1)
	g.publish(0)
	g.publish(1)
	if !g.m.Status().Flushed {
		t.Fatal("not flushed with nothing pending")
	}
}

// A draft that failed is asked for again.
func TestDraftFailed(t *testing.T) {
	g := newRig(t, roundsParams(1))
	g.step(8)
	g.expectDrafts(0)
	g.drafts = nil
	g.m.SettleDraft(g.now, 0, OwnDelta{}, ErrNoDraft)
	g.step(1)
	g.expectDrafts(0)
}

// A learner publishes for E_p+1 and then no more; Flushed then ignores what is
// pending.
func TestPublishesUpToTheRoundAfterTheEnd(t *testing.T) {
	p := roundsParams(1)
	p.Budget = 24 * 512
	g := newRig(t, p)
	g.close(1) // reaches the budget: E = 1
	if got := g.m.Fragment(0).Tip().EndRound; got != 1 || !g.m.Status().Ended {
		t.Fatalf("end round %d, ended %v", got, g.m.Status().Ended)
	}
	g.step(8)
	g.live(1)
	if d := g.publish(0); d.Round != 2 {
		t.Fatalf("published for round %d", d.Round)
	}
	g.step(1)
	if g.expectClosed(1); !g.m.Status().Flushed {
		t.Fatal("the last round is signed, and flushed waits for more")
	}
	g.after(g.p.GraceMaxMs)
	g.expectClosed(2)
	if got := g.m.Fragment(0).Tip().Tokens; got != 24*512+8*512 {
		t.Fatalf("tokens %d after E+1", got)
	}
	g.step(20)
	g.expectDrafts()
	if !g.m.Status().Flushed {
		t.Fatal("what is pending can no longer be published, and flushed waits for it")
	}
	g.give(g.delta(outer.Author{1}, 0, 3), g.delta(outer.Author{2}, 0, 4))
	g.after(g.p.GraceMaxMs)
	g.expectClosed(2)
}

// The life of an own delta that is folded, left out by an equivocation proof, and returned.
func TestSettle(t *testing.T) {
	p := roundsParams(1)
	p.WindowAccept, p.WindowUnion = 2, 4
	g := newRig(t, p)
	g.step(8)
	own := g.publish(0)
	g.expectClosed(1) // alone: at once
	if a := g.lastAdopt(); !slices.Equal(a.Seqs(outer.Folded), []uint64{1}) || a.Seqs(outer.Unfolded) != nil || a.Seqs(outer.Returned) != nil {
		t.Fatalf("a folded own delta: %+v", a)
	}
	g.m.Exclude(g.now, 0, 1, self) // as if another device had used the key
	g.drain()
	g.after(g.p.GraceMaxMs)
	if a := g.lastAdopt(); !slices.Equal(a.Seqs(outer.Unfolded), []uint64{1}) || a.Seqs(outer.Folded) != nil {
		t.Fatalf("an own delta that left the chain: %+v", a)
	}
	if n := g.m.Fragment(0).Account().InFlight.Tokens; n != own.Tokens {
		t.Fatalf("%d tokens in flight, want %d", n, own.Tokens)
	}
	g.close(3)
	if a := g.lastAdopt(); a.Seqs(outer.Returned) != nil {
		t.Fatalf("returned before it was final: %+v", a)
	}
	g.close(1)
	if a := g.lastAdopt(); !slices.Equal(a.Seqs(outer.Returned), []uint64{1}) {
		t.Fatalf("an own delta that became final unfolded: %+v", a)
	}
	if steps, tokens := g.m.Fragment(0).Pending(); steps != 8 || tokens != own.Tokens || g.m.Fragment(0).Account().InFlight.Tokens != 0 {
		t.Fatalf("%d steps and %d tokens pending after the return", steps, tokens)
	}
}

func TestFoldedOwnDeltaIsForgottenWhenFinal(t *testing.T) {
	p := roundsParams(1)
	p.WindowAccept, p.WindowUnion = 2, 4
	g := newRig(t, p)
	g.step(8)
	g.publish(0)
	g.close(4)
	var forgotten []uint64
	for _, a := range g.adopts {
		forgotten = append(forgotten, a.Seqs(outer.Forgotten)...)
	}
	if !slices.Equal(forgotten, []uint64{1}) {
		t.Fatalf("forgotten %v", forgotten)
	}
}

// An excluded learner publishes no more and holds up nobody's end.
func TestExcludedSelfIsSilent(t *testing.T) {
	g := newRig(t, roundsParams(1))
	g.m.Exclude(g.now, 0, 1, self)
	g.step(20)
	g.expectDrafts()
	if !g.m.Status().Flushed {
		t.Fatal("an excluded learner waits to publish")
	}
}

func TestRenewAsksForTheTip(t *testing.T) {
	g := newRig(t, roundsParams(1))
	g.live(1)
	g.step(8)
	g.publish(0)
	g.close(2)
	g.m.Damaged(g.now, 0, DamagedOwn, 0)
	g.drain()
	if a := g.lastAdopt(); !a.Repair || a.Tip != g.m.Fragment(0).Tip() {
		t.Errorf("adopted %+v", a)
	}
	g.m.Repaired(g.now, 0, outer.Loss{Gone: []uint64{1}})
	if got := g.m.Fragment(0).Account().InFlight.Tokens; got != 0 {
		t.Errorf("%d tokens in flight", got)
	}
}

// What is parked behind two rounds of which nothing came counts only as parked. Behind one it can be folded, as a round closes
// by a member's delta of the next, and so can what follows it. A guest's delta opens nothing.
func TestParkedBehindAGap(t *testing.T) {
	for _, c := range []struct {
		name   string
		rounds []uint32 // with a delta of a member each
		guest  uint32   // the round of a guest's, 0 for none
		closed uint32   // after they came
		counts int      // deltas that count without what is parked
	}{
		{"the open round", []uint32{2}, 0, 1, 1},
		{"the next", []uint32{3}, 0, 2, 1},
		{"behind a gap", []uint32{4}, 0, 1, 0},
		{"behind what can be folded", []uint32{2, 4}, 0, 1, 2},
		{"behind what can be folded, and a gap", []uint32{2, 5}, 0, 1, 1},
		{"behind a guest's", []uint32{5}, 3, 1, 0},
	} {
		g := newRig(t, roundsParams(1))
		g.live(1)
		g.close(1)
		folded, each := g.m.Fragment(0).Tip().Tokens, uint64(0)
		for _, round := range c.rounds {
			d := g.delta(outer.Author{1}, 0, round)
			each = d.Tokens
			g.want(g.offer(d), nil)
			g.held(d)
		}
		if c.guest > 0 {
			d := g.delta(outer.Author{2}, 0, c.guest)
			d.Guest = true
			g.want(g.offer(d), nil)
			g.held(d)
		}
		f := g.m.Fragment(0)
		made := func(parked bool) uint64 { return f.Announced(g.now, parked, func(outer.Author, uint64) {}) - folded }
		if f.Closed() != c.closed {
			t.Errorf("%s: %d rounds are closed, want %d", c.name, f.Closed(), c.closed)
		}
		if got, all := made(false), made(true); got != uint64(c.counts)*each || all < uint64(len(c.rounds))*each {
			t.Errorf("%s: %d tokens count, %d with what is parked; want %d, at least %d", c.name, got, all, uint64(c.counts)*each, uint64(len(c.rounds))*each)
		}
	}
}
