package main

import (
	"fmt"
	"math"
	"strings"

	"atoll/node"
)

// With fewer, models of four learners were more than some 2 % behind data parallelism with the same tokens (optimizer/outer/DESIGN.md).
// Mini, with 18 tokens for each parameter and more, came to 3.5 % more bits per byte with 32 rounds of 64 steps, to 3.3 % with 42 of 48, to 1.6 %
// with 85 of 24 and to 1.5 % with 128 of 64; tiny, with 85 of 24, to 6.7 % with 5 tokens for each, and with 341 and 20 tokens to 1.3 %.
// Two learners of small were nearer than that with far fewer of both: what a run comes to when it has hardly begun says little.
const (
	enoughRounds = 80
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
		text += fmt.Sprintf(": short (%s), its model may be more than 2 %% behind that of one machine; more --tokens bring it nearer", l.lacking())
	}
	if l.Short && !l.fixed {
		text += ", and a smaller --H does, for more bytes"
	}
	return []string{"length", text}
}

// lacking says what makes a run short.
func (l length) lacking() string {
	var few []string
	if l.Rounds < enoughRounds {
		few = append(few, fmt.Sprintf("fewer than %d rounds", enoughRounds))
	}
	if l.PerParam < enoughTokens {
		few = append(few, fmt.Sprintf("fewer than %d tokens a parameter", enoughTokens))
	}
	return strings.Join(few, ", ")
}

// twoDigits writes a number of any size that way, and a large one no larger than it is: 0.00093, 3.6, 120.
func twoDigits(x float64) string {
	if x >= 10 {
		return fmt.Sprintf("%.0f", math.Floor(x))
	}
	return fmt.Sprintf("%.2g", x)
}
