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
	a.core.env.peers.find(wire.PeerID{3}).refused = "lies"
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

// Two chains have in common what peers on the other one have shown. What a peer
// shows that left with this node does not count, nor what it shows now.
func TestCommonWith(t *testing.T) {
	a := specAlone()
	show := func(id byte, closed uint32, same bool) {
		a.core.env.peers.find(wire.PeerID{id}).heartbeats.equal = []uint32{closed}
		a.core.env.peers.find(wire.PeerID{id}).heartbeats.apart = map[bool]int{false: heartbeatsToRepair}[same]
	}
	for id := range byte(5) {
		a.up(id + 1)
	}
	a.core.env.common = []uint32{9}
	common := func(id byte) uint32 { return a.core.Chains().CommonWith(wire.PeerID{id})[0] }
	if got := common(1); got != 9 {
		t.Errorf("%d in common with one that showed nothing, 9 with all", got)
	}
	show(1, 4, false)
	show(2, 9, true)
	show(3, 6, false)
	for id, want := range map[byte]uint32{1: 4, 2: 9, 3: 6, 4: 4, 77: 4} {
		if got := common(id); got != want {
			t.Errorf("%d in common with peer %d, want %d", got, id, want)
		}
	}
}

// A snapshot of another chain has only that in common with the chain before which both
// had.
func TestCommonAfterSnapshot(t *testing.T) {
	a := specAlone(1, 2)
	for id, closed := range map[byte]uint32{1: 900, 2: 400} {
		a.core.env.peers.find(wire.PeerID{id}).heartbeats.equal = []uint32{closed, closed}
	}
	a.core.env.common = []uint32{900, 900}
	a.core.Installed(a.now, []uint32{500, 1000}, nil)
	for id, want := range map[byte][]uint32{1: {500, 900}, 2: {400, 400}} {
		if got := a.core.Chains().CommonWith(wire.PeerID{id}); !slices.Equal(got, want) {
			t.Errorf("%d in common with peer %d, want %d", got, id, want)
		}
	}
	if got := a.core.Chains().Common(); !slices.Equal(got, []uint32{500, 900}) {
		t.Errorf("%d in common with some", got)
	}
}
