package genesis

import (
	"fmt"

	"atoll/optimizer"
	"atoll/optimizer/outer"
	"atoll/tensor/llama"
)

// First proposals for what a new run fixes; each is a field of Genesis that
// `atoll new` lets people set.
const (
	tinyFragments   = 8  // of the tiny model, whose fragments would otherwise be a few KiB
	usualFragments  = 24 // of the paper, for every other model
	smallBatch      = 4  // rows of a step of models that a core trains at thousands of tokens a second
	largeBatch      = 2  // rows of larger ones, so that a step stays within a few seconds
	largeParams     = 50_000_000
	openMaxShare    = 0.4 // of a round's weight: admission is open, so one peer never decides
	openQuorum      = 3   // the least with which a share of 0.5 is a minority
	strongestLearns = 64  // times the usual batch is what the strongest learner may bring
)

// Bounds of a run's times in milliseconds, the same for every network: between them nodes
// follow what they measure, so that no profile can be wrong.
const (
	leastGrace = 50                // payloads take longer than that between any two machines that train
	mostGrace  = outer.LongGraceMs // a payload of tens of megabytes over a few Mbit/s; SetGrace makes it longer
	// leastRound is far below the time of honest rounds. It keeps a flood of bells from
	// using up the windows.
	leastRound = 20
)

// ways are first guesses of how long a message takes between two nodes, by profile, in
// milliseconds. What nodes measure replaces them.
var ways = map[string]int64{"local": 1, "lan": 10, "wan": 100}

// SetProfile gives the run the first guess that suits the network between its nodes:
// local, lan or wan.
func (g *Genesis) SetProfile(profile string) error {
	way, ok := ways[profile]
	if !ok {
		return fmt.Errorf("profile %.80q: use local, lan or wan", profile)
	}
	g.WayMs = way
	return nil
}

// Bounds of a run's union window in rounds.
const (
	// leastWindow is long enough for a node that was away for some rounds, and for the links that a snapshot brings.
	leastWindow = 32
)

// Large says that the run's model is one that people train on accelerators.
func (g Genesis) Large() bool { return g.Params() > largeParams }

// SetWindow gives the run windows whose deltas take about so many bytes at every node, where those of a round of all
// fragments take roundBytes: at least leastWindow rounds, and no more than it has.
func (g *Genesis) SetWindow(budget, roundBytes float64) {
	o := &g.Outer
	if rounds := max(leastWindow, budget/roundBytes); rounds < float64(o.WindowUnion) {
		o.WindowUnion = uint32(rounds)
		o.WindowAccept = min(o.WindowAccept, o.WindowUnion/2)
	}
}

// SetGrace lets a round stay open for as long as links may need, where they carry all deltas of all fragments in so many
// seconds.
func (g *Genesis) SetGrace(sweepSeconds float64) {
	g.Outer.GraceMaxMs = max(mostGrace, int64(min(outer.GraceSweeps*1000*sweepSeconds, outer.MaxMs)))
}

// finalRate is the learning rate at the end of a run, of the peak. With 0.02 runs came to 0.3 to 0.6 % fewer bits than
// with 0.1, the more so the larger their H (optimizer/outer/DESIGN.md).
const finalRate = 0.02

// Default is the genesis of a new run with the values that fit the model, for
// callers to change. model is tiny, small, base or a JSON file (see ModelConfig).
// tokens is the budget. createdMs is the present in Unix milliseconds. The error
// names what no change of other fields can put right. Call Validate at the end: a
// large model may still need a Merge without momentum.
func Default(model string, tokens, seed uint64, createdMs int64) (Genesis, error) {
	sizes, err := ModelConfig(model)
	if err != nil {
		return Genesis{}, err
	}
	g := Genesis{
		Format: Format, Rules: Rules, Name: modelLabel(model), Admission: Open, Model: sizes, Init: Seeded, Tokenizer: "byte", Seed: seed,
		Batch: defaultBatch(sizes),
	}
	g.propose(defaultFragments(sizes), tokens, createdMs)
	if err := g.SetOptimizer(optimizer.NameMuon); err != nil {
		return Genesis{}, err
	}
	g.SetRate(true)
	if err := g.SetProfile("wan"); err != nil {
		return Genesis{}, err
	}
	return g, g.validateFields()
}

// propose fills in what does not go by the model, for its Batch and Context.
func (g *Genesis) propose(fragments int, tokens uint64, createdMs int64) {
	g.Inner = Inner{
		Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, WeightDecay: 0.1, Clip: 1,
		WarmupFraction: 0.03, FinalFraction: finalRate,
	}
	g.Outer = outer.Defaults(fragments, tokens, createdMs)
	o := &g.Outer
	o.SetH(o.H)
	o.MaxShare, o.Quorum, o.Agreement, o.Alike = openMaxShare, openQuorum, true, true
	o.GraceMinMs, o.GraceMaxMs, o.MinRoundMs = leastGrace, mostGrace, leastRound
	g.SetMostTokens()
}

// SetMostTokens lets the strongest learner bring so many times the usual batch.
func (g *Genesis) SetMostTokens() {
	g.Outer.MaxTokensPerStep = strongestLearns * uint64(g.Batch) * uint64(g.Model.Context)
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
