package rounds

import (
	"cmp"
	"slices"
	"testing"

	"atoll/optimizer/outer"
	"pgregory.net/rapid"
)

func TestClosesWhenAllPublished(t *testing.T) {
	g := newRig(t, roundsParams(1))
	g.live(1, 2)
	g.give(g.delta(outer.Author{1}, 0, 1))
	g.expectClosed(0)
	g.want(g.offer(g.delta(outer.Author{2}, 0, 1)), nil)
	g.step(2)
	g.publish(0)
	g.expectClosed(0) // a header without payload proposes and does not count
	g.held(g.delta(outer.Author{2}, 0, 1))
	g.expectClosed(1)
	if n := len(g.closed[0].Folded); n != 3 {
		t.Fatalf("%d folded", n)
	}
}

// A delta that was announced is waited for though its author has stopped meanwhile; a first
// header, which costs nothing, is not.
func TestWaitsForWhatComes(t *testing.T) {
	for round, waits := range map[uint32]bool{1: false, 2: true} {
		g := newRig(t, roundsParams(1))
		g.live(1, 2)
		if round == 2 {
			g.give(g.delta(outer.Author{1}, 0, 1), g.delta(outer.Author{2}, 0, 1))
			g.step(2)
			g.publish(0)
		}
		d := g.delta(outer.Author{1}, 0, round)
		g.want(g.offer(d), nil)
		g.m.SetIdle([]outer.Author{{1}, self})
		g.give(g.delta(outer.Author{2}, 0, round))
		if closed := g.m.Fragment(0).Closed() == round; closed == waits {
			t.Errorf("round %d closed without what was announced: %v", round, closed)
		}
		g.held(d)
		g.expectClosed(round)
	}
}

// Before anything is known of a learner that publishes, grace covers what its deltas may take.
func TestGraceOfUnknownLearners(t *testing.T) {
	p := roundsParams(1)
	p.GraceMaxMs = 60_000
	g := newRig(t, p)
	g.unknown(1, 2)
	g.measured(1)
	if got := g.m.grace(); got != leastLimitMs {
		t.Errorf("grace %d while nothing is known of one", got)
	}
	g.measured(2)
	if got := g.m.grace(); got != p.GraceMinMs {
		t.Errorf("grace %d once all are known", got)
	}
}

// In a run that was made for links on which deltas take minutes, rounds wait as long from the first on, for learners of whom nothing is
// known, and later as well: for half of the time between two proposals at most. In other runs nothing changes.
func TestGraceOfLongRounds(t *testing.T) {
	for most, sweep := range map[Time]Time{outer.LongGraceMs: 0, 600_000: 300_000} {
		p := roundsParams(1)
		p.GraceMaxMs = most
		g := newRig(t, p)
		g.unknown(1, 2)
		if grace, limit := g.m.grace(), g.m.GraceLimit(); grace != max(sweep, leastLimitMs) || limit != max(sweep, leastLimitMs) {
			t.Errorf("rounds of %d ms: grace %d, limit %d while nothing is known", most, grace, limit)
		}
		g.measured(1, 2)
		if got := g.m.grace(); got != max(sweep, p.GraceMinMs) {
			t.Errorf("rounds of %d ms: grace %d once all are known", most, got)
		}
		g.m.late.proposed(0, 1000)
		g.m.late.proposed(0, 401_000)
		if got := g.m.grace(); got != min(max(sweep, p.GraceMinMs), 200_000) {
			t.Errorf("rounds of %d ms: grace %d with proposals every 400 s", most, got)
		}
	}
}

// A delta that was announced in a run of long rounds is waited for, though its author says that its link is thin and nothing
// of it was held before.
func TestLongRoundsWaitForWhatIsAnnounced(t *testing.T) {
	for most, waits := range map[Time]bool{outer.LongGraceMs: false, 600_000: true} {
		p := roundsParams(1)
		p.GraceMaxMs = most
		g := newRig(t, p)
		g.unknown(1, 2)
		g.m.SetPlans(map[outer.Author]uint32{{2}: 1000})
		f, d := g.m.frags[0], g.delta(outer.Author{2}, 0, 1)
		g.want(g.offer(d), nil)
		if got := g.m.awaits(f, f.deltas.rounds[1], outer.Author{2}); got != waits {
			t.Errorf("rounds of %d ms: it is waited for: %v", most, got)
		}
		g.held(d)
		if g.m.awaits(f, f.deltas.rounds[1], outer.Author{2}) {
			t.Errorf("rounds of %d ms: what is here is waited for", most)
		}
	}
}

// In a round whose first proposal was a payload, as no header was believed, nobody can tell how
// late the others are.
func TestLatenessIsNotMeasuredBlindly(t *testing.T) {
	g := newRig(t, roundsParams(1))
	g.unknown(1, 2)
	for round := uint32(1); round <= 2; round++ {
		for a := byte(1); a <= 2; a++ {
			d := g.delta(outer.Author{a}, 0, round)
			g.want(g.offer(d), nil)
			g.now += 300
			g.held(d)
		}
		if known := !g.m.late.unmeasured(g.m.peerList.training); known != (round == 2) {
			t.Errorf("after round %d the lateness of all is known: %v", round, known)
		}
		g.step(2)
		g.publish(0)
	}
}

// Grace is at least GraceMinMs after the proposal.
func TestGraceMin(t *testing.T) {
	g := newRig(t, roundsParams(1))
	g.live(1, 2)
	g.give(g.delta(outer.Author{1}, 0, 1))
	g.after(g.p.GraceMinMs - 1)
	g.expectClosed(0)
	g.after(1)
	g.expectClosed(1)
}

// Grace covers two own steps, up to GraceMaxMs.
func TestGraceFollowsSteps(t *testing.T) {
	for _, c := range []struct{ step, grace Time }{{10, 100}, {80, 160}, {400, 800}, {9000, 1000}} {
		g := newRig(t, roundsParams(1))
		for range 20 {
			g.m.steps.stepped(g.now)
			g.now += c.step
		}
		if got := g.m.grace(); got != c.grace {
			t.Errorf("steps of %d ms: grace %d, want %d", c.step, got, c.grace)
		}
	}
}

// Grace follows the latest live peer, and forgets it when it is gone.
func TestGraceFollowsLateness(t *testing.T) {
	g := newRig(t, roundsParams(1))
	g.close(1)
	g.unknown(1, 2)
	g.measured(2)
	late := g.delta(outer.Author{1}, 0, 2)
	g.want(g.offer(late), nil)
	g.now += 200
	g.held(late)
	if got := g.m.grace(); got != 300 {
		t.Fatalf("grace %d after a delta that was 200 ms late, want 300", got)
	}
	g.live(2)
	if got := g.m.grace(); got != g.p.GraceMinMs {
		t.Fatalf("grace %d without the late peer", got)
	}
}

// Grace is at most half of the time between two proposals.
func TestGraceWithinProposals(t *testing.T) {
	g := newRig(t, roundsParams(1))
	for range 20 {
		g.m.steps.stepped(g.now)
		g.now += 400
	}
	g.m.late.proposed(0, 1000)
	g.m.late.proposed(0, 1600)
	if got := g.m.grace(); got != 300 {
		t.Fatalf("grace %d with proposals every 600 ms, want 300", got)
	}
	g.m.late.proposed(1, 1700) // another fragment's proposal says nothing of this one's
	if got := g.m.grace(); got != 300 {
		t.Fatalf("grace %d after another fragment's proposal", got)
	}
}

// arrives has a delta of round 2 or later propose and its payload come so much later.
func (g *rig) arrives(author byte, round, steps uint32, late Time, repair bool) outer.Delta {
	d := g.delta(outer.Author{author}, 0, round)
	d.Steps = steps
	began := g.now
	g.want(g.m.Offer(g.now, d, repair), nil)
	g.m.propose(g.now, g.m.frags[0], round)
	g.m.frags[0].deltas.rounds[round].proposed = began
	g.now += late
	g.held(d)
	g.now = began
	return d
}

// Where the deltas of more than half of the others take longer than half of the time
// between two proposals, though they were ready, grace covers that: such a round is too short
// for the links. One bad link and learners that have to step first lengthen none.
func TestGraceCoversTheLinks(t *testing.T) {
	for name, c := range map[string]struct {
		late   []Time // of the others
		silent int    // others of whom nothing is known
		steps  uint32 // of their deltas
		want   Time   // 0 = half of the time between proposals
	}{
		"most links are long":       {[]Time{500, 500, 20}, 0, 9, 750},
		"one link is long":          {[]Time{500, 20, 20}, 0, 9, 0},
		"one of two":                {[]Time{500, 20}, 0, 9, 0},
		"the only one":              {[]Time{500}, 0, 9, 750},
		"longer than any round":     {[]Time{5000, 5000}, 0, 9, 1000},
		"known of most":             {[]Time{500, 500, 500}, 2, 9, 1000},
		"known of half":             {[]Time{5000, 5000}, 2, 9, 0},
		"known of one":              {[]Time{5000}, 5, 9, 0},
		"they had to step first":    {[]Time{500, 500, 500}, 0, 2, 0},
		"shorter than half a round": {[]Time{60, 60, 60}, 0, 9, 100},
	} {
		g := linkRig(t, len(c.late)+c.silent)
		for i, late := range c.late {
			g.arrives(byte(i+1), 2, c.steps, late, false)
		}
		want := cmp.Or(c.want, g.m.late.between()/2)
		if got := g.m.grace(); got != want {
			t.Errorf("%s: grace %d, want %d", name, got, want)
		}
		if g.m.late.forgetAllBut(func(outer.Author) bool { return false }); g.m.late.way(1) != 0 {
			t.Errorf("%s: who is gone is still counted", name)
		}
	}
}

// linkRig has so many others, and 350 ms between two proposals.
func linkRig(t *testing.T, others int) *rig {
	p := roundsParams(1)
	p.HMin = 2
	g := newRig(t, p)
	g.close(1)
	live := []outer.Author{self}
	for i := range others {
		live = append(live, outer.Author{byte(i + 1)})
	}
	g.m.SetLive(live)
	g.m.late.proposed(0, 1000)
	g.m.late.proposed(0, 1350)
	return g
}

// What comes late for another reason than the links says nothing of them.
func TestGraceKnowsWhatIsLate(t *testing.T) {
	const late = 5000
	for name, come := range map[string]func(g *rig){
		"in time but for the link": func(g *rig) { g.arrives(1, 2, 9, late, false) },
		"by repair":                func(g *rig) { g.arrives(1, 2, 9, late, true) },
		"its payload by repair": func(g *rig) {
			d := g.delta(outer.Author{1}, 0, 2)
			d.Steps = 9
			g.want(g.offer(d), nil)
			g.arrives(1, 2, 9, late, true)
		},
		"again after it was lost": func(g *rig) {
			d := g.arrives(1, 2, 9, 1, false)
			g.m.Payload(g.now, 0, 2, d.ID, PayloadLost)
			g.now += late
			g.held(d)
		},
		"catching up": func(g *rig) {
			g.m.closedByMost = func(int, uint32) bool { return true }
			g.arrives(1, 2, 9, late, false)
		},
		"proposed ahead of the open round": func(g *rig) { g.arrives(1, 4, 9, late, false) },
		"its own":                          func(g *rig) { g.arrives(self[0], 2, 9, late, false) },
	} {
		g := linkRig(t, 1)
		come(g)
		counts := name == "in time but for the link"
		if got := g.m.late.way(1); counts && got != g.p.GraceMaxMs*wayMargin || !counts && got > wayMargin {
			t.Errorf("%s: a way of %d", name, got)
		}
	}
}

// What gossip parks leaves room for what repair brings.
func TestParkedByGossipLeavesRoom(t *testing.T) {
	g := newRig(t, roundsParams(1))
	taken := 0
	for author := byte(1); author < 100; author++ {
		for round := uint32(4); round <= g.p.WindowAccept; round++ {
			if d := g.delta(outer.Author{author}, 0, round); g.offer(d) == nil {
				taken++
				g.held(d)
			}
		}
	}
	if taken != maxParkedByGossip {
		t.Errorf("%d parked by gossip, want %d", taken, maxParkedByGossip)
	}
	for author := byte(100); author < 200; author++ {
		g.want(g.m.Offer(g.now, g.delta(outer.Author{author}, 0, 3), true), nil)
	}
}

// Fewer deltas than the quorum stretch grace to GraceMaxMs and no further.
func TestQuorumStretchesGrace(t *testing.T) {
	p := roundsParams(1)
	p.Quorum = 3
	g := newRig(t, p)
	g.live(1, 2, 3)
	g.give(g.delta(outer.Author{1}, 0, 1), g.delta(outer.Author{2}, 0, 1))
	g.after(p.GraceMaxMs - 1)
	g.expectClosed(0)
	g.after(1)
	g.expectClosed(1)
	g.give(g.delta(outer.Author{1}, 0, 2), g.delta(outer.Author{2}, 0, 2), g.delta(outer.Author{3}, 0, 2))
	g.after(p.GraceMinMs)
	g.expectClosed(2)
}

// Where the quorum takes all learners, one that is slow holds nobody up for longer than until the next delta is due here. Rounds
// wait on if more than one is missing, or if a delta is under way. So they do in larger runs, and where this learner has no part in
// the round.
func TestSlowLearnerHoldsUpNoPlan(t *testing.T) {
	for name, c := range map[string]struct {
		peers, gave int
		comes       bool
		aside       bool // this learner has signed a later round
		closes      bool
	}{
		"one of two":            {peers: 1, closes: true},
		"one of three":          {peers: 2, gave: 1, closes: true},
		"two of three":          {peers: 2},
		"two of four":           {peers: 3, gave: 1},
		"one that comes":        {peers: 1, comes: true},
		"one, and without this": {peers: 1, gave: 1, aside: true},
	} {
		p := roundsParams(1)
		p.Quorum, p.GraceMinMs = 3, 50 // five steps
		g := newRig(t, p)
		g.live([]byte{1, 2, 3}[:c.peers]...)
		all := func(round uint32) (ds []outer.Delta) {
			for a := range c.peers {
				ds = append(ds, g.delta(outer.Author{byte(a + 1)}, 0, round))
			}
			return ds
		}
		g.step(p.H)
		g.publish(0)
		g.give(all(1)...)
		g.expectClosed(1) // so they are known to keep their word

		g.step(p.H)
		if c.aside {
			g.m.RaiseMark(0, 5)
		} else {
			g.publish(0)
		}
		g.give(all(2)[:c.gave]...)
		last := all(2)[c.peers-1]
		if c.comes {
			g.want(g.offer(last), nil)
		}
		g.step(p.H - 1)
		g.after(1)
		if g.m.Fragment(0).Closed() != 1 {
			t.Errorf("%s: closed one step too early", name)
		}
		g.step(1)
		g.after(1)
		if closes := g.m.Fragment(0).Closed() == 2; closes != c.closes {
			t.Errorf("%s: the round closes: %v", name, closes)
		}
		if g.give(last); c.closes && len(g.m.Fragment(0).Set(2)) != c.peers+1 {
			t.Errorf("%s: what came late is not in the round", name)
		}
	}
}

// The quorum is no larger than what is live.
func TestQuorumOfFew(t *testing.T) {
	p := roundsParams(1)
	p.Quorum = 3
	g := newRig(t, p)
	g.live(1)
	g.give(g.delta(outer.Author{1}, 0, 1), g.delta(outer.Author{9}, 0, 1))
	g.after(p.GraceMinMs)
	g.expectClosed(1)
}

// A learner that has nothing to publish is neither waited for nor counted in the
// quorum.
func TestIdleLearnersAreNotWaitedFor(t *testing.T) {
	p := roundsParams(1)
	p.Quorum = 3
	g := newRig(t, p)
	g.live(1, 2, 3)
	g.give(g.delta(outer.Author{1}, 0, 1))
	g.after(g.p.GraceMinMs)
	g.expectClosed(0) // one of three, and the quorum is three
	g.m.SetIdle([]outer.Author{{2}, {3}, self})
	g.after(1)
	g.expectClosed(1)
}

// A proposal whose payload never comes ends in an empty round.
func TestEmptyRound(t *testing.T) {
	g := newRig(t, roundsParams(1))
	g.live(1)
	g.close(1)
	before := g.m.Fragment(0).Tip()
	g.want(g.offer(g.delta(outer.Author{1}, 0, 2)), nil)
	g.after(g.p.GraceMaxMs - 1)
	g.expectClosed(1)
	g.after(1)
	g.expectClosed(2)
	tip := g.m.Fragment(0).Tip()
	if tip.Round != 2 || &tip.Global[0] != &before.Global[0] || tip.Tokens != before.Tokens || tip.Chain == before.Chain {
		t.Fatalf("an empty round changed the tip: %+v", tip)
	}
}

// A delta of closed+2 closes closed+1 once its payload is held: a header alone
// proposes and closes nothing. One further ahead closes nothing.
func TestTwoAheadCloses(t *testing.T) {
	g := newRig(t, roundsParams(1))
	g.live(1, 2)
	g.give(g.delta(outer.Author{1}, 0, 3))
	g.expectClosed(0)
	two := g.delta(outer.Author{1}, 0, 2)
	g.want(g.offer(two), nil)
	g.expectClosed(0)
	g.held(two)
	g.expectClosed(2) // 2 closes 1, and then 3 closes 2
	if g.m.frags[0].proposal.at == 0 {
		t.Fatal("round 3 has a delta and no proposal")
	}
	g.after(g.p.GraceMinMs)
	g.expectClosed(3)
}

// Each author may park deltas beyond closed+2, each once the payload of the one before
// is held.
func TestParksOneAfterTheOther(t *testing.T) {
	g := newRig(t, roundsParams(1))
	g.want(g.offer(g.delta(outer.Author{1}, 0, 5)), nil)
	g.want(g.offer(g.delta(outer.Author{1}, 0, 5)), nil) // the same again
	g.want(g.offer(g.delta(outer.Author{1}, 0, 6)), ErrParked)
	g.want(g.offer(g.delta(outer.Author{2}, 0, 6)), nil)
	g.want(g.offer(g.delta(outer.Author{1}, 0, 1)), nil)
	g.want(g.offer(g.delta(outer.Author{3}, 0, 3)), nil) // the nearest that is parked
	g.want(g.offer(g.delta(outer.Author{3}, 0, 4)), ErrParked)
	g.held(g.delta(outer.Author{1}, 0, 5))
	g.want(g.offer(g.delta(outer.Author{1}, 0, 6)), nil)
	g.want(g.offer(g.delta(outer.Author{1}, 0, 4)), ErrParked)
	if g.m.Fragment(0).Closed() != 0 {
		t.Fatal("a parked delta closed a round")
	}
}

// Gossip brings so many headers of a round by authors of whom nothing came yet. Deltas of
// others, what repair brings, and an own delta still find room.
func TestHeadersOfStrangersAreBounded(t *testing.T) {
	g := newRig(t, roundsParams(1))
	g.close(1)
	for i, d := range g.crowd(maxMissing+1, 2) {
		g.want(g.m.Offer(g.now, d, false), map[bool]error{true: ErrFull}[i == maxMissing])
	}
	g.want(g.offer(g.delta(outer.Author{1}, 0, 2)), nil)
	g.want(g.m.Offer(g.now, g.delta(outer.Author{2}, 0, 2), true), nil)
	g.step(int(g.p.H))
	d := g.publish(0)
	if known, held := g.m.Fragment(0).Known(2, d.ID); !known || !held {
		t.Fatal("a full round has no room for the own delta")
	}
}

// After a burst of rounds each closes min_round after the one before, whenever the run was
// made, and a pause gives room for one burst more.
func TestMinRoundDelays(t *testing.T) {
	p := roundsParams(1)
	p.MinRoundMs = 5000
	g := newRig(t, p)
	g.now += 24 * 60 * 60 * 1000
	g.live(1)
	burst := func(from uint32) {
		t.Helper()
		for r := from; r < from+earlyRounds+2; r++ {
			g.give(g.delta(outer.Author{1}, 0, r))
		}
		g.after(p.GraceMinMs)
		g.expectClosed(from + earlyRounds - 1)
		g.after(p.MinRoundMs - p.GraceMinMs - 1)
		g.expectClosed(from + earlyRounds - 1)
		g.after(1)
		g.expectClosed(from + earlyRounds)
		g.after(p.MinRoundMs)
		g.expectClosed(from + earlyRounds + 1)
	}
	burst(1)
	g.after(24 * 60 * 60 * 1000)
	burst(earlyRounds + 3)
}

// Within any time no more rounds close than a burst and one each min_round, whenever proposals
// come and whenever the machine is told the time.
func TestMinRoundHoldsInAnyTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := roundsParams(1)
		p.MinRoundMs = rapid.Int64Range(1, 500).Draw(t, "min_round")
		g := newRig(t, p)
		g.live(1)
		takes := p.MinRoundMs
		if rapid.Bool().Draw(t, "attested") {
			takes = (takes + attestedPace - 1) / attestedPace
			g.m.closedByMost = func(int, uint32) bool { return true }
		}
		var at []Time
		for range 60 {
			if rapid.Bool().Draw(t, "proposes") {
				g.give(g.delta(outer.Author{1}, 0, g.m.Fragment(0).Closed()+1))
			}
			g.after(rapid.SampledFrom([]Time{0, 1, 20, 100, 3000}).Draw(t, "ms"))
			for uint32(len(at)) < g.m.Fragment(0).Closed() {
				at = append(at, g.now)
			}
		}
		for i := range at {
			for j := i; j < len(at); j++ {
				if most := ((earlyRounds-1)*p.MinRoundMs+at[j]-at[i])/takes + 1; Time(j-i+1) > most {
					t.Fatalf("%d rounds within %d ms, at most %d are allowed", j-i+1, at[j]-at[i], most)
				}
			}
		}
	})
}

// Rounds that most peers have closed come four times as fast, and those that were closed before a
// restart at once.
func TestCatchingUpIsFaster(t *testing.T) {
	p := roundsParams(1)
	p.MinRoundMs = 1000
	g := newRig(t, p)
	g.m.closedByMost = func(_ int, rnd uint32) bool { return rnd <= 100 }
	g.m.CloseTo(g.now, 0, 200)
	g.drain()
	first := g.m.Fragment(0).Closed()
	for range 10 * attestedPace {
		g.after(p.MinRoundMs / attestedPace)
	}
	if got := g.m.Fragment(0).Closed(); first != 1+(earlyRounds-1)*attestedPace || got != first+10*attestedPace {
		t.Errorf("closed %d at once and %d in 10 s", first, got)
	}

	h := newRig(t, p)
	genesis := h.bases[0][0]
	h.m.Restore(h.now, 0, Restored{Tip: genesis, History: []outer.Link{{State: genesis.State}}, Bases: []uint32{0}, Closed: 50})
	h.drain()
	h.expectClosed(50)
	h.m.CloseTo(h.now, 0, 100)
	h.drain()
	h.expectClosed(50 + earlyRounds)
}

// CloseTo closes as far as a peer did, empty rounds too.
func TestCloseTo(t *testing.T) {
	g := newRig(t, roundsParams(1))
	g.live(1, 2)
	g.give(g.delta(outer.Author{1}, 0, 1))
	g.m.CloseTo(g.now, 0, 3)
	g.drain()
	g.expectClosed(3)
	if len(g.closed[0].Folded) != 1 || g.closed[1].Folded != nil {
		t.Fatalf("closed %+v", g.closed)
	}
}

// An invalid payload is forgotten, and its round goes on without it.
func TestInvalidIsForgotten(t *testing.T) {
	g := newRig(t, roundsParams(1))
	g.live(1, 2)
	d := g.delta(outer.Author{1}, 0, 1)
	g.want(g.offer(d), nil)
	g.m.Payload(g.now, 0, 1, d.ID, PayloadInvalid)
	if known, _ := g.m.Fragment(0).Known(1, d.ID); known {
		t.Fatal("still known")
	}
	g.give(g.delta(outer.Author{2}, 0, 1))
	g.after(g.p.GraceMinMs)
	if got := g.closed[0].Folded; len(got) != 1 {
		t.Fatalf("folded %v", got)
	}
}

// Equivocation proof leaves both deltas of an author out of the round, also when it is
// closed. It excludes new ones, except deltas that a peer holds in its set.
func TestBar(t *testing.T) {
	g := newRig(t, roundsParams(1))
	g.live(1, 2)
	a, b := g.delta(outer.Author{1}, 0, 1), g.delta(outer.Author{2}, 0, 1)
	g.give(a, b)
	g.after(g.p.GraceMaxMs)
	g.expectClosed(1)
	g.m.Exclude(g.now, 0, 1, a.Author)
	g.after(g.p.GraceMaxMs)
	if l, _ := g.m.Fragment(0).Link(1); !slices.Equal(l.Folded, []outer.ID{b.ID}) {
		t.Fatalf("folded %x", l.Folded)
	}
	next := g.delta(a.Author, 0, 2)
	g.want(g.offer(next), ErrExcluded)
	g.want(g.m.Offer(g.now, next, true), nil)
	g.want(g.offer(g.delta(b.Author, 0, 2)), nil)
}

// No round waits for the delta of an excluded author.
func TestExcludedAreNotExpected(t *testing.T) {
	g := newRig(t, roundsParams(1))
	g.live(1, 2)
	g.m.Exclude(g.now, 0, 1, outer.Author{2})
	g.give(g.delta(outer.Author{1}, 0, 1))
	g.step(2)
	g.publish(0)
	g.expectClosed(1)
}

// What breaks the static rules is refused for that reason.
func TestOfferRefusesWhatCheckDoes(t *testing.T) {
	g := newRig(t, roundsParams(1))
	d := g.delta(outer.Author{1}, 0, 1)
	d.Base = 1
	if err := g.offer(d); err == nil || err != nil && err.Error() != g.p.Check(d).Error() {
		t.Fatalf("got %v", err)
	}
}

// A machine whose rounds stood still for an hour goes on as if no time had passed: the open
// round waits for its grace, and the hour is the measure of no step, no delta and no proposal.
func TestRested(t *testing.T) {
	g := newRig(t, roundsParams(1))
	g.live(1, 2)
	for r := uint32(1); r <= 2; r++ {
		g.step(5)
		g.give(g.delta(outer.Author{1}, 0, r), g.delta(outer.Author{2}, 0, r))
		g.after(1000)
		g.expectClosed(r)
	}
	g.give(g.delta(outer.Author{1}, 0, 3))
	g.after(10)
	g.expectClosed(2)
	interval, grace, late, between := g.m.steps.interval(), g.m.grace(), g.m.late.worst(), g.m.late.between()
	if g.m.frags[0].deltas.rounds[3].blind || between == 0 {
		t.Fatalf("a round without measure: proposals %d ms apart", between)
	}
	g.now += 3_600_000
	g.m.Resumed(g.now)
	g.after(grace - 1)
	g.expectClosed(2)
	g.m.Stepped(g.now, 512)
	g.step(1)
	g.give(g.delta(outer.Author{2}, 0, 3))
	g.after(1000)
	g.expectClosed(3)
	if got := g.m.steps.interval(); got > interval+1 {
		t.Errorf("steps take %d ms, before the rest %d", got, interval)
	}
	if got := g.m.late.worst(); got > late+grace {
		t.Errorf("deltas are %d ms late, before the rest %d", got, late)
	}
	if got := g.m.late.between(); got > between+1000 {
		t.Errorf("%d ms lie between two proposals, before the rest %d", got, between)
	}
}
