package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"atoll/node/core"
	"atoll/node/show"
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
		if n.machine.View().Phase() != core.Ready || n.external.Absent() || n.corpus != nil && !n.corpus.heldOutHere() {
			return
		}
		v.evaluing = true
		whole := n.finished
		n.train.commands.put(func() { n.evaluateByLearner(tips, whole, found) })
	case n.genesis.BuiltIn() && (n.data != nil || n.corpus != nil && n.corpus.heldOutHere()): // the text may come later
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
		return n.corpus.evaluate(ctx, n.genesis, tips, n.cfg.EvalBytes)
	}
	windows := n.data.HeldOutSample(n.cfg.EvalBytes, n.genesis.Model.Context)
	bits, err := trainer.BitsPerByte(ctx, n.genesis.Model, n.genesis.Global(tips), windows)
	return external.Evaluation{Loss: bits * math.Ln2, Tokens: n.cfg.EvalBytes, Bytes: n.cfg.EvalBytes}, err
}

// Times of an evaluation by the learner. It takes no step meanwhile, and what the loop asks of it waits, so it is cut into
// parts: the loop's requests and a step go between two of them.
const (
	// evalPart is how long a part should take: little beside a round.
	evalPart = 2 * time.Second
	// evalMost is what a part may take that cannot be made smaller: a learner that needs longer is asked once.
	evalMost = 20 * time.Second
	// evalGrowth bounds how many times larger the next part is: the first tells little of speed, as frameworks compile in it.
	evalGrowth = 8
)

// measuring is an evaluation by the learner, part by part. It belongs to the commands.
type measuring struct {
	starts []uint64 // places of the rows that are left
	bytes  int      // of text that all their targets stand for, which the node knows of a corpus; 0 if the learner says
	own    bool     // the learner measures text of its own: a larger part replaces a smaller one
	whole  bool     // in one part: the run is over, and nothing waits
	rows   *int     // of a part, from one evaluation to the next
	found  func(q external.Evaluation, took time.Duration, err error)

	sum    external.Evaluation // of the parts so far; its loss is the sum over what weight counts
	weight float64             // targets, or rows where the learner does not count these
	took   time.Duration
}

// next is the part that comes next.
func (m *measuring) next() []uint64 {
	if m.whole {
		return m.starts
	}
	return m.starts[:min(len(m.starts), max(1, *m.rows))]
}

// part takes in what came of so many rows. It reports whether there are more to come; otherwise found is told.
func (m *measuring) part(q external.Evaluation, rows int, took time.Duration, err error) (more bool) {
	m.took += took
	if err == nil && took > evalMost && rows == 1 && !m.whole {
		err = fmt.Errorf("%w: one row takes it %v: let it measure on less text", external.ErrSlowEvaluation, took.Round(time.Second))
	}
	if err != nil {
		m.found(external.Evaluation{}, m.took, err)
		return false
	}
	*m.rows = nextRows(rows, took)
	if m.own {
		m.sum, m.weight = external.Evaluation{}, 0
		more = rows < len(m.starts) && *m.rows > rows
	} else {
		m.starts = m.starts[rows:]
		more = len(m.starts) > 0
	}
	m.add(q, rows)
	if !more {
		m.sum.Loss /= m.weight
		m.sum.Bytes = cmp.Or(m.bytes, m.sum.Bytes)
		m.found(m.sum, m.took, nil)
	}
	return more
}

func (m *measuring) add(q external.Evaluation, rows int) {
	weight := float64(q.Tokens)
	if q.Tokens == 0 {
		weight = float64(rows)
	}
	m.sum.Loss += float64(weight * q.Loss)
	m.sum.Tokens += q.Tokens
	m.sum.Bytes += q.Bytes
	m.weight += weight
}

// nextRows is how many rows a part should have after one of so many took so long.
func nextRows(rows int, took time.Duration) int {
	times := min(evalGrowth, evalPart.Seconds()/max(took.Seconds(), 1e-6))
	return min(max(1, int(float64(rows)*times)), external.MostRows)
}

// evaluateByLearner begins an evaluation where commands run, between two steps.
func (n *node) evaluateByLearner(tips []*outer.Tip, whole bool, found func(external.Evaluation, time.Duration, error)) {
	if n.evalRows == 0 {
		n.evalRows = n.genesis.Batch // forward alone: less than a step
	}
	starts, bytes, err := n.heldOutStarts()
	if err != nil {
		found(external.Evaluation{}, 0, err)
		return
	}
	a := &globals{plan: n.plan, tips: tips}
	if !whole {
		a = n.keepGlobals(tips)
	}
	n.evaluatePart(a, &measuring{starts: starts, bytes: bytes, own: n.data == nil && n.corpus == nil, whole: whole, rows: &n.evalRows,
		found: func(q external.Evaluation, took time.Duration, err error) {
			n.check("let go of the values of an evaluation", a.close())
			found(q, took, err)
		}})
}

// evaluatePart does a part, and has the next one come after what the loop has asked for meanwhile.
func (n *node) evaluatePart(a *globals, m *measuring) {
	defer n.train.does(&n.train.account.Evaluate)()
	n.train.background.Pause()
	defer func() {
		if err := n.external.Lost(); err != nil {
			n.learnerLost(err) // the next step may be far off
		}
	}()
	rows, began := m.next(), n.train.now()
	q, err := n.external.Evaluate(a.fill, rows)
	if m.part(q, len(rows), n.train.since(began), err) {
		n.train.commands.put(func() { n.evaluatePart(a, m) })
	}
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
