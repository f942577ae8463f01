package rounds

import "atoll/optimizer/outer"

// fragment is the state of one fragment: a machine for each thing that happens to its rounds.
type fragment struct {
	index    int
	deltas   deltas   // what is known of its rounds
	chain    chain    // the rounds that are closed
	proposal proposal // when the open round was proposed, and may close
	folds    folds    // which folds are asked for
	learn    learning // what its learner has not published
	own      own      // what its learner has, and is not final
	account  account  // where work went that comes back no more
	sample   sample   // who publishes in the open round
	cache    struct { // changes nothing but the time that things take
		missing int // place of the author that the open round waited for last
	}
}

// reset starts the fragment from a tip and the links that lead to it.
func (f *fragment) reset(t *outer.Tip, links []outer.Link) {
	for i := range links {
		links[i].Revoked = outer.RevokedUpTo(t.Revoked, links[i].Round)
	}
	f.chain.tip, f.chain.links, f.chain.first = t, links, links[0].Round
	f.chain.closed, f.chain.base, f.chain.bases = t.Round, t.Round, []uint32{t.Round}
	f.folds.job, f.folds.dirty, f.proposal.target, f.learn.opened, f.learn.leaves = nil, 0, 0, 0, 0
	f.learn.stepped, f.learn.givenUp = min(f.learn.stepped, t.Round), false
	f.folds.check, f.folds.reload = 0, false
	for r := range f.deltas.rounds {
		if r <= f.chain.base {
			delete(f.deltas.rounds, r)
		}
	}
	f.reopen()
}

// open is the round that closes next.
func (f *fragment) open() uint32 { return f.chain.closed + 1 }

// reopen sets the proposal of the open round from the deltas known already.
func (f *fragment) reopen() {
	f.proposal.at = 0
	for _, rnd := range []uint32{f.chain.closed + 1, f.chain.closed + 2} {
		if r := f.deltas.rounds[rnd]; f.proposal.at == 0 && r != nil && len(r.entries) > 0 {
			f.proposal.at = r.proposed
		}
	}
}

// touched marks a closed round as changed since it was folded.
func (f *fragment) touched(rnd uint32) {
	if rnd > f.chain.closed {
		return
	}
	if f.folds.dirty == 0 || rnd < f.folds.dirty {
		f.folds.dirty = rnd
	}
}

// needs says that a round is to be folded, for the first time or again.
func (f *fragment) needs(rnd uint32) bool {
	again := f.folds.job != nil && rnd > f.folds.job.start || f.folds.dirty != 0 && rnd >= f.folds.dirty
	return rnd > f.chain.tip.Round || again
}

// final says that the set of a round cannot change any more: it is older than
// the union window, or than the oldest kept base.
func (m *Machine) final(f *fragment, rnd uint32) bool {
	return rnd <= f.chain.base || uint64(rnd)+uint64(m.p.WindowUnion) <= uint64(f.chain.closed)
}
