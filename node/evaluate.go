package node

import (
	"context"
	"errors"
	"io"
	"math"
	"time"

	"atoll/node/core"
	"atoll/node/show"
	"atoll/node/training"
	"atoll/optimizer/outer"
	"atoll/optimizer/trainer"
	"atoll/optimizer/trainer/external"
)

// evalShare keeps live evaluation to one part in so many of the machine's time:
// it is for watching, and training pays for it.
const evalShare = 10

// evaluations are what the loop knows of live evaluations.
type evaluations struct {
	quality   external.Evaluation // the newest
	valAt     uint64              // tokens folded by the global parameters that it is of
	evaluing  bool                // one is under way
	unable    bool                // the learner has no text, or no way to evaluate
	slow      bool                // learners take too long for it here: none is asked again
	evalAt    time.Time
	evalPause time.Duration // between two evaluations
}

// bits are what heartbeats say of the quality: per byte where tokens are bytes, otherwise per token. A
// learner's loss may be any number; a heartbeat has none below 0.
func (v *evaluations) bits() float32 {
	bits := v.quality.BitsPerToken()
	if v.quality.Bytes > 0 {
		bits = v.quality.BitsPerByte()
	}
	return float32(min(max(0, bits), math.MaxFloat32))
}

// shown is the newest, for the screen.
func (v *evaluations) shown() show.Quality {
	q := v.quality
	return show.Quality{Loss: q.Loss, BitsPerByte: q.BitsPerByte(), Bytes: q.Bytes, Tokens: q.Tokens, Bits: v.bits(), At: v.valAt}
}

// evaluate starts a live evaluation of the newest global parameters when one is due, on a sample of the
// held-out text.
func (n *node) evaluate() {
	v := &n.evaluations
	tokens := n.machine.View().FoldedTokens()
	rests := time.Since(v.evalAt) < v.evalPause && !n.finished // the last model of a run is measured in any case
	known := tokens == v.valAt && v.quality != (external.Evaluation{})
	if n.cfg.EvalBytes == 0 || v.evaluing || rests || known || !n.leaving.IsZero() {
		return
	}
	tips := n.tipList()
	found := func(q external.Evaluation, took time.Duration, err error) {
		n.post(func(core.Time) { n.evaluated(q, tokens, took, err) })
	}
	switch {
	case n.external != nil && !v.unable && !v.slow:
		if n.machine.View().Phase() != core.Ready || n.external.Absent() || n.corpus != nil && !n.corpus.HeldOutHere() {
			return
		}
		v.evaluing = true
		whole := n.finished
		n.train.Do(func() { n.evaluateByLearner(tips, whole, found) })
	case n.genesis.BuiltIn() && (n.data != nil || n.corpus != nil && n.corpus.HeldOutHere()): // the text may come later
		v.evaluing = true
		n.work.goRun(func(ctx context.Context) { n.evaluateHere(ctx, tips, found) })
	}
}

// evaluated records what an evaluation found.
func (n *node) evaluated(q external.Evaluation, tokens uint64, took time.Duration, err error) {
	v := &n.evaluations
	v.evaluing, v.evalAt = false, time.Now()
	v.evalPause = max(n.cfg.EvalEvery, evalShare*took)
	switch {
	case err == nil:
		v.quality, v.valAt = q, tokens
	case errors.Is(err, external.ErrSlowEvaluation):
		v.slow = true
		n.screen.Event("no evaluation", "", err.Error())
	case errors.Is(err, external.ErrNoEvaluation):
		v.unable = true
		n.screen.Event("no evaluation", "", err.Error())
	case !errors.Is(err, context.Canceled) && !errors.Is(err, trainer.ErrLost):
		n.log.Error("evaluate", "err", err)
	}
}

// evaluateHere evaluates beside training, a model that the node knows.
func (n *node) evaluateHere(ctx context.Context, tips []*outer.Tip, found func(external.Evaluation, time.Duration, error)) {
	began := time.Now()
	q, err := n.measure(ctx, tips)
	found(q, time.Since(began), err)
}

func (n *node) measure(ctx context.Context, tips []*outer.Tip) (external.Evaluation, error) {
	if n.corpus != nil {
		return n.corpus.Evaluate(ctx, tips, n.cfg.EvalBytes)
	}
	windows := n.data.HeldOutSample(n.cfg.EvalBytes, n.genesis.Model.Context)
	bits, err := trainer.BitsPerByte(ctx, n.genesis.Model, n.genesis.Global(tips), windows)
	return external.Evaluation{Loss: bits * math.Ln2, Tokens: n.cfg.EvalBytes, Bytes: n.cfg.EvalBytes}, err
}

// evaluateByLearner begins an evaluation where commands run, between two steps.
func (n *node) evaluateByLearner(tips []*outer.Tip, whole bool, found func(external.Evaluation, time.Duration, error)) {
	starts, bytes, err := n.heldOutStarts()
	if err != nil {
		found(external.Evaluation{}, 0, err)
		return
	}
	n.train.Evaluate(training.Evaluation{
		Starts: starts, Bytes: bytes, Own: n.data == nil && n.corpus == nil, Whole: whole, Rows: n.genesis.Batch, // forward alone: less than a step
		Plan: n.plan, Tips: tips, Aside: func(write func(io.Writer) error) (training.Scrap, error) { return n.store.Scratch(write) },
		By: n.external.Evaluate, Then: n.lookForLost, Found: found,
	})
}

// lookForLost runs where commands do.
func (n *node) lookForLost() {
	if err := n.external.Lost(); err != nil {
		n.learnerLost(err)
	}
}

// heldOutStarts are the places of an evaluation's rows in the held-out text, and of a corpus the bytes of text that their
// targets stand for; all 0 where the learner has text of its own.
func (n *node) heldOutStarts() (starts []uint64, bytes int, err error) {
	if n.corpus != nil {
		return n.corpus.HeldOutStarts(n.cfg.EvalBytes)
	}
	rows := min(max(1, n.cfg.EvalBytes/n.genesis.Model.Context), external.MostRows)
	if n.data == nil {
		return make([]uint64, rows), 0, nil
	}
	return n.data.HeldOutStarts(rows, n.genesis.Model.Context), 0, nil
}
