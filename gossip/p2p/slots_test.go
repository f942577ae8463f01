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
	"atoll/gossip/p2p/guard"
	"atoll/gossip/wire/spectest"
)

// Guests of one address have few slots, all of them half, and members get the others.
func specPlacesOfGuests(t *testing.T, s *spectest.Spec) {
	together, near := int(s.Number(t, "connections", "slots of guests")), int(s.Number(t, "connections", "slots of an address"))
	for _, address := range []string{"/ip4/10.0.0.%d/tcp/%d", "/ip6/2001:db8:0:%d00::%x/tcp/1", "/ip6/2001:db8:0:%d00:1:2::/udp/%d/quic-v1"} {
		testPlacesOfGuests(t, together, near, address)
	}
}

func testPlacesOfGuests(t *testing.T, together, near int, address string) {
	here, guests := map[peer.ID]bool{}, true
	r := guard.NewSlots(maxReservations, reservationTTL, func(p peer.ID) (bool, bool) { return here[p], guests })
	ask := func(at, n int) bool {
		p := peer.ID(fmt.Sprint(at, " ", n))
		here[p] = true
		return r.AllowReserve(p, ma.StringCast(fmt.Sprintf(address, at, 1000+n)))
	}
	got := 0
	for at := range 32 {
		for n := range 128 {
			if ask(at, n) {
				got++
			}
		}
		if at == 0 && got != near {
			t.Errorf("one address has %d slots, want %d", got, near)
		}
	}
	if got != together {
		t.Errorf("guests have %d slots, want %d", got, together)
	}
	for range 3 {
		if !ask(0, 0) {
			t.Error("who has a slot does not keep it")
		}
	}
	clear(here)
	guests = false
	for n := range maxReservations {
		if !ask(50, n) {
			t.Fatalf("member %d gets no slot", n)
		}
	}
}

// Who has not passed the handshake has no slot, whatever it is. A request that comes early waits for the handshake.
func TestNoSlotBeforeTheHandshake(t *testing.T) {
	inWorld(t, rate, delay, func(t *testing.T, w *world) {
		over := make(chan struct{})
		a, early, b := w.abroad(1, false), silent(w.host, 9, over), w.abroad(3, true)
		connect(t, early, a)
		time.Sleep(time.Second)
		if a.peers.get(early.pid) == nil {
			t.Fatal("there is no connection")
		}
		if a.slots.AllowReserve(early.pid, ma.StringCast("/ip4/10.0.0.1/tcp/1")) {
			t.Error("a peer of which nothing is known gets a slot")
		}
		close(over)
		dialled := make(chan error, 1)
		go func() { _, err := b.Dial(t.Context(), publicAddr(a)); dialled <- err }()
		for b.peers.get(a.pid) == nil {
			time.Sleep(delay / 10)
		}
		b.Reserve(a.ID()) // as early as it can
		if e := next[Reserved](t, b); e.Err != nil {
			t.Errorf("who asks while its handshake is under way: %v", e.Err)
		}
		if err := <-dialled; err != nil {
			t.Error(err)
		}
	})
}

// A relay knows guests by their certificates, and asks before it gives a slot.
func specRelayBoundsGuests(t *testing.T, _ *spectest.Spec) {
	inWorld(t, rate, delay, func(t *testing.T, w *world) {
		others := map[peer.ID]bool{}
		a, c := w.abroad(1, false, func(h *Host) {
			h.slots = guard.NewSlots(maxReservations, reservationTTL, func(p peer.ID) (here, guest bool) {
				if others[p] {
					return true, true
				}
				return h.standing(p)
			})
		}), w.abroad(3, true)
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
		isGuest := func(h *Host) bool { here, guest := a.standing(h.pid); return here && guest }
		if !isGuest(b) || isGuest(c) {
			t.Fatalf("takes the guest for one: %v, the member: %v", isGuest(b), isGuest(c))
		}
		for i := range maxReservations / 2 {
			other := peer.ID(fmt.Sprint(i))
			others[other] = true
			if !a.slots.AllowReserve(other, ma.StringCast(fmt.Sprintf("/ip4/10.0.0.%d/tcp/1", i))) {
				t.Fatalf("guest %d gets no slot", i)
			}
		}
		b.Reserve(a.ID())
		if e := next[Reserved](t, b); e.Err == nil {
			t.Error("a guest gets a slot beyond those for guests")
		}
		placed(t, a, c)
	})
}
