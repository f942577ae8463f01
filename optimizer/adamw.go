package optimizer

import (
	"fmt"
	"math"

	"atoll/tensor"
)

// AdamW is Adam with decoupled weight decay (I. Loshchilov and F. Hutter,
// Decoupled weight decay regularization, 2019, algorithm 2):
//
//	m = Beta1 m + (1-Beta1) g
//	v = Beta2 v + (1-Beta2) g^2
//	p = p - lr (m/(1-Beta1^t) / (sqrt(v/(1-Beta2^t)) + Eps) + WeightDecay p)
//
// with t counting steps from 1. The learning rate is an argument of Step,
// because it follows a Schedule.
type AdamW struct {
	Beta1, Beta2 float64 // decay rates of the moments, in [0, 1)
	Eps          float64 // above 0
	WeightDecay  float64 // 0 or more, on the decay spans only
}

// Span is a stretch of a flat vector: Len values from Offset.
type Span struct{ Offset, Len int }

// AppendSpan appends a span that comes after the others. It joins one that begins where the last
// ends.
func AppendSpan(spans []Span, s Span) []Span {
	if n := len(spans); n > 0 && spans[n-1].Offset+spans[n-1].Len == s.Offset {
		spans[n-1].Len += s.Len
		return spans
	}
	return append(spans, s)
}

// Validate returns an error that names the first field out of range.
func (o AdamW) Validate() error {
	switch {
	case !(o.Beta1 >= 0 && o.Beta1 < 1):
		return fmt.Errorf("AdamW Beta1 is %v: use 0 or more and below 1", o.Beta1)
	case !(o.Beta2 >= 0 && o.Beta2 < 1):
		return fmt.Errorf("AdamW Beta2 is %v: use 0 or more and below 1", o.Beta2)
	case !(o.Eps > 0) || math.IsInf(o.Eps, 0):
		return fmt.Errorf("AdamW Eps is %v: use a small number above 0", o.Eps)
	case !(o.WeightDecay >= 0) || math.IsInf(o.WeightDecay, 0):
		return fmt.Errorf("AdamW WeightDecay is %v: use 0 or more", o.WeightDecay)
	}
	return nil
}

// Step updates params in place with one step along grads at learning rate lr
// and advances s. Weight decay applies within decay only, whose spans follow
// each other without overlap. All vectors have the length of params; anything
// else is a programming error and panics.
func (o AdamW) Step(params, grads []float32, decay []Span, s *AdamState, lr float64) {
	o.StepScaled(params, grads, decay, s, lr, 1)
}

// StepScaled is Step along grads times a factor.
func (o AdamW) StepScaled(params, grads []float32, decay []Span, s *AdamState, lr float64, factor float32) {
	if n := len(params); len(grads) != n || s.M.Len() != n || s.V.Len() != n {
		panic(fmt.Sprintf("optimizer: %d parameters, %d gradients, moments of %d and %d", n, len(grads), s.M.Len(), s.V.Len()))
	}
	s.Step++
	plain := o.coefficients(s.Step, lr, factor)
	decayed := plain
	decayed.Keep = float32(1 - lr*o.WeightDecay)
	at := 0
	for _, d := range decay {
		s.update(params, grads, at, d.Offset, plain)
		at = d.Offset + d.Len
		s.update(params, grads, d.Offset, at, decayed)
	}
	s.update(params, grads, at, len(params), plain)
}

// coefficients returns the coefficients of step t without weight decay.
func (o AdamW) coefficients(t int64, lr float64, factor float32) tensor.AdamWCoef {
	return tensor.AdamWCoef{
		Beta1: float32(o.Beta1),
		Beta2: float32(o.Beta2),
		Grad:  factor,
		Step:  float32(lr / (1 - math.Pow(o.Beta1, float64(t)))),
		Root:  float32(1 / math.Sqrt(1-math.Pow(o.Beta2, float64(t)))),
		Eps:   float32(o.Eps),
		Keep:  1,
	}
}

// update applies a step to the parameters from lo to hi.
func (s *AdamState) update(params, grads []float32, lo, hi int, c tensor.AdamWCoef) {
	update(params[lo:hi], grads[lo:hi], s.M.part(lo, hi), s.V.part(lo, hi), c)
}
