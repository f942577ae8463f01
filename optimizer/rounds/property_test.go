package rounds

import (
	"errors"
	"testing"

	"atoll/optimizer/outer"
	"pgregory.net/rapid"
)

// drawDeltas draws which of a few authors contribute to which rounds, some of
// them twice: the two headers are an equivocation proof.
func drawDeltas(t *rapid.T, g *rig, rounds uint32) (deltas, equivocation []outer.Delta) {
	for r := uint32(1); r <= rounds; r++ {
		for a := byte(1); a <= 3; a++ {
			switch rapid.IntRange(0, 9).Draw(t, "contributes") {
			case 0, 1, 2, 3, 4, 5:
				d := g.delta(outer.Author{a}, 0, r)
				d.Steps = rapid.Uint32Range(1, 40).Draw(t, "steps")
				d.Tokens = uint64(d.Steps) * 512
				deltas = append(deltas, d)
			case 6:
				equivocation = append(equivocation, g.delta(outer.Author{a}, 0, r))
			}
		}
	}
	return deltas, equivocation
}

// deliver brings deltas and equivocation proofs in a drawn order, with headers and payloads
// apart, some twice, folds held up and time passing in between.
func (g *rig) deliver(t *rapid.T, deltas, equivocation []outer.Delta, rounds uint32) {
	type arrival struct {
		kind  int // 0 header, 1 payload, 2 equivocation proof
		delta outer.Delta
	}
	var queue []arrival
	for _, d := range deltas {
		queue = append(queue, arrival{0, d}, arrival{1, d})
		if rapid.Bool().Draw(t, "twice") {
			queue = append(queue, arrival{0, d}, arrival{1, d})
		}
	}
	for _, d := range equivocation {
		queue = append(queue, arrival{2, d})
		if rapid.Bool().Draw(t, "first is folded") {
			queue = append(queue, arrival{0, d}, arrival{1, d})
		}
	}
	excluded := map[outer.ID]bool{}
	for _, a := range rapid.Permutation(queue).Draw(t, "order") {
		switch {
		case a.kind == 2:
			excluded[a.delta.ID] = true
			g.m.Exclude(g.now, 0, a.delta.Round, a.delta.Author)
		case a.kind == 0 && !excluded[a.delta.ID]:
			g.offerAnyhow(a.delta)
		case a.kind == 1:
			g.m.Payload(g.now, 0, a.delta.Round, a.delta.ID, PayloadHeld)
		}
		g.drain()
		switch rapid.IntRange(0, 6).Draw(t, "between") {
		case 0:
			g.after(rapid.Int64Range(1, 2000).Draw(t, "ms"))
		case 1:
			g.hold = !g.hold
		case 2:
			g.m.CloseTo(g.now, 0, rapid.Uint32Range(1, rounds).Draw(t, "to"))
			g.drain()
		case 3:
			if len(g.wanted) > 0 {
				g.fold()
			}
		}
	}
	for _, d := range deltas { // what was parked or overtaken comes by repair
		g.offerAnyhow(d)
		g.held(d)
	}
	g.m.CloseTo(g.now, 0, rounds)
	g.settle()
}

// offerAnyhow offers as repair does.
func (g *rig) offerAnyhow(d outer.Delta) {
	if err := g.m.Offer(g.now, d, true); err != nil && !errors.Is(err, ErrParked) {
		g.t.Fatalf("delta of round %d: %v", d.Round, err)
	}
	g.drain()
}

// settle lets folds end.
func (g *rig) settle() {
	g.hold = false
	g.drain()
	for range 10 {
		for len(g.wanted) > 0 {
			g.fold()
		}
		g.after(g.p.GraceMaxMs)
	}
	if !g.m.Status().Settled {
		g.t.Fatal("does not settle")
	}
}

// Any order, duplication, batching and lateness of the same deltas gives the same
// chain and the same tip, which is what a replay from genesis gives.
func TestSameSetSameChain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := roundsParams(1)
		p.Budget = rapid.SampledFrom([]uint64{1 << 40, 20_000, 60_000}).Draw(t, "budget")
		p.Mu = rapid.SampledFrom([]float64{0, 0.9}).Draw(t, "mu")
		const rounds = 8
		g := newRig(t, p)
		g.live(1, 2, 3)
		deltas, equivocation := drawDeltas(t, g, rounds)
		h := newRig(t, p)
		h.payloads = g.payloads
		for _, r := range []*rig{g, h} {
			r.deliver(t, deltas, equivocation, rounds)
			r.sameAsReplay()
		}
		if g.m.Fragment(0).Closed() != h.m.Fragment(0).Closed() || g.m.last(0) != h.m.last(0) {
			t.Fatalf("chains differ: closed %d and %d", g.m.Fragment(0).Closed(), h.m.Fragment(0).Closed())
		}
		if g.m.Fragment(0).Tip().State != h.m.Fragment(0).Tip().State {
			t.Fatal("states differ")
		}
		if want := g.m.Fragment(0).Closed(); p.Budget == 1<<40 && want != rounds {
			t.Fatalf("closed %d of %d rounds", want, rounds)
		}
	})
}
