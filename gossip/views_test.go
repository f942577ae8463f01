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
