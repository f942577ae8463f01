package rounds

import (
	"slices"
	"testing"

	"atoll/optimizer/outer"
)

func TestLateDeltaRefoldsOnceFromTheRightBase(t *testing.T) {
	g := newRig(t, roundsParams(1))
	g.live(1, 2)
	g.close(10)
	folds := g.folds
	g.hold = true
	g.give(g.delta(outer.Author{2}, 0, 7), g.delta(outer.Author{3}, 0, 9)) // within one grace
	g.after(g.p.GraceMaxMs)
	if len(g.wanted) != 1 {
		t.Fatalf("%d refolds for two late deltas", len(g.wanted))
	}
	if w := g.wanted[0]; w.Start != 4 || len(w.Sets) != 6 { // bases are 0, 4, 8, 9, 10
		t.Fatalf("refold from %d of %d rounds", w.Start, len(w.Sets))
	}
	g.fold()
	g.after(g.p.GraceMaxMs)
	if n := g.folds - folds; n != 1 || len(g.wanted) != 0 {
		t.Fatalf("%d refolds, %d asked for", n, len(g.wanted))
	}
	g.sameAsReplay()
}

// Late deltas coalesce while a fold is under way.
func TestLateDeltasCoalesce(t *testing.T) {
	g := newRig(t, roundsParams(1))
	g.live(1, 2)
	g.close(6)
	g.hold = true
	g.give(g.delta(outer.Author{2}, 0, 2))
	g.after(g.p.GraceMaxMs)
	for r := uint32(1); r <= 6; r++ {
		g.give(g.delta(outer.Author{3}, 0, r))
	}
	if len(g.wanted) != 1 {
		t.Fatalf("%d folds at once", len(g.wanted))
	}
	g.fold()
	g.after(g.p.GraceMaxMs)
	if len(g.wanted) != 1 || g.wanted[0].Start != 0 {
		t.Fatalf("wanted %+v", g.wanted)
	}
	g.fold()
	g.after(g.p.GraceMaxMs)
	if len(g.wanted) != 0 {
		t.Fatal("a refold of nothing")
	}
	g.sameAsReplay()
}

// sameAsReplay folds the chain of fragment 0 anew from genesis, by Replay alone,
// and compares chain and state of each round and the tip.
func (g *rig) sameAsReplay() {
	g.t.Helper()
	f := g.m.frags[0]
	next := func(_ int, round uint32) ([]outer.Contribution, bool) {
		var set []outer.Contribution
		for _, d := range f.deltas.rounds[round].set() {
			set = append(set, outer.Contribution{Delta: d, Payload: g.payloads[d.ID]})
		}
		return set, round <= f.chain.closed
	}
	visit := func(_ int, tip *outer.Tip) error {
		l, ok := g.m.Fragment(0).Link(tip.Round)
		if !ok || l.Chain != tip.Chain || l.Tokens != tip.Tokens || l.EndRound != tip.EndRound {
			g.t.Fatalf("round %d: link %+v, folded %x %d %d", tip.Round, l, tip.Chain, tip.Tokens, tip.EndRound)
		}
		if l.State != (outer.Digest{}) && l.State != tip.State || tip.Round == f.chain.closed && l.State != tip.State {
			g.t.Fatalf("round %d: state %x in the link, folded %x", tip.Round, l.State[:4], tip.State[:4])
		}
		return nil
	}
	tips, err := outer.Replay(g.p, g.plan[:1], []*outer.Tip{g.genesis()[0]}, next, visit)
	if err != nil {
		g.t.Fatal(err)
	}
	if tip := g.m.Fragment(0).Tip(); tips[0].State != tip.State {
		g.t.Fatalf("tip of round %d has state %x, a replay %x", tip.Round, tip.State[:4], tips[0].State[:4])
	}
}

// Whatever the window, each of its rounds can be refolded from a kept base, the
// bases kept are few, and those near the end are dense.
func TestKeptBases(t *testing.T) {
	for _, union := range []uint32{4, 5, 7, 16, 100} {
		p := roundsParams(1)
		p.WindowAccept, p.WindowUnion = 2, union
		g := newRig(t, p)
		g.live(1, 2)
		for g.m.Fragment(0).Closed() < 3*union+10 {
			g.close(1)
			closed := g.m.Fragment(0).Closed()
			bases := g.m.Fragment(0).Bases()
			if bases[0] > closed-min(closed, union) {
				t.Fatalf("union %d, closed %d: oldest base is %d", union, closed, bases[0])
			}
			most := 3
			for n := union; n > 0; n /= 2 {
				most += 2
			}
			if len(bases) > most {
				t.Fatalf("union %d, closed %d: %d bases kept: %v", union, closed, len(bases), bases)
			}
			for age := uint32(1); age < min(union, closed); age++ {
				if replayed := closed - g.m.frags[0].chain.baseBelow(closed-age); replayed > 3*age {
					t.Fatalf("union %d, closed %d: a delta of %d rounds ago replays %d: %v", union, closed, age, replayed, bases)
				}
			}
			for _, b := range bases {
				if g.bases[0][b] == nil {
					t.Fatalf("base %d is counted on and was dropped", b)
				}
			}
			if len(g.bases[0]) != len(bases) {
				t.Fatalf("%d tips kept for %d bases", len(g.bases[0]), len(bases))
			}
		}
	}
}

// A delta of the oldest round of the window is folded, an older one is final.
func TestWindowEdge(t *testing.T) {
	p := roundsParams(1)
	p.WindowAccept, p.WindowUnion = 2, 5
	g := newRig(t, p)
	g.live(1, 2)
	for closed := uint32(1); closed <= 40; closed++ {
		g.close(1)
		if closed < 6 {
			continue
		}
		g.want(g.offer(g.delta(outer.Author{2}, 0, closed-5)), ErrFinal)
		late := g.delta(outer.Author{3}, 0, closed-4)
		g.give(late)
		g.after(g.p.GraceMaxMs)
		if l, _ := g.m.Fragment(0).Link(closed - 4); !slices.Contains(l.Folded, late.ID) {
			t.Fatalf("closed %d: not folded", closed)
		}
	}
}

// A payload that comes when its round has become final changes nothing.
func TestHeldTooLate(t *testing.T) {
	p := roundsParams(1)
	p.WindowAccept, p.WindowUnion = 2, 5
	g := newRig(t, p)
	g.live(1, 2)
	g.close(10)
	late := g.delta(outer.Author{2}, 0, 8)
	g.want(g.offer(late), nil)
	g.close(5)
	before := g.m.last(0)
	g.held(late)
	g.m.Exclude(g.now, 0, 8, outer.Author{1})
	g.after(g.p.GraceMaxMs)
	if g.m.last(0) != before {
		t.Fatal("a final round changed")
	}
}

func (m *Machine) last(p int) outer.Digest { return m.frags[p].chain.last().Chain }

// A fold that failed is asked for again when grace has passed, not before.
func TestFoldFailed(t *testing.T) {
	g := newRig(t, roundsParams(1))
	g.live(1, 2)
	g.hold = true
	g.give(g.delta(outer.Author{1}, 0, 1))
	g.after(g.p.GraceMaxMs)
	w := g.wanted[0]
	g.wanted = nil
	g.m.TakeFold(g.now, FoldResult{Fragment: 0, Job: w.Job + 1, Err: errDisk}) // another one: ignored
	g.m.TakeFold(g.now, FoldResult{Fragment: 0, Job: w.Job, Err: errDisk})
	g.after(1)
	if len(g.wanted) != 0 {
		t.Fatal("asked again at once")
	}
	g.after(g.p.GraceMinMs)
	if len(g.wanted) != 1 || g.wanted[0].Start != w.Start {
		t.Fatalf("asked for %+v", g.wanted)
	}
	g.fold()
	g.sameAsReplay()
}

// A fold whose chain is not the chain of the deltas held is an error.
func TestFoldedWrong(t *testing.T) {
	g := newRig(t, roundsParams(1))
	g.live(1, 2)
	g.hold = true
	g.give(g.delta(outer.Author{1}, 0, 1))
	g.after(g.p.GraceMaxMs)
	wrong := *g.m.Fragment(0).Tip()
	wrong.Round = 1
	if err := g.m.TakeFold(g.now, FoldResult{Fragment: 0, Job: g.wanted[0].Job, Tip: &wrong, States: make([]outer.Digest, 1)}); err == nil {
		t.Fatal("took a tip of another chain")
	}
	if err := g.m.TakeFold(g.now, FoldResult{Fragment: 0, Job: g.wanted[0].Job, Tip: &wrong, States: nil}); err != nil {
		t.Fatal("the answer to a fold that is over is an error")
	}
}

// A late delta may let the budget be reached earlier. Rounds past the end that
// had closed meanwhile are open again: who had the delta in time never closed them.
func TestEndMovesBack(t *testing.T) {
	p := roundsParams(1)
	p.Budget = 5 * 24 * 512
	g := newRig(t, p)
	g.live(1, 2)
	g.close(6)
	if got := g.m.Fragment(0).Tip().EndRound; got != 5 {
		t.Fatalf("end round %d", got)
	}
	late := g.delta(outer.Author{2}, 0, 2)
	late.Tokens *= 2
	g.give(late)
	g.after(g.p.GraceMaxMs)
	if end := g.m.Fragment(0).Tip().EndRound; end != 3 {
		t.Fatalf("end round %d with the late delta", end)
	}
	g.expectClosed(4)
	if !g.m.Status().Settled || !g.m.Status().Ended {
		t.Fatalf("settled %v, ended %v", g.m.Status().Settled, g.m.Status().Ended)
	}
	g.sameAsReplay()

	timely := newRig(t, p) // had the late delta in time
	timely.live(1, 2)
	timely.payloads = g.payloads
	timely.give(g.delta(outer.Author{1}, 0, 1), late)
	timely.close(3)
	if timely.m.Fragment(0).Tip().State != g.m.Fragment(0).Tip().State {
		t.Fatal("another state than that of a node that had the delta in time")
	}
}

// An own delta folded in a round that is open again is in flight again.
func TestEndMovesBackOverOwn(t *testing.T) {
	p := roundsParams(1)
	p.Budget = 5 * 24 * 512
	g := newRig(t, p)
	g.close(5)
	g.step(8)
	own := g.publish(0)
	g.after(g.p.GraceMaxMs)
	g.expectClosed(6)
	late := g.delta(outer.Author{2}, 0, 2)
	late.Tokens *= 2
	g.give(late)
	g.after(g.p.GraceMaxMs)
	g.expectClosed(4)
	if a := g.lastAdopt(); !slices.Equal(a.Seqs(outer.Unfolded), []uint64{1}) || g.m.Fragment(0).Account().InFlight.Tokens != own.Tokens {
		t.Fatalf("adopted %+v", a)
	}
}
