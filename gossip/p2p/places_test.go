package p2p

import (
	"bytes"
	"crypto/ed25519"
	"fmt"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"

	"atoll/gossip/member"
	"atoll/gossip/wire/spectest"
)

// Guests of one address have few places, all of them half, and members get the others.
func specPlacesOfGuests(t *testing.T, s *spectest.Spec) {
	together, near := int(s.Number(t, "connections", "places of guests")), int(s.Number(t, "connections", "places of an address"))
	there, guests := map[peer.ID]bool{}, true
	r := &places{guest: func(peer.ID) bool { return guests }, there: func(p peer.ID) bool { return there[p] }}
	ask := func(address, n int) bool {
		p := peer.ID(fmt.Sprint(address, " ", n))
		there[p] = true
		return r.AllowReserve(p, ma.StringCast(fmt.Sprintf("/ip4/10.0.0.%d/tcp/%d", address, 1000+n)))
	}
	got := 0
	for address := range 32 {
		for n := range 128 {
			if ask(address, n) {
				got++
			}
		}
		if address == 0 && got != near {
			t.Errorf("one address has %d places, want %d", got, near)
		}
	}
	if got != together {
		t.Errorf("guests have %d places, want %d", got, together)
	}
	for range 3 {
		if !ask(0, 0) {
			t.Error("who has a place does not keep it")
		}
	}
	clear(there)
	if !ask(40, 0) || len(r.held) != 1 {
		t.Errorf("%d guests that are gone keep their places", len(r.held)-1)
	}
	guests = false
	for n := range maxReservations {
		if !ask(50, n) {
			t.Fatalf("member %d gets no place", n)
		}
	}
	if ask(40, 0); len(r.held) != 0 {
		t.Error("a guest that became a member counts as a guest")
	}
}

// A relay knows guests by their certificates, and asks before it gives a place.
func specRelayBoundsGuests(t *testing.T, _ *spectest.Spec) {
	inWorld(t, rate, delay, func(t *testing.T, w *world) {
		a, c := w.abroad(1, false), w.abroad(3, true)
		p := newPerson(2)
		key := func(n byte) ed25519.PrivateKey {
			return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{n}, ed25519.SeedSize))
		}
		certificate, err := member.Issue(key(90), testRun, member.Invite{Guests: true}, key(91)).Admit(testRun, p.key)
		if err != nil {
			t.Fatal(err)
		}
		p.record.Certificate = certificate.Encode()
		cfg := p.config()
		cfg.Profile = WAN
		b := w.hostWith(cfg, func(h *Host) { alone(h); h.openUDP = firewalled(h.openUDP) })
		join(t, b, a)
		join(t, c, a)
		time.Sleep(time.Second)
		if !a.isGuest(b.pid) || a.isGuest(c.pid) {
			t.Fatalf("takes the guest for one: %v, the member: %v", a.isGuest(b.pid), a.isGuest(c.pid))
		}
		a.places.mu.Lock()
		a.places.there, a.places.held = func(peer.ID) bool { return true }, map[peer.ID]string{}
		for i := range guestPlaces {
			a.places.held[peer.ID(fmt.Sprint(i))] = "10.0.0.1"
		}
		a.places.mu.Unlock()
		b.Reserve(a.ID())
		if e := next[Reserved](t, b); e.Err == nil {
			t.Error("a guest gets a place beyond those for guests")
		}
		placed(t, a, c)
	})
}
