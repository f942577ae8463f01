package guard

import (
	"sync"

	"github.com/libp2p/go-libp2p/core/control"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
)

// Blocked is the set of peers that are kept away. It is libp2p's
// ConnectionGater; without a connection there is neither gossip nor a request.
type Blocked struct {
	mu    sync.Mutex
	peers map[peer.ID]struct{}
}

// NewBlocked returns an empty one.
func NewBlocked() *Blocked { return &Blocked{peers: map[peer.ID]struct{}{}} }

// Has reports whether a peer is kept away.
func (b *Blocked) Has(p peer.ID) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, is := b.peers[p]
	return is
}

// Replace has these peers kept away, and no others.
func (b *Blocked) Replace(peers []peer.ID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	clear(b.peers)
	for _, p := range peers {
		b.peers[p] = struct{}{}
	}
}

// InterceptPeerDial implements connmgr.ConnectionGater.
func (b *Blocked) InterceptPeerDial(p peer.ID) bool { return !b.Has(p) }

// InterceptAddrDial implements connmgr.ConnectionGater.
func (b *Blocked) InterceptAddrDial(p peer.ID, _ ma.Multiaddr) bool { return !b.Has(p) }

// InterceptAccept implements connmgr.ConnectionGater: who it is shows later.
func (b *Blocked) InterceptAccept(network.ConnMultiaddrs) bool { return true }

// InterceptSecured implements connmgr.ConnectionGater.
func (b *Blocked) InterceptSecured(_ network.Direction, p peer.ID, _ network.ConnMultiaddrs) bool {
	return !b.Has(p)
}

// InterceptUpgraded implements connmgr.ConnectionGater.
func (b *Blocked) InterceptUpgraded(c network.Conn) (bool, control.DisconnectReason) {
	return !b.Has(c.RemotePeer()), 0
}
