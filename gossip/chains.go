package gossip

import (
	"atoll/gossip/peers"
	"atoll/gossip/wire"
)

// Chains is a view of how the chain and the state of this node compare with those
// that its peers show.
type Chains struct{ core *Core }

// Chains returns the comparison of chains.
func (c *Core) Chains() Chains { return Chains{c} }

// Agreed reports whether this node and all live peers are at rest (none trains) with
// the same closed rounds and the same chain digest, and since when. It does not look at
// states: a run must end whatever one machine's memory does. See OtherStates.
func (v Chains) Agreed(now Time) (agreed bool, since Time) {
	v.core.at(now)
	return v.core.peers.Heartbeats.Agree()
}

// QuietMs is for how long Agreed has to hold until each live peer has sent another heartbeat:
// agreeHeartbeats of the longest period among them.
func (v Chains) QuietMs() Time {
	longest := v.core.env.Period
	for _, p := range v.core.env.List {
		if p.Refused == "" && v.core.env.Live(p) {
			longest = max(longest, v.core.env.PeriodOf(p))
		}
	}
	return agreeHeartbeats * longest
}

// Lacking returns a connected peer that has yet to show the tips which this node
// has, at rest, and whether there is one. It may be joining, or have sent no
// heartbeat yet.
func (v Chains) Lacking(now Time) (id wire.PeerID, any bool) {
	v.core.at(now)
	return v.core.peers.Heartbeats.Lacking()
}

// Equal reports whether this node shows the chain and the state of a live peer in all
// fragments, at the rounds of the peer's last heartbeat. live says whether there is a live
// peer at all. Where the peer does not know its state yet its chain is enough; this
// node has to know its own.
func (v Chains) Equal(now Time) (equal, live bool) {
	v.core.at(now)
	for _, p := range v.core.env.List {
		if !v.core.env.Live(p) || p.Refused != "" {
			continue
		}
		live = true
		chain, state, known := v.core.peers.Heartbeats.DigestsAt(peers.Lagged(p.Heartbeat.Closed, p.Heartbeat.Lag))
		theirs := p.Heartbeat.StateDigest
		if known && chain == p.Heartbeat.Chain && !state.IsZero() && (theirs.IsZero() || state == theirs) {
			return true, true
		}
	}
	return false, live
}

// Outran is how often in a row one live peer that is no guest outran this node: see countOutrun.
func (v Chains) Outran() (most int) {
	for _, p := range v.core.env.List {
		if v.core.env.Live(p) && p.Refused == "" && !v.core.env.Guest(p.ID) {
			most = max(most, repairOf(p).outran)
		}
	}
	return most
}

// OtherStates returns, sorted by id, the live peers whose newest heartbeat shows
// this node's chain and another state. Then one of the two has damaged memory
// or a bug. Peers marked as breaking the protocol are not looked at.
func (v Chains) OtherStates(now Time) []wire.PeerID {
	v.core.at(now)
	return v.core.peers.Heartbeats.OtherStates()
}

// Common returns, for each fragment, the last round at which some peer showed the chain
// that this node had then. What both have folded since may differ.
func (v Chains) Common() []uint32 { return v.core.env.Common() }

// CommonWith is Common for the chain of one peer: the rounds up to which it showed the
// chain of this node. If it never did, they are the rounds up to which the peers did that
// show another chain now. Peers that still show this node's chain say nothing about the
// other one.
func (v Chains) CommonWith(id wire.PeerID) []uint32 {
	return v.core.env.CommonWith(id)
}

// ClosedByMost reports whether more than half of the live peers that are heeded say that they
// closed a round of a fragment, or one of them where they are few.
func (v Chains) ClosedByMost(fragment int, round uint32) bool {
	return v.core.repair.attested(func(p *peers.Peer) bool { return p.Closed(fragment) >= round })
}
