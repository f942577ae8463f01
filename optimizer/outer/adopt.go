package outer

import "slices"

// Adopt hands the learner a new tip, and what it changes for own deltas, in the order in which the
// local parameters follow. Repair says that the tip before was damaged, GiveUp that the run has gone on
// too long without what is unpublished: it is lost either way. Learner.Follow executes it.
type Adopt struct {
	Fragment       int
	Tip            *Tip
	Changes        []Change
	Repair, GiveUp bool
}

// Own is what an own delta declares to contain. Seq names it to this node alone.
type Own struct {
	Seq         uint64
	Base, Steps uint32
	Tokens      uint64
}

// Work is what the delta declares.
func (o Own) Work() Work { return Work{Steps: uint64(o.Steps), Tokens: o.Tokens} }

// Change is what becomes of an own delta. One that unfolds a delta may stand before one that returns
// it, and any other before one that forgets it.
type Change struct {
	Own
	Fate Fate
}

// Fate says what a tip does to an own delta.
type Fate uint8

// The fates, in the order in which the local parameters follow them. Each has this meaning everywhere. Work is lost that
// has none: it was unpublished when its learner crashed or was repaired, or its payload cannot be read.
const (
	// Folded: the delta entered the chain.
	Folded Fate = iota
	// Dropped: it was in flight, and a snapshot was taken that does not fold it, or of a chain that is
	// known from later rounds on only. Nobody publishes it again.
	Dropped
	// Unfolded: it left the chain and is in flight again.
	Unfolded
	// Returned: its round became final without it. It is unpublished again.
	Returned
	// Discarded: it was folded on a chain that is left for another, which does not fold it. Its
	// progress left the local parameters when it was folded and does not come back.
	Discarded
	// Regained: it was discarded or dropped, and the chain folds it after all.
	Regained
	// Forgotten: it is folded, dropped or discarded for good, and nothing of it is kept.
	Forgotten
)

func (f Fate) String() string {
	return [...]string{"folded", "dropped", "unfolded", "returned", "discarded", "regained", "forgotten"}[f]
}

// LosesUnpublished says that no unpublished work is left after it, except what sparse deltas had no room for.
func (a Adopt) LosesUnpublished() bool { return a.Repair || a.GiveUp }

// Final are the seqs of own deltas that a restart must not take for in flight any more.
func (a Adopt) Final() []uint64 { return a.Seqs(Forgotten, Returned, Discarded, Dropped) }

// Seqs are those of own deltas with one of these fates.
func (a Adopt) Seqs(fates ...Fate) (seqs []uint64) {
	for _, c := range a.Changes {
		if slices.Contains(fates, c.Fate) {
			seqs = append(seqs, c.Seq)
		}
	}
	return seqs
}

// Tokens are those of own deltas with one of these fates.
func (a Adopt) Tokens(fates ...Fate) (sum uint64) {
	for _, c := range a.Changes {
		if slices.Contains(fates, c.Fate) {
			sum += c.Tokens
		}
	}
	return sum
}
