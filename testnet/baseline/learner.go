package baseline

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"atoll/node/genesis"
	"atoll/node/store"
	"atoll/optimizer/trainer"
	"atoll/tensor"
	"atoll/testnet/baseline/lockstep"
)

// Kinds of a baseline.
const (
	DP     = "dp"     // gradients are averaged in every step
	DiLoCo = "diloco" // progress is averaged every H steps, and an outer step taken
	Local  = "local"  // dp with one member
)

// bucketValues is the least size of a bucket that is not the first of a vector: 128 KiB on
// the wire. All buckets are on their way at once, and a chunk is passed on when all of it
// has come. With four members a chunk has 32 KiB: 3 ms of a link of 100 Mbit/s in each
// hop. That is little beside the delay of such a link, and long beside the cost of a
// frame.
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
	run     lockstep.Run
	builtin steps
	pace    *atomic.Int64 // least time of a step, ns
	account *account
	log     *store.StepLog // of every step, whether or not its round is made
	ends    []int
	inner   int // length of the inner optimizer's state
}

func newCommon(g genesis.Genesis, b steps, pace *atomic.Int64, a *account, log *store.StepLog) (common, error) {
	state, err := stateOf(b)
	if err != nil {
		return common{}, err
	}
	c := common{
		run:     lockstep.Run{Budget: g.Outer.Budget, StepTokens: g.StepTokens(), H: 1, Schedule: g.Inner.Schedule()},
		builtin: b, pace: pace, account: a, log: log, ends: buckets(b.Slab().Views), inner: len(state),
	}
	if n := len(c.ends) + 1; n > maxBuckets {
		return c, fmt.Errorf("the model has %d buckets: at most %d", n, maxBuckets)
	}
	return c, nil
}

// stateOf is the state of an inner optimizer.
func stateOf(b steps) ([]byte, error) {
	r, err := b.SaveState()
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

// Buckets are the ends of the parts of the vector that travel apart.
func (c *common) Buckets() []int { return c.ends }

// Tokens is the steps of a round of every member.
func (c *common) Tokens(from Label, members int) uint64 { return c.run.Tokens(from.Tokens, members) }

// record writes a step to the log before anything else hears of it.
func (c *common) record(res trainer.StepResult, took time.Duration) error {
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
	c.account.add(computing, took-p.slept)
	return took
}

// dp averages gradients: all members together make the steps of one learner with as many
// times the batch.
type dp struct{ common }

// Vector is the gradient.
func (d *dp) Vector() []float32 { return d.builtin.Grads() }

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
	return d.record(res, took)
}

// Apply takes the optimizer's step with the mean gradient.
func (d *dp) Apply(from Label, members int) error {
	tensor.Scale(1/float32(members), d.Vector())
	return d.builtin.Update(d.run.Rate(from.Tokens, members, 0))
}

// State is the parameters and the optimizer's state.
func (d *dp) State() ([]byte, error) {
	inner, err := stateOf(d.builtin)
	return encodeState(inner, d.builtin.Params()), err
}

// StateLimit is the length of a state.
func (d *dp) StateLimit() int { return 8 + d.inner + 4*len(d.builtin.Params()) }

// SetState takes a state.
func (d *dp) SetState(b []byte) error {
	inner, vectors, err := decodeState(b, len(d.builtin.Params()))
	if err == nil {
		err = d.builtin.LoadState(bytes.NewReader(inner))
	}
	if err == nil {
		copy(d.builtin.Params(), vectors[0])
	}
	return err
}

// diloco takes H inner steps at every member, averages what they led to, and takes an
// outer step with it. The inner optimizer's state stays with each member. A round that fails
// is made anew from its global parameters.
type diloco struct {
	common
	outer    *lockstep.Outer
	progress []float32
}

func newDiLoCo(c common, g genesis.Genesis) *diloco {
	c.run.H = g.Outer.H
	local := c.builtin.Params()
	return &diloco{common: c, outer: lockstep.NewOuter(g.OuterParams().Eta, g.OuterParams().Mu, slices.Clone(local)), progress: make([]float32, len(local))}
}

// Vector is the progress of the round.
func (d *diloco) Vector() []float32 { return d.progress }

// Round takes the inner steps from the global parameters.
func (d *diloco) Round(ctx context.Context, from Label, members int, ready func(lo int)) error {
	local := d.builtin.Params()
	copy(local, d.outer.Global)
	for i := range d.run.Steps(from.Tokens, members) {
		if err := d.step(ctx, d.run.Rate(from.Tokens, members, i)); err != nil {
			return err
		}
	}
	d.outer.Progress(d.progress, local)
	ready(0)
	return nil
}

func (d *diloco) step(ctx context.Context, rate float64) error {
	p := d.startStep(ctx)
	res, err := d.builtin.Step(ctx, rate)
	if err == nil {
		p.reach(1)
	}
	took := d.endStep(p)
	if err != nil {
		return err
	}
	return d.record(res, took)
}

// Apply takes the outer step with the mean progress.
func (d *diloco) Apply(_ Label, members int) error {
	scale := 1 / float64(members)
	err := d.outer.Step(func(at int, u []float64) {
		for i := range u {
			u[i] = float64(d.progress[at+i]) * scale
		}
	})
	if err == nil {
		copy(d.builtin.Params(), d.outer.Global)
	}
	return err
}

// State is the global parameters, their momentum, and an inner optimizer's state to begin with.
func (d *diloco) State() ([]byte, error) {
	inner, err := stateOf(d.builtin)
	return encodeState(inner, d.outer.Global, d.outer.Momentum), err
}

// StateLimit is the length of a state.
func (d *diloco) StateLimit() int { return 8 + d.inner + 8*len(d.outer.Global) }

// SetState takes a state.
func (d *diloco) SetState(b []byte) error {
	inner, vectors, err := decodeState(b, len(d.outer.Global), len(d.outer.Momentum))
	if err == nil {
		err = d.builtin.LoadState(bytes.NewReader(inner))
	}
	if err == nil {
		copy(d.outer.Global, vectors[0])
		copy(d.outer.Momentum, vectors[1])
		copy(d.builtin.Params(), d.outer.Global)
	}
	return err
}
