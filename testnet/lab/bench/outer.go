package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"atoll/gossip/wire"
	"atoll/node/genesis"
	"atoll/node/hardware"
	"atoll/optimizer/outer"
	"atoll/optimizer/trainer"
	"atoll/tensor"
	"atoll/tensor/codec"
)

// Outer is what the outer loop costs a learner: its tokens/s with the loop beside those
// without, in turn on the same trainer.
//
// The loop does what a node computes. It drafts and encodes own deltas, and for every round it
// digests and checks the peers' payloads, folds, and adopts the result. Disk and network are not.
type Outer struct {
	Bench      string  `json:"bench"` // "outer"
	Model      string  `json:"model"`
	Params     int     `json:"params"`
	Threads    int     `json:"threads"`
	Batch      int     `json:"batch"` // rows of a step
	H          int     `json:"h"`     // steps between two rounds of a fragment
	Fragments  int     `json:"fragments"`
	Deltas     int     `json:"deltas"` // of a round, the learner's own among them
	Codec      string  `json:"codec"`
	Momentum   float64 `json:"momentum"` // outer
	Pairs      int     `json:"pairs"`    // of H steps with and H steps without
	TokensPerS float64 `json:"tokens_per_s"`
	AlonePerS  float64 `json:"tokens_per_s_without"`
	Ratio      float64 `json:"ratio"` // median of those within pairs
	RatioMin   float64 `json:"ratio_min"`
	RatioMax   float64 `json:"ratio_max"`
	RatioBest  float64 `json:"ratio_best"` // by the shortest steps and rounds of all: what other work on the machine hides
	MsDraft    float64 `json:"ms_draft"`   // of a round, means
	MsFold     float64 `json:"ms_fold"`    // beside the training thread, whose steps it slows down
	MsAdopt    float64 `json:"ms_adopt"`
	RSSBytes   uint64  `json:"rss_bytes,omitempty"`
}

// OuterConfig is what to measure.
type OuterConfig struct {
	Model     string // tiny, small, base or a file; see genesis.ModelConfig
	Threads   int    // 0 = one per core
	Batch     int    // rows; 0 = the run's default
	H         int    // 0 = the run's default
	Fragments int    // likewise
	Deltas    int    // of a round
	Codec     codec.Kind
}

const (
	// outerProgress is the size of what peers publish: as little as a learner's own at outerRate, so
	// that the model stays one.
	outerProgress = 1e-3
	// outerRate is a learning rate at which steps on noise change little.
	outerRate = 1e-4
)

// outerRig is a learner, its trainer and what its peers publish.
type outerRig struct {
	g       genesis.Genesis
	plan    outer.Plan
	trainer *trainer.Builtin
	learner *outer.Learner
	closed  []uint32
	tips    []*outer.Tip
	peers   [][][]byte // [fragment][peer] payloads
	own     map[uint64][]byte
	folded  chan foldedRound // by the fold that is under way; room for every fragment
	folding chan struct{}    // holds the turn to fold: one at a time, as in a node

	step, draft, fold, adopt timings
	begun, rounds            int // rounds that were drafted, and adopted
}

// timings is what one thing took, each time.
type timings struct {
	sum, least time.Duration
	times      int
}

func (t *timings) add(d time.Duration) {
	if t.times == 0 || d < t.least {
		t.least = d
	}
	t.sum, t.times = t.sum+d, t.times+1
}

// mean is in milliseconds.
func (t *timings) mean() float64 { return 1000 * t.sum.Seconds() / float64(max(t.times, 1)) }

// foldedRound is the answer of a fold.
type foldedRound struct {
	fragment int
	seq      uint64
	tip      *outer.Tip
	took     time.Duration
	err      error
}

// MeasureOuter measures a learner with and without the outer loop.
func MeasureOuter(ctx context.Context, m Meter, c OuterConfig) (Outer, error) {
	r, err := newOuterRig(c)
	if err != nil {
		return Outer{}, fmt.Errorf("outer: %w", err)
	}
	m.report(fmt.Sprintf("outer loop of %s, %s", c.Model, on(tensor.Threads())))
	if _, _, err := r.pair(ctx, 0); err != nil { // touches memory for the first time
		return Outer{}, fmt.Errorf("outer: %w", err)
	}
	r.step, r.draft, r.fold, r.adopt, r.begun, r.rounds = timings{}, timings{}, timings{}, timings{}, 0, 0
	var with, without []float64
	pairs, err := m.collect(ctx, func() (float64, error) {
		a, b, err := r.pair(ctx, len(with))
		with, without = append(with, a), append(without, b)
		return a / b, err
	})
	if err != nil {
		return Outer{}, fmt.Errorf("outer: %w", err)
	}
	o := r.result(c, len(with))
	o.TokensPerS, o.AlonePerS = Summarize(with).Median, Summarize(without).Median
	o.Ratio, o.RatioMin, o.RatioMax = pairs.Median, pairs.Min, pairs.Max
	return o, nil
}

// result is all but the rates.
func (r *outerRig) result(c OuterConfig, pairs int) Outer {
	return Outer{
		Bench: "outer", Model: c.Model, Params: r.g.Model.Params(), Threads: tensor.Threads(), Batch: r.g.Batch,
		H: r.g.Outer.H, Fragments: len(r.plan), Deltas: c.Deltas, Codec: r.g.Outer.Codec.String(),
		Momentum: r.g.OuterParams().Mu, Pairs: pairs,
		RatioBest: r.bestRatio(), MsDraft: r.draft.mean(), MsFold: r.fold.mean(), MsAdopt: r.adopt.mean(), RSSBytes: hardware.PeakRSSBytes(),
	}
}

// bestRatio is the ratio of H steps to H steps with a round of each fragment, by the shortest of each.
// Drafts and adoptions hold up the training thread; a fold takes one of its threads away.
func (r *outerRig) bestRatio() float64 {
	steps := float64(r.g.Outer.H) * r.step.least.Seconds()
	round := r.draft.least + r.adopt.least + r.fold.least/time.Duration(tensor.Threads())
	return steps / (steps + float64(len(r.plan))*round.Seconds())
}

func newOuterRig(c OuterConfig) (*outerRig, error) {
	sizes, err := genesis.ModelConfig(c.Model)
	if err != nil {
		return nil, err
	}
	g, _, err := genesis.Spec{Model: sizes, Tokens: 1 << 40, Seed: 1, Batch: c.Batch, Fragments: c.Fragments, Codec: c.Codec, H: c.H}.Make()
	if err != nil {
		return nil, err
	}
	cfg := trainer.Config{Model: g.Model, Batch: g.Batch, Threads: c.Threads, Optim: trainer.DefaultOptim()}
	built, err := trainer.New(cfg, trainer.Noise(g.Model.Context))
	if err != nil {
		return nil, err
	}
	r := &outerRig{g: g, trainer: built, own: map[uint64][]byte{}, folding: make(chan struct{}, 1)}
	r.plan = g.Plan()
	r.closed, r.folded = make([]uint32, len(r.plan)), make(chan foldedRound, len(r.plan))
	return r, r.fill(c.Deltas - 1)
}

// fill makes the tips of genesis and the payloads of peers.
func (r *outerRig) fill(peers int) error {
	rng := rand.New(rand.NewPCG(1, 1))
	r.tips = r.plan.Genesis(r.trainer.Params(), r.g.OuterParams())
	for _, f := range r.plan {
		payloads := make([][]byte, peers)
		for i := range payloads {
			payload, err := codec.Encode(r.g.Outer.Codec, normal(rng, f.Len, outerProgress))
			if err != nil {
				return err
			}
			payloads[i] = payload
		}
		r.peers = append(r.peers, payloads)
	}
	read := func(seq uint64) ([]byte, error) { return r.own[seq], nil }
	r.learner = outer.NewLearner(r.g.OuterParams(), r.plan, r.trainer.Params(), r.tips, read)
	return nil
}

// pair returns the tokens/s of H steps with the outer loop and of H steps without, in turn.
func (r *outerRig) pair(ctx context.Context, i int) (with, without float64, err error) {
	err = inTurn(i, func() (err error) {
		with, err = r.steps(ctx, r.round)
		return err
	}, func() (err error) {
		without, err = r.steps(ctx, func(int) error { return nil })
		return err
	})
	return with, without, err
}

// steps takes H steps, with what is to be done after each, waits for the folds that this began,
// and returns the tokens/s.
func (r *outerRig) steps(ctx context.Context, after func(step int) error) (float64, error) {
	began, tokens := time.Now(), 0
	for step := range r.g.Outer.H {
		start := time.Now()
		res, err := r.trainer.Step(ctx, outerRate)
		if err != nil {
			return 0, err
		}
		r.step.add(time.Since(start))
		tokens += res.Tokens
		r.learner.Stepped(res.Tokens, r.closed)
		if err := after(step); err != nil {
			return 0, err
		}
	}
	for r.rounds < r.begun {
		if err := r.follow(<-r.folded); err != nil {
			return 0, err
		}
	}
	return float64(tokens) / time.Since(began).Seconds(), nil
}

// round is the outer loop after a step: it adopts what was folded and publishes the fragments
// whose turn it is. Each has one in H steps.
func (r *outerRig) round(step int) error {
	for len(r.folded) > 0 { // nobody else takes from it
		if err := r.follow(<-r.folded); err != nil {
			return err
		}
	}
	for p := range r.plan {
		if p*r.g.Outer.H/len(r.plan) == step {
			if err := r.publish(p); err != nil {
				return err
			}
		}
	}
	return nil
}

// publish drafts a fragment and has its round folded beside training.
func (r *outerRig) publish(p int) error {
	began := time.Now()
	d, err := r.learner.Draft(p)
	if err != nil {
		return err
	}
	r.draft.add(time.Since(began))
	r.own[d.Seq] = d.Payload
	prev := r.tips[p]
	set := []outer.Contribution{contribution(r.g.OuterParams(), p, prev, 0, d.Payload, d.Steps, d.Tokens)}
	for i, payload := range r.peers[p] {
		set = append(set, contribution(r.g.OuterParams(), p, prev, i+1, payload, d.Steps, d.Tokens))
	}
	r.begun++
	go func() {
		r.folding <- struct{}{}
		defer func() { <-r.folding }()
		began := time.Now()
		tip, err := r.foldRound(p, prev, set)
		r.folded <- foldedRound{p, d.Seq, tip, time.Since(began), err}
	}()
	return nil
}

// foldRound does what a node does for a round: peers' payloads are hashed and checked when they
// arrive, the tip before a fold.
func (r *outerRig) foldRound(p int, prev *outer.Tip, set []outer.Contribution) (*outer.Tip, error) {
	for _, c := range set[1:] {
		wire.Sum(c.Payload)
		if err := r.g.OuterParams().CheckPayload(r.plan[p], c.Delta, c.Payload); err != nil {
			return nil, err
		}
	}
	if !prev.Sound() {
		return nil, outer.ErrDamaged
	}
	tip, result, err := outer.Fold(r.g.OuterParams(), r.plan[p], prev, prev.Round+1, set)
	if err == nil && len(result.Refused) > 0 {
		err = result.Refused[0].Err
	}
	return tip, err
}

// follow adopts a tip.
func (r *outerRig) follow(done foldedRound) error {
	if done.err != nil {
		return done.err
	}
	began := time.Now()
	own := outer.Own{Seq: done.seq}
	loss, err := r.learner.Follow(outer.Adopt{Fragment: done.fragment, Tip: done.tip, Changes: []outer.Change{
		{Own: own, Fate: outer.Folded}, {Own: own, Fate: outer.Forgotten},
	}})
	if err == nil && !loss.None() {
		err = errors.New("memory is damaged")
	}
	r.adopt.add(time.Since(began))
	r.fold.add(done.took)
	r.rounds++
	r.closed[done.fragment], r.tips[done.fragment] = done.tip.Round, done.tip
	delete(r.own, done.seq)
	return err
}
