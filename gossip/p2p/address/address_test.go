package address

import (
	"bytes"
	"crypto/ed25519"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"atoll/gossip/wire"
)

// someone is a peer.
func someone() wire.PeerID {
	return wire.PeerIDOf(ed25519.NewKeyFromSeed(bytes.Repeat([]byte{1}, ed25519.SeedSize)))
}

func TestPeerNamesRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.SliceOfN(rapid.Byte(), ed25519.SeedSize, ed25519.SeedSize).Draw(t, "seed")
		key := ed25519.NewKeyFromSeed(seed)
		id := wire.PeerIDOf(key)
		addr := "/ip4/192.0.2.1/tcp/4001/p2p/" + PeerText(id)
		if back, err := PeerIDOf(addr); err != nil || back != id {
			t.Fatalf("%s leads to %v, %v", addr, back, err)
		}
	})
}

func TestAddressErrors(t *testing.T) {
	const rsa = "QmYyQSo1c1Ym7orWxLYvCrM2EmxFTANf8wXmmE7DWjhx5N" // as libp2p calls a peer with such a key
	for addr, want := range map[string]string{
		"":                            "want something like",
		"192.0.2.1:4001":              "want something like",
		"/ip4/192.0.2.1/tcp/4001":     "has to end in /p2p/",
		"/p2p/" + PeerText(someone()): "names a peer but no place",
		"/ip4/192.0.2.1/tcp/4001/p2p/12D3KooWwrong": "want something like",
		"/ip4/192.0.2.1/tcp/4001/p2p/" + rsa:        "ed25519",
	} {
		if _, err := PeerIDOf(addr); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", addr, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("/ip4/192.0.2.1/tcp/4001/p2p/" + PeerText(someone()))
	f.Add("/p2p-circuit")
	f.Fuzz(func(t *testing.T, addr string) {
		place, id, err := Parse(addr)
		if err != nil {
			return
		}
		again := place.String() + "/p2p/" + PeerText(id)
		if _, back, err := Parse(again); err != nil || back != id {
			t.Errorf("%q, again %q: %v, %v", addr, again, back, err)
		}
	})
}
