package p2p

import (
	"slices"
	"strings"
	"testing"

	ma "github.com/multiformats/go-multiaddr"
)

// mapping is a router that forwards all ports of a machine to one address.
type mapping struct{ to string }

func (m mapping) GetMapping(a ma.Multiaddr) ma.Multiaddr {
	_, rest := ma.SplitFirst(a)
	return ma.StringCast(m.to).Encapsulate(rest)
}
func (mapping) HasDiscoveredNAT() bool { return true }
func (mapping) Close() error           { return nil }

// Where a router says that it forwards ports, the address is told to peers and to libp2p; not
// where the router is behind another one itself.
func TestForwardedPortsAreTold(t *testing.T) {
	for to, public := range map[string]bool{"/ip4/5.0.0.9": true, "/ip4/100.64.0.9": false, "/ip4/192.168.7.9": false} {
		inWorld(t, rate, delay, func(t *testing.T, w *world) {
			h := w.abroad(1, true, func(h *Host) { h.ports = mapping{to} })
			told := func(addrs []string) bool {
				return slices.ContainsFunc(addrs, func(s string) bool { return strings.HasPrefix(s, to+"/udp/8000/quic-v1") })
			}
			if got := h.Reach().Outside; told(got) != public {
				t.Errorf("forwarded at %s: tells %v", to, got)
			}
			if e := next[Addresses](t, h); told(e.Outside) && !public {
				t.Errorf("forwarded at %s: says %v", to, e.Outside)
			}
			var known []string
			for _, a := range h.onlyTrue([]ma.Multiaddr{ma.StringCast(to + "/udp/8000/quic-v1")}) {
				known = append(known, a.String())
			}
			if public && !told(known) {
				t.Errorf("forwarded at %s: libp2p knows %v", to, known)
			}
		})
	}
}

// A node has moved when an address of its own is gone. A relay that is gone, or an address
// more, breaks no connection.
func TestAddressesLack(t *testing.T) {
	const own, other, relayed = "/ip4/192.168.1.2/tcp/1/p2p/x", "/ip4/192.168.1.3/tcp/1/p2p/x", "/ip4/5.0.0.1/tcp/1/p2p/r/p2p-circuit/p2p/x"
	before := Addresses{Outside: []string{relayed}, Near: []string{own}}
	for _, c := range []struct {
		name  string
		now   Addresses
		moved bool
	}{
		{"the same", before, false},
		{"without the relay", Addresses{Near: []string{own}}, false},
		{"one more", Addresses{Outside: []string{relayed}, Near: []string{own, other}}, false},
		{"public by now", Addresses{Outside: []string{own}, Public: true}, false},
		{"another", Addresses{Outside: []string{relayed}, Near: []string{other}}, true},
		{"none", Addresses{}, true},
	} {
		if got := c.now.lacks(before); got != c.moved {
			t.Errorf("%s: moved %v", c.name, got)
		}
		if c.now.equal(before) != (c.name == "the same") {
			t.Errorf("%s: equal", c.name)
		}
	}
}
