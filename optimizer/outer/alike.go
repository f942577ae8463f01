package outer

import (
	"math"
	"slices"
)

// Copies. A copy has as much in common with the others as its original, so agreement does not see it. But honest
// deltas share the gradient and no noise, and a copy shares the noise as well. With one common factor the cosine of i
// and j is cos(i, k) cos(j, l) / cos(k, l) for all others k and l (the tetrads of Spearman). What two deltas have in
// common beyond that is noise of the same source. Nobody has to know which of them was first: together they weigh as
// the heaviest of them does. Then a copier gains nothing, and what the original says still counts.

const (
	// Deltas that share up to ownNoise of their noise are two, and from sameNoise on one. Measured: honest learners of
	// unlike speeds, texts and bases (TestUnlikeMembers) share 0.03 as a rule, one pair of ten 0.25, and one of a
	// hundred 0.54; each keeps 0.97 and more of its weight. A copy with noise of half its norm shares 0.8.
	ownNoise, sameNoise = 0.5, 0.75
	// littleNoise is the expected cosine from which on nobody is compared: what is left of noise is too little to be
	// told from errors of the model, and averaging it brings little.
	littleNoise = 0.9
	// leastTetrads is how many the committee must be for any two to have two others beside them.
	leastTetrads = 4
)

// tellCopies finds how alike each delta is to each of the committee, from the trusts on.
func (a *agreeing) tellCopies() {
	a.seats, a.likeness = make([]int, len(a.set)), make([][]float64, len(a.set))
	for i := range a.set {
		a.seats[i] = slices.Index(a.judges, i)
		a.likeness[i] = make([]float64, len(a.judges))
		for k, j := range a.judges {
			if i != j {
				a.likeness[i][k] = a.likenessOf(i, k)
			}
		}
	}
}

// likenessOf is 0 where delta i and that of judge k are two, and 1 where they are one.
func (a *agreeing) likenessOf(i, k int) float64 {
	expected, known := a.expected(i, k)
	if !known || expected >= littleNoise {
		return 0
	}
	shared := (a.cosines[i][k] - expected) / (1 - expected)
	if shared < a.byChance() {
		return 0
	}
	return min(max((shared-ownNoise)/(sameNoise-ownNoise), 0), 1)
}

// expected is the cosine of delta i and that of judge k that follows from those with other judges: the lower median, by
// trusts, of what each of these expects. One median of all tetrads would not do. Two liars of eight are in most of
// them, and can have honest deltas look alike.
func (a *agreeing) expected(i, k int) (cos float64, known bool) {
	var cosines, trusts []float64
	for x, p := range a.judges {
		if x == k || p == i || a.trusts[p] == 0 {
			continue
		}
		if cos, known := a.expectedBy(x, i, k); known {
			cosines, trusts = append(cosines, cos), append(trusts, a.trusts[p])
		}
	}
	return max(lowerMedian(cosines, trusts), 0), len(cosines) > 0
}

// expectedBy is the lower median of the tetrads with judge x and each of the others, by the trusts of these. Both that
// two others make count, so that i and k can change places.
func (a *agreeing) expectedBy(x, i, k int) (cos float64, known bool) {
	var tetrads, trusts []float64
	j := a.judges[k]
	for y, q := range a.judges {
		if y == x || y == k || q == i || a.trusts[q] == 0 {
			continue
		}
		one, other := 0.0, 0.0
		if between := a.cosines[a.judges[x]][y]; between != 0 {
			one = float64(a.cosines[i][x]*a.cosines[j][y]) / between
			other = float64(a.cosines[i][y]*a.cosines[j][x]) / between
		}
		tetrads, trusts = append(tetrads, one, other), append(trusts, a.trusts[q], a.trusts[q])
	}
	return lowerMedian(tetrads, trusts), len(tetrads) > 0
}

// alike is how alike deltas i and j are, 0 where neither is of the committee. To a member no guest is: its keys are
// free, and they would take the member's weight.
func (a *agreeing) alike(i, j int) float64 {
	switch {
	case i == j:
		return 1
	case a.set[j].Delta.Guest && !a.set[i].Delta.Guest:
		return 0
	case a.seats[j] >= 0:
		return a.likeness[i][a.seats[j]]
	case a.seats[i] >= 0:
		return a.likeness[j][a.seats[i]]
	}
	return 0
}

// asOne lowers the weights of deltas that are alike, so that together they are that of the heaviest. Deltas without
// weight take nobody's.
func (a *agreeing) asOne(w []float64) {
	if len(a.judges) < leastTetrads {
		return
	}
	a.tellCopies()
	was := slices.Clone(w)
	for i := range w {
		sum, most := 0.0, 0.0
		for j := range was {
			part := float64(a.alike(i, j) * was[j])
			sum, most = sum+part, max(most, part)
		}
		if sum > 0 {
			w[i] = float64(was[i]*most) / sum
		}
	}
}

// byChance is the least that counts of what deltas have in common.
func (a *agreeing) byChance() float64 {
	return chance / math.Sqrt(float64(min(a.f.Len, sampled)))
}
