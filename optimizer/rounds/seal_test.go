package rounds

import (
	"testing"

	"atoll/optimizer/outer"
	"pgregory.net/rapid"
)

// A machine that tells what is final tells each round once, in order, with the deltas of its link, once it has left the union
// window; and whatever comes afterwards, the links of these rounds stay.
func TestFinalRounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := roundsParams(1)
		p.WindowAccept, p.WindowUnion = 2, 4
		g := newRigOf(t, Config{Params: p, Finality: true})
		told := map[uint32]outer.Digest{}
		next := uint32(1)
		g.seals = func(e Final) {
			if e.Link.Round != next {
				t.Fatalf("round %d is told after %d", e.Link.Round, next-1)
			}
			if next++; uint64(e.Link.Round)+uint64(p.WindowUnion) > uint64(g.m.Fragment(0).Closed()) {
				t.Fatalf("round %d is told while %d are closed", e.Link.Round, g.m.Fragment(0).Closed())
			}
			ids := map[outer.ID]bool{}
			for _, d := range e.Deltas {
				ids[d.ID] = true
			}
			if len(ids) != len(e.Link.Folded) {
				t.Fatalf("round %d with %d deltas, its link has %d", e.Link.Round, len(ids), len(e.Link.Folded))
			}
			for _, id := range e.Link.Folded {
				if !ids[id] {
					t.Fatalf("round %d: a delta of its link is not told", e.Link.Round)
				}
			}
			told[e.Link.Round] = e.Link.Chain
		}
		for range rapid.IntRange(10, 60).Draw(t, "inputs") {
			closed := g.m.Fragment(0).Closed()
			round := uint32(max(1, int(closed)+1-rapid.IntRange(0, 6).Draw(t, "late")))
			d := g.delta(outer.Author{byte(rapid.IntRange(1, 4).Draw(t, "author"))}, 0, round)
			if g.m.Offer(g.now, d, rapid.Bool().Draw(t, "repair")) == nil {
				g.drain()
				g.held(d)
			}
			g.drain()
			g.m.CloseTo(g.now, 0, closed+1)
			g.drain()
			g.now += 300
			g.m.Tick(g.now)
			g.drain()
			for r, chain := range told {
				if l, known := g.m.Fragment(0).Link(r); known && l.Chain != chain {
					t.Fatalf("round %d was told as final, and changed", r)
				}
			}
		}
		for range 3 { // what waits is folded
			g.now += 5000
			g.m.Tick(g.now)
			g.drain()
		}
		if closed := g.m.Fragment(0).Closed(); int(closed)-int(p.WindowUnion) > len(told) {
			t.Fatalf("%d rounds are closed, and %d of them final", closed, len(told))
		}
	})
}
