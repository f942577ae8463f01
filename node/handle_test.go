package node

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"atoll/gossip/wire"
	"atoll/node/status"
	"atoll/optimizer/trainer"
)

// dialNode finds the control socket of a node that has shown a status.
func dialNode(t *testing.T, m *launched) *status.Client {
	t.Helper()
	c, err := status.Dial(m.cfg.Dir)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// refuses checks that each of some controls fails for its reason.
func refuses(t *testing.T, reasons map[string]error) {
	t.Helper()
	for want, err := range reasons {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// A program parts two nodes, and makes one so slow that the other does nearly
// all the work. It flips a bit of its model, and the node notices by itself.
func TestHandle(t *testing.T) {
	t.Parallel()
	const budget = 24_000
	text := toyText(t)
	first := launch(t, Config{Genesis: toyGenesis(budget).Encode(), Data: text, Pace: slowPace, Stay: true})
	second := launch(t, Config{Link: first.link(), Data: text, Pace: slowPace})
	peer := second.until("it contributes", contributes).Self
	h := first.handle()
	var id wire.PeerID
	must(t, id.UnmarshalText([]byte(peer)))

	h.Block([]wire.PeerID{id})
	first.until("the other is gone", func(s status.Snapshot) bool { return !connectedTo(s, peer) })
	must(t, h.Global(0, func(values []float32) { values[0] = math.Float32frombits(math.Float32bits(values[0]) ^ 1<<22) }))
	// The next fold on these parameters notices, or the learner as it publishes or leaves them.
	first.until("it notices", happened("memory damaged"))
	h.Block(nil)
	first.until("the other is back", func(s status.Snapshot) bool { return connectedTo(s, peer) })
	must(t, h.Pace(time.Hour))
	second.until("it ends alone", finished)

	refuses(t, map[string]error{
		"fragment 99; use 0 to": h.Global(99, nil),
	})
}

func connectedTo(s status.Snapshot, peer string) bool {
	return slices.ContainsFunc(s.Peers, func(p status.Peer) bool {
		return p.ID == peer && p.Here() && p.Addr != ""
	})
}

// happened waits for an event of one of the kinds.
func happened(kinds ...string) func(status.Snapshot) bool {
	return func(s status.Snapshot) bool {
		return slices.ContainsFunc(s.Events, func(e status.Event) bool { return slices.Contains(kinds, e.Kind) })
	}
}

// What a program puts before the trainer sees each step. An observer has no trainer, and no pace.
func TestTrainerIsWrapped(t *testing.T) {
	t.Parallel()
	var steps atomic.Int64
	count := func(inner trainer.Trainer) trainer.Trainer { return counted{inner, &steps} }
	text := toyText(t)
	first := launch(t, Config{Genesis: toyGenesis(24_000).Encode(), Data: text, Pace: slowPace, Trainer: count})
	observer := launch(t, Config{Link: first.link(), Observe: true, Trainer: count})
	observer.until("it can be reached", func(s status.Snapshot) bool { return s.Link != "" })
	refuses(t, map[string]error{"does not train": observer.handle().Pace(time.Second)})
	first.until("it steps", func(s status.Snapshot) bool { return steps.Load() > 0 })
	for _, m := range []*launched{observer, first} {
		m.leave()
	}
	failed := errors.New("not so")
	if _, err := Run(t.Context(), Config{Dir: t.TempDir(), Genesis: toyGenesis(24_000).Encode(), Data: text, Profile: "local", measure: measure, Started: func(Handle) error { return failed }}); !errors.Is(err, failed) {
		t.Errorf("error %v", err)
	}
}

// counted is a trainer whose steps are counted.
type counted struct {
	trainer.Trainer
	steps *atomic.Int64
}

func (c counted) Step(ctx context.Context, lr float64) (trainer.StepResult, error) {
	c.steps.Add(1)
	return c.Trainer.Step(ctx, lr)
}

func TestUsageIsShown(t *testing.T) {
	t.Parallel()
	m := launch(t, Config{Genesis: toyGenesis(24_000).Encode(), Data: toyText(t), Pace: slowPace})
	s := m.until("a status", func(status.Snapshot) bool { return true })
	if s.Goroutines < 2 || s.RSSBytes > 0 && s.OpenFiles < 3 {
		t.Errorf("%d goroutines, %d descriptors", s.Goroutines, s.OpenFiles)
	}
	m.leave()
}
