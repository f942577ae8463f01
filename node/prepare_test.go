package node

import (
	"crypto/ed25519"
	"log/slog"
	"strings"
	"testing"

	"atoll/gossip/wire"
	"atoll/node/core"
	"atoll/node/genesis"
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
	t.Cleanup(func() { must(t, s.Close()) })
	return n
}

// A node that has the model to fetch reads its text and is measured on its training thread. One that founds a run, or was here
// before, does so at once.
func TestNewcomerPreparesLater(t *testing.T) {
	if prepared(t, Config{Dir: t.TempDir()}).preparesLater() {
		t.Error("a founder lets others wait")
	}
	n := prepared(t, Config{Dir: t.TempDir(), Peers: []string{peerAddr(1, "/ip4/127.0.0.1/tcp/1")}})
	must(t, n.prepare(t.Context()))
	before := n.record.get().TokensPerSecond
	if n.tune == nil || before != 0 || n.data != nil {
		t.Fatalf("it was measured before it dialled anybody, or read its text: %v tokens/s", before)
	}
	for p, tip := range n.genesis.Tips() {
		if n.firstTips()[p].State != tip.State {
			t.Errorf("fragment %d of the trainer's first values is not the run's", p)
		}
	}
	must(t, n.tune(t.Context()))
	if n.built.Steps() != 0 {
		t.Errorf("%d steps of what was tuned", n.built.Steps())
	}
	said := 0
	n.inbox.each(func(func(core.Time)) { said++ })
	if said != 2 {
		t.Errorf("the node hears %d things, not of its text and how it was tuned", said)
	}
	if res, err := n.built.Step(t.Context(), 0.001); err != nil || res.Tokens == 0 {
		t.Errorf("a step: %v, %v", res, err)
	}
	must(t, n.store.PutCheckpoint(strings.NewReader("state")))
	if n.preparesLater() {
		t.Error("a node with a checkpoint comes new")
	}
}

// A text that is not the run's is refused wherever it is read.
func TestNewcomerRefusesAnotherText(t *testing.T) {
	n := prepared(t, Config{Dir: t.TempDir(), Peers: []string{peerAddr(1, "/ip4/127.0.0.1/tcp/1")}})
	n.genesis.Data = genesis.Data{Name: "another", SHA256: strings.Repeat("ab", 32)}
	must(t, n.prepare(t.Context()))
	if err := n.tune(t.Context()); err == nil || !strings.Contains(err.Error(), "another") {
		t.Errorf("error %v", err)
	}
	if path, err := store.LoadText(n.cfg.Dir); err != nil || path != "" {
		t.Errorf("it remembers %q, %v", path, err)
	}
}
