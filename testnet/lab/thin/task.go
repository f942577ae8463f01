package thin

import (
	"math/rand/v2"

	"atoll/tensor"
	"atoll/tensor/llama"
	"atoll/testnet/sim"
)

// task stands for a model that is too large for many nodes in one process: it has its tensors, each so many times
// smaller, and its learners walk at random. What a delta of it takes in bytes is what real ones take, a value.
type task struct {
	specs []tensor.Spec
	noise []float32
}

func newTask(shrink int) task {
	var t task
	for _, s := range llama.Small.Specs() {
		shape := append([]int{max(1, s.Shape[0]/shrink)}, s.Shape[1:]...)
		t.specs = append(t.specs, tensor.Spec{Name: s.Name, Shape: shape})
	}
	rng := rand.New(rand.NewPCG(1, 2))
	t.noise = make([]float32, 2*t.values())
	for i := range t.noise {
		t.noise[i] = float32(rng.NormFloat64() * 1e-3)
	}
	return t
}

func (t task) values() int { return len(tensor.NewSlab(t.specs).Data) }

// scale is how many times larger the model is that this one stands for.
func (t task) scale() float64 { return float64(llama.Small.Params()) / float64(t.values()) }

// Specs implements sim.Task, as do the methods up to Learned.
func (t task) Specs() []tensor.Spec   { return t.specs }
func (t task) Initial() []float32     { return make([]float32, t.values()) }
func (t task) Tokens() int            { return stepTokens }
func (t task) Loss([]float32) float64 { return 0 }

func (t task) Learned([]float32) error { return nil }

func (t task) Trainer(node, life int) sim.Trainer {
	return &walker{noise: t.noise, params: t.Initial(), rng: rand.New(rand.NewPCG(uint64(node), uint64(life)))}
}

// walker is a learner whose steps are noise: a place in a table that all share.
type walker struct {
	noise, params []float32
	rng           *rand.Rand
}

func (w *walker) Params() []float32 { return w.params }

func (w *walker) Step(func() float64) error {
	noise := w.noise[w.rng.IntN(len(w.noise)-len(w.params)):]
	for i := range w.params {
		w.params[i] += noise[i]
	}
	return nil
}
