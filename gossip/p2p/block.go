package p2p

import (
	"errors"

	"github.com/libp2p/go-libp2p/core/peer"

	"atoll/gossip/wire"
)

// ErrBlocked: this node was told to have nothing to do with the peer.
var ErrBlocked = errors.New("blocked by this node")

// Block cuts the connections to these peers at once and refuses new ones, both
// ways, until it is called again: the set replaces the one before. Drop is for peers
// that broke the protocol.
func (h *Host) Block(ids []wire.PeerID) {
	var peers []peer.ID
	for _, id := range ids {
		peers = append(peers, pidOf(id))
	}
	h.blocked.Replace(peers)
	for _, p := range peers {
		h.disconnect(p)
	}
}
