package node

import (
	"atoll/gossip"
	"atoll/gossip/p2p"
	"atoll/gossip/wire"
	"atoll/node/core"
)

// announced records what a message announces, and which peers have it beside the one that it came from.
func (n *node) announced(now core.Time, id wire.Digest, msg wire.Message) {
	var delta wire.Digest
	if msg.Header != nil {
		delta = msg.Header.Header.ID(n.run)
	}
	for _, peer := range n.holders.Came(id, delta) {
		n.forwarded(now, delta, peer)
	}
}

// has records another peer that has the delta which a message announces. A delta that was refused has an id
// that nobody wants.
func (n *node) has(now core.Time, e p2p.Has) {
	n.forwarded(now, n.holders.Has(e.ID, e.From), e.From)
}

func (n *node) forwarded(now core.Time, delta wire.Digest, from wire.PeerID) {
	if delta != (wire.Digest{}) {
		n.machine.Step(now, gossip.Forwarded{From: from, ID: delta})
	}
}
