package rounds

import (
	"cmp"
	"slices"

	"atoll/optimizer/outer"
)

// own are the own deltas that are not final.
type own struct {
	mark   uint32 // highest round ever signed
	list   []ownDelta
	common uint32 // the last round up to which others are known to have folded the same
	left   uint32 // up to here, the chain left last differs from that of the tip
}

// OwnDelta is an own delta as the ledger remembers it.
type OwnDelta struct {
	Seq   uint64
	Delta outer.Delta
}

// ownDelta is an own delta that is not final.
type ownDelta struct {
	outer.Own
	at     Time // when it was published
	id     outer.ID
	round  uint32
	folded bool // in the tip last adopted
	gone   bool // dropped or discarded, as a snapshot was taken that did not fold it
	handed bool // some peer has it
}

func newOwn(o OwnDelta) ownDelta {
	d := o.Delta
	return ownDelta{Own: outer.Own{Seq: o.Seq, Base: d.Base, Steps: d.Steps, Tokens: d.Tokens}, id: d.ID, round: d.Round}
}

// allHanded says that nothing waits to be handed over: see Machine.AllHanded.
func (o *own) allHanded(now Time, graceMax Time, unwanted func(ownDelta) bool) bool {
	return !slices.ContainsFunc(o.list, func(d ownDelta) bool {
		return !d.handed && !d.gone && (!d.folded || now-d.at < graceMax) && !unwanted(d)
	})
}

// unhanded counts the own deltas that nobody took yet. After so long nobody wants one: it
// came with a snapshot, or its author is excluded there. It must not stop those after it. Nor must
// one that is unwanted, as its round is full.
func (o *own) unhanded(now, limit Time, unwanted func(ownDelta) bool) (n int) {
	for _, d := range o.list {
		if !d.handed && now-d.at < limit && !unwanted(d) {
			n++
		}
	}
	return n
}

// leave records up to which round the chain that is left differs from the one that
// is taken, whose history begins with a link: nowhere below it if both have it. Where they
// differ there, what others showed of later rounds was of a third chain, and says nothing.
func (o *own) leave(c *chain, first outer.Link) {
	o.left = 0
	l, known := c.link(first.Round)
	if known && l.Chain == first.Chain {
		return
	}
	o.left = first.Round
	if known && o.common >= first.Round {
		o.common = 0
	}
}

// update compares own deltas with the chain that a new tip follows and records
// which entered it, left it, or became final inside or outside of it, in the order in
// which the local parameters follow. It returns those that are final.
func (o *own) update(p outer.Params, c *chain, a *outer.Adopt, whole bool) (final []ownDelta) {
	kept := o.list[:0]
	for _, d := range o.list {
		l, known := c.link(d.round)
		switch {
		case !known && whole && d.round <= o.left:
			d.lose(a, d.round <= o.common)
		case known || d.round > a.Tip.Round:
			in := d.round <= a.Tip.Round && slices.Contains(l.Folded, d.id)
			d.move(a, in, whole && d.round <= a.Tip.Round)
		}
		// Rounds that closed since the tip may fold what it does not.
		if d.round > a.Tip.Round || d.round+p.WindowUnion > c.closed {
			kept = append(kept, d)
			continue
		}
		final = append(final, d)
		if d.folded || d.gone {
			d.report(a, outer.Forgotten)
		} else {
			d.report(a, outer.Returned)
		}
	}
	o.list = kept
	slices.SortStableFunc(a.Changes, func(x, y outer.Change) int { return cmp.Compare(x.Fate, y.Fate) })
	return final
}

// report has the learner know the fate of an own delta.
func (o *ownDelta) report(a *outer.Adopt, fate outer.Fate) {
	a.Changes = append(a.Changes, outer.Change{Own: o.Own, Fate: fate})
}

// move records what a tip does to an own delta: in says that its chain folds it,
// whole that the tip was taken from another node. A delta that was folded here and
// not there is discarded: the winner's learners have made
// something else of that round. Repair may still bring it to them, and a later
// tip fold it. So is one in flight: the round is final here now, so this node brings it to nobody. A learner
// whose local parameters had it all the same would train towards the optimum less this delta, and its next
// deltas would take that out of the model of all.
func (o *ownDelta) move(a *outer.Adopt, in, whole bool) {
	switch {
	case whole && !in && !o.folded && !o.gone:
		o.gone = true
		o.report(a, outer.Dropped)
	case in == o.folded:
	case in && o.gone:
		o.report(a, outer.Regained)
	case in:
		o.report(a, outer.Folded)
	case o.gone || whole:
		o.gone = true
		o.report(a, outer.Discarded)
	default:
		o.report(a, outer.Unfolded)
	}
	o.folded = in
}

// lose records what becomes of an own delta that is older than the history which
// came with a tip of another chain. One that was folded where others showed the
// same is folded there, too. Nobody here can say that of one in flight: published
// once more it might count twice, so it is dropped.
func (o *ownDelta) lose(a *outer.Adopt, common bool) {
	switch {
	case o.folded && !common:
		o.move(a, false, true)
	case !o.folded && !o.gone && o.mayBeOut():
		o.gone = true
		o.report(a, outer.Dropped)
	}
}

// mayBeOut says that some other node may have the delta: it was handed over, or an
// earlier process made it.
func (o *ownDelta) mayBeOut() bool { return o.handed || o.at == 0 }
