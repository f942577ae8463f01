package rounds

import (
	"maps"
	"slices"

	"atoll/optimizer/outer"
)

// Grace is at most graceShareNum/graceShareDen of the time between two proposals
// of a fragment: a round must be over well before the next one is proposed. Unless links
// take longer: see lateness.way.
const (
	graceShareNum = 1
	graceShareDen = 2
)

// lateMargin widens the mean lateness so that a peer that is usually in time
// is not left out by jitter.
const (
	lateMarginNum = 3
	lateMarginDen = 2
)

// wayMargin widens the way of half of the others: the payloads of a round come over the
// same link, one after the other, so the last comes after twice the time of the one in the
// middle.
const wayMargin = 2

// emaOld of emaAll parts of an average come from the past.
const (
	emaOld = 7
	emaAll = 8
)

// lateness keeps moving averages of how late each author's deltas arrive
// after the proposal, and of the time between two proposals of a fragment.
type lateness struct {
	self         outer.Author
	byAuthor     map[outer.Author]Time // live ones only
	ways         map[outer.Author]Time // of the deltas for which nobody had to step first
	lastProposal map[int]Time
	interval     Time
	cache        latest
	half         halfWay
}

// latest is whose average is largest, as long as that is known.
type latest struct {
	known  bool
	author outer.Author
	late   Time
}

func (l *lateness) observe(a outer.Author, late Time) {
	if l.byAuthor == nil {
		l.byAuthor = map[outer.Author]Time{}
	}
	x := ema(l.byAuthor[a], max(late, 1))
	l.byAuthor[a] = x
	switch {
	case a == l.self:
	case x >= l.cache.late:
		l.cache.author, l.cache.late = a, x
	case a == l.cache.author:
		l.cache = latest{}
	}
}

// observeWay takes the lateness of a delta that was ready when the round was proposed: what it
// took is the way of the proposal and its own.
func (l *lateness) observeWay(a outer.Author, late Time) {
	if l.ways == nil {
		l.ways = map[outer.Author]Time{}
	}
	if a != l.self {
		l.ways[a] = ema(l.ways[a], max(late, 1))
		l.half = halfWay{}
	}
}

// halfWay is what way returned for so many others, as long as that holds.
type halfWay struct {
	others int
	way    Time
}

// way is the time, with its margin, within which deltas of half of the others come
// that are ready at the proposal; those of whom that is not known count as near. Where
// rounds are shorter than that, links do not let anybody fold what the others fold, and
// each goes on by itself: a round has to take as long. Learners that are merely slow, bad
// links and liars lengthen none where they are fewer than the others.
func (l *lateness) way(others int) Time {
	if others <= 0 || 2*len(l.ways) <= others {
		return 0
	}
	if l.half.others != others {
		ways := slices.Sorted(maps.Values(l.ways))
		near := max(others-len(ways), 0)
		l.half = halfWay{others, ways[max((others-1)/2-near, 0)] * wayMargin}
	}
	return l.half.way
}

func (l *lateness) forgetAllBut(live func(outer.Author) bool) {
	gone := func(a outer.Author, _ Time) bool { return !live(a) }
	maps.DeleteFunc(l.byAuthor, gone)
	maps.DeleteFunc(l.ways, gone)
	l.cache, l.half = latest{}, halfWay{}
}

// unmeasured says that nothing has come yet of a learner that publishes: what its
// deltas take may be much longer than a step.
func (l *lateness) unmeasured(training []outer.Author) bool {
	return slices.ContainsFunc(training, func(a outer.Author) bool { return a != l.self && l.byAuthor[a] == 0 })
}

// worst is the largest average lateness among live peers, with its margin.
func (l *lateness) worst() Time {
	if !l.cache.known {
		l.cache = latest{known: true}
		for a, x := range l.byAuthor {
			if a != l.self && x > l.cache.late {
				l.cache.author, l.cache.late = a, x
			}
		}
	}
	return l.cache.late * lateMarginNum / lateMarginDen
}

func (l *lateness) proposed(fragment int, at Time) {
	if l.lastProposal == nil {
		l.lastProposal = map[int]Time{}
	}
	if last := l.lastProposal[fragment]; last != 0 && at > last {
		l.interval = ema(l.interval, at-last)
	}
	l.lastProposal[fragment] = at
}

func (l *lateness) between() Time { return l.interval }

// stepClock averages the time of this learner's inner steps.
type stepClock struct {
	last Time
	mean Time
}

func (c *stepClock) stepped(now Time) {
	if c.last != 0 && now > c.last {
		c.mean = ema(c.mean, now-c.last)
	}
	c.last = now
}

func (c *stepClock) interval() Time { return c.mean }

func ema(old, x Time) Time {
	if old == 0 {
		return x
	}
	return (emaOld*old + x) / emaAll
}

// grace follows how late live peers' deltas arrive, is at least the time of
// two steps (the overlap that costs no goodput) and at most a fixed part of
// the time between two proposals, or what most links take. In a run of long rounds it is at least what
// the links take by its genesis: whose payloads share a link first changes from round to round.
func (m *Machine) grace() Time {
	want := max(m.p.GraceMinMs, 2*m.steps.interval(), m.late.worst(), m.p.SweepMs())
	if m.late.unmeasured(m.peerList.training) {
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
		return m.GraceLimit()
	}
	return leastLimitMs
}

// Bounds of the grace limit, beside genesis' GraceMaxMs.
const (
	// limitTimes is how many times what deltas usually take one may take.
	limitTimes = 8
	// leastLimitMs is a few heartbeat periods: what is seldom is not missed for a moment's load.
	leastLimitMs = 5_000
)

// GraceLimit is how long in milliseconds a round may stay open for a delta that does not
// come, and a delta may wait for somebody to fetch it: many times what deltas take on these
// links, and no longer than genesis allows. Before something came of each learner it is at least what
// the links take that the run was made for.
func (m *Machine) GraceLimit() Time {
	least := Time(leastLimitMs)
	if sweep := m.p.SweepMs(); sweep > least && m.late.unmeasured(m.peerList.training) {
		least = sweep
	}
	usual := max(m.p.GraceMinMs, 2*m.steps.interval(), m.late.worst(), m.late.way(m.others()))
	return min(m.p.GraceMaxMs, max(least, limitTimes*usual, m.late.between()*graceShareNum/graceShareDen))
}

// Resumed says that the rounds of this node stood still until now, as its owner had it
// paused: what a proposal, a step or a delta took meanwhile is no measure of anything.
func (m *Machine) Resumed(now Time) {
	m.steps.last = 0
	m.late.lastProposal = nil
	for _, f := range m.frags {
		if f.proposal.at != 0 {
			f.proposal.at = now
		}
		for _, r := range f.deltas.rounds {
			if r.proposed != 0 {
				r.proposed = now
			}
		}
	}
}
