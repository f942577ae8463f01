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
		a.core.PeerUp(a.now, id, hello.Signed{Bytes: []byte{1}}, hello.Record{Seq: 1, Addrs: []string{addr, addr + " too"}}, hello.Session{})
		if addr != "connected" {
			a.core.PeerDown(a.now, id)
		}
	}
	a.core.peers.find(wire.PeerID{3}).refused = "lies"
	all := []string{"connected", "connected too", "second", "second too", "first", "first too"}
	for most := range len(all) + 2 {
		if got := a.core.Contacts(most); !slices.Equal(got, all[:min(most, len(all))]) {
			t.Errorf("at most %d: %q", most, got)
		}
	}
}

// A round is closed elsewhere when most of those with standing say so.
func TestClosedElsewhere(t *testing.T) {
	a := specAlone()
	a.chain.standing = map[wire.PeerID]bool{{1}: true, {2}: true, {3}: true}
	for id, closed := range map[byte]uint32{1: 5, 2: 7, 3: 4, 4: 90} {
		a.up(id)
		a.told(id, func(b *wire.Beat) { b.Closed[0] = closed })
	}
	for round, want := range map[uint32]bool{4: true, 5: true, 6: false, 7: false, 90: false} {
		if got := a.core.Closed(0, round); got != want {
			t.Errorf("round %d: closed elsewhere %v", round, got)
		}
	}
}
