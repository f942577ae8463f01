package rounds

import (
	"errors"
	"slices"

	"atoll/optimizer/outer"
)

// Time is milliseconds since the Unix epoch, less what Slept said. The machine
// only compares and subtracts it; genesis.created is on the same scale.
type Time = int64

// Why a header is not taken.
var (
	ErrFinal  = errors.New("the round is final here: older than the window or than the oldest kept base")
	ErrBarred = errors.New("the author signed two deltas for one round")
	ErrTwice  = errors.New("the author already has another delta in this round")
	ErrFull   = errors.New("the round already has the most deltas it can hold")
	ErrParked = errors.New("ahead of the open round: too far, too many, or the payload of the author's delta before is yet to come")
)

// earlyRounds is how many rounds may close before min_round paces them: a run
// starts with a burst, a flood of bells does not last.
const earlyRounds = 8

// mayClose says whether the open round closes now.
func (m *Machine) mayClose(now Time, f *fragment) bool {
	open := f.closed + 1
	if f.last().Ended() {
		return false
	}
	if m.early(now, f) {
		return false
	}
	if f.target >= open || f.rounds[open+1].held() > 0 {
		return true // a header alone rings, but closes nothing
	}
	if f.bell == 0 {
		return false
	}
	return m.answered(f, open) || m.graceOver(now, f, open)
}

// early says that min_round forbids to close the open round yet.
func (m *Machine) early(now Time, f *fragment) bool {
	open := f.closed + 1
	if now+m.slept >= m.p.CreatedMs+(int64(open)-earlyRounds)*m.p.MinRoundMs {
		return false
	}
	// Whoever overrules the clock does not overrule the rate: peers may lie.
	return !m.closedElsewhere(f.index, open) || now < f.closedAt+m.p.MinRoundMs
}

// closedElsewhere says whether most peers have closed a round: where this node's clock
// is behind it would else train on alone, on tips that the others have left.
func (m *Machine) closedElsewhere(fragment int, rnd uint32) bool {
	return m.elsewhere != nil && m.elsewhere(fragment, rnd)
}

// answered says whether every live learner expected to answer has its delta
// held here.
func (m *Machine) answered(f *fragment, open uint32) bool {
	r := f.rounds[open]
	if r.held() == 0 {
		return false
	}
	called := m.answerers(f, open)
	if i := f.memo.missing; i < len(called) && m.awaits(r, called[i]) {
		return false // whoever was missing before mostly still is
	}
	for i, a := range called {
		if m.awaits(r, a) {
			f.memo.missing = i
			return false
		}
	}
	return true
}

// awaits says whether a round waits for an author's delta.
func (m *Machine) awaits(r *round, a outer.Author) bool {
	return !m.barred[a] && !r.holds(a)
}

// held counts the deltas of a round whose payload is held.
func (r *round) held() int {
	if r == nil {
		return 0
	}
	return r.have
}

func (r *round) holds(a outer.Author) bool {
	return r != nil && slices.ContainsFunc(r.of(a), func(e entry) bool { return e.held })
}

// graceOver says whether waiting has lasted long enough. With fewer deltas
// than the quorum it lasts longer, but a hung peer stalls nothing.
func (m *Machine) graceOver(now Time, f *fragment, open uint32) bool {
	waited := now - f.bell
	if waited >= m.p.GraceMaxMs {
		return true
	}
	quorum := max(1, min(m.p.Quorum, len(m.seats)))
	return waited >= m.p.GraceMinMs && f.rounds[open].held() >= quorum && waited >= m.grace()
}

// grace follows how late live peers' deltas arrive, is at least the time of
// two steps (the overlap that costs no goodput) and at most a fixed part of
// the time between two bells, or what most links take.
func (m *Machine) grace() Time {
	want := max(m.p.GraceMinMs, 2*m.steps.interval(), m.late.worst())
	if between := m.late.between(); between > 0 {
		if most := max(m.p.GraceMinMs, between*graceShareNum/graceShareDen); want > most {
			want = min(want, max(most, m.late.way(m.others())))
		}
	}
	return min(want, m.p.GraceMaxMs)
}

// close closes the open round: its link is fixed by the set held now, and is
// recomputed when a late delta arrives.
func (m *Machine) close(now Time, f *fragment) {
	f.closed++
	f.opened, f.closedAt = 0, now
	if f.bell != 0 {
		m.late.rang(f.index, f.bell)
	}
	f.links = append(f.links, outer.NextLink(m.p, f.last(), f.rounds[f.closed].set()))
	f.reopen()
	m.expire(f)
	m.emit(Closed{Fragment: f.index, Link: f.last(), At: now})
}

// expire forgets what is older than the union window and than the base from
// which that window is refolded.
func (m *Machine) expire(f *fragment) {
	final := min(m.windowEdge(f.closed), f.base)
	if f.first >= final {
		return
	}
	for r := range f.rounds {
		if r <= final {
			delete(f.rounds, r)
		}
	}
	f.links = slices.Delete(f.links, 0, int(final-f.first))
	f.first = final
}

// windowEdge is the round before the oldest one in the union window.
func (m *Machine) windowEdge(closed uint32) uint32 {
	return closed - min(closed, m.p.WindowUnion)
}

func (f *fragment) last() outer.Link { return f.links[len(f.links)-1] }

func (f *fragment) link(rnd uint32) (outer.Link, bool) {
	if rnd < f.first || rnd > f.closed {
		return outer.Link{}, false
	}
	return f.links[rnd-f.first], true
}
