package outer

import "slices"

// Adopt hands the learner a new tip, with the seqs of own deltas that entered its
// chain, left it, became final outside of it, or final inside of it. Discarded are
// those that were folded on a chain that was left for another; Dropped are in
// flight and older than what is known of that chain, so that they are discarded,
// too. Regained are Discarded or Dropped ones that this chain folds after all.
// Forgotten are folded or discarded for good. Repair says that the tip before it
// was damaged, GiveUp that the run has gone on too long without what is
// unpublished: it is discarded either way. Learner.Follow executes it.
type Adopt struct {
	Fragment               int
	Tip                    *Tip
	Fold, Unfold, Returned []uint64
	Discarded, Regained    []uint64
	Dropped                []uint64
	Forgotten              []uint64
	Repair, GiveUp         bool
}

// Discards says that no unpublished work is left after it, except what sparse deltas had no room for.
func (a Adopt) Discards() bool { return a.Repair || a.GiveUp }

// Final are the seqs of own deltas that a restart must not take for in flight any more.
func (a Adopt) Final() []uint64 { return slices.Concat(a.Forgotten, a.Returned, a.Discarded) }
