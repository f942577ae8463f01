package node

import (
	"slices"
	"strings"
	"testing"
	"time"

	"atoll/node/status"
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

// A laboratory parts two nodes, and makes one so slow that the other does nearly
// all the work. It flips a bit of its model, and the node notices by itself.
func TestLaboratory(t *testing.T) {
	t.Parallel()
	const budget = 24_000
	text := toyText(t)
	first := launch(t, Config{Genesis: toyGenesis(budget).Encode(), Data: text, Pace: slowPace, Lab: true, Stay: true})
	second := launch(t, Config{Link: first.link(), Data: text, Pace: slowPace})
	peer := second.until("it contributes", contributes).Self
	c := dialNode(t, first)
	ctx := t.Context()

	must(t, c.Block(ctx, []string{peer}))
	first.until("the other is gone", func(s status.Snapshot) bool { return !connectedTo(s, peer) })
	must(t, c.Corrupt(ctx, status.BitFlip{Bit: status.MantissaBits - 1}))
	// The next fold on that anchor notices, or the learner as it publishes or leaves it.
	first.until("it notices", happened("memory damaged"))
	must(t, c.Block(ctx, nil))
	first.until("the other is back", func(s status.Snapshot) bool { return connectedTo(s, peer) })
	must(t, c.Pace(ctx, time.Hour))
	second.until("it ends alone", finished)

	refuses(t, map[string]error{
		"use 0 to 22":           c.Corrupt(ctx, status.BitFlip{Bit: status.MantissaBits}),
		"fragment 99; use 0 to": c.Corrupt(ctx, status.BitFlip{Fragment: 99}),
		"value 99999":           c.Corrupt(ctx, status.BitFlip{Value: 99_999}),
		"pace: -1s":             c.Pace(ctx, -time.Second),
		`"xy" is no peer id`:    c.Block(ctx, []string{"xy"}),
	})
}

func connectedTo(s status.Snapshot, peer string) bool {
	return slices.ContainsFunc(s.Peers, func(p status.Peer) bool {
		return p.ID == peer && !strings.HasPrefix(p.State, "silent") && p.Addr != ""
	})
}

// happened waits for an event of one of the kinds.
func happened(kinds ...string) func(status.Snapshot) bool {
	return func(s status.Snapshot) bool {
		return slices.ContainsFunc(s.Events, func(e status.Event) bool { return slices.Contains(kinds, e.Kind) })
	}
}

// Without --lab the controls do nothing, and an observer has no pace.
func TestNodeWithoutLaboratory(t *testing.T) {
	t.Parallel()
	text := toyText(t)
	first := launch(t, Config{Genesis: toyGenesis(24_000).Encode(), Data: text, Pace: slowPace})
	observer := launch(t, Config{Link: first.link(), Observe: true, Lab: true})
	observer.until("it can be reached", func(s status.Snapshot) bool { return s.Link != "" })
	plain, watching := dialNode(t, first), dialNode(t, observer)
	refuses(t, map[string]error{
		"not started with --lab": plain.Block(t.Context(), nil),
		"does not train":         watching.Pace(t.Context(), time.Second),
		"uphill: this node":      watching.Uphill(t.Context(), true),
	})
	for _, m := range []*launched{observer, first} {
		m.leave()
	}
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
