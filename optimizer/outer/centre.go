package outer

import (
	"math"

	"atoll/tensor"
)

// centrePasses is how often centred clipping moves its centre, from zero. The first move is the mean of vectors cut to a
// usual length. The second leaves out most of what liars moved. A third costs as much as the second and brings little.
// With two liars of eight it takes 0 to 3 % off the loss with momentum, 8 to 10 % without. Without liars no difference
// shows (testnet/lab/RESULTS.md).
const centrePasses = 2

// centre is the merged progress of clipped deltas by centred clipping
// (Karimireddy, He, Jaggi: Learning from History, arXiv 2012.10333), in each tensor
//
//	v <- v + sum w min(1, tau/|x - v|) (x - v) / sum w
//
// from v = 0. The paper's radius tau is a constant. Here it is the weighted lower median
// of the distances |x - v|, which follows the deltas as training makes them smaller.
// Deltas nearer than half of all weight count in full, the others as if they were as
// near.
//
// v is never kept whole: a pass makes it anew, part by part, from what the passes before found.
func (fold *folding) centre(clips [][]float64) progress {
	var moves []move
	for range centrePasses {
		moves = append(moves, fold.nextMove(clips, moves))
	}
	return fold.moved(clips, moves)
}

// move is one move of the centre.
type move struct {
	pull [][]float64 // w min(1, tau/|x - v|) / sum w, [delta][tensor]
	rest []float64   // what is left of v, [tensor]
}

// nextMove is the move of the centre after some.
func (fold *folding) nextMove(clips [][]float64, moves []move) move {
	m := move{fold.perTensor(), make([]float64, len(fold.f.Tensors))}
	distances := fold.distances(clips, moves)
	for t := range m.rest {
		m.rest[t] = 1 - fold.pullTensor(t, distances, m.pull)
	}
	return m
}

// moved is the centre after some moves.
func (fold *folding) moved(clips [][]float64, moves []move) progress {
	return func(at int, sum []float64) {
		clear(sum)
		for k, m := range moves {
			if k > 0 {
				fold.f.overlap(at, len(sum), func(t, _, from, to int) { tensor.ScaleWide(m.rest[t], sum[from:to]) })
			}
			fold.accumulate(at, sum, func(i, t int) float64 { return m.pull[i][t] * clips[i][t] })
		}
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
	var of, weights []float64
	for i := range distances {
		if w := fold.spoken[i][t]; w > 0 {
			of, weights = append(of, distances[i][t]), append(weights, w)
		}
	}
	tau := lowerMedian(of, weights)
	for i := range distances {
		pull[i][t] = fold.share(i, t)
		if d := distances[i][t]; d > tau {
			pull[i][t] = float64(pull[i][t]*tau) / d
		}
		sum += pull[i][t]
	}
	return sum
}

// distances are the distances of the clipped deltas from the centre after some moves, [delta][tensor]. From
// zero they are the norms.
func (fold *folding) distances(clips [][]float64, moves []move) [][]float64 {
	out := fold.perTensor()
	if len(moves) == 0 {
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
	fold.eachWave(fold.moved(clips, moves), len(out), func(i, at int, centre []float64) {
		fold.read(i, at, len(centre), func(first int, v []float32) {
			fold.f.overlap(first, len(v), func(t, number, from, to int) {
				squares[i][t].AddDistances(number, clips[i][t], v[from:to], centre[first-at+from:first-at+to])
			})
		})
	})
	for i := range out {
		for t := range out[i] {
			out[i][t] = math.Sqrt(squares[i][t].Sum())
		}
	}
	return out
}
