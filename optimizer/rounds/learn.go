package rounds

import (
	"slices"

	"atoll/optimizer/outer"
)

// maxUnsent is how many own deltas of a fragment may wait to be handed over
// while there are peers: progress then accumulates in the next one instead of
// filling a slow link with deltas that will be late.
const maxUnsent = 2

// Stepped counts one inner step of the own learner.
func (m *Machine) Stepped(now Time, tokens uint64) {
	m.steps.stepped(now)
	for _, f := range m.frags {
		f.since++
		f.opened++
		f.pending++
		f.stepped = f.closed
		f.unsent += tokens
		m.unstick(now, f)
		m.askDraft(now, f)
	}
}

// stuckAfter is after how many times the steps that a bell takes a learner stops
// waiting for one that it could answer, where it has signed the open round already: ten
// times slower learners have rung by then.
const stuckAfter = 16

// stuck says that this learner waits for a bell of a round that it has signed already:
// it took tips of older rounds.
func (m *Machine) stuck(f *fragment) bool {
	return m.learner && !m.hold && f.bell == 0 && f.closed < f.mark
}

// unstick has a stuck learner wait no longer than for so many steps.
func (m *Machine) unstick(now Time, f *fragment) {
	groups := max(1, (len(m.seats)+m.p.Answerers-1)/m.p.Answerers)
	if m.stuck(f) && f.opened >= stuckAfter*m.p.H*groups {
		m.leaveOut(now, f)
	}
}

// unstickAtRest does so for one that steps no more and has something to publish, as at
// the end of its budget: it waits for as long as a round may stay open.
func (m *Machine) unstickAtRest(now Time, f *fragment) {
	switch {
	case !m.flush || f.pending == 0 || !m.stuck(f):
		f.stuckAt = 0
	case f.stuckAt == 0:
		f.stuckAt = now
	case now-f.stuckAt >= m.p.GraceMaxMs:
		f.stuckAt = now
		m.leaveOut(now, f)
	}
}

// giveUpLate has a learner that steps no more drop what is unpublished when the run has
// left it far behind: who was asleep, or might not sign, until the others came to the end. What
// it made goes on from tips of that time; added to a model that went on without, often
// as the only delta of its round, it would undo some of what others have learned since.
func (m *Machine) giveUpLate(f *fragment) {
	late := f.pending > 0 && uint64(f.closed) > uint64(f.stepped)+uint64(m.p.WindowAccept)
	if !m.learner || !m.flush || f.drafting || f.givenUp || !late || f.tip.Round <= f.stepped {
		return
	}
	f.givenUp = true
	m.emit(outer.Adopt{Fragment: f.index, Tip: f.tip, GiveUp: true})
}

// leaveOut closes rounds without deltas up to the last that this learner has signed, as
// it must leave out those in between; but so may all learners, and then nobody could ring
// for a round that all have signed, ever. Deltas of these rounds that come after all are
// late, and folded.
func (m *Machine) leaveOut(now Time, f *fragment) {
	// No more at a time than others take by gossip: whoever is slow, and not stuck, is
	// not to find its rounds final here.
	last := min(f.mark, f.closed+m.p.WindowAccept)
	for f.closed < last && !f.last().Ended() && !m.early(now, f) {
		m.close(now, f)
		f.stepped++ // nobody has gone on in such a round
	}
}

// askDraft asks the learner for a copy of its unpublished progress when this
// fragment is due: it rings (see mayRing), answers a bell
// (h_min steps), or flushes (any step, at the end).
func (m *Machine) askDraft(now Time, f *fragment) {
	if !m.learner || m.hold || f.drafting || f.givenUp || f.pending == 0 || now < f.draftAt || !m.open(f) || m.linkBusy(now, f) {
		return
	}
	rings := m.mayRing(f)
	answers := f.bell != 0 && int(f.pending) >= m.p.HMin && m.mayAnswer(f, m.self, f.closed+1)
	full := f.pending >= m.p.MaxSteps
	if rings || answers || full || m.flush {
		f.drafting = true
		m.emit(WantDraft{Fragment: f.index})
	}
}

// open says whether this learner may sign a delta for the fragment's open
// round: it has not yet, and the round is not past the end of the run.
func (m *Machine) open(f *fragment) bool {
	return !f.last().Ended() && f.closed+1 > f.mark && !m.barred[m.self]
}

// linkBusy says whether own deltas of the fragment still wait for anybody to
// take them. A learner without peers publishes all the same. A delta that
// nobody took for as long as a round can stay open is not on a slow link:
// nobody wants it (it came with a snapshot, or its author is barred there), and
// it must not stop those after it.
func (m *Machine) linkBusy(now Time, f *fragment) bool {
	if len(m.live) <= 1 {
		return false
	}
	n := 0
	for _, o := range f.own {
		if !o.handed && now-o.at < m.p.GraceMaxMs {
			n++
		}
	}
	return n >= maxUnsent
}

// MayPublish says whether a draft that was asked for can be published now. Not if
// tips of older rounds were taken since, or rounds turned out to be signed already:
// the open round is then one that this learner must leave out, and a delta for a
// later one would be parked everywhere, and here.
func (m *Machine) MayPublish(fragment int) bool {
	f := m.frags[fragment]
	return !m.hold && f.closed+1 > f.mark
}

// Drafted names the round that a draft is published for: the open one at this
// moment. The caller signs it, makes it durable and then calls Published.
func (m *Machine) Drafted(fragment int) (rnd uint32) {
	f := m.frags[fragment]
	return max(f.closed, f.mark) + 1
}

// Published says that an own delta is durable; it enters the set. As others will
// hold it, it does so by the rules of repair, should tips of older rounds have been
// taken since it was signed: a delta that its author does not hold is missed by all.
func (m *Machine) Published(now Time, d outer.Delta, seq uint64) {
	f := m.frags[d.Fragment]
	f.drafting = false
	f.since = 0
	f.pending -= min(f.pending, d.Steps)
	f.unsent -= min(f.unsent, d.Tokens)
	f.mark = max(f.mark, d.Round)
	f.own = append(f.own, ownRound{at: now, seq: seq, id: d.ID, round: d.Round, steps: d.Steps, tokens: d.Tokens})
	if m.Offer(now, d, true) == nil {
		m.Held(now, d.Fragment, d.Round, d.ID)
	}
}

// Hold keeps the learner from publishing, or lets it: while it is not known which
// rounds its key has signed already.
func (m *Machine) Hold(on bool) { m.hold = on }

// Mark is the highest round of a fragment that this learner has signed, or may
// have.
func (m *Machine) Mark(fragment int) uint32 { return m.frags[fragment].mark }

// RaiseMark says that rounds up to rnd may have been signed.
func (m *Machine) RaiseMark(fragment int, rnd uint32) {
	f := m.frags[fragment]
	f.mark = max(f.mark, rnd)
}

// DraftFailed says that no delta came of a draft that was asked for. With
// Overwrite that is usual: an adoption was faster, and nothing is left.
func (m *Machine) DraftFailed(fragment int) {
	f := m.frags[fragment]
	f.drafting = false
	if m.p.Overwrite {
		f.pending, f.unsent = 0, 0
	}
}

// draftRetryMs is the pause after a draft that could not be made durable: a full
// disk stays full for a while, and each try costs an encoding.
const draftRetryMs = 5_000

// NotPublished says that a draft could not be published and was taken back:
// its work is unpublished again, and is asked for later.
func (m *Machine) NotPublished(now Time, fragment int) {
	f := m.frags[fragment]
	f.drafting, f.draftAt = false, now+draftRetryMs
}

// HandedOver says that some peer holds the own delta.
func (m *Machine) HandedOver(now Time, fragment int, id outer.ID) {
	f := m.frags[fragment]
	for i := range f.own {
		if f.own[i].id == id {
			f.own[i].handed = true
		}
	}
	m.askDraft(now, f)
}

// move notes what a tip does to an own delta: in says that its chain folds it,
// whole that the tip was taken from another node. A delta that was folded here and
// not there is gone from theta for good: the winner's learners have made
// something else of that round. Repair may still bring it to them, and a later
// tip fold it.
func (o *ownRound) move(a *outer.Adopt, in, whole bool) {
	switch {
	case in == o.folded:
	case in && o.gone:
		a.Regained = append(a.Regained, o.seq)
	case in:
		a.Fold = append(a.Fold, o.seq)
	case o.gone || whole:
		o.gone = true
		a.Discarded = append(a.Discarded, o.seq)
	default:
		a.Unfold = append(a.Unfold, o.seq)
	}
	o.folded = in
}

// lose notes what becomes of an own delta that is older than the history which
// came with a tip of another chain. One that was folded where others showed the
// same is folded there, too. Of one in flight nobody here can say: published once
// more it might count twice, so it is given up.
func (o *ownRound) lose(a *outer.Adopt, common bool) {
	switch {
	case o.folded && !common:
		o.move(a, false, true)
	case !o.folded && !o.gone && o.mayBeOut():
		o.gone = true
		a.Dropped = append(a.Dropped, o.seq)
	}
}

// mayBeOut says that some other node may have the delta: it was handed over, or an
// earlier process made it.
func (o *ownRound) mayBeOut() bool { return o.handed || o.at == 0 }

// leave notes up to which round the chain that is left differs from the one that
// is taken, whose history begins with a link: nowhere below it if both have it. Where they
// differ there, what others showed of later rounds was of a third chain, and says nothing.
func (f *fragment) leave(first outer.Link) {
	f.left = 0
	l, known := f.link(first.Round)
	if known && l.Chain == first.Chain {
		return
	}
	f.left = first.Round
	if known && f.common >= first.Round {
		f.common = 0
	}
}

// settle compares own deltas with the chain that a new tip follows and notes
// the seqs that entered it, left it, or became final inside or outside of it.
func (f *fragment) settle(p outer.Params, a *outer.Adopt, whole bool) {
	kept := f.own[:0]
	for _, o := range f.own {
		l, known := f.link(o.round)
		switch {
		case !known && whole && o.round <= f.left:
			o.lose(a, o.round <= f.common)
		case known || o.round > a.Tip.Round:
			in := o.round <= a.Tip.Round && slices.Contains(l.Folded, o.id)
			o.move(a, in, whole && o.round <= a.Tip.Round)
		}
		// Rounds that closed since the tip may fold what it does not.
		switch final := o.round <= a.Tip.Round && o.round+p.WindowUnion <= f.closed; {
		case !final:
			kept = append(kept, o)
		case o.folded || o.gone:
			a.Forgotten = append(a.Forgotten, o.seq)
		default:
			a.Returned = append(a.Returned, o.seq)
			f.pending += o.steps
			f.unsent += o.tokens
		}
	}
	f.own = kept
}
