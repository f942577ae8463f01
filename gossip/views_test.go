package gossip

import (
	"slices"
	"testing"

	"atoll/gossip/hello"
	"atoll/gossip/wire"
)

// Who is connected is remembered first, then who was heard last, and nobody who broke
// the protocol.
func TestContacts(t *testing.T) {
	a := newAlone()
	for i, addr := range []string{"", "first", "second", "refused", "connected"} {
		if addr == "" {
			continue
		}
		id := wire.PeerID{byte(i)}
		a.now += 100
		a.core.Step(a.now, PeerUp{Peer: id, Signed: hello.Signed{Bytes: []byte{1}}, Record: hello.Record{Seq: 1, Addrs: []string{addr, addr + " too"}}})
		if addr != "connected" {
			a.core.Step(a.now, PeerDown{Peer: id})
		}
	}
	a.core.env.Find(wire.PeerID{3}).Refused = "lies"
	want := []string{"connected", "connected too", "second", "second too", "first", "first too"}
	if got := a.core.Peers().Contacts(); !slices.Equal(got, want) {
		t.Errorf("remembers %q, want %q", got, want)
	}
	for i := range byte(MaxContacts) {
		a.core.Step(a.now, PeerUp{Peer: wire.PeerID{9, i}, Signed: hello.Signed{Bytes: []byte{1}}, Record: hello.Record{Seq: 1, Addrs: []string{"1", "2", "3", "4", "5"}}})
	}
	if got := a.core.Peers().Contacts(); len(got) != MaxContacts || slices.Contains(got, "5") {
		t.Errorf("remembers %d addresses, want %d and at most four of a peer: %q", len(got), MaxContacts, got)
	}
}

// A round is closed elsewhere when most contributors say so.
func TestClosedElsewhere(t *testing.T) {
	a := specAlone()
	a.chain.contributed = map[wire.PeerID]bool{{1}: true, {2}: true, {3}: true}
	for id, closed := range map[byte]uint32{1: 5, 2: 7, 3: 4, 4: 90} {
		a.up(id)
		a.told(id, func(b *wire.Heartbeat) { b.Closed[0] = closed })
	}
	for round, want := range map[uint32]bool{4: true, 5: true, 6: false, 7: false, 90: false} {
		if got := a.core.Chains().ClosedByMost(0, round); got != want {
			t.Errorf("round %d: closed elsewhere %v", round, got)
		}
	}
}
