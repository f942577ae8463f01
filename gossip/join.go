package gossip

import (
	"atoll/gossip/peers"
	"atoll/gossip/wire"
)

// Fetch is how the search for a snapshot stands.
type Fetch struct {
	Source wire.PeerID // the first peer, by id, that may yet give one: it is connected or heard, and proved nothing wrong
	Any    bool        // whether there is one
	Wrong  int         // peers that gave what is proven to be no part of a snapshot of this run
	Came   Time        // when something of a snapshot came last; 0 = never
	Lacks  string      // why the last source gave nothing, or Source is not asked; "" since something came
}

// Fetch tells a joiner how its search for a snapshot stands.
func (c *Core) Fetch() Fetch {
	s := c.snapshot
	f := Fetch{Came: s.came, Lacks: s.lacks}
	for _, p := range s.List {
		f.Wrong += peers.BoolRank(snapshotOf(p).wrong)
		if !f.Any && s.mayGive(p) {
			f.Source, f.Any = p.ID, true
			if f.Lacks == "" && !s.Usable(p) {
				f.Lacks = "it is not connected"
			}
		}
	}
	return f
}

// Wrong reports whether a peer gave what is proven to be no part of a snapshot of this run.
func (c *Core) Wrong(id wire.PeerID) bool {
	p := c.env.Find(id)
	return p != nil && snapshotOf(p).wrong
}

// JoinPhase describes a snapshot fetch for people, with the share that is
// done, 0 to 1; text is empty if none is under way.
func (c *Core) JoinPhase() (text string, done float64) {
	if c.snapshot.stage == choosing {
		return c.peers.Phase() + ", " + c.snapshot.search(), 0
	}
	return c.snapshot.phase()
}
