package outer

// centrePasses is how often centred clipping moves its centre. From a centre of
// zero three passes come within a few per cent of where it settles.
const centrePasses = 3

// centre returns the merged progress [Len] of clipped deltas by centred clipping
// (Karimireddy, He, Jaggi: Learning from History, arXiv 2012.10333), in each tensor
//
//	v <- v + sum w min(1, tau/|x - v|) (x - v) / sum w
//
// from v = 0. The paper's radius tau is a constant; here it is the weighted lower median
// of the distances |x - v|, which follows the deltas as training makes them
// smaller: those nearer than half of all weight count in full, the others as if
// they were as near.
//
// Payloads are decoded once and then twice for each further pass.
func (fold *folding) centre(clips [][]float64) []float64 {
	total := 0.0
	for _, w := range fold.weights {
		total += w
	}
	v := make([]float64, fold.f.Len)
	pull := make([][]float64, len(fold.set)) // [delta][tensor] w min(1, tau/|x - v|) / sum w
	for pass := range centrePasses {
		distances := fold.distances(v, clips, pass == 0)
		for i := range pull {
			pull[i] = make([]float64, len(fold.f.Tensors))
		}
		fold.f.each(func(t, at, n int) {
			rest := 1 - fold.pullTensor(t, distances, pull, total)
			for j := range v[at : at+n] {
				v[at+j] *= rest
			}
		})
		fold.accumulate(v, func(i, t int) float64 { return pull[i][t] * clips[i][t] })
	}
	return v
}

// pullTensor fills pull[.][t] and returns its sum.
func (fold *folding) pullTensor(t int, distances, pull [][]float64, total float64) (sum float64) {
	of := make([]float64, len(distances))
	for i := range distances {
		of[i] = distances[i][t]
	}
	tau := lowerMedian(of, fold.weights)
	for i, d := range of {
		pull[i][t] = fold.weights[i] / total
		if d > tau {
			pull[i][t] = float64(pull[i][t]*tau) / d
		}
		sum += pull[i][t]
	}
	return sum
}

// distances are those of the clipped deltas from v, [delta][tensor]. From zero they
// are the norms.
func (fold *folding) distances(v []float64, clips [][]float64, zero bool) [][]float64 {
	out := make([][]float64, len(fold.set))
	for i, c := range fold.set {
		out[i] = make([]float64, len(fold.f.Tensors))
		if zero {
			for t := range out[i] {
				out[i][t] = fold.norms[i][t] * clips[i][t]
			}
			continue
		}
		fold.mustDecode(c)
		fold.f.each(func(t, at, n int) {
			out[i][t] = distance(v[at:at+n], clips[i][t], fold.values[at:at+n])
		})
	}
	return out
}
