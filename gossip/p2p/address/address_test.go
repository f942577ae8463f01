package address

import (
	"bytes"
	"crypto/ed25519"
	"strings"
	"testing"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"
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
		if back, err := ParsePeer(PeerText(id)); err != nil || back != id {
			t.Fatalf("%v came back as %v, %v", id, back, err)
		}
		addr, err := Of("/ip4/192.0.2.1/tcp/4001", id)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := PeerIDOf(addr); err != nil || back != id {
			t.Fatalf("%s leads to %v, %v", addr, back, err)
		}
	})
}

func TestAddressErrors(t *testing.T) {
	_, rsa, err := crypto.GenerateKeyPair(crypto.RSA, 2048)
	if err != nil {
		t.Fatal(err)
	}
	other, err := peer.IDFromPublicKey(rsa)
	if err != nil {
		t.Fatal(err)
	}
	for addr, want := range map[string]string{
		"":                            "want something like",
		"192.0.2.1:4001":              "want something like",
		"/ip4/192.0.2.1/tcp/4001":     "has to end in /p2p/",
		"/p2p/" + PeerText(someone()): "names a peer but no place",
		"/ip4/192.0.2.1/tcp/4001/p2p/12D3KooWwrong":     "want something like",
		"/ip4/192.0.2.1/tcp/4001/p2p/" + other.String(): "ed25519",
	} {
		if _, err := PeerIDOf(addr); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", addr, err, want)
		}
	}
	if _, err := Of("somewhere", someone()); err == nil {
		t.Error("address \"somewhere\" was accepted")
	}
	if _, err := ParsePeer("me"); err == nil || !strings.Contains(err.Error(), "/p2p/") {
		t.Errorf("peer \"me\": %v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("/ip4/192.0.2.1/tcp/4001/p2p/" + PeerText(someone()))
	f.Add("/p2p-circuit")
	f.Fuzz(func(t *testing.T, addr string) {
		info, id, err := Parse(addr)
		if err != nil {
			return
		}
		if back, err := PeerID(info.ID); err != nil || back != id || len(info.Addrs) == 0 {
			t.Errorf("%q: %v, %v", addr, info, err)
		}
	})
}
