package outer

import (
	"cmp"
	"slices"
)

// Precision classes of the arithmetic that a learner trains in, as headers carry them.
const (
	PrecisionF32  uint8 = 1
	PrecisionBF16 uint8 = 2
	PrecisionF16  uint8 = 3
	PrecisionInt8 uint8 = 4
)

// PrecisionFactor is what a delta's weight is multiplied by for the arithmetic it was
// trained in: coarser gradients carry more noise per token. All factors are exact in binary.
// An unknown class has factor 0.
func PrecisionFactor(class uint8) float64 {
	switch class {
	case PrecisionF32:
		return 1
	case PrecisionBF16, PrecisionF16:
		return 0.9375 // half-width products, accumulated in f32
	case PrecisionInt8:
		return 0.75
	}
	return 0
}

// Weights returns the weight of each delta of a round's set, in the order of set:
//
//	w = tokens^2/steps x 1/(1 + StaleFactor s) x precision factor
//
// with the tokens that count (Params.Claimed) and s the rounds by which its base is older than
// round-1, after crowds, guests and the share cap.
// tokens^2/steps is Decoupled DiLoCo's. The deltas must pass Check. Only ratios of weights
// matter.
func Weights(p Params, set []Delta, round uint32) []float64 {
	w := p.claimed(set, round)
	shareOut(w, set, p.MaxShare, guestShare)
	return w
}

// shareOut lowers the largest weights of members, and then those of guests to a share of what members weigh. The other way
// round a guest would keep what a member of the largest weight loses.
func shareOut(w []float64, set []Delta, maxShare, guests float64) {
	members := make([]float64, 0, len(w))
	for i, d := range set {
		if !d.Guest {
			members = append(members, w[i])
		}
	}
	capShares(members, maxShare)
	for i, d := range set {
		if !d.Guest {
			w[i], members = members[0], members[1:]
		}
	}
	boundGuests(w, set, guests)
}

// claimed are the weights of Weights before the share cap.
func (p Params) claimed(set []Delta, round uint32) []float64 {
	w := make([]float64, len(set))
	for i, d := range set {
		w[i] = p.weight(d, round)
	}
	thinCrowds(w, set)
	return w
}

// thinCrowds lowers the weights of deltas whose invite admitted more of their authors than it was
// meant for, so that together they weigh as much as so many. Keys are free to whoever has an invite.
// Nobody is left out: else they would push out those who were invited.
func thinCrowds(w []float64, set []Delta) {
	var came map[[32]byte]uint32
	for _, d := range set {
		if d.Places > 0 {
			if came == nil {
				came = map[[32]byte]uint32{}
			}
			came[d.Invite]++
		}
	}
	for i, d := range set {
		if n := came[d.Invite]; d.Places > 0 && n > d.Places {
			w[i] *= float64(d.Places) / float64(n)
		}
	}
}

// guestShare is what the deltas of guests weigh together at most, in units of what those of members weigh. Keys are free to
// guests, so neither their number nor their claims count. A tenth of a step is little enough to leave the others what they
// had. It is too much where members' deltas are mostly noise, which cancels while guests push one way. Such rounds
// judge nobody, and where deltas count by their agreement guests weigh nothing in them.
const guestShare = 1.0 / 9

// boundGuests lowers the weights of guests so that together they are at most share of the weights of members. Without a
// member they weigh nothing.
func boundGuests(w []float64, set []Delta, share float64) {
	members, guests := 0.0, 0.0
	for i, d := range set {
		if d.Guest {
			guests += w[i]
		} else {
			members += w[i]
		}
	}
	most := float64(share * members)
	if guests <= most {
		return
	}
	for i, d := range set {
		if d.Guest {
			w[i] = float64(w[i]*most) / guests
		}
	}
}

func (p Params) weight(d Delta, round uint32) float64 {
	tokens, steps := float64(p.Claimed(d)), float64(d.Steps)
	w := tokens * tokens / steps
	stale := float64(round - 1 - d.Base)
	w /= 1 + float64(p.StaleFactor*stale)
	return w * PrecisionFactor(d.Precision)
}

// capShares lowers the largest weights to a common value x such that none is more than
// max(maxShare, 1/n) of the new sum. In closed form, with the weights descending: R_k is the sum of
// the weights below the k largest, and k is the smallest number of lowered ones with w_(k+1) <= x =
// share R_k/(1 - k share).
func capShares(w []float64, maxShare float64) {
	if len(w) == 0 {
		return
	}
	some := 0
	for _, x := range w {
		if x > 0 {
			some++
		}
	}
	share := max(maxShare, 1/float64(max(some, 1)))
	sorted := slices.Clone(w)
	slices.SortFunc(sorted, func(a, b float64) int { return cmp.Compare(b, a) })
	x := capValue(sorted, share)
	for i := range w {
		w[i] = min(w[i], x)
	}
}

// capValue is x of capShares for descending weights. Rounding may hide the solution only
// where all weights become equal; the smallest weight is x there.
func capValue(w []float64, share float64) float64 {
	below := suffixSums(w)
	for k := range w {
		room := 1 - float64(float64(k)*share)
		if room <= 0 {
			break
		}
		if x := share * below[k] / room; w[k] <= x {
			return x
		}
	}
	return w[len(w)-1]
}

// suffixSums returns s with s[k] = w[k] + ... + w[n-1], added from the last on.
func suffixSums(w []float64) []float64 {
	s := slices.Clone(w)
	for k := len(s) - 2; k >= 0; k-- {
		s[k] += s[k+1]
	}
	return s
}
