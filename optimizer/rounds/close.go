package rounds

import "atoll/optimizer/outer"

// proposal says when the open round was proposed and what else closes it.
type proposal struct {
	at     Time   // when the open round was proposed; 0 = not yet
	paced  Time   // when the rounds closed here would have been closed, one each min_round
	before uint32 // the last round that was closed before a restart
	target uint32 // a peer closed this far and its deltas are held
}

// propose records the first proposal of a round. The open round counts as proposed by one of its own and
// by one of the next round.
func (m *Machine) propose(now Time, f *fragment, rnd uint32) {
	if r := f.deltas.round(rnd); r.proposed == 0 {
		r.proposed, r.parked = now, rnd > f.chain.closed+2
	}
	if f.proposal.at == 0 && (rnd == f.chain.closed+1 || rnd == f.chain.closed+2) {
		f.proposal.at = now
	}
}

// earlyRounds is how many rounds may close before min_round paces them: a run
// starts with a burst, and a node that ticks seldom closes some at a time. A flood of proposals
// does not last. Time in which no round closed gives room for no more of them, or a moment
// would close all that a day has saved up, and make late what others have under way.
const earlyRounds = 8

// attestedPace is how many times as fast a node closes rounds that most peers have closed:
// it has to catch up with them. It is bounded, as peers may lie.
const attestedPace = 4

// early says that min_round forbids to close the open round yet. Rounds that were closed
// before a restart were paced then.
func (m *Machine) early(now Time, f *fragment) bool {
	return now < f.proposal.paced-(earlyRounds-1)*m.p.MinRoundMs && f.chain.closed >= f.proposal.before
}

// pace counts the open round as closed.
func (m *Machine) pace(now Time, f *fragment) {
	open, takes := f.chain.closed+1, m.p.MinRoundMs
	switch {
	case open <= f.proposal.before:
		return
	case m.closedElsewhere(f.index, open):
		takes = (takes + attestedPace - 1) / attestedPace
	}
	f.proposal.paced = max(f.proposal.paced, now) + takes
}

// closedElsewhere says whether most peers have closed a round.
func (m *Machine) closedElsewhere(fragment int, rnd uint32) bool {
	return m.closedByMost != nil && m.closedByMost(fragment, rnd)
}

// complete says whether something of the open round is held, and nothing more is to come.
func (m *Machine) complete(f *fragment) bool {
	if f.deltas.rounds[f.open()].heldOfMembers() == 0 {
		return false
	}
	_, more := m.missing(f)
	return !more
}

// missing is whose delta the open round waits for: of those sampled, or who announced one.
func (m *Machine) missing(f *fragment) (a outer.Author, found bool) {
	r, sampled := f.deltas.rounds[f.open()], m.sampled(f, f.open())
	if r == nil {
		return a, false
	}
	if i := f.cache.missing; i < len(sampled) && m.awaits(f, r, sampled[i]) {
		return sampled[i], true // the one missing before mostly still is
	}
	for i, a := range sampled {
		if m.awaits(f, r, a) {
			f.cache.missing = i
			return a, true
		}
	}
	return r.comes()
}

// spent says whether nothing of an author is to come to the open round of a fragment: it
// steps no more, and what it made is published.
func (m *Machine) spent(f *fragment, r *round, a outer.Author) bool {
	switch {
	case r.by(a):
		return false // announced, and its payload is under way
	case a == m.self:
		return m.stopped && f.learn.pending == 0 && !f.learn.drafting
	}
	return m.spentElse != nil && m.spentElse(f.index, a)
}

// fewerThanQuorum says that the open round has fewer deltas of members than it closes with once grace is over.
func (m *Machine) fewerThanQuorum(f *fragment) bool {
	r := f.deltas.rounds[f.open()]
	return r.heldOfMembers() < m.quorum(f, r)
}

// quorum is how many deltas of members the open round closes with once grace is over. Where that takes all live learners, one may
// be missing when this learner is due again. Otherwise the slowest would set the plan of all: of two learners, one ten times as
// fast, the fast one made deltas of twice the steps, and their model was 9 % worse.
func (m *Machine) quorum(f *fragment, r *round) int {
	live := max(1, len(m.peerList.training))
	switch {
	case live > m.p.Quorum:
		return m.p.Quorum
	case m.dueAgain(f, r):
		return max(1, live-1)
	}
	return live
}

// dueAgain says that this learner has its delta in the open round and has made the steps of its next one since. While a delta is
// under way it is not.
func (m *Machine) dueAgain(f *fragment, r *round) bool {
	if !r.holds(m.self) || f.learn.since < m.plan.Steps {
		return false
	}
	_, comes := r.comes()
	return !comes
}

// CloseTo says that a peer closed this far and that all it folded is held
// here: nothing is gained by waiting longer.
func (m *Machine) CloseTo(now Time, fragment int, rnd uint32) {
	f := m.frags[fragment]
	f.proposal.target = max(f.proposal.target, rnd)
	m.advance(now, f)
}

// close closes the open round: its link is fixed by the set held now, and is
// recomputed when a late delta arrives.
func (m *Machine) close(now Time, f *fragment, r Reason) {
	why := m.whyOf(now, f, r)
	if r == LeftOut {
		m.leaveOut(now, f)
	}
	m.pace(now, f)
	f.chain.closed++
	f.learn.opened = 0
	if f.proposal.at != 0 {
		m.late.proposed(f.index, f.proposal.at)
	}
	f.chain.links = append(f.chain.links, outer.NextLink(m.p, f.chain.last(), f.deltas.rounds[f.chain.closed].set()))
	f.reopen()
	m.expire(f)
	m.emit(Closed{Fragment: f.index, Link: f.chain.last(), Why: why})
}
