package core

import (
	"atoll/gossip/wire"
	"atoll/optimizer/outer"
)

// Rounds wait for the learners that publish in them. To send heartbeats as a learner, or announce
// deltas, costs a key nothing: what counts is a payload that came. A learner that is left out here
// loses nothing else: its next payload is folded, late at worst, and the rounds wait for it again.

const (
	// mostMissed is how many rounds with deltas may close without a payload of a learner before no
	// round waits for it any more. On thin links many payloads in a row come late.
	mostMissed = 16
	// mostMissedAtFirst is the same for a learner that was here before the run began, while nothing of
	// it has come. What is not there within a round, whose grace is long then, may never come.
	mostMissedAtFirst = 1
	// maxAttending bounds the learners that are recorded: as many as a table of peers has.
	maxAttending = 4096
)

// attendance is which learners published recently. It counts the rounds of all fragments, in the
// life of this process.
type attendance struct {
	closed   uint64                  // rounds closed that have deltas
	arrivals map[wire.PeerID]arrival // by learner
	present  int                     // learners that rounds wait for, this node among them, and no guests
	changes  uint64                  // changes whenever another learner may be waited for
}

// arrival is what came of a learner.
type arrival struct {
	came bool   // a payload did; else it was here before the run began
	at   uint64 // closed, when the last one came
}

// newAttendance knows nobody.
func newAttendance() attendance {
	return attendance{arrivals: map[wire.PeerID]arrival{}, present: 1}
}

// attended records that a payload of a learner came.
func (a *attendance) attended(id wire.PeerID) { a.record(id, arrival{came: true, at: a.closed}) }

func (a *attendance) record(id wire.PeerID, is arrival) {
	was, known := a.arrivals[id]
	if known && was == is || !known && len(a.arrivals) >= maxAttending && !a.makeRoom() {
		return
	}
	a.arrivals[id] = is
	a.changes++
}

// makeRoom forgets those of whom nothing came for the longest time, unless all came just now.
func (a *attendance) makeRoom() bool {
	oldest := a.closed
	for _, x := range a.arrivals {
		oldest = min(oldest, x.at)
	}
	if oldest == a.closed {
		return false
	}
	for id, x := range a.arrivals {
		if x.at == oldest {
			delete(a.arrivals, id)
		}
	}
	return true
}

// roundClosed counts a round that has deltas. A round without says nothing of anybody.
func (a *attendance) roundClosed(deltas int) {
	if deltas > 0 {
		a.closed++
		a.changes++
	}
}

// absent says that no round is to wait for a learner: more closed without a payload of it than may,
// so many times, and some more. A learner that is not known here was never waited for.
func (a *attendance) absent(id wire.PeerID, times, more uint64) bool {
	x, known := a.arrivals[id]
	most := uint64(mostMissedAtFirst)
	if x.came {
		most = mostMissed
	}
	return !known || a.closed-x.at > most*times+more
}

// awaitFounders has rounds wait for learners that are here before anything is folded, of whom
// nothing can have come.
func (m *Machine) awaitFounders(learners []wire.PeerID) {
	if m.View().FoldedTokens() > 0 {
		return
	}
	for _, id := range learners {
		if _, known := m.attendance.arrivals[id]; !known {
			m.attendance.record(id, arrival{at: m.attendance.closed})
		}
	}
}

// absentLearners are those that no round is to wait for, though they say that they learn.
func (m *Machine) absentLearners(learners []wire.PeerID) (absent []outer.Author) {
	present := 1
	for _, id := range learners {
		switch {
		case m.absent(id):
			absent = append(absent, outer.Author(id))
		case !m.guest(id):
			present++
		}
	}
	m.attendance.present = present
	return absent
}

// absent says that no round is to wait for a learner: it owes payloads that it announced, or gave none in too
// many rounds. A learner that publishes in rotation, or whose plan is longer than the others', may miss as many
// more rounds, and one for each other fragment: at first each has a proposal of its own.
func (m *Machine) absent(id wire.PeerID) bool {
	if m.gossip.Peers().Failing(id) {
		return true
	}
	perRound, common := uint64(m.cfg.Params.LearnersPerRound), uint64(max(1, m.rounds.Plan().Common))
	plan := common
	if b := m.gossip.Peers().Heartbeat(id); b != nil {
		plan = max(plan, uint64(b.Plan))
	}
	groups := (uint64(m.attendance.present) + perRound - 1) / perRound
	times := min((plan+common-1)/common, uint64(m.cfg.Params.WindowAccept))
	return m.attendance.absent(id, groups*times, uint64(m.rounds.Fragments()-1))
}

// Absent says whether rounds wait for a learner no more: it owes payloads, or gave none in too many rounds.
func (v View) Absent(id wire.PeerID) bool { return v.m.absent(id) }
