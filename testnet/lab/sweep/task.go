package sweep

import (
	"cmp"
	"context"
	"math"

	"atoll/optimizer"
	"atoll/optimizer/outer"
	"atoll/optimizer/trainer"
	"atoll/tensor"
	"atoll/testnet/sim"
)

// task is what the nodes of a simulated world learn: the bench's model.
type task struct{ *bench }

var (
	_ sim.Task    = task{}
	_ sim.Planner = task{}
)

// Specs, Initial and Tokens implement sim.Task.
func (k task) Specs() []tensor.Spec { return k.specs() }
func (k task) Initial() []float32   { return k.initial() }
func (k task) Tokens() int          { return k.stepTokens(k.model) }

// Plan implements sim.Planner. It is the plan of a built-in model, with matrices in pieces. Pieces stay in the
// fragment of their tensor, so that fragments and payloads are the same however many there are: what differs is
// what norms and distances are of.
func (k task) Plan(fragments int) outer.Plan {
	layout := tensor.Layout(k.specs())
	views := map[string]tensor.View{}
	for _, v := range layout {
		views[v.Name] = v
	}
	plan := outer.NewPlan(layout, fragments)
	for p, f := range plan {
		plan[p].Tensors = nil
		for _, t := range f.Tensors {
			plan[p].Tensors = append(plan[p].Tensors, k.pieces(views[t.Name])...)
		}
	}
	return plan
}

// pieces are those of a tensor.
func (k task) pieces(v tensor.View) []outer.Tensor {
	if len(v.Shape) != 2 {
		return outer.Pieces(v, v.Len)
	}
	n := cmp.Or(k.Pieces, 1)
	rows := (v.Shape[0] + n - 1) / n
	return outer.Pieces(v, rows*v.Shape[1])
}

// Trainer implements sim.Task. A node that joins later reads what one of the
// founders does, in its own name; one that was restarted does not draw the same
// batches again.
func (k task) Trainer(node, life int) sim.Trainer {
	s := k.shard(node)
	s.author[2], s.author[3] = byte(life-1), byte((life-1)>>8)
	tr, err := k.newTrainer(k.Batch, s.text, s.author)
	return learner{tr, k.schedule(), err}
}

// Loss implements sim.Task.
func (k task) Loss(params []float32) float64 {
	bits, err := k.bits(params, finalBytes)
	if err != nil {
		return math.NaN()
	}
	return bits
}

// Learned implements sim.Task: a trial says by itself what it is worth.
func (k task) Learned([]float32) error { return nil }

// learner is a node's trainer. What kept it from being made is the error of its
// first step.
type learner struct {
	*trainer.Builtin
	schedule optimizer.Schedule
	err      error
}

// Step implements sim.Trainer.
func (l learner) Step(progress func() float64) error {
	if l.err != nil {
		return l.err
	}
	_, err := l.Builtin.Step(context.Background(), l.schedule.At(progress()))
	return err
}
