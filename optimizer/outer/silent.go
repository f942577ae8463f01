package outer

import (
	"math"

	"atoll/tensor"
)

// A machine that sends zeros, or next to it, says nothing of where the model should go, nor of how long a usual delta is. So a
// delta that is silent in a tensor has no part in anything there, neither in means nor in medians. The others are
// neither stopped nor diluted, and a learner that leaves a tensor as it is leaves it to the others.

const (
	// quiet is how many times shorter than usual a delta is silent. Honest learners of unlike texts, speeds and batches are within a
	// factor of four of each other (few_unlike_test.go of testnet/sim).
	quiet = 16
	// firstMove is the part of a tensor's own length that a usual delta moves it by at most where two disagree on what is usual and no round
	// before says. Honest first rounds move tensors by 0.07 to 5 times their length, so a thousand times more or less is told apart
	// where the rate does not begin below a tenth of its peak.
	firstMove = 1.0 / 8
)

// listen finds out who says something in which tensor. A codec that leaves values out leaves whole tensors out now and then. Their
// values come later and count as before, so there a delta is silent everywhere or nowhere.
func (fold *folding) listen() {
	fold.speaks, fold.silent = make([][]bool, len(fold.set)), make([]bool, len(fold.set))
	for i := range fold.speaks {
		fold.speaks[i], fold.silent[i] = make([]bool, len(fold.f.Tensors)), true
	}
	for t := range fold.f.Tensors {
		least := fold.usual(t) / quiet
		for i := range fold.set {
			n := fold.unitNorm(i, t)
			fold.speaks[i][t] = n > 0 && n >= least
			fold.silent[i] = fold.silent[i] && !fold.speaks[i][t]
		}
	}
	if fold.p.Codec.Partial() {
		for i := range fold.speaks {
			for t := range fold.speaks[i] {
				fold.speaks[i][t] = !fold.silent[i]
			}
		}
	}
}

// usual is the length of a usual delta in tensor t, scaled to H steps: the reference, or the longest of this round where all are
// shorter. Without a reference it is the median, and of two the longer one as far as it is believed.
func (fold *folding) usual(t int) float64 {
	var norms, trusts []float64
	most := 0.0
	for i, c := range fold.set {
		if n := fold.unitNorm(i, t); n > 0 {
			norms, trusts = append(norms, n), append(trusts, fold.authorTrust(c.Delta))
			most = max(most, n)
		}
	}
	switch old := float64(fold.prev.Ref[t]); {
	case old > 0:
		return min(old, most)
	case len(norms) == 2:
		return min(most, firstMove*fold.globalNorm(t))
	}
	return lowerMedian(norms, trusts)
}

// authorTrust is how much a delta counts in what is usual: the trust of its author's reputation, 0 for guests.
func (fold *folding) authorTrust(d Delta) float64 {
	if d.Guest {
		return 0
	}
	return trust(scoreOf(fold.prev.Reputations, d.Author))
}

// globalNorm is the length of tensor t before the fold.
func (fold *folding) globalNorm(t int) float64 {
	from := 0
	for _, before := range fold.f.Tensors[:t] {
		from += before.Len
	}
	var sum tensor.Lanes
	sum.AddSquares(0, fold.prev.Global[from:from+fold.f.Tensors[t].Len])
	return math.Sqrt(sum.Sum())
}

// divide finds what each delta weighs in each tensor, and all of them together.
func (fold *folding) divide() {
	fold.spoken, fold.totals = fold.perTensor(), make([]float64, len(fold.f.Tensors))
	for i, w := range fold.weights {
		for t, speaks := range fold.speaks[i] {
			if speaks {
				fold.spoken[i][t] = w
				fold.totals[t] += w
			}
		}
	}
}

// share is the part of tensor t that is delta i's.
func (fold *folding) share(i, t int) float64 {
	if fold.totals[t] == 0 {
		return 0
	}
	return fold.spoken[i][t] / fold.totals[t]
}
