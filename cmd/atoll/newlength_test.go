package main

import (
	"strings"
	"testing"

	"atoll/node"
	"atoll/tensor/llama"
)

// ofLength is a run of steps of 4 rows of 128 tokens.
func ofLength(budget uint64, h int) node.Genesis {
	g := node.Genesis{Model: llama.Tiny, Batch: 4}
	g.Model.Context = 128
	g.Outer.Budget = budget
	g.Outer.SetH(h)
	return g
}

func TestLengthCountsRounds(t *testing.T) {
	const step = 4 * 128
	for _, c := range []struct {
		steps                 uint64
		learners, h           int
		each, rounds, betterH int
	}{
		{80 * 24, 1, 24, 1920, 80, 0},
		{80*24 - 1, 1, 24, 1919, 79, 23},
		{4 * 512, 4, 24, 512, 21, 6},
		{4 * 512, 4, 6, 512, 85, 0},
		{100, 2, 8, 50, 6, 1},
		{20, 1, 1, 20, 20, 0}, // nothing is better
		{0, 3, 24, 1, 1, 1},
	} {
		got := lengthOf(ofLength(c.steps*step+step-1, c.h), c.learners, false)
		if got != (length{c.learners, c.each, c.rounds, c.betterH, false}) {
			t.Errorf("%d steps of %d learners, H = %d: %+v", c.steps, c.learners, c.h, got)
		}
		if better := got.Better; better > 1 {
			if again := lengthOf(ofLength(c.steps*step, better), c.learners, false); again.Better != 0 {
				t.Errorf("H = %d is too few: %+v", better, again)
			}
		}
	}
}

func TestLengthSaysWhatToDo(t *testing.T) {
	g := ofLength(512*512, 24)
	for want, l := range map[string]length{
		"256 steps of each of 2 learners, 10 rounds: with fewer than 80 the model comes out worse; --H 3 makes more": lengthOf(g, 2, false),
		"512 steps of each of 1 learner, 21 rounds: with fewer than 80 the model comes out worse; more --tokens":     lengthOf(g, 1, true),
	} {
		if row := l.row(); !strings.HasPrefix(row[1], want) {
			t.Errorf("%q, want %q", row[1], want)
		}
	}
	if text := lengthOf(ofLength(1e9, 24), 1, false).row()[1]; strings.Contains(text, "worse") {
		t.Errorf("a long run: %q", text)
	}
}
