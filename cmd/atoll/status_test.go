package main

import (
	"strings"
	"testing"
	"time"

	"atoll/node/status"
)

func TestFrameFitsTheScreen(t *testing.T) {
	for _, c := range []struct {
		columns, height int
		want            string
	}{
		{10, 5, "\x1b[Hfirst\x1b[K\na second…\x1b[K\nlast\x1b[K\n\x1b[J"},
		{10, 3, "\x1b[Hfirst\x1b[K\na second…\x1b[K\n\x1b[J"},
		{0, 0, "\x1b[Hfirst\x1b[K\na second line\x1b[K\nlast\x1b[K\n\x1b[J"},
	} {
		if got := frame("first\na second line\nlast\n", c.columns, c.height); got != c.want {
			t.Errorf("%d x %d: %q, want %q", c.columns, c.height, got, c.want)
		}
	}
}

// trainingStatus is a status in the middle of a run.
func trainingStatus() status.Snapshot {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return status.Snapshot{
		Identity: status.Identity{Run: strings.Repeat("ab", 32), Name: "opticks", Self: strings.Repeat("cd", 32), Role: "learner", State: "training", At: at},
		Progress: status.Progress{
			Params: 824448, BudgetTokens: 3_000_000, TokensFolded: 750_000, Step: 120, TokensTrained: 250_000, TrainLoss: 2.5, ValBPB: 2.75, ValBytes: 16 << 10,
		},
		Agreement: status.Agreement{ChainDigest: strings.Repeat("12", 32), StateDigest: strings.Repeat("34", 32), Agreed: true},
		Peers:     []status.Peer{{ID: strings.Repeat("cd", 32), Self: true, Role: "learner", State: "training"}},
	}
}
