package sim

import (
	"fmt"
	"math"
	"math/rand/v2"

	"atoll/tensor"
)

// specs is the model of the quadratic: a few tensors of unequal size, so that
// fold, weights and clipping have real work and a node costs little.
var specs = []tensor.Spec{
	{Name: "model.embed_tokens.weight", Shape: []int{16, 8}},
	{Name: "a.weight", Shape: []int{12, 10}},
	{Name: "a.norm", Shape: []int{10}},
	{Name: "b.weight", Shape: []int{9, 11}},
	{Name: "c.weight", Shape: []int{64}},
}

// TokensPerStep is the batch of every virtual node that learns the quadratic.
const TokensPerStep = 512

// quadraticTask is what nodes learn where faults are looked for, and not quality.
type quadraticTask struct{ seed uint64 }

func (quadraticTask) Specs() []tensor.Spec          { return specs }
func (quadraticTask) Initial() []float32            { return initial(specs) }
func (quadraticTask) Tokens() int                   { return TokensPerStep }
func (quadraticTask) Loss(params []float32) float64 { return Loss(params) }

func (t quadraticTask) Trainer(node, life int) Trainer {
	return newQuadratic(t.seed, uint64(node), life)
}

// Learned wants the loss to fall to a quarter at most.
func (quadraticTask) Learned(params []float32) error { return quartered(params, initial(specs)) }

// quartered wants the loss to have fallen to a quarter at most.
func quartered(params, first []float32) error {
	if got, start := Loss(params), Loss(first); got > start/4 || math.IsNaN(got) {
		return fmt.Errorf("loss %g of %g at the start", got, start)
	}
	return nil
}

// initial are parameters of genesis for a model of these tensors.
func initial(specs []tensor.Spec) []float32 {
	rng := rand.New(rand.NewPCG(1, 1))
	params := tensor.NewSlab(specs).Data
	for i := range params {
		params[i] = float32(rng.NormFloat64())
	}
	return params
}

// quadratic is a trainer's stand-in: noisy gradient descent on
// sum_i c_i (theta_i - best_i)^2 / 2, with curvatures c over two decades.
type quadratic struct {
	params []float32
	rng    *rand.Rand
}

func newQuadratic(seed, node uint64, life int) *quadratic {
	return &quadratic{params: initial(specs), rng: rand.New(rand.NewPCG(seed, node<<16|uint64(life)))}
}

// Step size and noise of a gradient: noise alone would end at a loss of about
// a hundredth of the start.
const (
	quadraticRate  = 0.05
	quadraticNoise = 0.3
)

func curvature(i int) float64 { return 0.02 + float64(i%50)/25 }
func best(i int) float64      { return math.Sin(float64(i)) }

// Params implements Trainer.
func (q *quadratic) Params() []float32 { return q.params }

// Step implements Trainer. Its rate does not follow a schedule.
func (q *quadratic) Step(func() float64) error {
	for i, x := range q.params {
		g := curvature(i)*(float64(x)-best(i)) + quadraticNoise*q.rng.NormFloat64()
		q.params[i] = float32(float64(x) - quadraticRate*g)
	}
	return nil
}

// Loss is the noiseless loss of parameters.
func Loss(params []float32) float64 {
	var sum float64
	for i, x := range params {
		d := float64(x) - best(i)
		sum += curvature(i) * d * d / 2
	}
	return sum
}
