package tune

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// tinyRun is a run of tiny, of steps of 4 rows of 128 tokens, and 1000 tokens to train on.
func tinyRun(budget uint64, learners, h int) Run {
	return Run{Params: 824_448, Budget: budget, StepTokens: 4 * 128, H: h, Learners: learners, Text: 1000}
}

func TestLengthCountsRounds(t *testing.T) {
	const step = 4 * 128
	const long = EnoughTokens*824_448/step + 1 // steps
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
		{100, 1 << 20, 24, 1, 1, true},
	} {
		got := LengthOf(tinyRun(c.steps*step+step-1, c.learners, c.h))
		if got.Learners != c.learners || got.Steps != c.each || got.Rounds != c.rounds || got.Short != c.short {
			t.Errorf("%d steps of %d learners, H = %d: %+v", c.steps, c.learners, c.h, got)
		}
	}
	if got := LengthOf(tinyRun(math.MaxUint64, 2, 24)); got.Steps <= 0 || got.Short {
		t.Errorf("the longest run: %+v", got)
	}
}

// From the budget on that is named a run is not short, and hardly before.
func TestLengthThatIsNotShort(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		budget, learners, h := rapid.Uint64Range(1, 1e8).Draw(t, "budget"), rapid.IntRange(2, 100).Draw(t, "learners"), rapid.IntRange(1, 500).Draw(t, "H")
		l := LengthOf(tinyRun(budget, learners, h))
		if got := l.Passes * 1000; math.Abs(got-float64(budget)) > 0.5 {
			t.Errorf("%v tokens of %d", got, budget)
		}
		if !l.Short {
			if l.Least != 0 {
				t.Errorf("named for a run that is not short: %+v", l)
			}
			return
		}
		if again := LengthOf(tinyRun(uint64(l.Least), learners, h)); again.Short {
			t.Errorf("%.3g tokens are too few: %+v", l.Least, again)
		}
		if less := LengthOf(tinyRun(uint64(0.9*l.Least), learners, h)); !less.Short {
			t.Errorf("%.3g tokens are too many: %+v", l.Least, less)
		}
	})
}
