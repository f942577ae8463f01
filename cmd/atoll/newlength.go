package main

import (
	"fmt"

	"atoll/node"
)

// What a run needs to come within some 2 % of data parallelism with the same tokens (optimizer/outer/DESIGN.md). With 18 tokens for each
// parameter and more, four learners of mini came to 1.6 % more bits per byte with 85 rounds of 24 steps, to 3.5 % with 32 of 64 and to 1.5 %
// with 128 of 64, and of tiny to 1.3 % with 341 of 24; with 5 tokens, mini came to 11 % with 21 rounds of 24 and tiny to 6.7 % with 85.
const (
	enoughRounds = 40
	enoughTokens = 18 // for each parameter
)

// littleH is the H below which little is gained (optimizer/outer/DESIGN.md).
const littleH = 4

// length is how far a budget goes.
type length struct {
	Learners int     `json:"learners"` // that were counted on, of equal speed
	Steps    int     `json:"steps"`    // of each
	Rounds   int     `json:"rounds"`   // of a fragment
	PerParam float64 `json:"tokens_per_parameter"`
	Short    bool    `json:"short"` // for a model as good as that of one machine
	fixed    bool    // H, by links or as a smaller one brings little
}

// lengthOf returns how far the budget of a run goes with so many learners of its usual batch. chosen says that links fix H.
func lengthOf(g node.Genesis, learners int, chosen bool) length {
	steps := max(1, g.Outer.Budget/uint64(g.Batch*g.Model.Context)/uint64(learners))
	l := length{Learners: learners, Steps: int(steps), Rounds: max(1, int(steps)/g.Outer.H), fixed: chosen || g.Outer.H <= littleH}
	l.PerParam = float64(g.Outer.Budget) / float64(g.Model.Params())
	l.Short = learners > 1 && (l.Rounds < enoughRounds || l.PerParam < enoughTokens) // one alone averages nothing
	return l
}

// row says so, and what to do about a run that is short.
func (l length) row() []string {
	text := fmt.Sprintf("%s of each of %s, %s, %s tokens a parameter", plural(l.Steps, "step", "steps"),
		plural(l.Learners, "learner", "learners"), plural(l.Rounds, "round", "rounds"), twoDigits(l.PerParam))
	if l.Short {
		text += fmt.Sprintf(": short (fewer than %d rounds or %d tokens), its model will be behind that of one machine; more --tokens bring it nearer", enoughRounds, enoughTokens)
	}
	if l.Short && !l.fixed {
		text += ", and a smaller --H does, for more bytes"
	}
	return []string{"length", text}
}

// twoDigits writes a number of any size that way: 0.00093, 3.6, 120.
func twoDigits(x float64) string {
	if x >= 10 {
		return fmt.Sprintf("%.0f", x)
	}
	return fmt.Sprintf("%.2g", x)
}
