package outer

import (
	"cmp"
	"math"
	"slices"

	"atoll/tensor"
)

// opposition is the fraction of the random-walk length sqrt(sum w^2) below which the sum
// of weighted directions tells no direction: a random one would be longer.
const opposition = 0.5

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

// merge is the merged progress of clipped deltas. Embeddings and heads get the weighted mean. The others get
// radial-directional averaging, a mean of lengths along a mean of directions,
//
//	r = sum w|v| / sum w    d = unit(sum w unit(v))    u = r d
//
// and where the directions oppose each other the weighted mean. The lengths of the summed directions are found first.
func (fold *folding) merge(clips [][]float64) progress {
	scales, mean := fold.stretch(clips)
	return func(at int, sum []float64) {
		clear(sum)
		fold.accumulate(at, sum, func(i, t int) float64 {
			if mean[t] {
				return fold.meanFactor(i, t, clips[i][t])
			}
			return fold.directionFactor(i, t)
		})
		fold.f.overlap(at, len(sum), func(t, _, from, to int) {
			if scales[t] != 1 {
				tensor.ScaleWide(scales[t], sum[from:to])
			}
		})
	}
}

func (fold *folding) byMean(t int) bool {
	return fold.p.Merge == MergeMean || fold.f.Tensors[t].Mean
}

// directionFactor is w/|v|: what makes a delta a weighted unit vector. Clipping does not turn
// a vector, so it has no part here.
func (fold *folding) directionFactor(i, t int) float64 {
	if fold.norms[i][t] == 0 {
		return 0
	}
	return fold.spoken[i][t] / fold.norms[i][t]
}

// meanFactor is w clip / sum w: a delta's part of the weighted mean.
func (fold *folding) meanFactor(i, t int, clip float64) float64 {
	if fold.spoken[i][t] == 0 {
		return 0
	}
	return fold.spoken[i][t] * clip / fold.totals[t]
}

// stretch returns the scales that give the summed directions of each tensor their length r, and the tensors that get
// the weighted mean as it is: those that have it anyway, and those whose directions oppose each other.
func (fold *folding) stretch(clips [][]float64) (scales []float64, mean []bool) {
	scales, mean = make([]float64, len(fold.f.Tensors)), make([]bool, len(fold.f.Tensors))
	for t := range mean {
		scales[t], mean[t] = 1, fold.byMean(t)
	}
	if !slices.Contains(mean, false) {
		return scales, mean
	}
	squares := fold.directions(mean)
	for t := range scales {
		if mean[t] {
			continue
		}
		length := math.Sqrt(squares[t].Sum())
		switch {
		case length < opposition*fold.randomWalk(t):
			mean[t] = true
		case length > 0:
			scales[t] = fold.radius(t, clips) / length
		default:
			scales[t] = 0
		}
	}
	return scales, mean
}

// directions are the sums of the squares of the summed directions of each tensor but those with the mean. Parts are
// summed side by side, and their squares one part after the other.
func (fold *folding) directions(mean []bool) []tensor.Lanes {
	squares := make([]tensor.Lanes, len(fold.f.Tensors))
	fold.eachWave(func(at int, sum []float64) {
		clear(sum)
		fold.accumulate(at, sum, func(i, t int) float64 {
			if mean[t] {
				return 0
			}
			return fold.directionFactor(i, t)
		})
	}, 1, func(_, at int, sum []float64) {
		fold.f.overlap(at, len(sum), func(t, first, from, to int) {
			if !mean[t] {
				squares[t].AddSquaresWide(first, sum[from:to])
			}
		})
	})
	return squares
}

// radius is the weighted mean of the clipped norms in tensor t.
func (fold *folding) radius(t int, clips [][]float64) float64 {
	r := 0.0
	for i := range fold.set {
		r += float64(fold.spoken[i][t] * float64(fold.norms[i][t]*clips[i][t]))
	}
	return r / fold.totals[t]
}

// randomWalk is the expected length of the sum of directions that have nothing in common.
func (fold *folding) randomWalk(t int) float64 {
	s := 0.0
	for i := range fold.set {
		if w := fold.spoken[i][t]; fold.norms[i][t] > 0 {
			s += float64(w * w)
		}
	}
	return math.Sqrt(s)
}
