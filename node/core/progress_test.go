package core_test

import (
	"testing"

	"atoll/gossip/wire"
)

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

// Whoever claims to have made the whole budget moves the others' rate by a
// twentieth of the run, and not at all if nothing ever came of it.
func TestProgressBelievesLittle(t *testing.T) {
	t.Parallel()
	for _, known := range []bool{true, false} {
		n := worker(t, 9, known)
		lead := func() float64 {
			return n.machine.Progress(n.w.now) - float64(n.machine.FoldedTokens())/float64(n.w.cfg.params.Budget)
		}
		n.w.runUntil("more than the share that claims may move", patience, func() bool { return n.machine.Progress(n.w.now) > 0.06 })
		before := lead()
		n.says(9, wire.Beat{State: wire.Training, Unpublished: n.all()})
		after := lead()
		if known && (after < 0.0499 || after > 0.0501) {
			t.Errorf("a learner's claim moves progress from %.3f to %.3f ahead of what is folded, want 0.05", before, after)
		}
		if !known && after != before {
			t.Errorf("a stranger's claim moves progress from %.3f to %.3f ahead", before, after)
		}
	}
}

// At the start of a run, when the rate is warmed up, such a claim counts for what is
// seen of all, once more.
func TestProgressBelievesNoMoreThanItSees(t *testing.T) {
	t.Parallel()
	const warmUp = 0.03 // of a new run
	n := worker(t, 9, true)
	n.says(9, wire.Beat{State: wire.Training, Unpublished: make([]uint64, len(n.w.plan))})
	seen := n.machine.Progress(n.w.now)
	n.says(9, wire.Beat{State: wire.Training, Unpublished: n.all()})
	if got := n.machine.Progress(n.w.now); seen <= 0 || got > 2*seen || got > warmUp {
		t.Errorf("progress is %.4f with a claim of the whole budget, and %.4f without it", got, seen)
	}
}
