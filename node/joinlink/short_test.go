package joinlink

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"atoll/gossip/p2p/address"
	"atoll/gossip/wire"
)

// Addresses of the node that a link is for, and of others.
var (
	publicTCP   = peerAddr(1, "/ip4/5.0.0.1/tcp/27182")
	publicQUIC  = peerAddr(1, "/ip4/5.0.0.1/udp/27182/quic-v1")
	publicSix   = peerAddr(1, "/ip6/2600::1/tcp/27182")
	publicWeb   = peerAddr(1, "/ip4/5.0.0.1/tcp/443/ws")
	nearTCP     = peerAddr(1, "/ip4/192.168.1.5/tcp/27182")
	nearQUIC    = peerAddr(1, "/ip4/192.168.1.5/udp/27182/quic-v1")
	nearOther   = peerAddr(1, "/ip4/172.17.0.1/tcp/27182")
	loopback    = peerAddr(1, "/ip4/127.0.0.1/tcp/27182")
	relayTCP    = peerAddr(8, "/ip4/5.0.0.8/tcp/27182")
	relayQUIC   = peerAddr(8, "/ip4/5.0.0.8/udp/27182/quic-v1")
	relayWeb    = peerAddr(8, "/ip4/5.0.0.8/tcp/443")
	throughTCP  = peerAddr(1, relayTCP+"/p2p-circuit")
	throughQUIC = peerAddr(1, relayQUIC+"/p2p-circuit")
	throughNine = peerAddr(1, peerAddr(9, "/ip4/5.0.0.9/tcp/27182")+"/p2p-circuit")
)

func TestShort(t *testing.T) {
	for _, c := range []struct {
		name              string
		own, others, want []string
	}{
		{"nothing", nil, nil, nil},
		{"public", []string{nearTCP, publicQUIC, publicSix, publicTCP, loopback}, nil, []string{publicTCP, publicSix}},
		{"public, with another", []string{publicQUIC, publicTCP}, []string{relayQUIC, relayTCP}, []string{publicTCP, relayTCP}},
		{"public, on the web's port", []string{publicWeb, publicQUIC, publicTCP}, []string{relayTCP}, []string{publicTCP, publicWeb}},
		{"public of both families, with another", []string{publicSix, publicTCP}, []string{relayTCP}, []string{publicTCP, publicSix, relayTCP}},
		{"at home", []string{throughQUIC, nearTCP, throughTCP}, []string{relayQUIC, relayTCP}, []string{throughTCP, relayTCP}},
		{"at home, the relay on the web's port", []string{throughTCP}, []string{relayTCP, relayWeb}, []string{throughTCP, relayWeb}},
		{"at home, with two places", []string{throughTCP, throughNine}, nil, []string{throughTCP, throughNine}},
		{"one network", []string{nearQUIC, nearTCP, nearOther, loopback}, []string{relayTCP}, []string{nearTCP, nearOther}},
		{"one machine", []string{loopback}, []string{nearTCP}, []string{loopback}},
	} {
		if got := Short(wire.RunID{1}, c.own, c.others); !slices.Equal(got.Peers, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got.Peers, c.want)
		}
	}
}

// A short link names up to three of the addresses that it is made from, and the first leads to the
// node from as far as any of its own does.
func TestShortIsOfWhatThereIs(t *testing.T) {
	all := []string{publicTCP, publicQUIC, publicSix, publicWeb, nearTCP, nearOther, loopback, throughTCP, throughNine}
	others := []string{relayTCP, relayQUIC, relayWeb, peerAddr(7, "/ip4/192.168.1.9/tcp/1")}
	rapid.Check(t, func(t *rapid.T) {
		own := rapid.SliceOfDistinct(rapid.SampledFrom(all), rapid.ID).Draw(t, "own")
		rest := rapid.SliceOfDistinct(rapid.SampledFrom(others), rapid.ID).Draw(t, "others")
		got := Short(wire.RunID{1}, slices.Clone(own), slices.Clone(rest)).Peers
		if len(got) > 3 || len(own) > 0 && (len(got) == 0 || !slices.Contains(own, got[0])) {
			t.Fatalf("%q", got)
		}
		for _, a := range got {
			if !slices.Contains(append(own, rest...), a) {
				t.Errorf("%q is made up", a)
			}
		}
		if slices.ContainsFunc(own, address.FromAnywhere) && !address.FromAnywhere(got[0]) {
			t.Errorf("%q leads nowhere from outside, though one of %q does", got[0], own)
		}
	})
}

// A relay is asked as well when the peer behind it may be gone.
func TestPlaces(t *testing.T) {
	if got, want := WithRelays([]string{throughTCP, publicTCP}), []string{throughTCP, publicTCP, relayTCP}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := WithRelays([]string{throughTCP, relayTCP}); len(got) != 2 {
		t.Errorf("%q", got)
	}
}

// The run alone is a link as well.
func TestParseRun(t *testing.T) {
	run := wire.RunID{0xab, 1}
	text, err := run.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	if l, err := Parse(" " + string(text) + "\n"); err != nil || l.Run != run || len(l.Peers) != 0 {
		t.Errorf("%+v, %v", l, err)
	}
}
