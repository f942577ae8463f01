package genesis

import (
	"fmt"

	"atoll/tensor/llama"
)

// What suits a model, where people choose nothing else.
const (
	tinyFragments  = 8  // of the tiny model, whose fragments would otherwise be a few KiB
	usualFragments = 24 // of the paper, for every other model
	smallBatch     = 4  // rows of a step of models that a core trains at thousands of tokens a second
	largeBatch     = 2  // rows of larger ones, so that a step stays within a few seconds
	largeParams    = 50_000_000
)

// ways are first guesses of how long a message takes between two nodes, by profile, in
// milliseconds. What nodes measure replaces them.
var ways = map[string]int64{"local": 1, "lan": 10, "wan": 100}

// wayOf is the first guess that suits the network between the nodes: local, lan or wan.
func wayOf(profile string) (int64, error) {
	way, ok := ways[profile]
	if !ok {
		return 0, fmt.Errorf("profile %.80q: use local, lan or wan", profile)
	}
	return way, nil
}

// Large says that the run's model is one that people train on accelerators.
func (g Genesis) Large() bool { return g.Params() > largeParams }

// warmup is the share of the budget over which the learning rate rises.
const warmup = 0.03

// finalRate is the learning rate at the end of a run, of the peak. With 0.02 runs came to 0.3 to 0.6 % fewer bits than
// with 0.1, the more so the larger their H (optimizer/outer/DESIGN.md).
const finalRate = 0.02

// Default is the genesis of a new run of a model that everybody may join, for which nothing else is chosen. model is tiny,
// small, base or a JSON file (see ModelConfig), tokens the budget, createdMs the present in Unix milliseconds.
func Default(model string, tokens, seed uint64, createdMs int64) (Genesis, error) {
	sizes, err := ModelConfig(model)
	if err != nil {
		return Genesis{}, err
	}
	g, _, err := Spec{Name: ModelLabel(model), Model: sizes, Tokens: tokens, Seed: seed, CreatedMs: createdMs}.Make()
	return g, err
}

func defaultBatch(c llama.Config) int {
	if c.Params() > largeParams {
		return largeBatch
	}
	return smallBatch
}

func defaultFragments(c llama.Config) int {
	if c == llama.Tiny {
		return tinyFragments
	}
	return min(usualFragments, len(c.Specs()))
}
