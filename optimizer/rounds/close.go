package rounds

import "atoll/optimizer/outer"

// bell says when the open round rang and what else closes it.
type bell struct {
	at     Time   // when the open round rang; 0 = not yet
	paced  Time   // when the rounds closed here would have been closed, one each min_round
	before uint32 // the last round that was closed before a restart
	target uint32 // a peer closed this far and its deltas are held
}

// ring notes the first bell of a round. The open round rings with its own bells and the
// bells of the next round.
func (m *Machine) ring(now Time, f *fragment, rnd uint32) {
	if r := f.deltas.round(rnd); r.rang == 0 {
		r.rang, r.parked = now, rnd > f.chain.closed+2
	}
	if f.bell.at == 0 && (rnd == f.chain.closed+1 || rnd == f.chain.closed+2) {
		f.bell.at = now
	}
}

// earlyRounds is how many rounds may close before min_round paces them: a run
// starts with a burst, and a node that ticks seldom closes some at a time. A flood of bells
// does not last. Time in which no round closed gives room for no more of them, or a moment
// would close all that a day has saved up, and make late what others have under way.
const earlyRounds = 8

// attestedPace is how many times as fast a node closes rounds that most peers have closed:
// it has to catch up with them. It is bounded, as peers may lie.
const attestedPace = 4

// mayClose says whether the open round closes now.
func (m *Machine) mayClose(now Time, f *fragment) bool {
	open := f.chain.closed + 1
	if f.chain.last().Ended() {
		return false
	}
	if m.early(now, f) {
		return false
	}
	if f.bell.target >= open || f.deltas.rounds[open+1].heldOfMembers() > 0 {
		return true // a header alone rings, but closes nothing
	}
	if f.bell.at == 0 {
		return false
	}
	return m.answered(f, open) || m.graceOver(now, f, open)
}

// early says that min_round forbids to close the open round yet. Rounds that were closed
// before a restart were paced then.
func (m *Machine) early(now Time, f *fragment) bool {
	return now < f.bell.paced-(earlyRounds-1)*m.p.MinRoundMs && f.chain.closed >= f.bell.before
}

// pace counts the open round as closed.
func (m *Machine) pace(now Time, f *fragment) {
	open, takes := f.chain.closed+1, m.p.MinRoundMs
	switch {
	case open <= f.bell.before:
		return
	case m.closedElsewhere(f.index, open):
		takes = (takes + attestedPace - 1) / attestedPace
	}
	f.bell.paced = max(f.bell.paced, now) + takes
}

// closedElsewhere says whether most peers have closed a round.
func (m *Machine) closedElsewhere(fragment int, rnd uint32) bool {
	return m.closedByMost != nil && m.closedByMost(fragment, rnd)
}

// answered says whether every live learner expected to answer has its delta
// held here.
func (m *Machine) answered(f *fragment, open uint32) bool {
	r := f.deltas.rounds[open]
	if r.heldOfMembers() == 0 {
		return false
	}
	called := m.answerers(f, open)
	if i := f.cache.missing; i < len(called) && m.awaits(f, r, open, called[i]) {
		return false // the one missing before mostly still is
	}
	for i, a := range called {
		if m.awaits(f, r, open, a) {
			f.cache.missing = i
			return false
		}
	}
	return !r.comes()
}

// awaits says whether the open round waits for an author's delta.
func (m *Machine) awaits(f *fragment, r *round, open uint32, a outer.Author) bool {
	return !m.silenced(f, a) && !r.holds(a) && (m.due(f, open, a) || m.announced(r, a)) && !m.spent(f, r, a)
}

// announced says, in a run of long rounds, that a delta of an author is known and not here. It takes minutes, and comes whatever
// plan its author says that it has: at first plans go by what links carried in a moment.
func (m *Machine) announced(r *round, a outer.Author) bool { return m.p.SweepMs() > 0 && r.by(a) }

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

// graceOver says whether waiting has lasted long enough. With fewer deltas than the quorum it lasts as long as patience: a hung
// peer stalls nothing. So it does for a learner that steps no more: nobody gains by a close without the last deltas of the others.
func (m *Machine) graceOver(now Time, f *fragment, open uint32) bool {
	waited := now - f.bell.at
	if waited >= m.Patience() {
		return true
	}
	if m.stopped {
		return false
	}
	r := f.deltas.rounds[open]
	return waited >= m.p.GraceMinMs && r.heldOfMembers() >= m.quorum(f, r) && waited >= m.grace()
}

// quorum is how many deltas of members the open round closes with once grace is over. Where that takes all live learners, one may
// be missing when this learner is due again. Otherwise the slowest would set the plan of all: of two learners, one ten times as
// fast, the fast one made deltas of twice the steps, and their model was 9 % worse.
func (m *Machine) quorum(f *fragment, r *round) int {
	live := max(1, len(m.roster.training))
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
	return r.holds(m.self) && !r.comes() && f.learn.since >= m.plan.Steps
}

// grace follows how late live peers' deltas arrive, is at least the time of
// two steps (the overlap that costs no goodput) and at most a fixed part of
// the time between two bells, or what most links take. In a run of long rounds it is at least what
// the links take by its genesis: whose payloads share a link first changes from round to round.
func (m *Machine) grace() Time {
	want := max(m.p.GraceMinMs, 2*m.steps.interval(), m.late.worst(), m.p.SweepMs())
	if m.late.unmeasured(m.roster.training) {
		want = max(want, m.unmeasured())
	}
	if between := m.late.between(); between > 0 {
		if most := max(m.p.GraceMinMs, between*graceShareNum/graceShareDen); want > most {
			want = min(want, max(most, m.late.way(m.others())))
		}
	}
	return min(want, m.p.GraceMaxMs)
}

// unmeasured is how long a round waits for learners of whom nothing has come yet. In runs of long rounds that is as long as
// for a delta that does not come: with less, all of the first round would be late and folded again.
func (m *Machine) unmeasured() Time {
	if m.p.SweepMs() > 0 {
		return m.Patience()
	}
	return leastPatienceMs
}

// Bounds of patience, beside genesis' GraceMaxMs.
const (
	// patienceLate is how many times what deltas usually take one may take.
	patienceLate = 8
	// leastPatienceMs is a few beat periods: what is seldom is not missed for a moment's load.
	leastPatienceMs = 5_000
)

// Patience is how long in milliseconds a round may stay open for a delta that does not
// come, and a delta may wait for somebody to take it: many times what deltas take on these
// links, and no longer than genesis allows. Before something came of each learner it is at least what
// the links take that the run was made for.
func (m *Machine) Patience() Time {
	least := Time(leastPatienceMs)
	if sweep := m.p.SweepMs(); sweep > least && m.late.unmeasured(m.roster.training) {
		least = sweep
	}
	usual := max(m.p.GraceMinMs, 2*m.steps.interval(), m.late.worst(), m.late.way(m.others()))
	return min(m.p.GraceMaxMs, max(least, patienceLate*usual, m.late.between()*graceShareNum/graceShareDen))
}

// CloseTo says that a peer closed this far and that all it folded is held
// here: nothing is gained by waiting longer.
func (m *Machine) CloseTo(now Time, fragment int, rnd uint32) {
	f := m.frags[fragment]
	f.bell.target = max(f.bell.target, rnd)
	m.advance(now, f)
}

// close closes the open round: its link is fixed by the set held now, and is
// recomputed when a late delta arrives.
func (m *Machine) close(now Time, f *fragment) {
	m.pace(now, f)
	f.chain.closed++
	f.learn.opened = 0
	if f.bell.at != 0 {
		m.late.rang(f.index, f.bell.at)
	}
	f.chain.links = append(f.chain.links, outer.NextLink(m.p, f.chain.last(), f.deltas.rounds[f.chain.closed].set()))
	f.reopen()
	m.expire(f)
	m.emit(Closed{Fragment: f.index, Link: f.chain.last(), At: now})
}
