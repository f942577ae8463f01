package labnode

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"atoll/node"
	"atoll/node/genesis"
	"atoll/node/status"
	"atoll/optimizer/trainer"
	"atoll/tensor/llama"
	"atoll/testnet/controls"
	"atoll/testnet/shaping"
)

// toy is a run of one node whose steps take a millisecond.
func toy(t *testing.T) node.Config {
	t.Helper()
	g, err := genesis.Default("tiny", 1e9, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	g.Model = llama.Config{Vocab: 256, Hidden: 16, Layers: 2, Heads: 2, KVHeads: 1, Intermediate: 24, Context: 16, RopeTheta: 1e4, NormEps: 1e-5, Tied: true}
	g.Outer.Fragments, g.Outer.H = 2, 4
	return node.Config{Dir: t.TempDir(), Genesis: g.Encode(), Threads: 1, Batch: 2, Log: slog.New(slog.DiscardHandler)}
}

// A node does what its controls ask for: it notices a bit that flips in its memory.
func TestNodeIsSteered(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cfg, seen, ended := toy(t), make(chan status.Snapshot, 1000), make(chan error, 1)
	cfg.OnStatus = func(s status.Snapshot) { seen <- s }
	leaving, leave := context.WithCancel(ctx)
	go func() {
		_, err := Run(leaving, cfg, &shaping.Link{Delay: time.Millisecond})
		ended <- err
	}()
	until := func(what string, is func(status.Snapshot) bool) {
		for {
			select {
			case s := <-seen:
				if is(s) {
					return
				}
			case err := <-ended:
				t.Fatalf("ended (%v) before: %s", err, what)
			}
		}
	}
	until("it trains", func(s status.Snapshot) bool { return s.TokensFolded > 0 })
	if err := controls.Order(ctx, cfg.Dir, controls.Orders{Pace: time.Millisecond, Uphill: true}); err != nil {
		t.Error(err)
	}
	if err := controls.Corrupt(ctx, cfg.Dir, controls.BitFlip{Bit: controls.MantissaBits - 1}); err != nil {
		t.Error(err)
	}
	until("it notices", func(s status.Snapshot) bool {
		return slices.ContainsFunc(s.Events, func(e status.Event) bool { return e.Kind == "memory damaged" })
	})
	if err := controls.Corrupt(ctx, cfg.Dir, controls.BitFlip{Bit: controls.MantissaBits}); err == nil || !strings.Contains(err.Error(), "use 0 to 22") {
		t.Errorf("error %v", err)
	}
	leave()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// rates is a trainer that notes the learning rates of its steps.
type rates struct {
	trainer.Trainer
	seen []float64
}

func (r *rates) Step(_ context.Context, lr float64) (trainer.StepResult, error) {
	r.seen = append(r.seen, lr)
	return trainer.StepResult{}, nil
}

func TestLiarStepsUphill(t *testing.T) {
	inner := &rates{}
	l := &liar{Trainer: inner}
	for _, lies := range []bool{false, true, false} {
		l.lies.Store(lies)
		if _, err := l.Step(t.Context(), 0.5); err != nil {
			t.Fatal(err)
		}
	}
	if s := inner.seen; len(s) != 3 || s[0] != 0.5 || s[1] != -0.5 || s[2] != 0.5 {
		t.Errorf("rates %v", s)
	}
}
