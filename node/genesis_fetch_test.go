package node

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"strings"
	"testing"

	"atoll/gossip/p2p"
	"atoll/gossip/wire"
)

// listening is a node of the run on this machine that does nothing but serve what it
// says is the genesis.
func listening(t *testing.T, seed byte, run wire.RunID, serves []byte) *node {
	t.Helper()
	cfg, err := Config{Dir: t.TempDir(), Observe: true, Profile: p2p.Local, Listen: []string{"/ip4/127.0.0.1/tcp/0"}}.withDefaults()
	must(t, err)
	n := newNode(cfg)
	n.key = ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize))
	n.self, n.run = wire.PeerIDOf(n.key), run
	must(t, n.listen())
	t.Cleanup(func() { n.host.Close() })
	n.host.Handle(func(context.Context, wire.PeerID, []byte) []byte {
		return wire.Response{Status: wire.OK, Body: serves}.Encode()
	})
	return n
}

// A peer that serves another document than the run's is not believed: the next one is asked.
func TestGenesisOfAnotherRunIsNotTaken(t *testing.T) {
	t.Parallel()
	right := toyGenesis(1000)
	other := right
	other.Outer.Budget++
	run := right.RunID()
	asker, liar, honest := listening(t, 1, run, nil), listening(t, 2, run, other.Encode()), listening(t, 3, run, right.Encode())
	at := func(n *node) string { return n.host.Addrs()[0] }
	_, err := asker.genesisFrom(t.Context(), p2p.Hint{ID: liar.self, Addrs: liar.host.Addrs()})
	if err == nil || !strings.Contains(err.Error(), "it is of run "+other.RunID().String()) {
		t.Errorf("error %v", err)
	}
	asker.dials = []string{at(liar), at(honest)}
	if err := asker.learnGenesis(t.Context()); err != nil || asker.genesis.RunID() != run {
		t.Errorf("of run %v, want %v; %v", asker.genesis.RunID(), run, err)
	}
}
