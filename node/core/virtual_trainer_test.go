package core_test

import (
	"math"
	"math/rand/v2"

	"atoll/tensor"
)

// specs is the model of every virtual node: a few tensors of unequal size.
var specs = []tensor.Spec{
	{Name: "model.embed_tokens.weight", Shape: []int{16, 8}},
	{Name: "a.weight", Shape: []int{12, 10}},
	{Name: "a.norm", Shape: []int{10}},
	{Name: "b.weight", Shape: []int{9, 11}},
	{Name: "c.weight", Shape: []int{64}},
}

// tokensPerStep is the batch of every virtual node.
const tokensPerStep = 512

// initial are the parameters of genesis.
func initial() []float32 {
	rng := rand.New(rand.NewPCG(1, 1))
	theta := tensor.NewSlab(specs).Data
	for i := range theta {
		theta[i] = float32(rng.NormFloat64())
	}
	return theta
}

// quadratic is a trainer's stand-in: noisy gradient descent on
// sum_i c_i (theta_i - best_i)^2 / 2, with curvatures c over two decades.
type quadratic struct {
	theta []float32
	rng   *rand.Rand
}

func newQuadratic(seed uint64) *quadratic {
	return &quadratic{theta: initial(), rng: rand.New(rand.NewPCG(seed, 2))}
}

// Step size and noise of a gradient: noise alone would end at a loss of about
// a hundredth of the start.
const (
	quadraticRate  = 0.05
	quadraticNoise = 0.3
)

func curvature(i int) float64 { return 0.02 + float64(i%50)/25 }
func best(i int) float64      { return math.Sin(float64(i)) }

func (q *quadratic) step() {
	for i, x := range q.theta {
		g := curvature(i)*(float64(x)-best(i)) + quadraticNoise*q.rng.NormFloat64()
		q.theta[i] = float32(float64(x) - quadraticRate*g)
	}
}

// loss is the noiseless loss of parameters.
func loss(theta []float32) float64 {
	var sum float64
	for i, x := range theta {
		d := float64(x) - best(i)
		sum += curvature(i) * d * d / 2
	}
	return sum
}
