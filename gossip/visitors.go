package gossip

import (
	"cmp"
	"maps"
	"slices"

	"atoll/gossip/effect"
	"atoll/gossip/wire"
)

// visitors are the connected peers that only look (hello.Record.Visits). They have no entry in the table of peers, no certificate is
// kept of them, and nobody hears of them from here.
type visitors map[wire.PeerID]*visit

type visit struct {
	left  int // answers that it may still have
	until Time
}

// Limits of visits. One takes the genesis and the peer list, some of them again, and at most a minute.
const (
	visitorAsks = 8
	visitMs     = 120_000
	maxVisitors = 64 // a crowd that one message invites: each asks for the genesis, and is gone
)

// visited begins a session with a visitor. Where there are as many as there may be, the one that looked longest goes.
func (c *Core) visited(peer wire.PeerID) {
	if c.visitors[peer] != nil {
		return // another connection
	}
	if len(c.visitors) >= maxVisitors {
		c.visitors.end(c.env, slices.MinFunc(slices.Collect(maps.Keys(c.visitors)), func(a, b wire.PeerID) int {
			return cmp.Or(cmp.Compare(c.visitors[a].until, c.visitors[b].until), a.Compare(b))
		}))
	}
	c.visitors[peer] = &visit{visitorAsks, c.env.Now + visitMs}
}

// tick ends the visits that are too long.
func (v visitors) tick(e *env) {
	over := slices.DeleteFunc(slices.Collect(maps.Keys(v)), func(id wire.PeerID) bool { return e.Now < v[id].until })
	slices.SortFunc(over, wire.PeerID.Compare)
	for _, id := range over {
		v.end(e, id)
	}
}

// end ends a visit. Nobody is to blame: it may look again at once, and by a new session a node that takes part meanwhile is none.
func (v visitors) end(e *env, id wire.PeerID) {
	delete(v, id)
	e.Emit(effect.EndVisit{Peer: id})
}

// guide answers a visitor, who may see what the run is and whom else to ask.
func (c *Core) guide(in Requested) {
	r, err := wire.DecodeRequest(in.Request)
	v := c.visitors[in.From]
	left := v.left
	v.left = max(0, left-1)
	response := wire.Response{Status: wire.Refused}
	switch {
	case err == nil && left > 0 && r.Kind == wire.GetGenesis && r.Run == c.env.cfg.Run:
		c.env.Emit(effect.ReplyGenesis{Handle: in.Handle})
		return
	case err == nil && left > 0 && r.Kind == wire.GetPeerList:
		response = wire.Response{Status: wire.OK, Body: c.peers.ListFor(nil)}
	}
	c.env.Emit(effect.Reply{Handle: in.Handle, Response: response.Encode()})
}
