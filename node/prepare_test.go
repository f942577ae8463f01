package node

import (
	"context"
	"crypto/ed25519"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"atoll/gossip/wire"
	"atoll/node/core"
	"atoll/node/genesis"
	"atoll/node/status"
	"atoll/node/store"
	"atoll/tensor"
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

// newcomer is a node that has the model to fetch, and is to train on the text at a path.
func newcomer(t *testing.T, path string) *node {
	t.Helper()
	n := prepared(t, Config{Dir: t.TempDir()})
	n.dials, n.cfg.Data = []string{peerAddr(1, "/ip4/127.0.0.1/tcp/1")}, path
	return n
}

// A node that has the model to fetch is measured on its training thread, and reads a folder there. One that founds a run, or was
// here before, does so at once.
func TestNewcomerPreparesLater(t *testing.T) {
	if prepared(t, Config{Dir: t.TempDir()}).preparesLater() {
		t.Error("a founder prepares later")
	}
	for path, long := range map[string]bool{toyText(t): false, filepath.Dir(toyText(t)): true} {
		n := newcomer(t, path)
		if long {
			n.cfg.longText = 1
		}
		must(t, n.prepare(t.Context()))
		before := n.record.get().TokensPerSecond
		if n.tune == nil || before != 0 || (n.data == nil) != long {
			t.Fatalf("%s: it was measured before it dialled anybody: %v tokens/s; it has read %v", path, before, n.data)
		}
		if n.given == nil {
			t.Fatal("the first values will be drawn twice")
		}
		given, drawn := n.firstTips(), n.genesis.Tips()
		for p := range drawn {
			if given[p].State != drawn[p].State {
				t.Errorf("fragment %d of the trainer's first values is not the run's", p)
			}
		}
		must(t, n.tune(t.Context()))
		n.inbox.Each(func(func(core.Time)) {})
		if res, err := n.built.Step(t.Context(), 0.001); err != nil || res.Tokens == 0 {
			t.Errorf("a step: %v, %v", res, err)
		}
		must(t, n.store.PutCheckpoint(strings.NewReader("state")))
		if n.preparesLater() {
			t.Error("a node with a checkpoint comes new")
		}
	}
}

// A text that is not the run's is refused wherever it is read.
func TestNewcomerRefusesAnotherText(t *testing.T) {
	n := newcomer(t, filepath.Dir(toyText(t)))
	n.genesis.Data = genesis.Data{Name: "another", SHA256: strings.Repeat("ab", 32)}
	if err := n.prepare(t.Context()); err == nil || !strings.Contains(err.Error(), "another") {
		t.Errorf("before it takes part: error %v", err)
	}
	n.cfg.longText = 1
	must(t, n.prepare(t.Context()))
	if err := n.tune(t.Context()); err == nil || !strings.Contains(err.Error(), "another") || !strings.Contains(err.Error(), "atoll join "+status.ShellWord(n.cfg.Dir)) {
		t.Errorf("error %v", err)
	}
	if path, err := store.LoadText(n.cfg.Dir); err != nil || path != "" {
		t.Errorf("it remembers %q, %v", path, err)
	}
}

// Nobody waits for what cannot be cut short.
func TestWithin(t *testing.T) {
	ctx, leave := context.WithCancel(t.Context())
	begun, end := make(chan struct{}), make(chan struct{})
	defer close(end)
	go func() { <-begun; leave() }()
	_, err := within(ctx, func() (int, error) {
		close(begun)
		<-end
		return 1, nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if got, err := within(t.Context(), func() (int, error) { return 2, io.EOF }); got != 2 || err != io.EOF {
		t.Errorf("got %d, %v", got, err)
	}
}

// A newcomer finds that a text which it reads late is another, and ends as one that never was there. With the run's it measures
// the model on it.
func TestNewcomerReadsLate(t *testing.T) {
	t.Parallel()
	text, dir := filepath.Dir(toyText(t)), t.TempDir()
	first := launch(t, Config{Genesis: aboutText(t, 1<<40, text).Encode(), Data: text, Pace: slowPace})
	wrong := launch(t, Config{Dir: dir, Link: first.link(), Data: filepath.Dir(otherText(t)), longText: 1})
	if <-wrong.ended; wrong.err == nil || !strings.Contains(wrong.err.Error(), "another text than the run") || wrong.last.Step != 0 {
		t.Errorf("%d steps, error %v", wrong.last.Step, wrong.err)
	}
	if _, err := os.Stat(filepath.Join(dir, "checkpoint")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it keeps a checkpoint of no step: %v", err)
	}
	m := launch(t, Config{Dir: dir, Data: text, Pace: slowPace, EvalBytes: 100, EvalEvery: 1}) // the folder knows whom the link names
	m.until("a quality", func(s status.Snapshot) bool { return s.ValBPB > 0 && len(s.Peers) > 0 })
	m.leave()
	first.leave()
}

// Which precision is the faster one is measured once: a restart on a busy machine goes on with it.
func TestPrecisionStays(t *testing.T) {
	n := newcomer(t, toyText(t))
	both := []tensor.Precision{tensor.F32, tensor.BF16}
	if got := n.keptPrecision(both); len(got) != 2 {
		t.Errorf("before anything was measured: %v", got)
	}
	_, r, err := n.tuned(t.Context(), n.trainerConfig(2), both)
	must(t, err)
	if got := n.keptPrecision(both); len(got) != 1 || got[0].String() != r.Precision {
		t.Errorf("measured %s, and the next start takes %v", r.Precision, got)
	}
	if got := n.keptPrecision([]tensor.Precision{tensor.F32}); len(got) != 1 || got[0] != tensor.F32 {
		t.Errorf("with --precision f32: %v", got)
	}
}
