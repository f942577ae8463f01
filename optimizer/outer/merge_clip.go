package outer

import (
	"math"

	"atoll/tensor"
)

// centrePasses is how often centred clipping moves its centre, from zero. The first move is the mean of vectors cut to a
// usual length. The second leaves out most of what liars moved. A third costs as much as the second and brings little.
// With two liars of eight it takes 0 to 3 % off the loss with momentum, 8 to 10 % without. Without liars no difference
// shows (testnet/bench/RESULTS.md).
const centrePasses = 2

// centre leaves the merged progress of clipped deltas in fold.sum, by centred clipping
// (Karimireddy, He, Jaggi: Learning from History, arXiv 2012.10333), in each tensor
//
//	v <- v + sum w min(1, tau/|x - v|) (x - v) / sum w
//
// from v = 0. The paper's radius tau is a constant. Here it is the weighted lower median
// of the distances |x - v|, which follows the deltas as training makes them smaller.
// Deltas nearer than half of all weight count in full, the others as if they were as
// near.
//
// Deltas are read twice in each pass but the first, where once is enough.
func (fold *folding) centre(clips [][]float64) {
	pull := fold.perTensor() // w min(1, tau/|x - v|) / sum w
	rest := make([]float64, len(fold.f.Tensors))
	for pass := range centrePasses {
		distances := fold.distances(clips, pass == 0)
		for t := range rest {
			rest[t] = 1 - fold.pullTensor(t, distances, pull)
		}
		fold.eachPart(func(at, n int) {
			if pass == 0 {
				clear(fold.sum[at : at+n])
			} else {
				fold.f.overlap(at, n, func(t, _, from, to int) { tensor.ScaleWide(rest[t], fold.sum[at+from:at+to]) })
			}
			fold.accumulate(at, n, func(i, t int) float64 { return pull[i][t] * clips[i][t] })
		})
	}
}

// perTensor returns a number for each tensor of each delta, [delta][tensor].
func (fold *folding) perTensor() [][]float64 {
	table := make([][]float64, len(fold.set))
	for i := range table {
		table[i] = make([]float64, len(fold.f.Tensors))
	}
	return table
}

// pullTensor fills pull[.][t] and returns its sum.
func (fold *folding) pullTensor(t int, distances, pull [][]float64) (sum float64) {
	of := make([]float64, len(distances))
	for i := range distances {
		of[i] = distances[i][t]
	}
	tau := lowerMedian(of, fold.weights)
	for i, d := range of {
		pull[i][t] = fold.weights[i] / fold.total
		if d > tau {
			pull[i][t] = float64(pull[i][t]*tau) / d
		}
		sum += pull[i][t]
	}
	return sum
}

// distances are the distances of the clipped deltas from fold.sum, [delta][tensor]. From
// zero they are the norms.
func (fold *folding) distances(clips [][]float64, zero bool) [][]float64 {
	out := fold.perTensor()
	if zero {
		for i := range out {
			for t := range out[i] {
				out[i][t] = fold.norms[i][t] * clips[i][t]
			}
		}
		return out
	}
	squares := make([][]tensor.Lanes, len(out))
	for i := range squares {
		squares[i] = make([]tensor.Lanes, len(out[i]))
	}
	fold.eachPart(func(at, n int) {
		for i := range fold.set {
			fold.read(i, at, n, func(at int, v []float32) {
				fold.f.overlap(at, len(v), func(t, first, from, to int) {
					squares[i][t].AddDistances(first, clips[i][t], v[from:to], fold.sum[at+from:at+to])
				})
			})
		}
	})
	for i := range out {
		for t := range out[i] {
			out[i][t] = math.Sqrt(squares[i][t].Sum())
		}
	}
	return out
}
