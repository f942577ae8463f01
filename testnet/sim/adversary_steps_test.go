package sim

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"atoll/optimizer/outer"
)

// outerStep are outer steps that are held against liars.
type outerStep struct {
	name string
	set  func(p *outer.Params)
}

var outerSteps = []outerStep{
	{"no norm reference", func(p *outer.Params) { p.ClipFactor = 1e6 }},
	{"no momentum (of these worlds)", func(*outer.Params) {}},
	{"momentum (as runs with H above 8)", func(p *outer.Params) { p.Eta, p.Mu = 0.8, 0.6 }},
}

// liarsWorld is a run of eight learners. So many of them lie.
func liarsWorld(seed uint64, step outerStep, liars int, attack Attack) Scenario {
	const learners, rounds = 8, 40
	s := Small(learners, rounds, nil, seed)
	p := &s.Params
	p.OwnText = true // outer steps are all that differs
	p.MaxSteps, p.MaxTokensPerStep = uint32(2*p.H), 2*TokensPerStep
	step.set(p)
	for i := range liars {
		s.Founders[learners-1-i].Attack = attack
	}
	return s
}

// lossSeeds is over how many seeds losses are averaged.
func lossSeeds() uint64 {
	if longMode() {
		return 5
	}
	return 1
}

// lossOf is the geometric mean of the final losses of some seeds.
func lossOf(t *testing.T, step outerStep, liars int, attack Attack) float64 {
	t.Helper()
	sum, seeds := 0.0, lossSeeds()
	for seed := range seeds {
		w, err := New(liarsWorld(seed+1, step, liars, attack))
		if err != nil {
			t.Fatal(err)
		}
		w.Finish()
		if b, ok := w.Err().(*Broken); ok && b.Check != "learns" { // which is what is measured
			t.Fatal(b)
		}
		sum += math.Log(Loss(w.Globals()))
	}
	return math.Exp(sum / float64(seeds))
}

// cell is a world of a table of losses: so many of 8 learners flip the sign of so many times what they made.
type cell struct{ liars, times int }

// bounded are the cells that a bound is known of. The others are for people: ATOLL_LONG=1 plays them.
var bounded = map[string][]cell{"no momentum (of these worlds)": {{}, {1, 10}, {2, 10}, {5, 10}}}

// Final losses with 0, 1 and 2 of 8 learners that flip the sign of what they made,
// plainly or ten times as large. Centred clipping holds against what five of eight, the majority, do not.
func TestOuterStepsUnderLiars(t *testing.T) {
	var table strings.Builder
	losses := map[string]map[cell]float64{}
	for _, m := range outerSteps {
		losses[m.name] = map[cell]float64{}
		fmt.Fprintf(&table, "| %s |", m.name)
		for _, c := range []cell{{}, {1, 1}, {2, 1}, {1, 10}, {2, 10}, {5, 10}} {
			if !longMode() && !slices.Contains(bounded[m.name], c) {
				table.WriteString(" |")
				continue
			}
			loss := lossOf(t, m, c.liars, Attack{Kind: SignFlip, Times: float64(c.times)})
			losses[m.name][c] = loss
			fmt.Fprintf(&table, " %.3g |", loss)
		}
		table.WriteByte('\n')
	}
	t.Logf("final loss of %.0f at the start\n| outer step | no liar | 1 of 8, x-1 | 2 of 8, x-1 | 1 of 8, x-10 | 2 of 8, x-10 | 5 of 8, x-10 |\n%s", Loss(initial(specs)), table.String())
	got := losses["no momentum (of these worlds)"]
	for liars, bound := range map[int]float64{1: 2, 2: 4} {
		if loss := got[cell{liars, 10}]; loss > bound*got[cell{}] {
			t.Errorf("%d liars: a loss of %.3g, %.3g without; at most %g times as much", liars, loss, got[cell{}], bound)
		}
	}
	if loss := got[cell{5, 10}]; loss < Loss(initial(specs)) {
		t.Errorf("five liars of eight come to a loss of %.3g: they are too tame to test anything", loss)
	}
}

// safeShare is the largest share of a round that leaves honest learners the say.
const safeShare = 0.25

// A liar that claims the most that genesis allows has the largest share that it
// allows. Final losses by that share: a quarter leaves honest learners the say. ATOLL_LONG=1 plays what has no bound too.
func TestSharesUnderInflation(t *testing.T) {
	flip := Attack{Kind: Inflate, Times: -1}
	for _, share := range []float64{0.5, 0.34, safeShare, 0.15} {
		if !longMode() && share != safeShare {
			continue
		}
		row := ""
		for _, m := range outerSteps {
			if m.name == "no norm reference" {
				continue
			}
			capped := outerStep{m.name, func(p *outer.Params) {
				m.set(p)
				p.MaxShare, p.Quorum = share, int(1/share)+1
			}}
			one := lossOf(t, capped, 1, flip)
			if row += fmt.Sprintf(" %.3g |", one); longMode() {
				row += fmt.Sprintf(" %.3g |", lossOf(t, capped, 2, flip))
			}
			if share <= safeShare && one > Loss(initial(specs))/100 {
				t.Errorf("%s, share %g: loss %.3g with one inflating liar", m.name, share, one)
			}
		}
		t.Logf("| %g |%s", share, row)
	}
}
