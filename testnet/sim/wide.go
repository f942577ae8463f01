package sim

import (
	"math"

	"atoll/tensor"
)

// wideTask is the quadratic with so many times as many parameters, so that what nodes send
// each other takes time on their links. A step changes an eighth of the parameters, in
// turns: the world is about the bytes, and a step must stay cheap.
type wideTask struct {
	quadraticTask
	scale int
}

const (
	wideParts = 8
	wideRate  = 0.2    // a parameter has fewer steps than in the narrow quadratic
	MaxScale  = 10_000 // of a Scenario
)

// Specs implements Task.
func (t wideTask) Specs() []tensor.Spec {
	wide := make([]tensor.Spec, len(specs))
	for i, s := range specs {
		shape := append([]int{s.Shape[0] * t.scale}, s.Shape[1:]...)
		wide[i] = tensor.Spec{Name: s.Name, Shape: shape}
	}
	return wide
}

// Initial implements Task.
func (t wideTask) Initial() []float32 { return initial(t.Specs()) }

// Trainer implements Task.
func (t wideTask) Trainer(node, life int) Trainer {
	params := t.Initial()
	best32 := make([]float32, len(params))
	for i := range best32 {
		best32[i] = float32(best(i))
	}
	return &wide{params: params, best: best32, noise: t.seed<<32 ^ uint64(node)<<16 ^ uint64(life)<<1 | 1}
}

// Learned implements Task.
func (t wideTask) Learned(params []float32) error { return quartered(params, t.Initial()) }

type wide struct {
	params, best []float32
	noise        uint64 // of a xorshift generator
	steps        int
}

// Params implements Trainer.
func (q *wide) Params() []float32 { return q.params }

// Step implements Trainer.
func (q *wide) Step(func() float64) error {
	part := (len(q.params) + wideParts - 1) / wideParts
	from := q.steps % wideParts * part
	q.steps++
	for i := from; i < min(from+part, len(q.params)); i++ {
		g := float32(curvature(i))*(q.params[i]-q.best[i]) + q.uniform()
		q.params[i] -= float32(wideRate * g)
	}
	return nil
}

// uniform is noise of a gradient: an even spread with the deviation of the quadratic's.
func (q *wide) uniform() float32 {
	q.noise ^= q.noise << 13
	q.noise ^= q.noise >> 7
	q.noise ^= q.noise << 17
	return float32(quadraticNoise * math.Sqrt(3) * (float64(q.noise>>11)/(1<<52) - 1))
}

// bytesAt is what a delta of every fragment of a model of some scale has, if values travel
// as they are.
func bytesAt(scale int) float64 {
	params := 0
	for _, s := range specs {
		n := 1
		for _, d := range s.Shape {
			n *= d
		}
		params += n * scale
	}
	return float64(4 * params)
}

// ScaleOf is the scale of the model whose deltas, of every fragment, have so many bytes.
func ScaleOf(bytes float64) int { return int(math.Round(bytes / bytesAt(1))) }
