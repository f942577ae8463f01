package gossip

import (
	"cmp"
	"slices"

	"atoll/gossip/hello"
	"atoll/gossip/wire"
)

// PeerView is what the core knows of one peer.
type PeerView struct {
	ID             wire.PeerID
	Connected      bool
	Record         hello.Record // zero if none is known
	State          wire.State   // of its last beat, 0 if there is none
	Beat           *wire.Beat   // not to be modified; nil before the first
	LastBeat       Time         // when Beat arrived
	Heard          bool         // ever
	LastHeard      Time
	Silent         bool    // heard nothing for ten beat periods
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
// again: those of connected peers first, then of those last heard. Who is only heard of
// may be the only one left when that process starts.
func (c *Core) Contacts() []string {
	known := slices.DeleteFunc(slices.Clone(c.peers.list), func(p *peer) bool { return p.refused != "" })
	slices.SortStableFunc(known, func(p, q *peer) int {
		return cmp.Or(cmp.Compare(boolRank(q.connected), boolRank(p.connected)), cmp.Compare(q.heard, p.heard))
	})
	var addrs []string
	for _, p := range known {
		addrs = append(addrs, p.roster.record.Addrs[:min(len(p.roster.record.Addrs), maxContactAddrs, MaxContacts-len(addrs))]...)
	}
	return addrs
}

// Peers returns all peers known, sorted by id.
func (c *Core) Peers() []PeerView {
	views := make([]PeerView, 0, len(c.peers.list))
	for _, p := range c.peers.list {
		v := PeerView{
			ID: p.id, Connected: p.connected, Record: *p.roster.record, Beat: p.beat, LastBeat: p.beatAt,
			Heard: p.everHeard, LastHeard: p.heard, Silent: p.silent,
			Repairing: c.repair.find(p) != nil, BytesPerSecond: float64(p.rate) * 1000, Refused: p.refused,
		}
		if p.beat != nil {
			v.State = p.beat.State
		}
		views = append(views, v)
	}
	return views
}

// Beats calls f with the newest beat of each peer that is not silent, in order of
// id, and when it came. It is what the outer side looks at several times a second, so nothing is
// copied; f must not change the beat.
func (c *Core) Beats(f func(id wire.PeerID, b *wire.Beat, at Time)) {
	for _, p := range c.peers.list {
		if p.beat != nil && !p.silent {
			f(p.id, p.beat, p.beatAt)
		}
	}
}

// BeatOf is the newest beat of a peer, nil if none came. It must not be changed.
func (c *Core) BeatOf(id wire.PeerID) *wire.Beat {
	if p := c.peers.find(id); p != nil {
		return p.beat
	}
	return nil
}

// ClosedByMost reports whether more than half of the live peers with standing say that they
// closed a round of a fragment, or one of them where they are few.
func (c *Core) ClosedByMost(fragment int, round uint32) bool {
	return c.repair.attested(func(p *peer) bool { return p.closed(fragment) >= round })
}

// Known is the number of peers known, connected or only heard of.
func (c *Core) Known() int { return len(c.peers.list) }

// LiveLearners returns, sorted by id, the peers that train or have stopped at
// the budget, and were heard within ten beat periods before now. This node is
// not among them. The slice must not be changed.
func (c *Core) LiveLearners(now Time) []wire.PeerID {
	c.at(now)
	return c.memo.current()
}

// LearnersVersion is another number whenever LiveLearners returned others.
func (c *Core) LearnersVersion() uint64 { return c.memo.version }

// Turns is another number whenever the peers that Beats shows, or what they say
// that they are doing, have changed.
func (c *Core) Turns() uint64 { return c.peers.memo.turned }

// BeatPeriodMs is the present time between two beats.
func (c *Core) BeatPeriodMs() int64 { return c.beatPeriod() }

// Agreement reports whether this node and all live peers are at rest (none
// training) with the same closed rounds and the same chain digest, and since
// when they have been. It does not look at states, as a run must end whatever
// one machine's memory does; see OtherStates.
func (c *Core) Agreement(now Time) (agreed bool, since Time) {
	c.at(now)
	c.beats.agree()
	return c.beats.agreed, c.beats.agreedSince
}

// Lacking returns a connected peer that has yet to show the tips which this node
// has, at rest, and whether there is one. It may be joining, or not even have begun
// to beat.
func (c *Core) Lacking(now Time) (id wire.PeerID, any bool) {
	c.at(now)
	return c.beats.lacking()
}

// Common returns, of each fragment, the last round at which some peer showed the
// chain that this node had then: what both fold since may differ.
func (c *Core) Common() []uint32 { return slices.Clone(c.common) }

// CommonWith is Common as far as is known of the chain of one peer: up to where it
// showed that of this node, or else those did that show another now. Who shows the
// same chain as this node still, and leaves it with it, had no part in the other one.
func (c *Core) CommonWith(id wire.PeerID) []uint32 {
	if p := c.peers.find(id); p != nil && p.beats.equal != nil {
		return slices.Clone(p.beats.equal)
	}
	var common []uint32
	for _, p := range c.peers.list {
		switch {
		case p.beats.equal == nil || !p.left():
		case common == nil:
			common = slices.Clone(p.beats.equal)
		default:
			for f, r := range p.beats.equal {
				common[f] = min(common[f], r)
			}
		}
	}
	if common == nil {
		return c.Common()
	}
	return common
}

// OtherStates returns, sorted by id, the live peers whose newest beat shows the
// same chain as this node has and another state: memory corruption or a bug,
// here or there. Peers marked as breaking the protocol are not looked at.
func (c *Core) OtherStates(now Time) []wire.PeerID {
	c.at(now)
	return c.beats.otherStates()
}
