package sim

import (
	"testing"

	"atoll/gossip/wire"
)

// progress is the share of the budget that a node takes for made.
func (n *Node) progress() float64 { return n.machine.View().Progress(n.clock()) }

// The share of the budget that is made is known before it is folded, by all alike,
// and never runs ahead of what was trained.
func TestProgressIsWhatIsMade(t *testing.T) {
	t.Parallel()
	w := few(t, 4, 1000)
	budget, lagged := float64(w.s.Params.Budget), 0.0
	made := func() (tokens float64) {
		for _, n := range w.nodes {
			tokens += float64(n.book.trained)
		}
		return tokens / budget
	}
	for _, share := range []float64{0.02, 0.3, 0.6, 0.9} {
		w.until(t, "some of the budget is made", w.s.LimitMs, func() bool { return made() >= share })
		for i, n := range w.nodes {
			if got, is := n.progress(), made(); got < is-0.02 || got > is+0.02 {
				t.Errorf("node %d: progress %.3f where %.3f of the budget is trained", i, got, is)
			}
			lagged = max(lagged, made()-float64(n.machine.View().FoldedTokens())/budget)
		}
	}
	if lagged < 0.021 {
		t.Errorf("what is folded lags by at most %.3f: the test cannot tell it from what is made", lagged)
	}
}

// A peer that claims to have made the whole budget moves the others' rate by a
// twentieth of the run. It does not move it at all if it never published
// anything.
func TestProgressBelievesLittle(t *testing.T) {
	t.Parallel()
	for _, known := range []bool{true, false} {
		n, o := worker(t, 9, known)
		lead := func() float64 {
			return n.progress() - float64(n.machine.View().FoldedTokens())/float64(n.w.s.Params.Budget)
		}
		n.w.until(t, "more than the share that claims may move is made", n.w.s.LimitMs, func() bool { return n.progress() > 0.06 })
		before := lead()
		o.sends(n, wire.Heartbeat{State: wire.Training, Unpublished: n.w.all()})
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
	n, o := worker(t, 9, true)
	o.sends(n, wire.Heartbeat{State: wire.Training})
	seen := n.progress()
	o.sends(n, wire.Heartbeat{State: wire.Training, Unpublished: n.w.all()})
	if got := n.progress(); seen <= 0 || got > 2*seen || got > warmUp {
		t.Errorf("progress is %.4f with a claim of the whole budget, and %.4f without it", got, seen)
	}
}
