package core_test

import "testing"

// The share of the budget that is made is known before it is folded, by all alike,
// and never runs ahead of what was trained.
func TestProgressIsWhatIsMade(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1, worldConfig{params: budgetOf(1000)})
	w.found(4)
	budget := float64(w.cfg.params.Budget)
	made := func() (tokens float64) {
		for _, n := range w.nodes {
			tokens += float64(n.trained)
		}
		return tokens
	}
	lagged := 0.0
	for _, share := range []float64{0.02, 0.3, 0.6, 0.9} {
		w.runUntil("some of the budget", patience, func() bool { return made() >= share*budget })
		for i, n := range w.nodes {
			got, is := n.machine.Progress(n.w.now), made()/budget
			if got < is-0.02 || got > is+0.02 {
				t.Errorf("node %d: progress %.3f where %.3f of the budget is trained", i, got, is)
			}
			lagged = max(lagged, is-float64(n.machine.FoldedTokens())/budget)
		}
	}
	if lagged < 0.021 {
		t.Errorf("what is folded lags by at most %.3f: the test cannot tell it from what is made", lagged)
	}
}
