package outer

import (
	"math"
	"slices"
)

// Near-duplicates. A copy has as much in common with the others as its original, so its score does not show it. But honest
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
	// leastTetrads is how many references there must be for any two to have two others beside them.
	leastTetrads = 4
)

// findDuplicates finds the likeness of each delta to each reference, once the trusts are known.
func (a *comparison) findDuplicates() {
	a.refIndex, a.likeness = make([]int, len(a.set)), make([][]float64, len(a.set))
	for i := range a.set {
		a.refIndex[i] = slices.Index(a.references, i)
		a.likeness[i] = make([]float64, len(a.references))
		for k, j := range a.references {
			if i != j {
				a.likeness[i][k] = a.likenessOf(i, k)
			}
		}
	}
}

// likenessOf is 0 where delta i and reference k are two, and 1 where they are one.
func (a *comparison) likenessOf(i, k int) float64 {
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

// expected is the cosine of delta i and reference k that follows from those with other references: the lower median, by
// trusts, of what each of these expects. One median of all tetrads would not do. Two liars of eight are in most of
// them, and can have honest deltas look alike.
func (a *comparison) expected(i, k int) (cos float64, known bool) {
	var cosines, trusts []float64
	for x, p := range a.references {
		if x == k || p == i || a.trusts[p] == 0 {
			continue
		}
		if cos, known := a.expectedBy(x, i, k); known {
			cosines, trusts = append(cosines, cos), append(trusts, a.trusts[p])
		}
	}
	return max(lowerMedian(cosines, trusts), 0), len(cosines) > 0
}

// expectedBy is the lower median of the tetrads with reference x and each of the others, by the trusts of these. Both that
// two others make count, so that i and k can change places.
func (a *comparison) expectedBy(x, i, k int) (cos float64, known bool) {
	var tetrads, trusts []float64
	j := a.references[k]
	for y, q := range a.references {
		if y == x || y == k || q == i || a.trusts[q] == 0 {
			continue
		}
		one, other := 0.0, 0.0
		if between := a.cosines[a.references[x]][y]; between != 0 {
			one = float64(a.cosines[i][x]*a.cosines[j][y]) / between
			other = float64(a.cosines[i][y]*a.cosines[j][x]) / between
		}
		tetrads, trusts = append(tetrads, one, other), append(trusts, a.trusts[q], a.trusts[q])
	}
	return lowerMedian(tetrads, trusts), len(tetrads) > 0
}

// likenessBetween is the likeness of deltas i and j, 0 where neither is a reference. To a member a guest has none: its keys are
// free, and they would take the member's weight.
func (a *comparison) likenessBetween(i, j int) float64 {
	switch {
	case i == j:
		return 1
	case a.set[j].Delta.Guest && !a.set[i].Delta.Guest:
		return 0
	case a.refIndex[j] >= 0:
		return a.likeness[i][a.refIndex[j]]
	case a.refIndex[i] >= 0:
		return a.likeness[j][a.refIndex[i]]
	}
	return 0
}

// asOne lowers the weights of near-duplicates, so that together they are that of the heaviest. Deltas without
// weight take nobody's.
func (a *comparison) asOne(w []float64) {
	if len(a.references) < leastTetrads {
		return
	}
	a.findDuplicates()
	was := slices.Clone(w)
	for i := range w {
		sum, most := 0.0, 0.0
		for j := range was {
			part := float64(a.likenessBetween(i, j) * was[j])
			sum, most = sum+part, max(most, part)
		}
		if sum > 0 {
			w[i] = float64(was[i]*most) / sum
		}
	}
}

// byChance is the least that counts of what deltas have in common.
func (a *comparison) byChance() float64 {
	return chance / math.Sqrt(float64(min(a.f.Len, sampled)))
}
