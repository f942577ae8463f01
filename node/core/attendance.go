package core

import (
	"atoll/gossip/wire"
	"atoll/optimizer/outer"
)

// Rounds wait for the learners that answer them. That a key heartbeats as a learner, or announces
// deltas, costs nothing: what counts is a payload that came. Who is left out here loses nothing
// else: its next payload is folded, late at worst, and the rounds wait for it again.

const (
	// mostMissed is how many rounds with deltas may close without a payload of a learner before
	// none waits for it any more. On thin links many payloads in a row come late.
	mostMissed = 16
	// mostMissedAtFirst is the same for one that was here before the run began, while nothing of it
	// has come. What is not there within a round, whose grace is long then, may never come.
	mostMissedAtFirst = 1
	// maxAttending bounds the learners that are noted: as many as a table of peers has.
	maxAttending = 4096
)

// attendance is who answers rounds of late. It counts the rounds of all fragments, in the life of
// this process.
type attendance struct {
	closed  uint64                  // rounds closed that have deltas
	answers map[wire.PeerID]answers // by learner
	present int                     // learners that rounds wait for, this node among them, and no guests
	changes uint64                  // changes whenever another learner may be waited for
}

// answers is what came of a learner.
type answers struct {
	came bool   // a payload did; else it was here before the run began
	at   uint64 // closed, when the last one came
}

// newAttendance knows nobody.
func newAttendance() attendance {
	return attendance{answers: map[wire.PeerID]answers{}, present: 1}
}

// attended notes that a payload of a learner came.
func (a *attendance) attended(id wire.PeerID) { a.note(id, answers{came: true, at: a.closed}) }

func (a *attendance) note(id wire.PeerID, is answers) {
	was, known := a.answers[id]
	if known && was == is || !known && len(a.answers) >= maxAttending && !a.makeRoom() {
		return
	}
	a.answers[id] = is
	a.changes++
}

// makeRoom forgets those of whom nothing came for the longest time, unless all came just now.
func (a *attendance) makeRoom() bool {
	oldest := a.closed
	for _, x := range a.answers {
		oldest = min(oldest, x.at)
	}
	if oldest == a.closed {
		return false
	}
	for id, x := range a.answers {
		if x.at == oldest {
			delete(a.answers, id)
		}
	}
	return true
}

// roundClosed counts a round that has deltas. One without says nothing of anybody.
func (a *attendance) roundClosed(deltas int) {
	if deltas > 0 {
		a.closed++
		a.changes++
	}
}

// absent says that no round is to wait for a learner: more closed without a payload of it than may,
// so many times, and some more. One that is not known here was never waited for.
func (a *attendance) absent(id wire.PeerID, times, more uint64) bool {
	x, known := a.answers[id]
	most := uint64(mostMissedAtFirst)
	if x.came {
		most = mostMissed
	}
	return !known || a.closed-x.at > most*times+more
}

// meetFounders has rounds wait for learners that are here before anything is folded, of whom
// nothing can have come.
func (m *Machine) meetFounders(learners []wire.PeerID) {
	if m.View().FoldedTokens() > 0 {
		return
	}
	for _, id := range learners {
		if _, known := m.attendance.answers[id]; !known {
			m.attendance.note(id, answers{at: m.attendance.closed})
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
// many rounds. One that answers in rotation, or whose plan is longer than the others', may miss as many more
// rounds, and one for each other fragment: at first each has a proposal of its own.
func (m *Machine) absent(id wire.PeerID) bool {
	if m.gossip.Peers().Owes(id) {
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
