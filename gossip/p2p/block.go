package p2p

import (
	"errors"
	"fmt"

	"github.com/libp2p/go-libp2p/core/peer"

	"atoll/gossip/p2p/address"
	"atoll/gossip/wire"
)

// ErrBlocked: this node was told to have nothing to do with the peer.
var ErrBlocked = errors.New("blocked by this node")

// Block cuts the connections to these peers at once and refuses new ones, both
// ways, until it is called again: the set replaces the one before. Drop is for peers
// that broke the protocol. An error means that one of the ids is no key, and that
// nothing has changed.
func (h *Host) Block(ids []wire.PeerID) error {
	var peers []peer.ID
	for _, id := range ids {
		p, err := address.ID(id)
		if err != nil {
			return fmt.Errorf("block: %w", err)
		}
		peers = append(peers, p)
	}
	h.blocked.Replace(peers)
	for _, p := range peers {
		h.disconnect(p)
	}
	return nil
}
