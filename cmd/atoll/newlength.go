package main

import (
	"fmt"

	"atoll/node"
)

// enoughRounds is how often a model should be merged: four learners came to 11 % more bits per byte than data parallelism with 21
// rounds of 24 steps, to 3.5 % with 32 of 64, to 1.6 % with 85 of 24, and to 1.5 % with 128 of 64 (optimizer/outer/DESIGN.md).
const enoughRounds = 80

// length is how far a budget goes.
type length struct {
	Learners int  `json:"learners"` // that were counted on, of equal speed
	Steps    int  `json:"steps"`    // of each
	Rounds   int  `json:"rounds"`   // of a fragment
	Better   int  `json:"better_h"` // with which there are enough rounds; 0 = there are
	chosen   bool // H, by --bandwidth
}

// lengthOf returns how far the budget of a run goes with so many learners of its usual batch.
func lengthOf(g node.Genesis, learners int, chosen bool) length {
	ofAll := uint64(learners) * uint64(g.Batch) * uint64(g.Model.Context)
	steps := int(max(1, g.Outer.Budget/ofAll))
	l := length{Learners: learners, Steps: steps, Rounds: max(1, steps/g.Outer.H), chosen: chosen}
	if l.Rounds < enoughRounds && g.Outer.H > 1 {
		l.Better = max(1, steps/enoughRounds)
	}
	return l
}

// row says so, and what to do about a run that is short.
func (l length) row() []string {
	text := fmt.Sprintf("%s of each of %s, %s", plural(l.Steps, "step", "steps"), plural(l.Learners, "learner", "learners"), plural(l.Rounds, "round", "rounds"))
	switch {
	case l.Better == 0:
	case l.chosen:
		text += fmt.Sprintf(": with fewer than %d the model comes out worse; more --tokens make more", enoughRounds)
	default:
		text += fmt.Sprintf(": with fewer than %d the model comes out worse; --H %d makes more, for more bytes", enoughRounds, l.Better)
	}
	return []string{"length", text}
}
