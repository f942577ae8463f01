package rounds

import "atoll/optimizer/outer"

// learning is what the learner has not published of a fragment.
type learning struct {
	since    int    // steps since the last own delta, staggered at the start
	size     int    // bytes of the last own delta, 0 before the first
	opened   int    // own steps since the open round was, likewise
	pending  uint32 // steps not yet published
	unsent   uint64 // tokens not yet published
	stepped  uint32 // rounds closed when the last of them was made
	givenUp  bool   // the learner is to give them up
	stuckAt  Time   // since when it waits, at rest, for a round that it may sign; 0 = it does not
	leaves   uint32 // the last round that it leaves out, as it signed it already
	drafting bool   // a draft was asked for and is not yet durable
	draftAt  Time   // no draft before: one could not be made durable
}

// Stepped counts one inner step of the own learner.
func (m *Machine) Stepped(now Time, tokens uint64) {
	m.steps.stepped(now)
	for _, f := range m.frags {
		f.learn.since++
		f.learn.opened++
		f.learn.pending++
		f.learn.stepped = f.chain.closed
		f.learn.unsent += tokens
		for m.why(now, f) == LeftOut {
			m.close(now, f, LeftOut)
		}
		m.askDraft(now, f)
	}
}

// stuckAfter is after how many times the steps that a proposal takes a learner stops
// waiting for one in which it could publish, where it has signed the open round already: ten
// times slower learners have proposed one by then.
const stuckAfter = 16

// stuck says that this learner waits for a proposal of a round that it has signed already:
// it took a snapshot of older rounds. A guest proposes none anyway.
func (m *Machine) stuck(f *fragment) bool {
	return m.learner && !m.guest && !m.withhold && f.proposal.at == 0 && f.chain.closed < f.own.mark
}

// stuckTooLong says that a stuck learner has waited for so many steps, or, where it steps no more and has something to
// publish, as at the end of its budget, for as long as a round may stay open.
func (m *Machine) stuckTooLong(now Time, f *fragment) bool {
	groups := max(1, (len(m.peerList.training)+m.p.LearnersPerRound-1)/m.p.LearnersPerRound)
	return m.stuck(f) && (f.learn.opened >= stuckAfter*m.plan.Common*groups ||
		m.publishesLast(f) && f.learn.stuckAt != 0 && now-f.learn.stuckAt >= m.GraceLimit())
}

// publishesLast says that the learner steps no more and has something to publish.
func (m *Machine) publishesLast(f *fragment) bool { return m.flush && f.learn.pending > 0 }

// recordStuck records since when a learner that steps no more is stuck.
func (m *Machine) recordStuck(now Time, f *fragment) {
	switch {
	case !m.publishesLast(f) || !m.stuck(f):
		f.learn.stuckAt = 0
	case f.learn.stuckAt == 0:
		f.learn.stuckAt = now
	}
}

// giveUpLate has a learner that steps no more give up what is unpublished when the run has
// left it far behind: it was asleep, or might not sign, until the others came to the end. What
// it made goes on from tips of that time; added to a model that went on without, often
// as the only delta of its round, it would undo some of what others have learned since.
func (m *Machine) giveUpLate(f *fragment) {
	late := f.learn.pending > 0 && uint64(f.chain.closed) > uint64(f.learn.stepped)+uint64(m.p.WindowAccept)
	if !m.learner || !m.flush || f.learn.drafting || f.learn.givenUp || !late || f.chain.tip.Round <= f.learn.stepped {
		return
	}
	f.learn.givenUp = true
	m.emit(Adopt{outer.Adopt{Fragment: f.index, Tip: f.chain.tip, GiveUp: true}})
}

// leaveOut has rounds close without deltas up to the last that this learner has signed, as
// it must leave out those in between. Deltas of these rounds that come after all are
// late, and folded. No more go at a time than others take by gossip: whoever is slow, and not stuck, is
// not to find its rounds final here.
func (m *Machine) leaveOut(now Time, f *fragment) {
	if f.learn.leaves < f.open() {
		f.learn.leaves = min(f.own.mark, f.chain.closed+m.p.WindowAccept)
	}
	if f.learn.stuckAt != 0 {
		f.learn.stuckAt = now
	}
	f.learn.stepped++ // nobody has gone on in such a round
}
