package p2p

import (
	"errors"
	"fmt"
	"sync"

	"github.com/libp2p/go-libp2p/core/control"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"

	"atoll/gossip/wire"
)

// ErrBlocked: this node was told to have nothing to do with the peer.
var ErrBlocked = errors.New("blocked by this node")

// blocked is the set of peers that Block keeps away. It is libp2p's
// ConnectionGater; without a connection there is neither gossip nor a request.
type blocked struct {
	mu    sync.Mutex
	peers map[peer.ID]struct{}
}

func newBlocked() *blocked { return &blocked{peers: map[peer.ID]struct{}{}} }

func (b *blocked) has(p peer.ID) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, is := b.peers[p]
	return is
}

func (b *blocked) replace(peers []peer.ID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	clear(b.peers)
	for _, p := range peers {
		b.peers[p] = struct{}{}
	}
}

// InterceptPeerDial implements connmgr.ConnectionGater.
func (b *blocked) InterceptPeerDial(p peer.ID) bool { return !b.has(p) }

// InterceptAddrDial implements connmgr.ConnectionGater.
func (b *blocked) InterceptAddrDial(p peer.ID, _ ma.Multiaddr) bool { return !b.has(p) }

// InterceptAccept implements connmgr.ConnectionGater: who it is shows later.
func (b *blocked) InterceptAccept(network.ConnMultiaddrs) bool { return true }

// InterceptSecured implements connmgr.ConnectionGater.
func (b *blocked) InterceptSecured(_ network.Direction, p peer.ID, _ network.ConnMultiaddrs) bool {
	return !b.has(p)
}

// InterceptUpgraded implements connmgr.ConnectionGater.
func (b *blocked) InterceptUpgraded(c network.Conn) (bool, control.DisconnectReason) {
	return !b.has(c.RemotePeer()), 0
}

// Block cuts the connections to these peers at once and refuses new ones, both
// ways, until it is called again: the set replaces the one before. Drop is for peers
// that broke the protocol. An error means that one of the ids is no key, and that
// nothing has changed.
func (h *Host) Block(ids []wire.PeerID) error {
	var peers []peer.ID
	for _, id := range ids {
		p, err := libp2pID(id)
		if err != nil {
			return fmt.Errorf("block: %w", err)
		}
		peers = append(peers, p)
	}
	h.blocked.replace(peers)
	for _, p := range peers {
		h.disconnect(p)
	}
	return nil
}
