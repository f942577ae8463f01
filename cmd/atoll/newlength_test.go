package main

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"atoll/node"
	"atoll/tensor/llama"
)

// ofLength is a run of tiny, of steps of 4 rows of 128 tokens.
func ofLength(budget uint64, h int) node.Genesis {
	g := node.Genesis{Model: llama.Tiny, Batch: 4}
	g.Outer.Budget = budget
	g.Outer.SetH(h)
	return g
}

func TestLengthCountsRounds(t *testing.T) {
	const step = 4 * 128
	long := enoughTokens*uint64(llama.Tiny.Params())/step + 1 // steps
	for _, c := range []struct {
		steps        uint64
		learners, h  int
		each, rounds int
		short        bool
	}{
		{long, 4, 24, int(long / 4), int(long / 4 / 24), false},
		{long - 2, 4, 24, int((long - 2) / 4), int((long - 2) / 4 / 24), true}, // too few tokens
		{long, 15, 24, int(long / 15), int(long / 15 / 24), false},
		{long, 16, 24, int(long / 16), int(long / 16 / 24), true}, // too few rounds
		{4 * 512, 4, 24, 512, 21, true},
		{20, 1, 1, 20, 20, false}, // one alone has nobody to be behind
		{20, 2, 1, 10, 10, true},
		{0, 3, 24, 1, 1, true},
		{100, maxLearners, 24, 1, 1, true},
	} {
		got := lengthOf(ofLength(c.steps*step+step-1, c.h), c.learners, 1000, false)
		if got.Learners != c.learners || got.Steps != c.each || got.Rounds != c.rounds || got.Short != c.short {
			t.Errorf("%d steps of %d learners, H = %d: %+v", c.steps, c.learners, c.h, got)
		}
	}
	if got := lengthOf(ofLength(math.MaxUint64, 24), 2, 1, false); got.Steps <= 0 || got.Short {
		t.Errorf("the longest run: %+v", got)
	}
}

func TestLengthSaysWhatToDo(t *testing.T) {
	const behind = ", of which four learners came to more than 2 % behind data parallelism; from --tokens "
	const tokens, smaller = "1.5e7 on it is not", ", and a smaller --H helps, for more bytes"
	const rounds, params = "fewer than 80 rounds", "fewer than 18 tokens a parameter"
	for _, c := range []struct {
		budget      uint64
		learners, h int
		chosen      bool
		begin, end  string
	}{
		{512 * 512, 2, 24, false, "256 steps of each of 2 learners, 10 rounds, 0.32 tokens a parameter: short (", rounds + ", " + params + ")" + behind + tokens + smaller},
		{512 * 512, 2, 24, true, "256 steps of each of 2 learners, 10 rounds, 0.32 tokens a parameter: short (", ")" + behind + tokens},
		{512 * 512, 1, 24, false, "512 steps of each of 1 learner, 21 rounds, 0.32 tokens", " a parameter"},
		{4e6, 4, littleH, false, "1953 steps of each of 4 learners, 488 rounds, 4.9 tokens a parameter: short (" + params + ")", behind + tokens},
		{enoughTokens*824448 - 1, 4, 24, false, "7246 steps of each of 4 learners, 301 rounds, 17 tokens a parameter: short (" + params + ")", behind + tokens + smaller},
		{1e8, 64, 64, false, "3051 steps of each of 64 learners, 47 rounds, 121 tokens a parameter: short (" + rounds + ")", behind + "1.7e8 on it is not" + smaller},
		{1e9, 1, 24, false, "1953125 steps of each of 1 learner, 81380 rounds, 1212 tokens", " a parameter"},
	} {
		row := lengthOf(ofLength(c.budget, c.h), c.learners, 1000, c.chosen).row()
		if !strings.HasPrefix(row[1], c.begin) || !strings.HasSuffix(row[1], c.end) {
			t.Errorf("%q, want %q ... %q", row[1], c.begin, c.end)
		}
	}
}

// From the budget on that is named a run is not short, and hardly before.
func TestLengthThatIsNotShort(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		budget, learners, h := rapid.Uint64Range(1, 1e8).Draw(t, "budget"), rapid.IntRange(2, 100).Draw(t, "learners"), rapid.IntRange(1, 500).Draw(t, "H")
		l := lengthOf(ofLength(budget, h), learners, 1000, false)
		if got := l.Passes * 1000; math.Abs(got-float64(budget)) > 0.5 {
			t.Errorf("%v tokens of %d", got, budget)
		}
		if !l.Short {
			if l.Least != 0 {
				t.Errorf("named for a run that is not short: %+v", l)
			}
			return
		}
		if again := lengthOf(ofLength(uint64(l.Least), h), learners, 1000, false); again.Short {
			t.Errorf("%.3g tokens are too few: %+v", l.Least, again)
		}
		if less := lengthOf(ofLength(uint64(0.9*l.Least), h), learners, 1000, false); !less.Short {
			t.Errorf("%.3g tokens are too many: %+v", l.Least, less)
		}
	})
}
