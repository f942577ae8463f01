package outer

import (
	"cmp"
	"slices"
)

const (
	// mostTimes is how many times what is usual in its round a delta counts for at most: a machine that is twice as fast as the
	// others counts in full, and one that claims without end adds as much as two more of them would.
	mostTimes = 2
	// mostBatches is how many times the usual batch counts where too few are in a round to say what is usual there.
	mostBatches = 4
)

// Claimed is how many tokens a delta that passes Check can have made: those of the steps that its author can have taken
// since its base. A claim of more moves nothing.
func (p Params) Claimed(d Delta) uint64 {
	return min(d.Tokens, p.paced(d)*p.MaxTokensPerStep)
}

// paced are the steps that an author can have taken since the base of its delta.
func (p Params) paced(d Delta) uint64 {
	return min(uint64(d.Steps), uint64(p.MaxPace)*uint64(p.H)*uint64(d.Round-d.Base))
}

// Counted is how many tokens of each delta of a round's set, in its order, count for the budget and for the learning rate: of a
// member at most twice what is usual among the other members of the round, and none of a guest, whose keys are free. It follows
// from headers alone. The deltas must pass Check.
//
// What is usual is the upper median of what the others claim, where short deltas count as of H steps: others are slow, and a
// machine that claims next to nothing holds up nobody's budget. With fewer than three members it is the genesis that says what is
// usual, and four times its batch counts.
func (p Params) Counted(set []Delta) []uint64 {
	counts := make([]uint64, len(set))
	var members []int
	for i, d := range set {
		if !d.Guest && !d.Revocation() {
			members = append(members, i)
		}
	}
	if len(members) < 3 {
		for _, i := range members {
			counts[i] = min(p.Claimed(set[i]), mostBatches*p.TokensPerStep*p.paced(set[i]))
		}
		return counts
	}
	slices.SortFunc(members, func(i, j int) int { return cmp.Compare(p.ofRound(set[i]), p.ofRound(set[j])) })
	least := uint64(p.H) * p.TokensPerStep // free keys that claim next to nothing take nobody's tokens away
	middle := (len(members) - 1) / 2       // of the others
	for place, i := range members {
		usual := middle
		if place <= middle {
			usual++
		}
		counts[i] = min(p.Claimed(set[i]), mostTimes*max(p.ofRound(set[members[usual]]), least))
	}
	return counts
}

// ofRound is what a delta claims, or what as many tokens a step come to in H steps.
func (p Params) ofRound(d Delta) uint64 {
	claimed := p.Claimed(d)
	return max(claimed, claimed/max(uint64(d.Steps), 1)*uint64(p.H))
}

// CountedOf is the sum of Counted.
func (p Params) CountedOf(set []Delta) (sum uint64) {
	for _, n := range p.Counted(set) {
		sum += n
	}
	return sum
}
