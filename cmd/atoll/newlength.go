package main

import (
	"fmt"
	"math"
	"strings"

	"atoll/node"
	"atoll/optimizer/outer"
)

// With fewer, models of four learners were more than some 2 % behind data parallelism with the same tokens (optimizer/outer/DESIGN.md).
// Mini, with 18 tokens for each parameter and more, came to 3.5 % more bits per byte with 32 rounds of 64 steps, to 3.3 % with 42 of 48, to 1.6 %
// with 85 of 24 and to 1.5 % with 128 of 64: so 80 is a number between the 42 that are too few and the 85 that are not. Tiny, with 85 of 24, came to
// 6.7 % with 5 tokens for each, and with 341 and 20 tokens to 1.3 %. With more learners, or sparse codecs, more can be too few.
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
	Passes   float64 `json:"passes"`                 // over the text to train on
	Short    bool    `json:"short"`                  // for a model as good as that of data parallelism
	Least    float64 `json:"least_tokens,omitempty"` // with which a short run is not
	fixed    bool    // H, by links or as a smaller one brings little
}

// lengthOf returns how far the budget of a run goes with so many learners of its usual batch, and tokens to train on. chosen says
// that links fix H.
func lengthOf(g node.Genesis, learners, text int, chosen bool) length {
	perStep := uint64(g.Batch * g.Model.Context)
	budget, params := float64(g.Outer.Budget), float64(g.Model.Params())
	steps := max(1, g.Outer.Budget/perStep/uint64(learners))
	l := length{Learners: learners, Steps: int(steps), Rounds: max(1, int(steps)/g.Outer.H), fixed: chosen || g.Outer.H <= littleH}
	l.PerParam, l.Passes = budget/params, budget/float64(text)
	l.Short = learners > 1 && l.lacking() != "" // one alone averages nothing
	if l.Short {
		ofRounds := enoughRounds * float64(g.Outer.H) * float64(learners) * float64(perStep)
		l.Least = outer.RoundUp(max(ofRounds, enoughTokens*params), 2)
	}
	return l
}

// row says so, and what to do about a run that is short.
func (l length) row() []string {
	text := fmt.Sprintf("%s of each of %s, %s, %s tokens a parameter", plural(l.Steps, "step", "steps"),
		plural(l.Learners, "learner", "learners"), plural(l.Rounds, "round", "rounds"), twoDigits(l.PerParam))
	if l.Short {
		text += fmt.Sprintf(": short (%s), of which four learners came to more than 2 %% behind data parallelism; from --tokens %s on it is not", l.lacking(), short(l.Least))
	}
	if l.Short && !l.fixed {
		text += ", and a smaller --H helps, for more bytes"
	}
	return []string{"length", text}
}

// lacking says what makes a run of several learners short, "" for nothing.
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

// short writes a number of 10 and more with two digits as one would type it: 1.5e7.
func short(x float64) string {
	mantissa, exponent, _ := strings.Cut(fmt.Sprintf("%.1e", x), "e+")
	return mantissa + "e" + strings.TrimLeft(exponent, "0")
}

// twoDigits writes a number of any size that way, and a large one no larger than it is: 0.00093, 3.6, 120.
func twoDigits(x float64) string {
	if x >= 10 {
		return fmt.Sprintf("%.0f", math.Floor(x))
	}
	return fmt.Sprintf("%.2g", x)
}
