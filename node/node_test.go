package node

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"atoll/node/status"
	"atoll/optimizer/outer"
	"atoll/tensor/llama"
)

// toyGenesis is a run that a test can afford: a model of some thousand
// parameters and a budget of some hundred steps.
func toyGenesis(budget uint64) Genesis {
	g := Genesis{
		Format: GenesisFormat, Name: "toy", Tokenizer: "byte", Seed: 1, Batch: 2,
		Model: llama.Config{Vocab: 256, Hidden: 16, Layers: 1, Heads: 2, KVHeads: 1, Intermediate: 24, Context: 16, RopeTheta: 10000, NormEps: 1e-5, Tied: true},
		Inner: Inner{LR: 2e-3, Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, WeightDecay: 0.1, Clip: 1, WarmupFraction: 0.03, FinalFraction: 0.1},
		Outer: outer.Defaults(2, budget, time.Now().UnixMilli()), BeatMs: 50, QuietMs: 150,
	}
	g.Outer.H, g.Outer.HMin, g.Outer.MinRoundMs, g.Outer.GraceMinMs, g.Outer.GraceMaxMs = 4, 1, 0, 20, 1000
	return g
}

// toyText is a corpus for it.
func toyText(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "text.txt")
	if err := os.WriteFile(path, []byte(strings.Repeat("the quick brown fox jumps over the lazy dog. ", 200)), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// ran is how a node ended.
type ran struct {
	last status.Snapshot
	err  error
}

// runNode runs a node and sends its end to the channel.
func runNode(t *testing.T, ctx context.Context, cancel func(), wg *sync.WaitGroup, cfg Config) chan ran {
	t.Helper()
	if os.Getenv("ATOLL_TEST_LOG") != "" {
		cfg.Log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelInfo})).With("node", filepath.Base(cfg.Dir))
	}
	if inner := cfg.OnStatus; os.Getenv("ATOLL_TEST_LOG") != "" {
		cfg.OnStatus = func(s status.Snapshot) {
			cfg.Log.Info("status", "state", s.State, "stage", s.Stage, "folded", s.TokensFolded, "trained", s.TokensTrained, "fragments", s.Fragments, "agreed", s.Agreed, "chain", s.ChainDigest[:6], "fin", s.Finished)
			if inner != nil {
				inner(s)
			}
		}
	}
	out := make(chan ran, 1)
	wg.Add(1)
	go func() {
		defer wg.Done()
		last, err := Run(ctx, cfg)
		if err != nil {
			t.Errorf("node on %s: %v", cfg.Dir, err)
			cancel()
		}
		out <- ran{last, err}
	}()
	return out
}

func TestThreeNodesTrainOneModel(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	g, text := toyGenesis(60_000), toyText(t)
	linked := make(chan string, 1)
	first := Config{
		Dir: t.TempDir(), Genesis: g.Encode(), Profile: "local", Data: text, Threads: 1, Pace: 5 * time.Millisecond, Batch: 2,
		OnStatus: func(s status.Snapshot) {
			select {
			case linked <- s.Link:
			default:
			}
		},
	}
	ends := []chan ran{runNode(t, ctx, cancel, &wg, first)}
	link, err := ParseLink(<-linked)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		ends = append(ends, runNode(t, ctx, cancel, &wg, Config{Dir: t.TempDir(), Link: link, Profile: "local", Data: text, Threads: 1, Pace: 5 * time.Millisecond, Batch: 2}))
	}
	var all []status.Snapshot
	for _, end := range ends {
		r := <-end
		all = append(all, r.last)
	}
	for i, s := range all {
		if !s.Finished || s.StateDigest != all[0].StateDigest || s.ChainDigest != all[0].ChainDigest {
			t.Errorf("node %d: finished %v, state %.8s chain %.8s; node 0 has %.8s %.8s", i, s.Finished, s.StateDigest, s.ChainDigest, all[0].StateDigest, all[0].ChainDigest)
		}
		if s.TokensTrained == 0 {
			t.Errorf("node %d trained nothing", i)
		}
		if s.Time.Waiting > s.Time.Total/10 { // steps of 5 ms on a busy machine leave some unexplained
			t.Errorf("node %d: %v s of %v s are not accounted for", i, s.Time.Waiting, s.Time.Total)
		}
	}
}
