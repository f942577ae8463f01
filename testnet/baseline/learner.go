package baseline

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"atoll/node"
	"atoll/node/store"
	"atoll/optimizer"
	"atoll/optimizer/trainer"
	"atoll/tensor"
)

// Kinds of a baseline.
const (
	DP     = "dp"     // gradients are averaged in every step
	DiLoCo = "diloco" // progress is averaged every H steps, and an outer step taken
	Local  = "local"  // dp with one member
)

// bucketValues is the least size of a bucket that is not the first of a vector: 128 KiB
// on the wire. All buckets are on their way at once, and a chunk is passed on when all of
// it has come: with four members that is 32 KiB, 3 ms of a link of 100 Mbit/s in each hop,
// little beside the delay of such a link, and long beside what a frame costs.
const bucketValues = 1 << 16

// buckets are the ends of groups of whole tensors, grown from the end of the slab: that
// is where gradients are final first.
func buckets(views []tensor.View) (ends []int) {
	end := 0
	for i := len(views) - 1; i >= 0; i-- {
		if end == 0 {
			end = views[i].Offset + views[i].Len
		}
		if i == 0 || end-views[i].Offset >= bucketValues {
			ends, end = append(ends, end), 0
		}
	}
	slices.Reverse(ends)
	return ends
}

// common is what learners of all kinds have.
type common struct {
	builtin  *trainer.Builtin
	genesis  node.Genesis
	schedule optimizer.Schedule
	pace     *atomic.Int64 // least time of a step, ns
	account  *account
	log      *store.StepLog // of every step, whether or not its round is made
	ends     []int
	inner    int // length of the inner optimizer's state
}

func newCommon(g node.Genesis, b *trainer.Builtin, pace *atomic.Int64, a *account, log *store.StepLog) (common, error) {
	state, err := b.State()
	if err != nil {
		return common{}, err
	}
	c := common{
		builtin: b, genesis: g, pace: pace, account: a, log: log, ends: buckets(b.Slab().Views), inner: len(state),
		schedule: g.Inner.Schedule(),
	}
	if n := len(c.ends) + 1; n > maxBuckets {
		return c, fmt.Errorf("the model has %d buckets: at most %d", n, maxBuckets)
	}
	return c, nil
}

// Buckets are the ends of the parts of the vector that travel apart.
func (c *common) Buckets() []int { return c.ends }

// perStep is how many tokens a step of one member is of.
func (c *common) perStep() uint64 { return uint64(c.genesis.Batch * c.genesis.Model.Context) }

// rate is the learning rate once so many tokens are trained.
func (c *common) rate(tokens uint64) float64 {
	return c.schedule.At(float64(tokens) / float64(c.genesis.Outer.Budget))
}

// note writes a step down before anything else hears of it.
func (c *common) note(res trainer.StepResult, took time.Duration) error {
	c.account.stepped(res.Tokens, res.Loss)
	err := c.log.Append(store.Step{
		Number: uint64(c.builtin.Steps()), Tokens: uint64(res.Tokens), EndMs: time.Now().UnixMilli(),
		Micros: uint32(min(took.Microseconds(), math.MaxUint32)),
	})
	if err != nil {
		return fmt.Errorf("step log: %w", err)
	}
	return nil
}

// forward is the part of a step that its forward pass takes: a third of the operations.
const forward = 1.0 / 3

// pacer makes a step as slow as its pace asks, evenly: a gradient is final when it would
// be on the slow machine that this one stands for.
type pacer struct {
	ctx   context.Context
	began time.Time
	pace  time.Duration
	slept time.Duration
}

func (c *common) startStep(ctx context.Context) *pacer {
	return &pacer{ctx: ctx, began: time.Now(), pace: time.Duration(c.pace.Load())}
}

// reach waits until so much of the backward pass may be done, 0 to 1.
func (p *pacer) reach(backward float64) {
	share := forward + (1-forward)*backward
	left := time.Duration(share*float64(p.pace)) - time.Since(p.began)
	if left <= 0 {
		return
	}
	began := time.Now()
	pause(p.ctx, left)
	p.slept += time.Since(began)
}

// endStep books a step.
func (c *common) endStep(p *pacer) (took time.Duration) {
	took = time.Since(p.began)
	c.account.add(pacing, p.slept)
	c.account.add(training, took-p.slept)
	return took
}

// dp averages gradients: all members together make the steps of one learner with as many
// times the batch.
type dp struct{ common }

// Vector is the gradient.
func (d *dp) Vector() []float32 { return d.builtin.Grads() }

// Tokens is one step of every member.
func (d *dp) Tokens(_ Label, members int) uint64 { return uint64(members) * d.perStep() }

// Round makes the gradient of the next batch.
func (d *dp) Round(ctx context.Context, _ Label, _ int, ready func(lo int)) error {
	p, size := d.startStep(ctx), float64(len(d.Vector()))
	res, err := d.builtin.Gradient(ctx, func(lo int) {
		p.reach(1 - float64(lo)/size)
		ready(lo)
	})
	took := d.endStep(p)
	if err != nil {
		return err
	}
	return d.note(res, took)
}

// Apply takes the optimizer's step with the mean gradient.
func (d *dp) Apply(from Label, members int) error {
	tensor.Scale(1/float32(members), d.Vector())
	return d.builtin.Update(d.rate(from.Tokens))
}

// State is the parameters and the optimizer's state.
func (d *dp) State() ([]byte, error) {
	inner, err := d.builtin.State()
	return encodeState(inner, d.builtin.Params()), err
}

// StateLimit is the length of a state.
func (d *dp) StateLimit() int { return 8 + d.inner + 4*len(d.builtin.Params()) }

// SetState takes a state.
func (d *dp) SetState(b []byte) error {
	inner, vectors, err := decodeState(b, len(d.builtin.Params()))
	if err == nil {
		err = d.builtin.SetState(inner)
	}
	if err == nil {
		copy(d.builtin.Params(), vectors[0])
	}
	return err
}

// diloco takes H inner steps at every member, averages what they led to, and takes an
// outer Nesterov step with it (A. Douillard et al., DiLoCo, 2023). The inner optimizer's
// state stays with each member. A round that fails is made anew from its anchor.
type diloco struct {
	common
	anchor, momentum, progress []float32
}

func newDiLoCo(c common) *diloco {
	n := len(c.builtin.Params())
	return &diloco{common: c, anchor: slices.Clone(c.builtin.Params()), momentum: make([]float32, n), progress: make([]float32, n)}
}

// Vector is the progress of the round.
func (d *diloco) Vector() []float32 { return d.progress }

// steps is how many inner steps the round after a state has: H, or what is left of the
// budget.
func (d *diloco) steps(from Label, members int) uint64 {
	all := uint64(members) * d.perStep()
	left := d.genesis.Outer.Budget - min(d.genesis.Outer.Budget, from.Tokens)
	return max(1, min(uint64(d.genesis.Outer.H), (left+all-1)/all))
}

// Tokens is the steps of a round of every member.
func (d *diloco) Tokens(from Label, members int) uint64 {
	return d.steps(from, members) * uint64(members) * d.perStep()
}

// Round takes the inner steps from the anchor.
func (d *diloco) Round(ctx context.Context, from Label, members int, ready func(lo int)) error {
	theta := d.builtin.Params()
	copy(theta, d.anchor)
	for i := range d.steps(from, members) {
		if err := d.step(ctx, from.Tokens+i*uint64(members)*d.perStep()); err != nil {
			return err
		}
	}
	for i, x := range theta {
		d.progress[i] = x - d.anchor[i]
	}
	ready(0)
	return nil
}

func (d *diloco) step(ctx context.Context, tokens uint64) error {
	p := d.startStep(ctx)
	res, err := d.builtin.Step(ctx, d.rate(tokens))
	if err == nil {
		p.reach(1)
	}
	took := d.endStep(p)
	if err != nil {
		return err
	}
	return d.note(res, took)
}

// Apply takes the outer step with the mean progress u: m = mu m + u; A += eta (u + mu m).
func (d *diloco) Apply(_ Label, members int) error {
	o, scale := d.genesis.Outer, 1/float64(members)
	for i, x := range d.progress {
		u := float64(x) * scale
		m := float32(float64(o.Mu*float64(d.momentum[i])) + u)
		ahead := u + float64(o.Mu*float64(m))
		next := float32(float64(d.anchor[i]) + float64(o.Eta*ahead))
		if !(next-next == 0) {
			return fmt.Errorf("outer step: value %d is %v: %w", i, next, trainer.ErrDiverged)
		}
		d.momentum[i], d.anchor[i] = m, next
	}
	copy(d.builtin.Params(), d.anchor)
	return nil
}

// State is the anchor, its momentum, and an inner optimizer's state to begin with.
func (d *diloco) State() ([]byte, error) {
	inner, err := d.builtin.State()
	return encodeState(inner, d.anchor, d.momentum), err
}

// StateLimit is the length of a state.
func (d *diloco) StateLimit() int { return 8 + d.inner + 8*len(d.anchor) }

// SetState takes a state.
func (d *diloco) SetState(b []byte) error {
	inner, vectors, err := decodeState(b, len(d.anchor), len(d.momentum))
	if err == nil {
		err = d.builtin.SetState(inner)
	}
	if err == nil {
		copy(d.anchor, vectors[0])
		copy(d.momentum, vectors[1])
		copy(d.builtin.Params(), d.anchor)
	}
	return err
}
