package p2p

import "testing"

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
