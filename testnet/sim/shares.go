package sim

import (
	"maps"
	"slices"

	"atoll/gossip/wire"
	"atoll/optimizer/outer"
)

// shareSlack is what rounding may add to a share.
const shareSlack = 1e-9

// checkShares: no delta has more of its round's weight than genesis allows, or
// than its part of a round of so few. Those that count for nothing are none of them.
func (w *World) checkShares(p int, round uint32, weights []float64) {
	var sum, most, count float64
	for _, x := range weights {
		if x > 0 {
			count++
		}
		sum, most = sum+x, max(most, x)
	}
	if count == 0 {
		return
	}
	allowed := max(w.s.Params.MaxShare, 1/count)
	if most > (allowed+shareSlack)*sum {
		w.broken("share", "one of %.0f deltas decides %.3f of round %d of fragment %d, at most %.3f is allowed", count, most/sum, round, p, allowed)
	}
}

// notesWeights notes of a round that closes while a liar spoils its deltas whether these outweigh the others and are judged
// by nobody. A liar that is trusted wins then: no rule of the fold can tell which half lies.
func (w *World) notesWeights(p int, tip *outer.Tip, r outer.Result) {
	if len(w.checks.faulty) == 0 || !slices.ContainsFunc(w.nodes, (*Node).spoils) {
		return
	}
	members, spoiled, all := 0, 0.0, 0.0
	for i, weight := range r.Weights {
		n := w.authorOf(r.Folded[i])
		all += weight
		if n == nil || !n.spec.Guest {
			members++
		}
		if n != nil && n.spoils() {
			spoiled += weight
		}
	}
	judged := w.s.Params.Agreement && members >= outer.MinVoices
	w.checks.outweighed[chainKey{p, tip.Round, tip.Chain}] = !judged && spoiled > 0 && 2*spoiled >= all
}

// authorOf is the node that signed a delta, nil for a key without a node.
func (w *World) authorOf(id outer.ID) *Node {
	h := w.checks.ledger[wire.Digest(id)]
	if h == nil {
		return nil
	}
	return w.byID[h.Author]
}

// lostInARow is how many rounds that liars win one after the other leave a model that the rest of a run may not make good:
// each adds to the error a part of what it is. In seed 16104 it is 40 times the one of the start after 17.
const lostInARow = 8

// outweighed says that this was so in most of the rounds that closed while a liar spoiled its deltas, or in lostInARow.
func (w *World) outweighed() bool {
	for p := range w.plan {
		rounds, lost, inARow := 0, 0, 0
		records := w.first().disk.Records(p)
		for _, round := range slices.Sorted(maps.Keys(records)) {
			outweighed, noted := w.checks.outweighed[chainKey{p, round, records[round].Chain}]
			if noted {
				rounds++
			}
			if inARow++; !outweighed {
				inARow = 0
				continue
			}
			if lost++; inARow == lostInARow {
				return true
			}
		}
		if 2*lost > rounds {
			return true
		}
	}
	return false
}
