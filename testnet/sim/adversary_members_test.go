package sim

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"atoll/optimizer/outer"
)

// memberTest is a lie of two of eight members.
type memberTest struct {
	name   string
	attack Attack
	wins   string // why it is known to cost more than the bar; "" = it does not
}

var memberTests = []memberTest{
	{name: "sign flip", attack: Attack{Kind: SignFlip, Times: 1}},
	{name: "sign flip x10", attack: Attack{Kind: SignFlip, Times: 10}},
	{name: "inflated claims", attack: Attack{Kind: Inflate, Times: 1}, wins: "steps that nobody can check weigh as those of a whole round, beside deltas of fewer: 1.06 while it falls, 0.86 afterwards"},
	{name: "inflated sign flip", attack: Attack{Kind: Inflate, Times: -1}},
	{name: "zero", attack: Attack{Kind: Zero}},
	{name: "noise", attack: Attack{Kind: Noise, Times: 1}},
	{name: "copies", attack: Attack{Kind: Copy}},
	{name: "copies with some noise", attack: Attack{Kind: Copy, Times: 0.3}},
	{name: "copies with their norm of noise", attack: Attack{Kind: Copy, Times: 1}, wins: "they share half of their noise with the original, as honest learners can"},
	{name: "withheld from some", attack: Attack{Kind: WithholdSome}},
}

const (
	members      = 8
	lyingMembers = 2
	memberRounds = 24   // of H steps of each learner, after each of which losses are compared
	memberFalls  = 6    // of them in which the loss falls; then it stays where the noise of steps holds it
	mostMemberly = 1.03 // times the loss without the liars, after the same tokens of the others
)

// membersWorld is a run with the outer steps of a new one, in which so many learn. Its
// budget is never reached: claims must not end it.
func membersWorld(seed uint64, learners int) Scenario {
	s := Small(learners, memberRounds, nil, seed)
	p := &s.Params
	*p = ParamsOf(outer.Spec{Fragments: 3, H: 24, Learners: learners})
	p.Budget = 1 << 50
	s.LimitMs = 4 * memberRounds * Time(p.H) * s.StepMs
	return s
}

// curve is the loss of the folded model each time that the honest learners have made the tokens
// of a further round.
func curve(t *testing.T, s Scenario) []float64 {
	t.Helper()
	w, err := New(s)
	if err != nil {
		t.Fatal(err)
	}
	round := uint64((members - lyingMembers) * s.Params.H * TokensPerStep)
	var losses []float64
	w.Watch(s.StepMs, func() {
		var made uint64
		for _, n := range w.alive() {
			made += n.book.trained
		}
		if made >= round*uint64(len(losses)+1) && len(losses) < memberRounds {
			losses = append(losses, Loss(w.Globals()))
		}
	})
	if !w.RunUntil(Start+s.LimitMs, func() bool { return len(losses) == memberRounds }) {
		t.Fatalf("only %d of %d rounds' tokens are made: %v", len(losses), memberRounds, w.Err())
	}
	return losses
}

// dearer is how many times the loss is what it was without the liars: while it falls, and after
// that. A liar that slows learners down shows in the first alone: shorter steps have less
// noise. Both are geometric means over rounds and seeds; the first round is nobody's progress.
func (m memberTest) dearer(t *testing.T, without map[uint64][]float64) (falling, fallen float64) {
	t.Helper()
	sums := [2][]float64{}
	for seed := range memberSeeds() {
		if without[seed] == nil {
			without[seed] = curve(t, membersWorld(seed+1, members-lyingMembers))
		}
		s := membersWorld(seed+1, members)
		for i := range lyingMembers {
			s.Founders[members-1-i].Attack = m.attack
		}
		for i, loss := range curve(t, s) {
			part := min(i/memberFalls, 1)
			if i > 0 {
				sums[part] = append(sums[part], math.Log(loss/without[seed][i]))
			}
		}
	}
	return math.Exp(meanOf(sums[0])), math.Exp(meanOf(sums[1]))
}

func meanOf(v []float64) (mean float64) {
	for _, x := range v {
		mean += x / float64(len(v))
	}
	return mean
}

// Two of eight members that lie cost the others no more than the bar allows, or are known
// to. The others alone, after as many tokens of their own, are what it is held against.
func TestLyingMembers(t *testing.T) {
	without := map[uint64][]float64{} // by seed
	var table strings.Builder
	for i, m := range memberTests {
		if !taken(i, 9) {
			continue
		}
		t.Run(m.name, func(t *testing.T) {
			falling, fallen := m.dearer(t, without)
			fmt.Fprintf(&table, "| %s | %.3g | %.3g |\n", m.name, falling, fallen)
			switch over := !(max(falling, fallen) <= mostMemberly); { // true for NaN
			case over && m.wins == "":
				t.Errorf("the loss is %.3g times that without the liars while it falls, %.3g times afterwards; at most %g times", falling, fallen, mostMemberly)
			case !over && m.wins != "":
				t.Errorf("does not win any more: take away `wins: %q`", m.wins)
			}
		})
	}
	t.Logf("two of eight lie: times the loss of the other six alone after the same tokens\n| lie | while it falls | afterwards |\n%s", table.String())
}

// memberSeeds is how many worlds a lie is played in: one alone has noise of the size of the bar.
func memberSeeds() uint64 { return max(lossSeeds(), 2) }
