package rounds_test

import (
	"math/big"
	"slices"
	"testing"

	"atoll/gossip/wire/spectest"
	"atoll/optimizer/outer"
)

// Clauses about the rotation, and about learners for which nobody proposes a round.

// specAllPublish has as many learners that train as publish, among more that do not: each
// publishes in every round.
func specAllPublish(t *testing.T, _ *spectest.Spec) {
	for round := uint32(1); round <= 20; round++ {
		r := newWorld(t, func(p *outer.Params) { p.LearnersPerRound, p.H, p.WindowUnion = 3, 1000, 64 })
		r.closeTo(round - 1)
		r.m.SetLive([]outer.Author{self, {1}, {2}, {3}, {4}, {5}})
		r.m.SetIdle([]outer.Author{{3}, {4}, {5}})
		r.m.Stepped(r.now, 1)
		if r.take(1, round); r.drafts == 0 {
			t.Errorf("round %d: no delta", round)
		}
	}
}

// specLearnersPerRound has an own learner among nine others and draws who is sampled by the
// text: who is asked for a draft by the proposal of another, and after how many steps one
// proposes a round without being sampled.
func specLearnersPerRound(t *testing.T, _ *spectest.Spec) {
	live := []outer.Author{self}
	for i := range byte(9) {
		live = append(live, outer.Author{i + 1})
	}
	var stopped []outer.Author // they are among the others by name
	for i := range byte(30) {
		stopped = append(stopped, outer.Author{1 + i/6, 1 + i})
	}
	byName := slices.Concat(live[1:], live[:1]) // self is the last
	groups := map[int]int{}
	for round := uint32(1); round <= 20; round++ {
		point := new(big.Int).SetUint64(uint64(round) * 0x9E3779B97F4A7C15) // of fragment 0
		place := int(point.Mul(point, big.NewInt(10)).Rsh(point, 64).Int64())
		group := slices.Index(slices.Concat(byName[place:], byName[:place]), self) / 3
		groups[group]++

		r := newWorld(t, func(p *outer.Params) { p.LearnersPerRound, p.H, p.WindowUnion = 3, 1000, 64 })
		r.closeTo(round - 1)
		r.m.SetLive(slices.Concat(live, stopped))
		r.m.SetIdle(stopped)
		r.m.Stepped(r.now, 1)
		if r.take(1, round); (r.drafts > 0) != (group == 0) {
			t.Errorf("round %d: %d drafts, of group %d by the text", round, r.drafts, group)
		}

		r = newWorld(t, func(p *outer.Params) { p.LearnersPerRound, p.H, p.WindowUnion = 3, 10, 64 })
		r.closeTo(round - 1)
		r.m.SetLive(slices.Concat(live, stopped))
		r.m.SetIdle(stopped)
		for steps := 1; r.drafts == 0; steps++ {
			r.m.Stepped(r.now, 1)
			if r.execute(); (r.drafts > 0) != (steps == 10*(1+group)) {
				t.Fatalf("round %d: %d drafts after %d steps, of group %d by the text", round, r.drafts, steps, group)
			}
		}
	}
	if groups[0] == 0 || groups[1] == 0 || groups[2] == 0 || groups[3] == 0 {
		t.Errorf("groups: %v", groups)
	}
}

// stepsToPropose has a round close one step before one of three learners has made H = 10,
// and counts its steps from there on until it proposes.
func stepsToPropose(t *testing.T, learnersPerRound int) (steps int) {
	r := newWorld(t, func(p *outer.Params) { p.LearnersPerRound, p.H, p.HMin = learnersPerRound, 10, 10 })
	r.m.SetLive([]outer.Author{self, {1}, {2}})
	for range 9 {
		r.m.Stepped(r.now, 1)
	}
	r.take(1, 1)
	if r.pass(r.p.GraceMaxMs); r.m.Fragment(0).Closed() != 1 {
		t.Fatal("round 1 is open")
	}
	for ; r.drafts == 0 && steps < 100; steps++ {
		r.m.Stepped(r.now, 1)
		r.execute()
	}
	return steps
}

func specProposes(t *testing.T, _ *spectest.Spec) {
	if steps := stepsToPropose(t, 3); steps != 1 {
		t.Errorf("where all publish it proposes after %d more steps", steps)
	}
}

// specProposesInRotation has two of three publish: the third proposes another H later. specLearnersPerRound
// draws who is sampled.
func specProposesInRotation(t *testing.T, _ *spectest.Spec) {
	if steps := stepsToPropose(t, 2); steps != 10 && steps != 20 {
		t.Errorf("where two of three publish it proposes after %d more steps", steps)
	}
}

// specStuck has a learner that took a snapshot of older rounds than it has signed.
func specStuck(t *testing.T, _ *spectest.Spec) {
	for live, groups := range map[int]int{3: 1, 9: 3} {
		r := newWorld(t, func(p *outer.Params) { p.H, p.LearnersPerRound, p.WindowAccept, p.WindowUnion = 5, 3, 3, 64 })
		r.closeTo(4)
		r.m.RaiseMark(0, 9)
		learners := []outer.Author{self}
		for i := range byte(live - 1) {
			learners = append(learners, outer.Author{i + 1})
		}
		r.m.SetLive(learners)
		state := r.m.Fragment(0).Tip().State
		for range 16*5*groups - 1 {
			r.m.Stepped(r.now, 1)
			r.execute()
		}
		if r.m.Fragment(0).Closed() != 4 || r.drafts != 0 {
			t.Errorf("of %d: closed %d, %d drafts, though others may propose yet", live, r.m.Fragment(0).Closed(), r.drafts)
		}
		r.m.Stepped(r.now, 1)
		if r.execute(); r.m.Fragment(0).Closed() != 7 {
			t.Errorf("of %d: closed %d, want as many more as gossip brings: 3", live, r.m.Fragment(0).Closed())
		}
		for range 16 * 5 * groups {
			r.m.Stepped(r.now, 1)
			r.execute()
		}
		if r.m.Fragment(0).Closed() != 9 || r.m.Fragment(0).Tip().State != state {
			t.Errorf("of %d: closed %d, signed 9", live, r.m.Fragment(0).Closed())
		}
		for range 5 * groups {
			r.m.Stepped(r.now, 1)
			r.execute()
		}
		if n := r.open(); r.drafts == 0 || n != 10 {
			t.Errorf("of %d: %d drafts, for round %d", live, r.drafts, n)
		}
	}
}

// specStuckAtRest has such a learner step no more.
func specStuckAtRest(t *testing.T, _ *spectest.Spec) {
	stuck := func() *world {
		r := newWorld(t, func(p *outer.Params) { p.H, p.WindowAccept, p.WindowUnion = 5, 3, 64 })
		r.closeTo(4)
		r.m.RaiseMark(0, 9)
		r.m.SetLive([]outer.Author{self, {1}})
		return r
	}
	r := stuck()
	r.m.Stepped(r.now, 1)
	if r.pass(100 * r.p.GraceMaxMs); r.m.Fragment(0).Closed() != 4 {
		t.Errorf("closed %d while it trains", r.m.Fragment(0).Closed())
	}
	r.m.SetStopped(r.now, true, true)
	if r.pass(r.p.GraceMaxMs - 1); r.m.Fragment(0).Closed() != 4 {
		t.Errorf("closed %d before GraceMaxMs is over", r.m.Fragment(0).Closed())
	}
	if r.pass(1); r.m.Fragment(0).Closed() != 7 {
		t.Errorf("closed %d, want as many more as gossip brings: 3", r.m.Fragment(0).Closed())
	}
	if r.pass(r.p.GraceMaxMs); r.m.Fragment(0).Closed() != 9 || r.drafts == 0 || r.open() != 10 {
		t.Errorf("closed %d, signed 9; %d drafts", r.m.Fragment(0).Closed(), r.drafts)
	}
	r = stuck()
	r.m.SetStopped(r.now, true, true)
	if r.pass(100 * r.p.GraceMaxMs); r.m.Fragment(0).Closed() != 4 {
		t.Errorf("closed %d, with nothing to publish", r.m.Fragment(0).Closed())
	}
}

// specFull has a learner that is seldom sampled make as many steps as a delta may have.
func specFull(t *testing.T, _ *spectest.Spec) {
	drafts := map[int]int{} // by steps
	for round := uint32(1); round <= 20; round++ {
		r := newWorld(t, func(p *outer.Params) { p.LearnersPerRound, p.H, p.MaxSteps, p.WindowUnion = 1, 20, 30, 64 })
		r.closeTo(round - 1)
		r.m.SetLive([]outer.Author{self, {1}, {2}, {3}})
		steps := 0
		for ; r.drafts == 0 && steps < 50; steps++ {
			r.m.Stepped(r.now, 1)
			r.execute()
		}
		drafts[steps]++
	}
	if drafts[20] == 0 || drafts[30] < drafts[20] || drafts[20]+drafts[30] != 20 {
		t.Errorf("drafts after so many steps: %v; the learner sampled first makes 20, others 30", drafts)
	}
}

// specGivesUp has rounds close after a learner has made its last step.
func specGivesUp(t *testing.T, _ *spectest.Spec) {
	for name, c := range map[string]struct {
		rounds uint32 // after the last step
		rests  bool
		more   bool // a step after them
		want   bool
	}{
		"few rounds":         {4, true, false, false},
		"more than accept":   {5, true, false, true},
		"it goes on":         {5, false, false, false},
		"it has gone on":     {5, true, true, false},
		"nothing to give up": {0, true, false, false},
	} {
		r := newWorld(t, func(p *outer.Params) { p.H, p.WindowUnion = 50, 64 })
		r.m.RaiseMark(0, 100) // so that it may not publish
		r.closeTo(2)
		if c.rounds > 0 {
			r.m.Stepped(r.now, 7)
		}
		r.closeTo(2 + c.rounds)
		if c.more {
			r.m.Stepped(r.now, 7)
		}
		r.m.SetStopped(r.now, c.rests, c.rests)
		r.pass(1)
		if r.givenUp > 0 != c.want || r.givenUp > 1 {
			t.Errorf("%s: gives up %d times", name, r.givenUp)
		}
		if r.pass(1); c.want && r.givenUp != 1 {
			t.Errorf("%s: gives up %d times before it is told that it has", name, r.givenUp)
		}
		r.m.Repaired(r.now, 0, outer.Loss{Lost: outer.Work{Steps: 1, Tokens: 7}})
		if r.pass(1); c.want && r.givenUp != 1 {
			t.Errorf("%s: gives up %d times, though nothing is left", name, r.givenUp)
		}
	}
}
