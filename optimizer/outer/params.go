package outer

import (
	"cmp"
	"fmt"
	"math"

	"atoll/tensor/codec"
)

// Limits on Params. A genesis comes from a stranger's link, so each field is bounded.
const (
	MaxFragments        = 4096    // headers carry 16 bits; more fragments than tensors are useless
	MaxH                = 1 << 16 // a day at one step a second: no round is longer
	MaxStepsLimit       = 1 << 20 // keeps steps x tokens per step far below 2^64
	MaxTokensLimit      = 1 << 32 // tokens of one step: more than any batch in use
	MaxEta              = 4.0     // Nesterov with a larger rate diverges at any momentum
	MaxWindow           = 1 << 16 // rounds kept: bounds the memory that repair may ask for
	LeastWindow         = 2       // rounds kept: gossip takes deltas of half of them
	MaxLearnersPerRound = 1 << 12 // deltas in a round: bounds what one fold decodes
	MaxLearners         = 1 << 20 // more than there are machines that could join a run
	MaxPaceLimit        = 1 << 10 // keeps MaxPace x H x rounds inside 2^64
	maxBudget           = 1 << 62 // far from overflow of sums
	MaxMs               = 1 << 40 // 34 years in milliseconds: keeps products inside int64
	MaxSweepMs          = MaxMs / GraceSweeps
	maxCreated          = 1 << 50 // Unix milliseconds
)

// Params is what genesis fixes of the outer step. Equal Params are a condition for
// equal bits: no field may be taken from anywhere else.
type Params struct {
	// Fragments is P, the number of fragments. More of them smooth the traffic, fewer
	// make larger and rarer deltas.
	Fragments int
	// H is the number of inner steps after which a learner proposes a round. Small H is better for
	// the loss and costs bandwidth in inverse proportion.
	H int
	// HMin is the number of inner steps with which a learner publishes in a round, at most H.
	// Shorter deltas are mostly noise for their bytes.
	HMin int

	// Eta is the outer learning rate; 1 without momentum makes a lone learner's global parameters
	// its own parameters.
	Eta float64
	// Mu is the outer Nesterov momentum, in [0, 1). At 0 tips hold no momentum.
	Mu float64
	// ClipFactor is c: a delta's norm in a tensor is clipped to c times the reference.
	// 3 leaves honest deltas alone and stops one from deciding a round.
	ClipFactor float64
	// RefDecay is the share of the old norm reference kept by a non-empty round, in [0, 1).
	RefDecay float64
	// MaxShare caps one delta's share of the weight of its round, in (0, 1].
	MaxShare float64

	// MaxSteps is the most inner steps that one delta may claim. It bounds a liar's weight.
	MaxSteps uint32
	// MaxTokensPerStep is the most tokens per step that a delta may claim, which is the
	// largest batch a strong learner may bring. It bounds a liar's weight.
	MaxTokensPerStep uint64
	// Codec encodes every payload of the run. With codec.Sparse and Sparse8 learners hold back
	// half of what does not travel; see Learner.
	Codec codec.Kind

	// WindowAccept is W_a in rounds: gossip takes deltas down to closed - W_a.
	WindowAccept uint32
	// WindowUnion is the union window W_u in rounds, at least W_a: repair reconciles sets down to closed - W_u;
	// what is older is final.
	WindowUnion uint32
	// LearnersPerRound is C, about how many learners publish in a round. Cost per node grows with it.
	LearnersPerRound int
	// Quorum is K: with fewer deltas grace stretches to GraceMaxMs. Where K takes all learners, a round closes without one
	// that is much slower.
	Quorum int

	// Budget is the tokens of the run: a fragment ends one round after its folded tokens
	// reach it.
	Budget uint64
	// MinRoundMs delays rounds: of more than 8 at once, each closes so long after the one before.
	MinRoundMs int64
	// CreatedMs is when the run was made, in Unix milliseconds.
	CreatedMs int64
	// GraceMinMs and GraceMaxMs bound the milliseconds a round stays open after its proposal.
	GraceMinMs, GraceMaxMs int64

	// MaxPace is k: a delta counts for at most k H steps for each round since its base, see Counted.
	MaxPace int

	// TokensPerStep are the tokens of a usual step: the batch of genesis times the context. In a round of one or two at most four
	// times as many count for a step.
	TokensPerStep uint64

	// OwnText says that learners have texts of their own. What they have in common says little about their work, so folds weigh
	// by claims alone. Otherwise deltas count by how similar they and their authors' earlier ones are to those of others (see
	// Reputation), and near-duplicates, which share more than all have in common, weigh as one together.
	OwnText bool
}

// DefaultH is the H of a run whose links nobody described. sparse has 4, for about the bytes of sparse8 at 24; with 24,
// four learners come to no more than one alone (DESIGN.md).
func DefaultH(k codec.Kind) int {
	if k == codec.Sparse {
		return 4
	}
	return 24
}

// MostSparseH is the largest H of use with the codec sparse: so often four learners together come to little more than one alone,
// with rarer deltas to less (DESIGN.md). mostH is that of the other codecs: beyond it little was measured.
const (
	MostSparseH = 24
	mostH       = 64
)

// Genesis lets rounds stay open for LongGraceMs in most runs. Where links take longer, it is the time in which
// they carry the deltas of all fragments GraceSweeps times over: proposals come unevenly, and joiners and repair have their share.
const (
	LongGraceMs = 120_000
	GraceSweeps = 2
)

// SweepMs is about how long links take, as the run was made for them, to bring a node the deltas of all fragments that all
// others make, in milliseconds. It is 0 in a run whose links take less than its rounds may in any case.
func (p Params) SweepMs() int64 {
	if p.GraceMaxMs <= LongGraceMs {
		return 0
	}
	return p.GraceMaxMs / GraceSweeps
}

// MostH is the largest number of steps between two deltas that is of use with the run's codec.
func (p Params) MostH() int {
	if p.Codec == codec.Sparse {
		return MostSparseH
	}
	return mostH
}

// noMomentumUpTo is the largest H without outer momentum. Over few steps progress is mostly noise, which averaging shortens.
// Over many it is mostly signal in directions that differ, and the average falls short. Momentum, a little over what keeps its
// length, makes up for that (DESIGN.md).
const noMomentumUpTo = 8

// This goes with more steps than that, except with codec.Sparse. There each value travels in one of some 64 rounds, and momentum on
// top of what adds up until then is too much. It brings nothing on text, and a simulated run diverges with it (testnet/sim,
// TestHeldProgressDoesNotAddUp).
const (
	longEta = 0.8
	longMu  = 0.6
)

// roomInH is how many times H steps a delta may claim at least: as many as with the
// default H. So its norm is bounded by the same multiple of a usual norm for every H.
const roomInH = 42

// longestRotation is how many times the usual number of rounds a learner waits at most
// until it is sampled again. Learners come and go, one is fast, and rounds get longer than H steps.
const longestRotation = 4

// paceOfPlan is how many times the steps of the longest plan count for one round: learners
// plan up to MostH steps for thin links, and some rounds wait for a delta as long again.
const paceOfPlan = 2

// Validate returns an error that names the first field out of range, its value and what
// is allowed.
func (p Params) Validate() error {
	if err := p.validateNumbers(); err != nil {
		return err
	}
	if err := checkCodec(p.Codec); err != nil {
		return err
	}
	if p.MaxShare < 1 && p.Quorum < 3 {
		return fmt.Errorf("outer: Quorum is %d; with MaxShare %g below 1 it must be at least 3, or one or two peers decide a round", p.Quorum, p.MaxShare)
	}
	return nil
}

func (p Params) validateNumbers() error {
	below1 := math.Nextafter(1, 0)
	return cmp.Or(inRanges([]fieldRange{
		{"Fragments", float64(p.Fragments), 1, MaxFragments},
		{"H", float64(p.H), 1, MaxH},
		{"HMin", float64(p.HMin), 1, float64(p.H)},
		{"Eta", p.Eta, 0, MaxEta},
		{"Mu", p.Mu, 0, below1},
		{"ClipFactor", p.ClipFactor, 1, 1e6},
		{"RefDecay", p.RefDecay, 0, below1},
		{"MaxShare", p.MaxShare, 1e-6, 1},
		{"MaxSteps", float64(p.MaxSteps), float64(p.H), MaxStepsLimit},
		{"MaxTokensPerStep", float64(p.MaxTokensPerStep), 1, MaxTokensLimit},
		{"TokensPerStep", float64(p.TokensPerStep), 1, float64(p.MaxTokensPerStep)},
		{"WindowAccept", float64(p.WindowAccept), 1, MaxWindow},
		{"WindowUnion", float64(p.WindowUnion), float64(p.WindowAccept), MaxWindow},
		{"LearnersPerRound", float64(p.LearnersPerRound), 1, MaxLearnersPerRound},
		{"Quorum", float64(p.Quorum), 1, float64(p.LearnersPerRound)},
		{"Budget", float64(p.Budget), 1, maxBudget},
		{"MinRoundMs", float64(p.MinRoundMs), 0, MaxMs},
		{"CreatedMs", float64(p.CreatedMs), 0, maxCreated},
		{"GraceMinMs", float64(p.GraceMinMs), 0, MaxMs},
		{"GraceMaxMs", float64(p.GraceMaxMs), float64(p.GraceMinMs), MaxMs},
		{"MaxPace", float64(p.MaxPace), 1, MaxPaceLimit},
	}), checkBudget(p.Budget))
}

// fieldRange is a number, with what is allowed of it.
type fieldRange struct {
	name          string
	value, lo, hi float64
}

func inRanges(fields []fieldRange) error {
	for _, f := range fields {
		if !(f.value >= f.lo && f.value <= f.hi) { // false for NaN
			return fmt.Errorf("outer: %s is %v; use %v to %v", f.name, f.value, f.lo, f.hi)
		}
	}
	return nil
}

// checkBudget tells numbers next to the largest apart, which a float64 does not.
func checkBudget(budget uint64) error {
	if budget > maxBudget {
		return fmt.Errorf("outer: Budget is %d; use 1 to %d", budget, uint64(maxBudget))
	}
	return nil
}

func checkCodec(kind codec.Kind) error {
	if _, err := codec.Parse(kind.String()); err != nil {
		return fmt.Errorf("outer: Codec is %d: %w", kind, err)
	}
	return nil
}
