package gossip

import "atoll/gossip/peers"

// Sizes calls each with how much is held of what others may cause, and the constant that
// bounds it. The bytes of answers count where there are several: one alone may be larger.
func (c *Core) Sizes(each func(what string, count, most int)) {
	each("peers", len(c.env.List), peers.MaxPeers)
	each("hints", c.peers.Hints(), peers.MaxHints)
	c.headers.Sizes(each)
	c.fetch.Sizes(each)
	c.serve.Sizes(each)
	each("repairs", len(c.repair.sessions), maxRepairs)
	each("peers asked for own deltas", max(len(c.own.asked), len(c.own.came)), peers.MaxPeers)
}
