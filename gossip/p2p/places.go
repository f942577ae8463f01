package p2p

import (
	"sync"

	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"

	"atoll/gossip/member"
)

// places bounds the places that guests have at this relay. Their keys are free: whoever has a link for guests could take
// all places, and members that need one would be reached by nobody. It is libp2p's ACLFilter.
type places struct {
	guest func(peer.ID) bool
	there func(peer.ID) bool // it has passed the handshake and is connected

	mu   sync.Mutex
	held map[peer.ID]string // by guests, and from where
}

// AllowReserve implements relay.ACLFilter.
func (r *places) AllowReserve(p peer.ID, from ma.Multiaddr) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.guest(p) {
		delete(r.held, p) // it became a member
		return true
	}
	ip, err := manet.ToIP(from)
	if err != nil {
		return false
	}
	address, near := ip.String(), 0
	for other, at := range r.held {
		switch {
		case other == p, !r.there(other):
			delete(r.held, other)
		case at == address:
			near++
		}
	}
	if len(r.held) >= guestPlaces || near >= guestPlacesAddress {
		return false
	}
	if r.held == nil {
		r.held = map[peer.ID]string{}
	}
	r.held[p] = address
	return true
}

// AllowConnect implements relay.ACLFilter: who is at a place may be reached by all of the run.
func (r *places) AllowConnect(peer.ID, ma.Multiaddr, peer.ID) bool { return true }

// isGuest reports whether a connected peer came by an invite for guests.
func (h *Host) isGuest(p peer.ID) bool {
	h.peers.mu.Lock()
	defer h.peers.mu.Unlock()
	l := h.peers.links[p]
	if l == nil {
		return false
	}
	c, err := member.CertificateIn(l.record)
	return err == nil && c.Invite.Guests
}
