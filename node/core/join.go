package core

import (
	"errors"

	"atoll/gossip"
	"atoll/gossip/wire"
	"atoll/optimizer/outer"
)

// Phase is how far a node is on its way into a run.
type Phase int

// Phases in the order in which a joiner passes through them.
const (
	Dialling   Phase = iota // no peer reached yet
	Fetching                // asking for a manifest, fetching chunks
	Installing              // the tips are being put together
	Replaying               // folding the rounds since
	Ready                   // trains, contributes and donates
)

// String is what the screen shows.
func (p Phase) String() string {
	return [...]string{"dialling", "snapshot", "installing", "replaying", "ready"}[p]
}

// replayMs is how long a joiner tries to reach the rounds that its donor had
// closed before it trains on what it has: repair goes on beside training.
const replayMs = 60_000

// join is the way into the run.
type join struct {
	phase    Phase
	since    Time
	restored bool          // the disk had tips
	target   wire.Manifest // what the donor had closed
	donor    wire.PeerID
}

// Phase is how far this node is on its way into the run.
func (m *Machine) Phase() Phase { return m.join.phase }

// Alone says that a node whose link names peers reached none of them and
// trains by itself.
func (m *Machine) Alone() bool { return m.join.phase == Ready && len(m.gossip.Peers()) == 0 }

func (m *Machine) enter(now Time, p Phase) {
	m.join.phase, m.join.since = p, now
	m.end.stepped = now
}

// joinPeerUp begins to fetch tips from the first peer that shows up.
func (m *Machine) joinPeerUp(now Time) {
	if m.join.phase == Dialling && !m.cfg.Alone && !m.join.restored {
		m.enter(now, Fetching)
		m.gossip.FetchTips(gossip.Time(now))
	}
}

func (m *Machine) tickJoin(now Time) {
	if m.join.since == 0 {
		m.join.since = now
	}
	switch m.join.phase {
	case Dialling:
		alone := m.cfg.Alone || m.join.restored || now-m.join.since >= m.cfg.AloneMs
		if alone && m.rounds.Settled() {
			m.enter(now, Ready)
		}
	case Fetching:
		if now-m.join.since >= m.cfg.AloneMs && !m.donorInSight() {
			m.gossip.CancelFetch(gossip.Time(now))
			m.enter(now, Ready)
		}
	case Replaying:
		if m.rounds.Settled() && (m.reached(m.join.target) || now-m.join.since >= replayMs) {
			m.enter(now, Ready)
		}
	}
}

// donorInSight says whether some live peer is past joining itself. Newcomers
// that know only each other begin the run from genesis.
func (m *Machine) donorInSight() bool {
	for _, p := range m.gossip.Peers() {
		if !p.Silent && p.State != wire.Joining && p.State != 0 {
			return true
		}
	}
	return false
}

// reached says whether every round that the donor had closed is closed here.
func (m *Machine) reached(target wire.Manifest) bool {
	for p, f := range target.Fragments {
		if m.rounds.Closed(p) < f.Closed {
			return false
		}
	}
	return true
}

// snapshot takes a manifest whose chunks are all stored. One that says round 0
// everywhere is a run that has not begun: genesis is the tip.
func (m *Machine) snapshot(now Time, e gossip.Snapshot) {
	m.join.target, m.join.donor = e.Manifest, e.Donor
	for _, f := range e.Manifest.Fragments {
		if f.Round > 0 {
			if m.join.phase != Ready {
				m.enter(now, Installing)
			}
			m.emit(InstallTips{Manifest: e.Manifest})
			return
		}
	}
	if m.join.phase != Ready {
		m.enter(now, Replaying)
		m.gossip.Compare(gossip.Time(now), e.Donor) // rounds may have closed above it
	}
}

// ErrInstall says that tips taken from a peer do not fit this run.
var ErrInstall = errors.New("install tips")

// Installed takes the tips that InstallTips came to, with the links that lead
// to each.
func (m *Machine) Installed(now Time, tips []*outer.Tip, history [][]outer.Link) error {
	if err := m.rounds.Install(now, tips, history); err != nil {
		return errors.Join(ErrInstall, err)
	}
	if m.join.phase != Ready {
		m.enter(now, Replaying)
	}
	m.gossip.Installed(gossip.Time(now))
	m.gossip.Compare(gossip.Time(now), m.join.donor)
	m.pump(now)
	return nil
}

// InstallFailed says that the tips do not fit. A joiner asks for others; a node
// that is in goes on with what it has, and repair decides anew.
func (m *Machine) InstallFailed(now Time) {
	m.gossip.CancelFetch(gossip.Time(now))
	if m.join.phase != Ready {
		m.enter(now, Fetching)
		m.gossip.FetchTips(gossip.Time(now))
	}
	m.pump(now)
}
