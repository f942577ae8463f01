package sim

import (
	"errors"
	"math"
	"strings"
	"testing"

	"atoll/gossip/wire"
	"atoll/tensor"
	"atoll/tensor/codec"
)

// ramp is a task beside the quadratic: every step moves each parameter by one
// hundredth towards one.
type ramp struct {
	fails   int       // the step of node 0 that fails, 0 = none
	want    float64   // the loss that Learned allows
	shares  []float64 // of the budget, as node 0 was told them
	trainer *ramper
}

func (*ramp) Specs() []tensor.Spec {
	return []tensor.Spec{{Name: "x.weight", Shape: []int{2, 2}}, {Name: "y.weight", Shape: []int{3}}}
}
func (*ramp) Initial() []float32 { return make([]float32, 7) }
func (*ramp) Tokens() int        { return 64 }

func (r *ramp) Trainer(node, _ int) Trainer {
	t := &ramper{params: r.Initial()}
	if node == 0 {
		t.task, r.trainer = r, t
	}
	return t
}

func (*ramp) Loss(params []float32) (sum float64) {
	for _, x := range params {
		sum += math.Abs(1 - float64(x))
	}
	return sum
}

func (r *ramp) Learned(params []float32) error {
	if r.Loss(params) > r.want {
		return errors.New("it is far from one")
	}
	return nil
}

type ramper struct {
	params []float32
	task   *ramp // of node 0
	steps  int
}

func (r *ramper) Params() []float32 { return r.params }

func (r *ramper) Step(made func() float64) error {
	progress := made()
	r.steps++
	if r.task != nil {
		r.task.shares = append(r.task.shares, progress)
		if r.steps == r.task.fails {
			return errors.New("out of memory")
		}
	}
	for i := range r.params {
		r.params[i] += 0.01 * (1 - r.params[i])
	}
	return nil
}

func rampScenario(task *ramp) Scenario {
	p := Params(2, 1, codec.F32)
	p.Budget = 3 * 20 * uint64(p.H) * uint64(task.Tokens())
	return Scenario{Seed: 1, Params: p, Founders: make([]NodeSpec, 3), StepMs: 100, LimitMs: 600_000, Task: task}
}

// A world learns what its task says: the task gives tensors, parameters, batch
// and steps.
func TestTaskIsLearned(t *testing.T) {
	task := &ramp{want: 2}
	w, err := New(rampScenario(task))
	if err != nil {
		t.Fatal(err)
	}
	w.Finish()
	if w.Err() != nil {
		t.Fatal(w.Err())
	}
	r := w.Result()
	if r.LossStart != 7 || r.Loss != task.Loss(w.Globals()) || r.Loss > 2 || r.Tokens%uint64(task.Tokens()) != 0 {
		t.Errorf("loss %v of %v, %d tokens", r.Loss, r.LossStart, r.Tokens)
	}
	if n := len(w.Globals()); n != 7 {
		t.Errorf("%d parameters", n)
	}
	last := task.shares[len(task.shares)-1]
	early := task.shares[w.s.Params.H-1] // nothing is folded yet
	if task.shares[0] != 0 || early == 0 || early > 0.1 || last < 0.9 || last > 1 {
		t.Errorf("shares of the budget: %v, then %v, at last %v", task.shares[0], early, last)
	}
	c, ok := w.Chain()
	if !ok || c.Deltas == 0 || c.Steps < float64(w.s.Params.HMin) || c.PayloadBytes < int64(c.Deltas) || c.Stale < 0 {
		t.Errorf("chain %+v, %v", c, ok)
	}
	if c.Rounds < 15 {
		t.Errorf("%d rounds", c.Rounds)
	}
}

func TestTaskFailures(t *testing.T) {
	for want, task := range map[string]*ramp{
		"node 0: out of memory": {fails: 30, want: 7},
		"it is far from one":    {want: 0.001},
	} {
		r, err := Run(rampScenario(task))
		if err != nil || r.Check != "learns" || !strings.Contains(r.Error, want) {
			t.Errorf("check %q, error %q, %v; want %q", r.Check, r.Error, err, want)
		}
	}
}

// However much is decoded, what is remembered of it is bounded, and the oldest
// goes first.
func TestDecodedValuesAreBounded(t *testing.T) {
	var d decodedValues
	all := map[wire.Digest]checked{}
	const n = maxValues / 4
	for i := range 10 {
		id := wire.Digest{byte(i)}
		all[id] = checked{values: make([]float32, n)[:n:n]}
		d.remember(all, id, n)
	}
	for i := range 10 {
		kept := all[wire.Digest{byte(i)}].values != nil
		if kept != (i >= 6) {
			t.Errorf("values of payload %d are kept: %v", i, kept)
		}
	}
	if d.held != 4*n {
		t.Errorf("%d values held, want %d", d.held, 4*n)
	}
}
