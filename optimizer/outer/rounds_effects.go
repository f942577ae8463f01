package outer

import "slices"

// RoundEffect is something the round machine wants done. Effects are carried
// out in the order in which they were drained.
type RoundEffect interface{ roundEffect() }

// WantDraft asks the learner for a copy of its unpublished progress on a
// fragment, at its next step boundary.
type WantDraft struct{ Fragment int }

// Closed says that a round closed here, with the link it has for now.
type Closed struct {
	Fragment int
	Link     Link
	At       Time
}

// WantFold asks for the fold of Sets[i] as round Start+1+i, beginning at the
// kept tip of round Start. The tips of rounds in Keep, and the last one, are
// kept as bases until DropBase. Without sets it asks for that tip, read again
// from where it is sound. The answer is Folded or FoldFailed.
type WantFold struct {
	Fragment int
	Job      uint64 // names it in the answer
	Start    uint32
	Sets     [][]Delta
	Keep     []uint32
}

// Keeps says that the tip of a round is to be kept as a base: that of the last round
// always is.
func (w WantFold) Keeps(round uint32) bool {
	return round == w.Start+uint32(len(w.Sets)) || slices.Contains(w.Keep, round)
}

// Adopt hands the learner a new tip, with the seqs of own deltas that entered
// its chain, left it, became final outside of it, or final inside of it.
// Discarded are those that were folded on a chain that was left for another;
// Dropped are in flight and older than what is known of that chain, so that they
// are discarded, too. Regained are those of either that this chain folds after
// all. Forgotten are folded or discarded for good. Heal says that the tip before
// it was damaged, GiveUp that the run has gone on too long without what is
// unpublished: it is discarded either way. Learner.Follow carries it out.
type Adopt struct {
	Fragment               int
	Tip                    *Tip
	Fold, Unfold, Returned []uint64
	Discarded, Regained    []uint64
	Dropped                []uint64
	Forgotten              []uint64
	Heal, GiveUp           bool
}

// Discards says that no unpublished work is left after it, but for what sparse deltas had no room for.
func (a Adopt) Discards() bool { return a.Heal || a.GiveUp }

// Final are the seqs of own deltas that a restart must not take for in flight any more.
func (a Adopt) Final() []uint64 { return slices.Concat(a.Forgotten, a.Returned, a.Discarded) }

// Checked says what came of Recheck: whether the states of this node were Wrong,
// and then from which round on.
type Checked struct {
	Fragment int
	Wrong    bool
	Round    uint32
}

// WantTips says that the only kept base of a fragment is lost: the tips have to
// come from another node.
type WantTips struct{}

// DropBase says that a kept base is no longer needed.
type DropBase struct {
	Fragment int
	Round    uint32
}

func (WantDraft) roundEffect() {}
func (Closed) roundEffect()    {}
func (WantFold) roundEffect()  {}
func (Adopt) roundEffect()     {}
func (DropBase) roundEffect()  {}
func (Checked) roundEffect()   {}
func (WantTips) roundEffect()  {}
