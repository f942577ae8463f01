package node

import (
	"context"
	"errors"
	"math"
	"time"

	"atoll/node/core"
	"atoll/optimizer/outer"
	"atoll/optimizer/trainer"
	"atoll/optimizer/trainer/external"
)

// evalShare keeps live evaluation to one part in so many of the machine's time:
// it is for watching, and training pays for it.
const evalShare = 10

// evaluation is what the loop knows of live evaluations.
type evaluation struct {
	quality   external.Evaluation // the newest
	valAt     uint64              // tokens folded by the anchor that it is of
	evaluing  bool                // one is under way
	unable    bool                // the learner has no text, or no way to evaluate
	evalAt    time.Time
	evalPause time.Duration // between two evaluations
}

// bits are what beats say of the quality: per byte where tokens are bytes, otherwise per token. A
// learner's loss may be any number; a beat has none below 0.
func (v *evaluation) bits() float32 {
	bits := v.quality.BitsPerToken()
	if v.quality.Bytes > 0 {
		bits = v.quality.BitsPerByte()
	}
	return float32(min(max(0, bits), math.MaxFloat32))
}

// evaluate starts a live evaluation of the newest anchor when one is due, on a sample of the
// held-out text.
func (v *view) evaluate(n *node) {
	tokens := n.machine.View().FoldedTokens()
	rests := time.Since(v.evalAt) < v.evalPause && !n.finished // the last model of a run is measured in any case
	known := tokens == v.valAt && v.quality != (external.Evaluation{})
	if n.cfg.EvalBytes == 0 || v.evaluing || rests || known || !n.leaving.IsZero() {
		return
	}
	tips := n.tipList()
	found := func(q external.Evaluation, took time.Duration, err error) {
		n.post(func(core.Time) { v.evaluated(n, q, tokens, took, err) })
	}
	switch {
	case n.external != nil && !v.unable:
		if n.machine.View().Phase() != core.Ready || n.external.Absent() || n.corpus != nil && !n.corpus.heldOutHere() {
			return
		}
		v.evaluing = true
		n.train.commands.put(func() { n.evaluateByLearner(tips, found) })
	case n.genesis.BuiltIn() && (n.corpus == nil || n.corpus.heldOutHere()):
		v.evaluing = true
		n.work.goRun(func(ctx context.Context) { n.evaluateHere(ctx, tips, found) })
	}
}

// evaluated notes what an evaluation found.
func (v *view) evaluated(n *node, q external.Evaluation, tokens uint64, took time.Duration, err error) {
	v.evaluing, v.evalAt = false, time.Now()
	v.evalPause = max(n.cfg.EvalEvery, evalShare*took)
	switch {
	case err == nil:
		v.quality, v.valAt = q, tokens
	case errors.Is(err, external.ErrNoEvaluation):
		v.unable = true
		v.event(n, "no evaluation", "", err.Error())
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
		return n.corpus.evaluate(ctx, n.genesis, tips, n.cfg.EvalBytes)
	}
	windows := n.data.HeldOutSample(n.cfg.EvalBytes, n.genesis.Model.Context)
	bits, err := trainer.BitsPerByte(ctx, n.genesis.Model, n.genesis.Anchor(tips), windows)
	return external.Evaluation{Loss: bits * math.Ln2, Tokens: n.cfg.EvalBytes, Bytes: n.cfg.EvalBytes}, err
}

// evaluateByLearner runs where commands do, between two steps.
func (n *node) evaluateByLearner(tips []*outer.Tip, found func(external.Evaluation, time.Duration, error)) {
	defer n.train.does(&n.train.account.Evaluate)()
	n.train.aside.Rest()
	defer func() {
		if err := n.external.Lost(); err != nil {
			n.learnerLost(err) // the next step may be far off
		}
	}()
	began := n.train.now()
	anchor := func(values []float32) {
		for p, f := range n.plan {
			f.Scatter(tips[p].Anchor, values)
		}
	}
	starts, bytes, err := n.heldOutStarts()
	if err != nil {
		found(external.Evaluation{}, n.train.since(began), err)
		return
	}
	q, err := n.external.Evaluate(anchor, starts)
	if n.corpus != nil && err == nil {
		q.Bytes = bytes // what its tokens stand for the node knows
	}
	found(q, n.train.since(began), err)
}

// heldOutStarts are the places of an evaluation's rows in the held-out text, and of a corpus the bytes of text that their
// targets stand for; all 0 where the learner has text of its own.
func (n *node) heldOutStarts() (starts []uint64, bytes int, err error) {
	if n.corpus != nil {
		return n.corpus.heldOutStarts(n.genesis.Model.Context, n.cfg.EvalBytes)
	}
	rows := min(max(1, n.cfg.EvalBytes/n.genesis.Model.Context), external.MostRows)
	if n.data == nil {
		return make([]uint64, rows), 0, nil
	}
	return n.data.HeldOutStarts(rows, n.genesis.Model.Context), 0, nil
}
