package p2p

import (
	"net/netip"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"

	"atoll/gossip/member"
)

// slots bounds the slots that guests have at this relay. Their keys are free: whoever has a link for guests could take
// all slots, and members that need one would be reached by nobody. It is libp2p's ACLFilter.
type slots struct {
	who func(peer.ID) (here, guest bool)

	mu   sync.Mutex
	held map[peer.ID]slot // by guests
}

// slot is one that a guest has.
type slot struct {
	at    netip.Prefix // of the guest, see originOf
	until time.Time    // the relay keeps it, unless the guest asks again
}

// AllowReserve implements relay.ACLFilter.
func (r *slots) AllowReserve(p peer.ID, from ma.Multiaddr) bool {
	here, guest := r.who(p)
	if !here {
		return false // relayHost has its request wait for the handshake, so its connections have ended since
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !guest {
		delete(r.held, p) // it may have become a member
		return true
	}
	before, asksAgain := r.held[p]
	delete(r.held, p)
	at := originOf(from)
	if r.forgetOld(); !at.IsValid() || len(r.held) >= guestSlots || r.from(at) >= guestSlotsAddress {
		if asksAgain {
			r.held[p] = before // the relay keeps it until its end
		}
		return false
	}
	if r.held == nil {
		r.held = map[peer.ID]slot{}
	}
	r.held[p] = slot{at, time.Now().Add(reservationTTL)}
	return true
}

// forgetOld forgets the slots of who is gone, and those that were not asked for again. The caller holds the lock.
func (r *slots) forgetOld() {
	for p, place := range r.held {
		if here, _ := r.who(p); !here || !time.Now().Before(place.until) {
			delete(r.held, p)
		}
	}
}

// from is the number of slots of one origin. The caller holds the lock.
func (r *slots) from(at netip.Prefix) (n int) {
	for _, place := range r.held {
		if place.at == at {
			n++
		}
	}
	return n
}

// AllowConnect implements relay.ACLFilter: who is at a slot may be reached by all of the run.
func (r *slots) AllowConnect(peer.ID, ma.Multiaddr, peer.ID) bool { return true }

// standing reports whether a peer is connected and has passed the handshake, and whether it came by an invite for guests.
func (h *Host) standing(p peer.ID) (here, guest bool) {
	h.peers.mu.Lock()
	defer h.peers.mu.Unlock()
	l := h.peers.links[p]
	if l == nil || !l.passed {
		return false, false
	}
	c, err := member.CertificateIn(l.record)
	return true, err == nil && c.Invite.Guests
}
