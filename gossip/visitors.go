package gossip

import (
	"atoll/gossip/effect"
	"atoll/gossip/wire"
)

// visitors are the connected peers that only look (hello.Record.Visits), and how many answers each may still have. They have no
// entry in the table of peers, no certificate is kept of them, and nobody hears of them from here.
type visitors map[wire.PeerID]int

// visitorAsks is several times what a visit takes: the genesis and the peer list, some of them again.
const visitorAsks = 8

// guide answers a visitor, who may see what the run is and whom else to ask.
func (c *Core) guide(in Requested) {
	r, err := wire.DecodeRequest(in.Request)
	left := c.visitors[in.From]
	c.visitors[in.From] = max(0, left-1)
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
