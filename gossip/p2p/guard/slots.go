package guard

import (
	"net/netip"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
)

// guestSlotsAddress is how many slots guests have from one address (see Origin): the machines of a household.
const guestSlotsAddress = 8

// Slots bounds the slots that guests have at this relay. Their keys are free: whoever has a link for guests could take
// all slots, and members that need one would be reached by nobody. It is libp2p's ACLFilter.
type Slots struct {
	who    func(peer.ID) (here, guest bool)
	guests int           // how many slots guests have together
	keep   time.Duration // how long the relay keeps one that nobody asks for again

	mu   sync.Mutex
	held map[peer.ID]slot // by guests
}

// NewSlots returns one for a relay with so many slots, half of them for guests and half left for members. The relay keeps
// each so long. who reports whether a peer has passed the handshake, and whether it is a guest.
func NewSlots(all int, keep time.Duration, who func(peer.ID) (here, guest bool)) *Slots {
	return &Slots{who: who, guests: all / 2, keep: keep}
}

// slot is one that a guest has.
type slot struct {
	at    netip.Prefix // of the guest, see Origin
	until time.Time    // the relay keeps it, unless the guest asks again
}

// AllowReserve implements relay.ACLFilter.
func (r *Slots) AllowReserve(p peer.ID, from ma.Multiaddr) bool {
	here, guest := r.who(p)
	if !here {
		return false // its request waits for the handshake, so its connections have ended since
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !guest {
		delete(r.held, p) // it may have become a member
		return true
	}
	before, asksAgain := r.held[p]
	delete(r.held, p)
	at := Origin(from)
	if r.forgetOld(); !at.IsValid() || len(r.held) >= r.guests || r.from(at) >= guestSlotsAddress {
		if asksAgain {
			r.held[p] = before // the relay keeps it until its end
		}
		return false
	}
	if r.held == nil {
		r.held = map[peer.ID]slot{}
	}
	r.held[p] = slot{at, time.Now().Add(r.keep)}
	return true
}

// forgetOld forgets the slots of who is gone, and those that were not asked for again. The caller holds the lock.
func (r *Slots) forgetOld() {
	for p, s := range r.held {
		if here, _ := r.who(p); !here || !time.Now().Before(s.until) {
			delete(r.held, p)
		}
	}
}

// from is the number of slots of one origin. The caller holds the lock.
func (r *Slots) from(at netip.Prefix) (n int) {
	for _, s := range r.held {
		if s.at == at {
			n++
		}
	}
	return n
}

// AllowConnect implements relay.ACLFilter: who is at a slot may be reached by all of the run.
func (r *Slots) AllowConnect(peer.ID, ma.Multiaddr, peer.ID) bool { return true }
