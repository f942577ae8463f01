package outer

import (
	"cmp"
	"math"
	"slices"

	"atoll/tensor"
)

// youngRounds is for how many rounds of a fragment the reference is still too low. It
// began while learning rates rose and progress was a tenth of what it becomes. Following
// by RefDecay it would clip honest work for so long. Measured: a run of 22 rounds came
// to 1.7 % fewer bits per byte without that, and no round after the eighth was clipped.
const youngRounds = 8

// youngGrowth bounds the median of a young round to so many times the reference. With
// ClipFactor 3, progress may be twelve times the reference, so work that grows tenfold
// from its start is not clipped. Where liars have half of a round's weight the median is
// theirs: without a bound they would allow themselves any norm.
const youngGrowth = 4

// clip decides how far each delta's tensors are scaled down and returns the factors
// [delta][tensor] and the new norm reference. Both are in units of H steps: a delta of s steps is
// held to c ref sqrt(s/H), since noise grows with the square root of the steps. A tensor without
// a reference takes the median of this round. In a fragment's first rounds it takes the larger of
// both, the median as far as it is believed, unless it is of one delta only.
func (fold *folding) clip() (factors [][]float64, ref []float32) {
	factors = fold.perTensor()
	ref = make([]float32, len(fold.f.Tensors))
	for t := range ref {
		ref[t] = fold.clipTensor(t, factors)
	}
	return factors, ref
}

// clipTensor fills factors[.][t] and returns the new reference of tensor t: the weighted
// lower median of the clipped norms, averaged into the old reference. A delta of norm zero
// says nothing about a norm and has no part in the median.
func (fold *folding) clipTensor(t int, factors [][]float64) float32 {
	old := float64(fold.prev.Ref[t])
	limit := old
	switch {
	case old == 0:
		limit = fold.medianNorm(t, math.MaxFloat64)
	case fold.round <= youngRounds && fold.moving(t) > 1:
		limit = max(old, fold.medianNorm(t, float64(youngGrowth*old)))
	}
	limit *= fold.p.ClipFactor
	for i := range fold.set {
		factors[i][t] = 1
		if n := fold.unitNorm(i, t); n > limit {
			factors[i][t] = limit / n
		}
	}
	median := fold.medianNorm(t, limit)
	switch {
	case median == 0:
		return fold.prev.Ref[t]
	case old == 0:
		return tensor.Saturate(median)
	}
	return tensor.Saturate(float64(fold.p.RefDecay*old) + float64((1-fold.p.RefDecay)*median))
}

// unitNorm is the norm of delta i in tensor t, scaled to H steps.
func (fold *folding) unitNorm(i, t int) float64 {
	steps := float64(fold.set[i].Delta.Steps)
	return fold.norms[i][t] * math.Sqrt(float64(fold.p.H)/steps)
}

// moving counts the deltas that are not zero in tensor t. Each is of another author.
func (fold *folding) moving(t int) int {
	n := 0
	for i := range fold.set {
		if fold.norms[i][t] > 0 && fold.speaks[i][t] {
			n++
		}
	}
	return n
}

// medianNorm is the weighted lower median of the norms in tensor t that are not zero, each
// at most limit; 0 if all are zero.
func (fold *folding) medianNorm(t int, limit float64) float64 {
	var norms, weights []float64
	for i := range fold.set {
		if n := fold.unitNorm(i, t); n > 0 && fold.speaks[i][t] {
			norms = append(norms, min(n, limit))
			weights = append(weights, fold.weights[i])
		}
	}
	return lowerMedian(norms, weights)
}

// lowerMedian is the smallest value such that the values up to it have at least half of all
// weight; 0 of none.
func lowerMedian(values, weights []float64) float64 {
	order := make([]int, len(values))
	total := 0.0
	for i := range order {
		order[i] = i
		total += weights[i]
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(values[a], values[b]) })
	sum := 0.0
	for n, i := range order {
		sum += weights[i]
		if 2*sum >= total || n == len(order)-1 {
			return values[i]
		}
	}
	return 0
}
