package node

import (
	"slices"
	"testing"
)

func TestListenAddrs(t *testing.T) {
	const id = "/p2p/12D3KooWCaj5WvhrtZ9tgUf8yP33JjVrtLWQcvqb9FdrVhqVvRfP"
	for _, c := range []struct {
		name       string
		addrs, out []string
	}{
		{"loopback only", []string{"/ip4/127.0.0.1/tcp/4001" + id}, []string{"/ip4/127.0.0.1/tcp/4001"}},
		{"every interface, each port once",
			[]string{"/ip4/127.0.0.1/tcp/4001" + id, "/ip4/192.0.2.7/tcp/4001" + id, "/ip4/192.0.2.7/udp/4002/quic-v1" + id},
			[]string{"/ip4/0.0.0.0/tcp/4001", "/ip4/0.0.0.0/udp/4002/quic-v1"}},
		{"no relays, no names", []string{"/ip4/192.0.2.9/tcp/1/p2p/X/p2p-circuit" + id, "/dns4/example.org/tcp/1" + id}, nil},
	} {
		if got := listenAddrs(c.addrs); !slices.Equal(got, c.out) {
			t.Errorf("%s: %q, want %q", c.name, got, c.out)
		}
	}
}
