package node

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"atoll/gossip/p2p/address"
	"atoll/gossip/wire"
	"atoll/node/joinlink"
	"atoll/node/store"
)

// A start without the link goes on trusting those that it named, and dials those
// that were met later without trusting them.
func TestRecallTrustsOnlyTheLink(t *testing.T) {
	named, met, given := peerAddr(1, "/ip4/192.0.2.1/tcp/1"), peerAddr(2, "/ip4/192.0.2.2/tcp/1"), peerAddr(3, "/ip4/192.0.2.3/tcp/1")
	b, err := json.Marshal(store.Contacts{Named: []string{named}, Peers: []string{met}})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, store.ContactsFile), b, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name         string
		cfg          Config
		addrs, named []string
		met          []string // asked beside these, without being trusted
	}{
		{"nothing named", Config{}, []string{named, met}, []string{named}, nil},
		{"another link", Config{Link: joinlink.Link{Peers: []string{given}}}, []string{given}, []string{given}, []string{met}},
		{"an address", Config{Peers: []string{given}}, []string{given}, []string{named}, []string{met}},
	} {
		c.cfg.Dir = dir
		n := &node{cfg: c.cfg, log: slog.New(slog.DiscardHandler)}
		if err := n.recall(); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(n.dials, c.addrs) || !slices.Equal(n.linked, c.named) || !slices.Equal(n.named, peerIDs(c.named)) || !slices.Equal(n.met, c.met) {
			t.Errorf("%s: dials %q, trusts %q %v, asks %q; want %q, %q, %q", c.name, n.dials, n.linked, n.named, n.met, c.addrs, c.named, c.met)
		}
	}
}

// peerAddr is the address of a peer that does not exist.
func peerAddr(seed byte, transport string) string {
	key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize))
	return transport + "/p2p/" + address.PeerText(wire.PeerIDOf(key))
}
