package sim

import (
	"atoll/optimizer/outer"
	"atoll/tensor"
)

// Task is what the nodes of a world learn. A world asks it always the same, so
// what it returns must follow from its arguments alone; then one scenario has
// one history.
type Task interface {
	// Specs are the tensors of the model.
	Specs() []tensor.Spec
	// Initial returns the parameters of genesis, for the caller to keep.
	Initial() []float32
	// Tokens is the batch of one inner step of any node.
	Tokens() int
	// Trainer makes the trainer of a node, by its index, for one of its lives,
	// counted from 1.
	Trainer(node, life int) Trainer
	// Loss is how bad parameters are.
	Loss(params []float32) float64
	// Learned returns an error if parameters at the end of a run are worth nothing.
	Learned(params []float32) error
}

// Trainer takes the inner steps of one node.
type Trainer interface {
	// Params are the parameters, always the same slice, which the world changes
	// between steps.
	Params() []float32
	// Step takes one inner step. Progress is the share of the budget that is made, for those
	// whose learning rate follows it: it costs a look at all peers (see
	// core.Machine.Progress). After an error the run is over.
	Step(progress func() float64) error
}

// Planner is a Task that says itself which fragments its tensors are in.
type Planner interface {
	Plan(fragments int) outer.Plan
}

// planOf spreads the tensors of a task over fragments, as runs of built-in models do where the task
// says nothing.
func planOf(t Task, p outer.Params) outer.Plan {
	if own, ok := t.(Planner); ok {
		return own.Plan(p.Fragments)
	}
	return outer.NewPlan(tensor.Layout(t.Specs()), p.Fragments)
}
