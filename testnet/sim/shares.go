package sim

import (
	"maps"
	"slices"

	"atoll/gossip/wire"
	"atoll/optimizer/outer"
)

// shareSlack is what rounding may add to a share.
const shareSlack = 1e-9

// checkShares: no member's delta has more of what members' deltas of its round weigh than genesis allows, or than its part of all
// their steps, H of each at most. Those that count for nothing are none of them.
func (w *World) checkShares(p int, round uint32, r outer.Result) {
	var weights, works []float64
	var sum, all float64
	for i, x := range r.Weights {
		h := w.checks.ledger[wire.Digest(r.Folded[i])]
		if x == 0 || h == nil || !w.waitedFor(h.Author) {
			continue
		}
		work := float64(min(int(h.Steps), w.s.Params.H))
		weights, works, sum, all = append(weights, x), append(works, work), sum+x, all+work
	}
	for i, x := range weights {
		if allowed := max(w.s.Params.MaxShare, works[i]/all); x > (allowed+shareSlack)*sum {
			w.broken("share", "one member's delta of %.0f steps decides %.3f of round %d of fragment %d, at most %.3f is allowed", works[i], x/sum, round, p, allowed)
		}
	}
}

// spoilt is what spoilt deltas decided in a round that closed while a liar spoiled them.
type spoilt struct {
	won    bool // they had half of the weight or more, and nothing judged them
	swayed bool // they had some, likewise
	none   bool // they had none
}

// recordWeights records of a round that closes while a liar spoils its deltas whether these outweigh the others and are judged
// by nobody. A liar that is trusted wins then: no rule of the fold can tell which half lies.
func (w *World) recordWeights(p int, tip *outer.Tip, r outer.Result) {
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
	judged := !w.s.Params.OwnText && members >= outer.MinReferences
	swayed := !judged && spoiled > 0
	w.checks.spoilt[chainKey{p, tip.Round, tip.Chain}] = spoilt{swayed && 2*spoiled >= all, swayed, spoiled == 0}
}

// recordMisled records of the rounds on which an honest learner made a delta that begins at base those that lies swayed.
func (w *World) recordMisled(n *Node, p int, base uint32) {
	if n.liar != nil || len(w.checks.spoilt) == 0 {
		return
	}
	f := n.machine.Rounds().Fragment(p)
	for _, l := range f.Links(min(base, f.Tip().Round)) {
		if w.checks.spoilt[chainKey{p, l.Round, l.Chain}].swayed {
			at := chainKey{fragment: p, round: l.Round}
			w.checks.misled[at] = max(w.checks.misled[at], base)
		}
	}
}

// authorOf is the node that signed a delta, nil for a key without a node.
func (w *World) authorOf(id outer.ID) *Node {
	h := w.checks.ledger[wire.Digest(id)]
	if h == nil {
		return nil
	}
	return w.byID[h.Author]
}

// Rounds that liars win one after the other each add to the error a part of what it is, and later rounds make good a part of what
// is left. After 17 such rounds the error is 40 times that of the start, and 72 more do not make it good (seed 16104).
const (
	lostInARow = 16 // rounds that are enough for that
	lostPart   = 6  // where they are one part in so many, at least, of the rounds from the first of them on
)

// won says whether liars won a round in which they spoiled their deltas.
type won struct {
	round uint32
	yes   bool
}

// outweighed says that liars won so many rounds of a fragment that the loss is not promised.
func (w *World) outweighed() bool {
	for p := range w.plan {
		if spoiled, end := w.spoiled(p); len(spoiled) > 0 && tooManyWon(spoiled, end) {
			return true
		}
	}
	return false
}

// spoiled are the rounds of a fragment in which liars spoiled their deltas, and the last round.
//
// Lies may sway a round that nobody judges, until late deltas have it judged. What honest learners made against them meanwhile
// is folded without them then, of all such rounds at once, and the model overshoots: after ten rounds its error was five times
// that of the start, and four rounds made good all but a twentieth of it (seed 4216). So liars won rounds that were undone as
// well, if no more rounds followed the last delta that was made on one of these than they are.
func (w *World) spoiled(p int) (spoiled []won, end uint32) {
	records := w.first().disk.Records(p)
	var undone []int // places in spoiled
	until := uint32(0)
	for _, round := range slices.Sorted(maps.Keys(records)) {
		end = round
		x, noted := w.checks.spoilt[chainKey{p, round, records[round].Chain}]
		if !noted {
			continue
		}
		if last := w.checks.misled[chainKey{fragment: p, round: round}]; last > 0 && x.none {
			undone, until = append(undone, len(spoiled)), max(until, last)
		}
		spoiled = append(spoiled, won{round, x.won})
	}
	for _, i := range undone {
		spoiled[i].yes = spoiled[i].yes || until+uint32(len(undone)) >= end
	}
	return spoiled, end
}

// tooManyWon says that liars won most of these rounds, which are in order, or lostInARow of them one after the other in a run that
// ends soon after.
func tooManyWon(spoiled []won, end uint32) bool {
	all, inARow := 0, 0
	for i, r := range spoiled {
		if inARow++; !r.yes || i > 0 && r.round != spoiled[i-1].round+1 {
			inARow = 0
		}
		if !r.yes {
			continue
		}
		all, inARow = all+1, max(inARow, 1)
		if first := r.round + 1 - uint32(inARow); inARow >= lostInARow && lostPart*uint32(inARow) >= end+1-first {
			return true
		}
	}
	return 2*all > len(spoiled)
}
