package guard

import (
	"testing"

	ma "github.com/multiformats/go-multiaddr"
)

// Peers of one owner have one origin, whatever address of theirs they take, and a relayed connection is of its relay.
func TestOrigin(t *testing.T) {
	relayed := "/p2p/12D3KooWGC6TvWhfapngX6wvJHMYvKpDMXPb3ZnCZ6dMoaMtimQ5/p2p-circuit"
	for addr, want := range map[string]string{
		"/ip4/192.0.2.7/tcp/4001":           "192.0.2.7/32",
		"/ip4/192.0.2.7/udp/1/quic-v1":      "192.0.2.7/32",
		"/ip6/::ffff:192.0.2.7/tcp/1":       "192.0.2.7/32",
		"/ip6/2001:db8:1:2ff:1:2:3:4/tcp/1": "2001:db8:1:200::/56",
		"/ip6/2001:db8:1:200::9/tcp/2":      "2001:db8:1:200::/56",
		"/ip6zone/eth0/ip6/fe80::1/tcp/1":   "fe80::/56",
		"/ip4/192.0.2.7/tcp/4001" + relayed: "192.0.2.7/32",
		"/dns4/example.org/tcp/1":           "invalid Prefix",
		relayed:                             "invalid Prefix",
	} {
		if got := Origin(ma.StringCast(addr)).String(); got != want {
			t.Errorf("%s is of %s, want %s", addr, got, want)
		}
	}
}
