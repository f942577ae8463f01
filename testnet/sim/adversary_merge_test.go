package sim

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"atoll/optimizer/outer"
)

// mergeOf is a way to merge that is held against liars.
type mergeOf struct {
	name string
	set  func(p *outer.Params)
}

var merges = []mergeOf{
	{"mean, no norm reference", func(p *outer.Params) { p.Merge, p.ClipFactor = outer.MergeMean, 1e6 }},
	{"mean", func(p *outer.Params) { p.Merge = outer.MergeMean }},
	{"RDA, no norm reference", func(p *outer.Params) { p.Merge, p.ClipFactor = outer.MergeRDA, 1e6 }},
	{"RDA (default)", func(p *outer.Params) { p.Merge = outer.MergeRDA }},
	{"centred clipping", func(p *outer.Params) { p.Merge = outer.MergeClip }},
}

// mergeWorld is a run of eight learners, so many of which lie.
func mergeWorld(seed uint64, merge mergeOf, liars int, attack Attack) Scenario {
	const learners, rounds = 8, 40
	s := Small(learners, rounds, nil, seed)
	p := &s.Params
	p.MaxShare, p.Quorum = 0.5, 3
	p.MaxSteps, p.MaxTokensPerStep = uint32(2*p.H), 2*TokensPerStep
	merge.set(p)
	for i := range liars {
		s.Founders[learners-1-i].Attack = attack
	}
	return s
}

// lossOf is the geometric mean of the final losses of some seeds.
func lossOf(t *testing.T, merge mergeOf, liars int, attack Attack) float64 {
	t.Helper()
	const seeds = 5
	sum := 0.0
	for seed := range uint64(seeds) {
		w, err := New(mergeWorld(seed+1, merge, liars, attack))
		if err != nil {
			t.Fatal(err)
		}
		w.Finish()
		if b, ok := w.Err().(*Broken); ok && b.Check != "learns" { // which is what is measured
			t.Fatal(b)
		}
		sum += math.Log(Loss(w.Anchors()))
	}
	return math.Exp(sum / seeds)
}

// Final losses with 0, 1 and 2 of 8 learners that flip the sign of what they made,
// plainly or ten times as large. The norm reference and a robust merge hold
// against what a mean does not.
func TestMergesUnderLiars(t *testing.T) {
	attacks := []Attack{{Kind: SignFlip, Times: 1}, {Kind: SignFlip, Times: 10}}
	var table strings.Builder
	losses := map[string][]float64{}
	for _, m := range merges {
		row := []float64{lossOf(t, m, 0, Attack{})}
		for _, a := range attacks {
			row = append(row, lossOf(t, m, 1, a), lossOf(t, m, 2, a))
		}
		losses[m.name] = row
		fmt.Fprintf(&table, "| %s |", m.name)
		for _, x := range row {
			fmt.Fprintf(&table, " %.3g |", x)
		}
		table.WriteByte('\n')
	}
	t.Logf("final loss of %.0f at the start\n| merge | no liar | 1 of 8, x-1 | 2 of 8, x-1 | 1 of 8, x-10 | 2 of 8, x-10 |\n%s", Loss(initial()), table.String())
}
