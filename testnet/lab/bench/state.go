package bench

import (
	"context"
	"fmt"
	"runtime"
	"slices"

	"atoll/node/genesis"
	"atoll/optimizer/outer"
	"atoll/optimizer/trainer"
)

// State is the memory that training takes for each parameter, found by allocating it.
type State struct {
	Bench    string  `json:"bench"` // "state"
	Model    string  `json:"model"`
	Params   int     `json:"params"`
	Momentum bool    `json:"outer_momentum"`          // whether the outer optimizer keeps one
	Trainer  float64 `json:"trainer_bytes_per_param"` // parameters, gradients, two moments
	Outer    float64 `json:"outer_bytes_per_param"`   // the newest tips, a learner's buffers
	Training float64 `json:"bytes_per_param"`         // both; activations come on top
}

// MeasureState allocates a trainer and a learner of a model, as genesis.ModelConfig knows it.
func MeasureState(ctx context.Context, m Meter, model string, momentum bool) (State, error) {
	m.report("training state of " + model)
	g, err := genesis.Default(model, 1<<40, 1, 0)
	if err != nil {
		return State{}, fmt.Errorf("state: %w", err)
	}
	g.Outer.NoMomentum = !momentum
	cfg := trainer.Config{Model: g.Model, Batch: 1, Threads: 1, Optim: trainer.DefaultOptim()}
	data := trainer.Noise(g.Model.Context)
	var (
		built   *trainer.Builtin
		learner *outer.Learner
		tips    []*outer.Tip // which a node holds; its learner keeps their global parameters
	)
	inner := grown(func() { built, err = trainer.New(cfg, data) }) - cfg.Model.WorkspaceBytes(1)
	if err != nil {
		return State{}, fmt.Errorf("state: %w", err)
	}
	around := grown(func() { learner, tips = learnerOf(built, g.OuterParams()) })
	runtime.KeepAlive(built)
	runtime.KeepAlive(learner)
	runtime.KeepAlive(tips)
	params := float64(g.Model.Params())
	s := State{
		Bench: "state", Model: model, Params: g.Model.Params(), Momentum: momentum,
		Trainer: float64(inner) / params, Outer: float64(around) / params,
	}
	s.Training = s.Trainer + s.Outer
	return s, ctx.Err()
}

// learnerOf makes a learner at the genesis tips of a trainer's parameters, and returns both. Those share one momentum of
// zeros; later ones have one each, as these have.
func learnerOf(built *trainer.Builtin, p outer.Params) (*outer.Learner, []*outer.Tip) {
	plan := outer.NewPlan(built.Slab().Views, p.Fragments)
	tips := plan.Genesis(built.Params(), p)
	for _, t := range tips {
		t.Momentum = slices.Clone(t.Momentum)
	}
	return outer.NewLearner(p, plan, built.Params(), tips, nil), tips
}

// grown is by how many bytes the heap grows for what f leaves behind.
func grown(f func()) int64 {
	before := heapBytes()
	f()
	return heapBytes() - before
}

// heapBytes collects twice: what pools hold survives the first time.
func heapBytes() int64 {
	runtime.GC()
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return int64(s.HeapAlloc)
}
