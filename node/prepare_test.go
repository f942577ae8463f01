package node

import (
	"crypto/ed25519"
	"log/slog"
	"strings"
	"testing"

	"atoll/gossip/wire"
	"atoll/node/core"
	"atoll/node/store"
)

// prepared is a node of which no more is there than what a trainer is made from.
func prepared(t *testing.T, cfg Config) *node {
	t.Helper()
	cfg.Batch, cfg.Threads, cfg.Data, cfg.Log = 2, 1, toyText(t), slog.New(slog.DiscardHandler)
	n := newNode(cfg)
	key := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	n.genesis, n.record = toyGenesis(1000), &recordBox{key: key}
	n.run, n.self = n.genesis.RunID(), wire.PeerIDOf(key)
	must(t, n.record.set(n.firstRecord()))
	s, err := store.Open(cfg.Dir, n.run)
	must(t, err)
	n.store = s
	must(t, n.readText(t.Context()))
	t.Cleanup(func() { must(t, s.Close()) })
	return n
}

// A node that has the model to fetch is measured on its training thread. One that founds a run, or was here before, is at once.
func TestNewcomerIsMeasuredLater(t *testing.T) {
	if prepared(t, Config{Dir: t.TempDir()}).comesNew() {
		t.Error("a founder comes new")
	}
	n := prepared(t, Config{Dir: t.TempDir(), Peers: []string{peerAddr(1, "/ip4/127.0.0.1/tcp/1")}})
	must(t, n.prepareTrainer(t.Context()))
	before := n.record.get().TokensPerSecond
	if n.tune == nil || before != 0 {
		t.Fatalf("it was measured before it dialled anybody: %v tokens/s", before)
	}
	must(t, n.tune(t.Context()))
	if n.built.Steps() != 0 {
		t.Errorf("%d steps of what was tuned", n.built.Steps())
	}
	said := 0
	n.inbox.each(func(func(core.Time)) { said++ })
	if said != 1 {
		t.Errorf("the node hears %d times how it was tuned", said)
	}
	must(t, n.store.PutCheckpoint(strings.NewReader("state")))
	if n.comesNew() {
		t.Error("a node with a checkpoint comes new")
	}
}
