package gossip

import (
	"cmp"
	"slices"

	"atoll/gossip/hello"
	"atoll/gossip/peers"
	"atoll/gossip/wire"
)

// Peers is a view of the peers that a Core knows.
type Peers struct{ core *Core }

// Peers returns the peers known.
func (c *Core) Peers() Peers { return Peers{c} }

// PeerView is what the core knows of one peer.
type PeerView struct {
	ID             wire.PeerID
	Connected      bool
	Record         hello.Record    // zero if none is known
	Name           string          // what its owner calls it, "" if that is not known
	State          wire.State      // of its last heartbeat, 0 if there is none
	Heartbeat      *wire.Heartbeat // not to be modified; nil before the first
	LastHeartbeat  Time            // when Heartbeat arrived
	Heard          bool            // ever
	LastHeard      Time
	Quiet          bool    // heard nothing for three of its heartbeat periods
	Silent         bool    // heard nothing for ten of them
	WayMs          int64   // measured of how long a message takes, 0 if unknown
	Repairing      bool    // a repair with it is under way
	BytesPerSecond float64 // measured of what it sent, before the first its guess
	Refused        string  // why it was marked as breaking the protocol, "" if it was not
}

// maxContactAddrs is how many addresses of one peer are remembered, so that a few peers
// with many do not leave out all others.
const maxContactAddrs = 4

// MaxContacts bounds the addresses that are remembered of all peers: a few are enough to
// get in, and no more fit a join link.
const MaxContacts = 32

// Contacts returns at most MaxContacts addresses by which a later process may find the run
// again: connected peers first, then the others as they were last heard. A peer that is
// only heard of may be the only one left when that process starts.
func (v Peers) Contacts() []string {
	known := slices.DeleteFunc(slices.Clone(v.core.env.List), func(p *peers.Peer) bool { return p.Refused != "" })
	slices.SortStableFunc(known, func(p, q *peers.Peer) int {
		return cmp.Or(cmp.Compare(peers.BoolRank(q.Connected), peers.BoolRank(p.Connected)), cmp.Compare(q.Heard, p.Heard))
	})
	var addrs []string
	for _, p := range known {
		addrs = append(addrs, p.Addrs()[:min(len(p.Addrs()), maxContactAddrs, MaxContacts-len(addrs))]...)
	}
	return addrs
}

// All returns all peers known, sorted by id.
func (v Peers) All() []PeerView {
	views := make([]PeerView, 0, len(v.core.env.List))
	for _, p := range v.core.env.List {
		view := PeerView{
			ID: p.ID, Connected: p.Connected, Record: *p.Record(), Name: p.Name(), Heartbeat: p.Heartbeat, LastHeartbeat: p.HeartbeatAt,
			Heard: p.EverHeard, LastHeard: p.Heard, Quiet: p.Quiet, Silent: p.Silent, WayMs: p.Way(),
			Repairing: v.core.repair.find(p) != nil, BytesPerSecond: float64(p.Rate) * 1000, Refused: cmp.Or(p.Refused, v.core.headers.Against(p.ID)),
		}
		if p.Heartbeat != nil {
			view.State = p.Heartbeat.State
		}
		views = append(views, view)
	}
	return views
}

// Heartbeats calls f with the newest heartbeat of each peer that is not silent, in order of
// id, and when it came. It is what the outer side looks at several times a second, so nothing is
// copied; f must not change the heartbeat.
func (v Peers) Heartbeats(f func(id wire.PeerID, b *wire.Heartbeat, at Time)) {
	for _, p := range v.core.env.List {
		if p.Heartbeat != nil && !p.Silent {
			f(p.ID, p.Heartbeat, p.HeartbeatAt)
		}
	}
}

// Heartbeat is the newest heartbeat of a peer, nil if none came. It must not be changed.
func (v Peers) Heartbeat(id wire.PeerID) *wire.Heartbeat {
	if p := v.core.env.Find(id); p != nil {
		return p.Heartbeat
	}
	return nil
}

// Gone reports whether the process of a peer ended without a word, as it seems: it is quiet,
// and has no connection to this node.
func (v Peers) Gone(id wire.PeerID) bool {
	p := v.core.env.Find(id)
	return p != nil && p.Gone()
}

// Known is the number of peers known, connected or only heard of.
func (v Peers) Known() int { return len(v.core.env.List) }

// Learners returns, sorted by id, the peers that train or have stopped at
// the budget, and were heard within ten of their heartbeat periods before now. This node is
// not among them. The slice must not be changed.
func (v Peers) Learners(now Time) []wire.PeerID {
	v.core.at(now)
	return v.core.peers.Learning()
}

// LearnersVersion is another number whenever Learners returned others.
func (v Peers) LearnersVersion() uint64 { return v.core.peers.LearningVersion() }

// Version is another number whenever the peers that Heartbeats shows, what they say that they
// are doing, or who of them is idle, have changed.
func (v Peers) Version() uint64 { return v.core.peers.Version() }

// Idle reports whether no round is to wait for a peer: its owner has it paused, or
// nothing was heard of it for three of its heartbeat periods.
func (v Peers) Idle(id wire.PeerID) bool {
	p := v.core.env.Find(id)
	return p != nil && (p.Quiet || p.Pauses())
}

// Failing reports whether a peer recently announced deltas whose payloads nobody had.
func (v Peers) Failing(id wire.PeerID) bool { return v.core.fetch.Failing(id) }

// Way is how long a message takes to a peer, in ms, as half of the round trips of small
// calls show: the smallest recent one. While none was measured it is the run's first guess.
func (v Peers) Way(id wire.PeerID) int64 {
	if p := v.core.env.Find(id); p != nil && p.Way() > 0 {
		return p.Way()
	}
	return v.core.env.cfg.WayMs
}

// HeartbeatPeriodMs is the present time between two heartbeats of the run as this node sees it:
// its own, or the usual one of peers whose deltas were folded, if that is longer.
func (c *Core) HeartbeatPeriodMs() int64 { return c.env.HeartbeatPeriod() }
