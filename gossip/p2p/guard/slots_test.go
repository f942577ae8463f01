package guard

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
)

// A relay for tests.
const (
	all  = 128
	keep = time.Hour
)

// Guests that are gone keep no slots, nor do those that became members.
func TestSlotsOfWhoIsNoGuest(t *testing.T) {
	guests := true
	r := NewSlots(all, keep, func(peer.ID) (bool, bool) { return true, guests })
	ask := func(n int) bool {
		return r.AllowReserve(peer.ID(fmt.Sprint(n)), ma.StringCast("/ip4/10.0.0.1/tcp/1"))
	}
	for n := range guestSlotsAddress {
		if !ask(n) {
			t.Fatalf("guest %d has no slot", n)
		}
	}
	r.who = func(p peer.ID) (bool, bool) { return p == "40", guests }
	if !ask(40) || len(r.held) != 1 {
		t.Errorf("%d guests that are gone keep their slots", len(r.held)-1)
	}
	guests = false
	if !ask(40) || len(r.held) != 0 {
		t.Error("a guest that became a member counts as a guest")
	}
}

// A slot that its guest asks for no more counts until the relay gives it up, and no longer.
func TestPlacesOfGuestsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewSlots(all, keep, func(peer.ID) (here, guest bool) { return true, true })
		ask := func(n int) bool {
			return r.AllowReserve(peer.ID(fmt.Sprint(n)), ma.StringCast("/ip4/10.0.0.1/tcp/1"))
		}
		for n := range guestSlotsAddress {
			if !ask(n) {
				t.Fatalf("guest %d has no slot", n)
			}
		}
		time.Sleep(keep / 2)
		if !ask(0) {
			t.Error("a guest that asks again loses its slot")
		}
		time.Sleep(keep/2 - time.Second)
		if ask(100) {
			t.Error("a slot that the relay keeps is given twice")
		}
		time.Sleep(time.Second)
		for n := range guestSlotsAddress - 1 {
			if !ask(200 + n) {
				t.Errorf("slot %d counts after its end", n)
			}
		}
		if ask(300) {
			t.Error("the slot of who asked again does not count")
		}
	})
}

// A guest that is refused a slot from another address keeps the one that it has, as the relay does:
// else an address would have as many as it has guests.
func TestRefusedGuestKeepsItsSlot(t *testing.T) {
	r := NewSlots(all, keep, func(peer.ID) (here, guest bool) { return true, true })
	ask := func(n int, from string) bool { return r.AllowReserve(peer.ID(fmt.Sprint(n)), ma.StringCast(from)) }
	const near, other = "/ip4/10.0.0.1/tcp/1", "/ip4/10.0.0.2/tcp/1"
	for n := range guestSlotsAddress {
		if !ask(n, near) || !ask(1000+n, other) {
			t.Fatalf("guest %d has no slot", n)
		}
	}
	for n := range guestSlotsAddress {
		if ask(n, other) || ask(n, "/dns4/example.org/tcp/1") {
			t.Errorf("guest %d has a slot where none is left", n)
		}
	}
	if ask(100, near) {
		t.Error("slots that the relay keeps are given twice")
	}
}
