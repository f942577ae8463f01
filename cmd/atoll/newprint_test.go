package main

import (
	"strings"
	"testing"

	"atoll/optimizer/outer/tune"
	"atoll/tensor/llama"
)

// ofLength is a run of tiny, of steps of 4 rows of 128 tokens.
func ofLength(budget uint64, h, learners int, chosen bool) tune.Run {
	return tune.Run{Params: llama.Tiny.Params(), Budget: budget, StepTokens: 512, H: h, Fixed: chosen, Learners: learners, Text: 1000}
}

func TestLengthSaysWhatToDo(t *testing.T) {
	const behind = ". Four learners in such runs came out more than 2 % behind data parallelism. Use --tokens "
	const tokens, smaller = "1.5e7 or more", "; a smaller --h helps as well and takes more bandwidth"
	const rounds, params = "fewer than 80 rounds", "fewer than 18 tokens a parameter"
	for _, c := range []struct {
		budget      uint64
		learners, h int
		chosen      bool
		begin, end  string
	}{
		{512 * 512, 2, 24, false, "256 steps of each of 2 learners, 10 rounds of each fragment, 0.32 tokens a parameter: short (", rounds + ", " + params + ")" + behind + tokens + smaller},
		{512 * 512, 2, 24, true, "256 steps of each of 2 learners, 10 rounds of each fragment, 0.32 tokens a parameter: short (", ")" + behind + tokens},
		{512 * 512, 1, 24, false, "512 steps of each of 1 learner, 21 rounds of each fragment, 0.32 tokens", " a parameter"},
		{4e6, 4, 4, false, "1953 steps of each of 4 learners, 488 rounds of each fragment, 4.9 tokens a parameter: short (" + params + ")", behind + tokens},
		{tune.EnoughTokens*824448 - 1, 4, 24, false, "7246 steps of each of 4 learners, 301 rounds of each fragment, 17 tokens a parameter: short (" + params + ")", behind + tokens + smaller},
		{1e8, 64, 64, false, "3051 steps of each of 64 learners, 47 rounds of each fragment, 121 tokens a parameter: short (" + rounds + ")", behind + "1.7e8 or more" + smaller},
		{1e9, 1, 24, false, "1953125 steps of each of 1 learner, 81380 rounds of each fragment, 1212 tokens", " a parameter"},
	} {
		row := lengthRow(tune.LengthOf(ofLength(c.budget, c.h, c.learners, c.chosen)))
		if !strings.HasPrefix(row[1], c.begin) || !strings.HasSuffix(row[1], c.end) {
			t.Errorf("%q, want %q ... %q", row[1], c.begin, c.end)
		}
	}
}
