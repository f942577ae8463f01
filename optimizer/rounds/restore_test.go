package rounds

import (
	"slices"
	"testing"

	"atoll/optimizer/outer"
)

// deep is a young fragment's disk: bases of rounds 4 and 8, deltas of all rounds.
func deep(t *testing.T) (*rig, Restored) {
	g := newRig(t, roundsParams(1))
	g.live(1, 2)
	g.close(9)
	s := Restored{Tip: g.bases[0][8], Bases: []uint32{4, 8}, Closed: 9}
	s.History = slices.DeleteFunc(g.m.Fragment(0).Links(8), func(l outer.Link) bool { return l.Round == 0 })
	for r := uint32(1); r <= 9; r++ {
		s.Held = append(s.Held, g.m.Fragment(0).Set(r)...)
	}
	return g, s
}

// A young fragment whose rounds are all there is refolded from genesis, for a delta of
// its first round; one that lacks anything goes on from its oldest base.
func TestReachGenesis(t *testing.T) {
	for name, c := range map[string]struct {
		change func(p *outer.Params, s *Restored)
		want   []uint32
	}{
		"all is there":           {func(*outer.Params, *Restored) {}, []uint32{0, 4, 8}},
		"genesis is kept":        {func(_ *outer.Params, s *Restored) { s.Bases[0] = 0 }, []uint32{0, 8}},
		"it is at the window":    {func(p *outer.Params, _ *Restored) { p.WindowUnion = 8 }, []uint32{0, 4, 8}},
		"it is past the window":  {func(p *outer.Params, _ *Restored) { p.WindowUnion = 7 }, []uint32{4, 8}},
		"a record is missing":    {func(_ *outer.Params, s *Restored) { s.History = s.History[1:] }, []uint32{4, 8}},
		"a payload is missing":   {func(_ *outer.Params, s *Restored) { s.Held = s.Held[1:] }, []uint32{4, 8}},
		"a later one is missing": {func(_ *outer.Params, s *Restored) { s.Held = s.Held[:len(s.Held)-1] }, []uint32{0, 4, 8}},
	} {
		g, s := deep(t)
		p := g.p
		c.change(&p, &s)
		s.ReachGenesis(p, g.bases[0][0])
		if !slices.Equal(s.Bases, c.want) {
			t.Errorf("%s: bases %v, want %v", name, s.Bases, c.want)
		}
		if slices.ContainsFunc(s.Held, func(d outer.Delta) bool { return d.Round <= s.Bases[0] }) {
			t.Errorf("%s: holds what its oldest base %d has folded", name, s.Bases[0])
		}
	}
}

func TestRestartRefoldsFromGenesis(t *testing.T) {
	g, s := deep(t)
	s.ReachGenesis(g.p, g.bases[0][0])
	h := newRig(t, g.p)
	h.now, h.payloads, h.bases = g.now+5, g.payloads, g.bases
	h.live(1, 2)
	h.m.Restore(h.now, 0, s)
	h.drain()
	if h.m.Fragment(0).Closed() != 9 || h.m.Fragment(0).Tip().State != g.m.Fragment(0).Tip().State {
		t.Fatalf("closed %d, state %x, want that of 9, %x", h.m.Fragment(0).Closed(), h.m.Fragment(0).Tip().State, g.m.Fragment(0).Tip().State)
	}
	for _, r := range []*rig{g, h} {
		d := r.delta(outer.Author{3}, 0, 1)
		r.want(r.m.Offer(r.now, d, true), nil)
		r.held(d)
		r.after(r.p.GraceMaxMs)
	}
	if h.m.Fragment(0).Tip().State != g.m.Fragment(0).Tip().State || h.m.Fragment(0).Tip().Tokens != 10*g.delta(outer.Author{1}, 0, 1).Tokens {
		t.Errorf("after a delta of round 1 the states are %x and %x, of %d tokens", h.m.Fragment(0).Tip().State, g.m.Fragment(0).Tip().State, h.m.Fragment(0).Tip().Tokens)
	}
}
