package outer

import (
	"cmp"
	"math"
	"slices"
)

// Weights returns the weight of each delta of a round's set, in the order of set:
//
//	w = tokens^2/steps
//
// with the tokens that count (Params.Claimed), after crowds, guests and the share cap.
// tokens^2/steps is Decoupled DiLoCo's. The deltas must pass Check. Only ratios of weights
// matter.
func Weights(p Params, set []Delta) []float64 {
	w := p.claimed(set)
	shareOut(p, w, set, guestShare)
	return w
}

// shareOut lowers the largest weights of members, and then those of guests to a share of what members weigh. The other way
// round a guest would keep what a member of the largest weight loses.
func shareOut(p Params, w []float64, set []Delta, guests float64) {
	members, deltas := make([]float64, 0, len(w)), make([]Delta, 0, len(w))
	for i, d := range set {
		if !d.Guest {
			members, deltas = append(members, w[i]), append(deltas, d)
		}
	}
	capShares(members, p.shareCaps(members, deltas))
	for i, d := range set {
		if !d.Guest {
			w[i], members = members[0], members[1:]
		}
	}
	boundGuests(w, set, guests)
}

// claimed are the weights of Weights before the share cap.
func (p Params) claimed(set []Delta) []float64 {
	w := make([]float64, len(set))
	for i, d := range set {
		w[i] = p.weight(d)
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
		if d.Uses > 0 {
			if came == nil {
				came = map[[32]byte]uint32{}
			}
			came[d.Invite]++
		}
	}
	for i, d := range set {
		if n := came[d.Invite]; d.Uses > 0 && n > d.Uses {
			w[i] *= float64(d.Uses) / float64(n)
		}
	}
}

// guestShare is what the deltas of guests weigh together at most, in units of what those of members weigh. Keys are free to
// guests, so neither their number nor their claims count. A tenth of a step is little enough to leave the others what they
// had. It is too much where members' deltas are mostly noise, which cancels while guests push one way. Such rounds
// score nobody, and where deltas count by their scores guests weigh nothing in them.
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

func (p Params) weight(d Delta) float64 {
	tokens, steps := float64(p.Claimed(d)), float64(d.Steps)
	return tokens * tokens / steps
}

// work are the steps that a delta's part of a round is measured by: those of one round at most, so a claim of more is none.
func (p Params) work(d Delta) float64 { return float64(min(p.paced(d), uint64(p.H))) }

// shareCaps are the shares that deltas of these weights may have: MaxShare, or their part of all steps, if that is more. So no claim is
// worth more than MaxShare, and no cap costs a fast machine its work: beside one a quarter as fast it has four fifths.
func (p Params) shareCaps(w []float64, set []Delta) []float64 {
	sum, caps := 0.0, make([]float64, len(set))
	for i, d := range set {
		if w[i] > 0 {
			sum += p.work(d)
		}
	}
	for i, d := range set {
		if caps[i] = p.MaxShare; sum > 0 {
			caps[i] = max(p.MaxShare, p.work(d)/sum)
		}
	}
	return caps
}

// capShares lowers weights so that each is at most its cap of the new sum. In closed form, with the deltas ordered by weight over cap,
// descending: R_k is the sum of the weights from k on, C_k that of the caps before, and the new sum is R_k/(1 - C_k) for the
// smallest k from which on none has to be lowered. Rounding may hide it only where all are lowered; then the last one is not.
func capShares(w, caps []float64) {
	var order []int // without those that count for nothing
	for i, x := range w {
		if x > 0 {
			order = append(order, i)
		}
	}
	over := func(i int) float64 { return w[i] / caps[i] }
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(over(j), over(i)) })
	below := make([]float64, len(order)+1)
	for k := len(order) - 1; k >= 0; k-- {
		below[k] = w[order[k]] + below[k+1]
	}
	sum, taken := math.Inf(1), 0.0
	for k, i := range order {
		room := 1 - taken
		if sum = over(i); room <= 0 {
			sum = over(order[len(order)-1])
			break
		}
		if x := below[k] / room; sum <= x {
			sum = x
			break
		}
		taken += caps[i]
	}
	for _, i := range order {
		w[i] = min(w[i], float64(caps[i]*sum))
	}
}
