package rounds

import (
	"slices"
	"testing"

	"atoll/optimizer/outer"
)

// overdue is a machine whose fragment has folded 2 of 14 rounds, all but eight of which are final.
func overdue(t *testing.T) *rig {
	p := roundsParams(1)
	p.WindowAccept, p.WindowUnion = 4, 8
	g := newRigOf(t, Config{Params: p, Finality: true})
	g.seals = func(Final) {}
	g.live(1)
	g.close(2)
	g.hold = true
	g.close(12)
	return g
}

// loses says that the payload of a round is damaged, as the fold under way finds out.
func (g *rig) loses(round uint32) {
	g.t.Helper()
	if !g.m.final(g.m.frags[0], round) {
		g.t.Fatalf("round %d is not final", round)
	}
	g.m.Payload(g.now, 0, round, g.delta(outer.Author{1}, 0, round).ID, PayloadLost)
}

func (g *rig) foldFails() {
	job := g.wanted[0].Job
	g.wanted = nil
	g.m.Folded(g.now, FoldResult{Fragment: 0, Job: job, Err: errDisk})
	g.drain()
}

func (g *rig) holds(round uint32) bool {
	_, held := g.m.Fragment(0).Known(round, g.delta(outer.Author{1}, 0, round).ID)
	return held
}

// chainTo are the chain digests of the fragment up to a round.
func (g *rig) chainTo(round uint32) (chain []outer.Digest) {
	for _, l := range g.m.Fragment(0).Links(round) {
		chain = append(chain, l.Chain)
	}
	return chain
}

// A fragment that lacks the payload of a final round stands still, with the chain that it had, until tips come. A payload
// that no fold needs changes nothing.
func TestLostPayloadOfAFinalRound(t *testing.T) {
	g := overdue(t)
	told := watch[Stuck](g)
	chain := g.chainTo(14)
	if g.loses(2); len(*told) > 0 || g.m.Stuck() {
		t.Error("stuck without a payload that is folded already")
	}
	g.loses(4)
	g.foldFails()
	g.hold = false
	g.give(g.delta(outer.Author{1}, 0, 15), g.delta(outer.Author{2}, 0, 12)) // which would close a round, and fold one again
	g.after(10 * g.p.GraceMaxMs)
	if len(*told) != 1 || (*told)[0].Round != 4 || !g.m.Stuck() {
		t.Fatalf("told of %+v", *told)
	}
	if len(g.wanted) > 0 || g.m.Fragment(0).Closed() != 14 || !slices.Equal(g.chainTo(14), chain) || g.m.Status().Settled {
		t.Errorf("closed %d, %d folds", g.m.Fragment(0).Closed(), len(g.wanted))
	}
	tip := g.bases[0][2]
	if err := g.m.Install(g.now, []*outer.Tip{tip}, [][]outer.Link{{{Round: tip.Round, Chain: tip.Chain, State: tip.State, Tokens: tip.Tokens}}}, nil); err != nil {
		t.Fatal(err)
	}
	g.drain()
	if g.m.Stuck() || g.m.Fragment(0).Closed() < 15 {
		t.Errorf("tips were installed: stuck %v, closed %d", g.m.Stuck(), g.m.Fragment(0).Closed())
	}
}

// Where nobody has tips it goes on without what is lost, and what else is lost then stops it no more. What was told
// as final is told anew.
func TestGoesOnWithoutALostPayload(t *testing.T) {
	g := overdue(t)
	var final []uint32
	var unsealed []Unsealed
	stuck := 0
	g.learner = func(e Effect) {
		switch e := e.(type) {
		case Stuck:
			stuck++
		case Unsealed:
			unsealed = append(unsealed, e)
		}
	}
	g.seals = func(e Final) { final = append(final, e.Link.Round) }
	sealed, chain := g.m.frags[0].chain.sealed, g.chainTo(14)
	third, _ := g.m.Fragment(0).Link(3)
	g.loses(4)
	g.foldFails()
	g.m.GoOn(g.now)
	g.drain()
	if g.m.Stuck() || g.holds(4) || !g.holds(5) {
		t.Fatalf("stuck %v, the lost payload held %v, another %v", g.m.Stuck(), g.holds(4), g.holds(5))
	}
	g.after(g.p.GraceMaxMs)
	g.loses(6)
	if g.foldFails(); g.m.Stuck() || g.holds(6) || stuck != 1 {
		t.Errorf("stuck %v after the next one, %d times", g.m.Stuck(), stuck)
	}
	g.hold = false
	g.after(g.p.GraceMaxMs)
	if !g.m.Status().Settled || g.m.Fragment(0).Tip().Round != 14 {
		t.Errorf("folded up to round %d of 14", g.m.Fragment(0).Tip().Round)
	}
	if after := g.chainTo(14); after[len(after)-1] == chain[len(chain)-1] {
		t.Error("the chain is what it was")
	}
	if sealed != 6 || !slices.Equal(final, []uint32{4, 5, 6, 6}) {
		t.Errorf("final up to %d, told anew %v", sealed, final)
	}
	if len(unsealed) != 2 || unsealed[0].Link.Chain != third.Chain || unsealed[1].Link.Round != 5 {
		t.Errorf("taken back to %+v", unsealed)
	}
}

// disk is what a fragment of 14 rounds, six of which are final, left: a base of round 4, the records and the deltas.
func disk(t *testing.T) (*rig, Restored) {
	p := roundsParams(1)
	p.WindowAccept, p.WindowUnion = 4, 8
	g := newRig(t, p)
	g.live(1, 2)
	s := Restored{Closed: 14}
	for range 14 {
		g.close(1)
		at := g.m.Fragment(0).Closed()
		link, _ := g.m.Fragment(0).Link(at)
		s.Since = append(s.Since, link)
		s.Held = append(s.Held, g.m.Fragment(0).Set(at)...)
		if at == 4 {
			s.Tip, s.Bases = g.m.Fragment(0).Tip(), []uint32{4}
		}
	}
	s.History, s.Since = s.Since[:4], s.Since[4:]
	return g, s
}

// without is a list without the deltas of some rounds.
func without(held []outer.Delta, rounds ...uint32) []outer.Delta {
	return slices.DeleteFunc(slices.Clone(held), func(d outer.Delta) bool { return slices.Contains(rounds, d.Round) })
}

// lostBases is a disk that has no tip but genesis.
func lostBases(g *rig, s *Restored) {
	s.Since = slices.Concat(s.History, s.Since)
	s.Tip, s.Bases = g.bases[0][0], []uint32{0}
	s.History = []outer.Link{{State: s.Tip.State}}
}

// A restart closes final rounds as their records say. Where the disk has less, or no tip but genesis, the fragment is stuck
// at what is known of its chain; and if nobody has tips it goes on.
func TestRestoreOfLessThanWasFolded(t *testing.T) {
	for name, c := range map[string]struct {
		change func(g *rig, s *Restored)
		stuck  uint32 // the round from which it is; 0 = it is not
		closed uint32 // meanwhile
		same   bool   // its chain is the one it had
	}{
		"all is there":                {func(*rig, *Restored) {}, 0, 14, true},
		"a delta of an open round":    {func(_ *rig, s *Restored) { s.Held = without(s.Held, 9) }, 0, 14, false},
		"a final delta after the tip": {func(_ *rig, s *Restored) { s.Held = without(s.Held, 6) }, 6, 6, false},
		"two of them":                 {func(_ *rig, s *Restored) { s.Held = without(s.Held, 5, 6) }, 5, 6, false},
		"a record":                    {func(_ *rig, s *Restored) { s.Since = s.Since[:1] }, 6, 5, true},
		"all bases":                   {lostBases, 1, 6, true},
		"all bases and a delta":       {func(g *rig, s *Restored) { lostBases(g, s); s.Held = without(s.Held, 3) }, 1, 6, false},
	} {
		g, s := disk(t)
		c.change(g, &s)
		h := newRig(t, g.p)
		h.now, h.payloads, h.bases = g.now+5, g.payloads, g.bases
		h.bases[0][s.Tip.Round] = s.Tip
		h.live(1, 2)
		told := watch[Stuck](h)
		h.m.Restore(h.now, 0, s)
		h.drain()
		h.after(10 * h.p.GraceMaxMs)
		at := uint32(0)
		for _, e := range *told {
			at = e.Round
		}
		if at != c.stuck || h.m.Stuck() != (c.stuck != 0) || h.m.Fragment(0).Closed() != c.closed {
			t.Errorf("%s is missing: stuck at %d, closed %d; want %d and %d", name, at, h.m.Fragment(0).Closed(), c.stuck, c.closed)
		}
		for r := s.Tip.Round; r <= min(6, c.closed); r++ {
			if l, _ := h.m.Fragment(0).Link(r); r > 0 && l.Chain != recordOf(s, r).Chain {
				t.Errorf("%s is missing: another chain at round %d", name, r)
			}
		}
		h.m.GoOn(h.now)
		h.drain()
		h.after(10 * h.p.GraceMaxMs)
		tip, was := h.m.Fragment(0).Tip(), g.m.Fragment(0).Tip()
		if tip.Round != 14 || (tip.State == was.State) != c.same {
			t.Errorf("%s is missing: folded up to %d, the chain is the same: %v", name, tip.Round, tip.State == was.State)
		}
	}
}

func recordOf(s Restored, round uint32) outer.Link {
	for _, l := range slices.Concat(s.History, s.Since) {
		if l.Round == round {
			return l
		}
	}
	return outer.Link{}
}

// Of an author that was barred after a round was final the delta stays in it.
func TestRestoreOfABarredAuthor(t *testing.T) {
	g, s := disk(t)
	h := newRig(t, g.p)
	h.now, h.payloads, h.bases = g.now+5, g.payloads, g.bases
	h.bases[0][4] = s.Tip
	h.live(1, 2)
	for _, round := range []uint32{5, 9} {
		h.m.Bar(h.now, 0, round, outer.Author{1})
	}
	h.m.Restore(h.now, 0, s)
	h.drain()
	if !h.holds(5) || h.holds(9) || h.m.Stuck() {
		t.Errorf("the delta of the final round is held: %v, that of a later round: %v; stuck %v", h.holds(5), h.holds(9), h.m.Stuck())
	}
}

// A base from which a final round would be folded again that lacks a delta is of no use, where there is a later one.
func TestTrim(t *testing.T) {
	p := roundsParams(1)
	p.WindowAccept, p.WindowUnion = 4, 8
	id := func(r uint32) outer.ID { return outer.ID{byte(r)} }
	for name, c := range map[string]struct {
		lacks []uint32
		want  []uint32
	}{
		"nothing":              {nil, []uint32{2, 4, 8}},
		"in the first rounds":  {[]uint32{3}, []uint32{4, 8}},
		"at a base":            {[]uint32{4}, []uint32{4, 8}},
		"after a base":         {[]uint32{5}, []uint32{8}},
		"in the window":        {[]uint32{7}, []uint32{2, 4, 8}},
		"before all that is":   {[]uint32{2}, []uint32{2, 4, 8}},
		"in two of the rounds": {[]uint32{3, 6}, []uint32{8}},
	} {
		s := Restored{Tip: &outer.Tip{Round: 8}, Bases: []uint32{2, 4, 8}, Closed: 14}
		for r := uint32(2); r <= 8; r++ {
			s.History = append(s.History, outer.Link{Round: r, Folded: []outer.ID{id(r)}})
			if !slices.Contains(c.lacks, r) {
				s.Held = append(s.Held, outer.Delta{ID: id(r), Round: r})
			}
		}
		s.Trim(p)
		if !slices.Equal(s.Bases, c.want) || slices.ContainsFunc(s.Held, func(d outer.Delta) bool { return d.Round <= s.Bases[0] }) {
			t.Errorf("%s is missing: bases %v, want %v; held %+v", name, s.Bases, c.want, s.Held)
		}
	}
}
