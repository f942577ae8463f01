package core

import (
	"slices"

	"atoll/gossip"
	"atoll/gossip/wire"
	"atoll/optimizer/outer"
)

// updatePeerList tells the rounds who is live, and whom not to wait for: who has stopped, and who
// is absent.
func (m *Machine) updatePeerList(now Time) {
	learners := m.gossip.Peers().Learners(now)
	m.awaitFounders(learners)
	seen := peerListSeen{
		told: true, live: m.gossip.Peers().LearnersVersion(), peers: m.gossip.Peers().Version(), attendance: m.attendance.changes,
		members: m.cfg.Gossip.Members.Changes(),
		idle:    m.guest(m.self) || m.pause.on || m.View().State() == wire.Stopped && m.quiet(),
	}
	if before := m.cache.peerList; !before.told || seen.live != before.live || seen.members != before.members {
		m.rounds.SetLive(m.liveLearners(learners))
		m.rounds.SetGuests(m.guestsOf(learners))
	}
	if seen != m.cache.peerList {
		m.rounds.SetIdle(append(m.idleLearners(seen.idle), m.absentLearners(learners)...))
	}
	m.cache.peerList = seen
}

// liveLearners are the authors that may publish in a round, this node among them. Nobody waits for guests.
func (m *Machine) liveLearners(others []wire.PeerID) []outer.Author {
	live := make([]outer.Author, 0, len(others)+1)
	for _, id := range others {
		if !m.guest(id) {
			live = append(live, outer.Author(id))
		}
	}
	if m.cfg.Learner && !slices.Contains(live, outer.Author(m.self)) {
		live = append(live, outer.Author(m.self))
	}
	return live
}

// guestsOf are the guests among learners.
func (m *Machine) guestsOf(learners []wire.PeerID) (guests []outer.Author) {
	for _, id := range learners {
		if m.guest(id) {
			guests = append(guests, outer.Author(id))
		}
	}
	return guests
}

// idleLearners are those that have stopped and have nothing left to publish or to fold, and
// those that rest; this node among them if it is.
func (m *Machine) idleLearners(self bool) []outer.Author {
	var idle []outer.Author
	if self {
		idle = append(idle, m.self)
	}
	m.gossip.Peers().Heartbeats(func(id wire.PeerID, b *wire.Heartbeat, _ gossip.Time) {
		if b.State == wire.Stopped && b.Lag == 0 || m.gossip.Peers().Idle(id) {
			idle = append(idle, outer.Author(id))
		}
	})
	return idle
}
