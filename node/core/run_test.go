package core_test

import (
	"testing"

	"atoll/node/core"
)

// patience is how long a run may take until the last node says that it is over.
const patience = 400_000

func TestFourLearnersReachTheBudget(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1, worldConfig{params: budgetOf(1000)})
	w.found(4)
	w.finish(patience)
}

func TestAloneReachesTheBudget(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1, worldConfig{params: budgetOf(300)})
	w.found(1)
	w.finish(patience)
}

// A faster node contributes in proportion, and nobody waits for the slow ones.
func TestSharesFollowSpeeds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2, worldConfig{params: budgetOf(1500)})
	divisors := []core.Time{1, 1, 2, 4}
	var sum float64
	for _, d := range divisors {
		w.add(nodeConfig{alone: true, divisor: d})
		sum += 1 / float64(d)
	}
	w.finish(patience)
	folded := w.folded()
	for i, n := range w.nodes {
		for p := range w.plan {
			share := float64(folded[n][p]) / float64(n.machine.Rounds().Tip(p).Tokens)
			if want := 1 / float64(divisors[i]) / sum; share < 0.85*want || share > 1.15*want {
				t.Errorf("node %d fragment %d: share %.3f, speed says %.3f", i, p, share, want)
			}
		}
	}
}

// A fourth joins at a third of the tokens and one leaves in order at two thirds.
func TestJoinAndLeave(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3, worldConfig{params: budgetOf(1200)})
	w.found(3)
	budget := w.cfg.params.Budget
	w.runUntil("a third", patience, func() bool { return w.nodes[0].machine.FoldedTokens() > budget/3 })
	joiner := w.add(nodeConfig{})
	w.runUntil("two thirds", patience, func() bool { return w.nodes[0].machine.FoldedTokens() > 2*budget/3 })
	leaver := w.nodes[1]
	leaver.leave()
	w.runUntil("left in order", 4000, func() bool { return !leaver.up })
	w.finish(patience)
	folded := w.folded()
	for p := range w.plan {
		if folded[joiner][p] == 0 {
			t.Errorf("fragment %d: nothing of the joiner is folded", p)
		}
		if steps, _ := leaver.machine.Rounds().Pending(p); steps != 0 {
			t.Errorf("fragment %d: %d steps of the leaver are unpublished", p, steps)
		}
		if folded[leaver][p] != leaver.trained {
			t.Errorf("fragment %d: the leaver trained %d tokens, %d are folded", p, leaver.trained, folded[leaver][p])
		}
	}
}

// An observer folds, serves and agrees, and never publishes.
func TestObserver(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 4, worldConfig{params: budgetOf(600)})
	w.found(2)
	o := w.add(nodeConfig{alone: true, observer: true})
	w.finish(patience)
	if o.steps != 0 || len(o.disk.own) != 0 {
		t.Errorf("the observer took %d steps and published %d deltas", o.steps, len(o.disk.own))
	}
}

// Links of a latency of twenty steps delay what is folded, never a step.
func TestLatencyOfTwentySteps(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 5, worldConfig{params: budgetOf(4000), latencyMs: 1000, stepMs: 50})
	w.found(4)
	w.finish(patience)
}

func TestLossAndDuplication(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 6, worldConfig{params: budgetOf(1000), loss: 0.1, duplicate: 0.1})
	w.found(4)
	w.finish(patience)
}

// Both sides of a partition go on, and are one chain after it.
func TestPartitionHeals(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 7, worldConfig{params: budgetOf(1500)})
	w.found(4)
	w.runFor(5000)
	w.partition(w.nodes[0], w.nodes[1])
	w.runFor(8000)
	a, _ := w.nodes[0].machine.Digests()
	b, _ := w.nodes[2].machine.Digests()
	if a == b {
		t.Fatal("the partition parted nothing")
	}
	w.partition()
	w.finish(patience)
}

// A node that is killed goes on from its disk; what it had published stays.
func TestCrashAndRestart(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 8, worldConfig{params: budgetOf(1500)})
	w.found(3)
	w.runFor(6050)
	n := w.nodes[1]
	n.crash()
	w.runFor(3000)
	n.restartNode()
	steps := n.steps
	w.finish(patience)
	if n.steps == steps {
		t.Error("the restarted node did not train")
	}
}

// All nodes are killed at once, and each begins from its own disk.
func TestAllRestart(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 9, worldConfig{params: budgetOf(1000)})
	w.found(3)
	w.runFor(7050)
	for _, n := range w.nodes {
		n.crash()
	}
	w.runFor(1000)
	for _, n := range w.nodes {
		n.restartNode()
	}
	w.finish(patience)
}

// A node that was alone is killed while a round of its own is open.
func TestAloneRestarts(t *testing.T) {
	t.Parallel()
	for seed := range uint64(8) {
		w := newWorld(t, seed, worldConfig{params: budgetOf(200)})
		w.found(1)
		w.runFor(6000 + 37*core.Time(seed))
		w.nodes[0].crash()
		w.runFor(100)
		w.nodes[0].restartNode()
		w.finish(patience)
	}
}

// With every other node dead, inner steps go on at full rate.
func TestOneSurvivorNeverWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 10, worldConfig{params: budgetOf(1000)})
	w.found(4)
	w.runFor(5000)
	for _, n := range w.nodes[1:] {
		n.crash()
	}
	n, before := w.nodes[0], w.nodes[0].steps
	const span = 20_000
	w.runFor(span)
	if got, want := n.steps-before, int(span/n.stepMs()); got < want {
		t.Errorf("%d steps in %d ms, want %d", got, span, want)
	}
	w.finish(patience)
}

// A peer that hangs with its connections open stalls no step and no round.
func TestHungPeerStallsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 11, worldConfig{params: budgetOf(1500)})
	w.found(4)
	w.runFor(5000)
	w.nodes[3].hang()
	before, closed := w.nodes[0].steps, w.nodes[0].machine.Rounds().Closed(0)
	const span = 12_000
	w.runFor(span)
	if got, want := w.nodes[0].steps-before, int(span/w.cfg.stepMs); got < want {
		t.Errorf("%d steps in %d ms, want %d", got, span, want)
	}
	if got, want := w.nodes[0].machine.Rounds().Closed(0)-closed, uint32(span/w.cfg.stepMs/8/2); got < want {
		t.Errorf("%d rounds closed in %d ms, want at least %d", got, span, want)
	}
	w.nodes[3].wake()
	w.finish(patience)
}

// Nodes whose links name peers, none of which holds more than genesis, begin
// from there after a while.
func TestOnlyNewcomersMeet(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 12, worldConfig{params: budgetOf(600)})
	for range 3 {
		w.add(nodeConfig{})
	}
	w.finish(patience)
}

// Nodes that drop every payload as soon as they may lack none of them afterwards: not
// for a refold, a repair, a joiner, or a restart.
func TestPayloadsThatMayGo(t *testing.T) {
	t.Parallel()
	dropped, refolds := 0, 0
	for seed := range uint64(6) {
		p := budgetOf(1500)
		p.WindowAccept, p.WindowUnion = 4, 10
		w := newWorld(t, 100+seed, worldConfig{params: p, loss: 0.1, latencyMs: 60})
		for range 4 {
			w.add(nodeConfig{alone: true, spare: true})
		}
		w.runFor(4000)
		w.partition(w.nodes[0])
		w.runFor(core.Time(1500 + 700*seed))
		w.partition()
		w.nodes[1].crash()
		w.runFor(2000)
		w.nodes[1].restartNode()
		w.add(nodeConfig{spare: true})
		w.slack = 2 * p.H * len(w.nodes)
		w.finish(patience)
		for _, n := range w.nodes {
			dropped, refolds = dropped+n.disk.dropped, refolds+n.refolds
			if n.heals > 0 {
				t.Errorf("seed %d: node %d cannot read own deltas back", 100+seed, n.index)
			}
		}
	}
	if dropped == 0 || refolds == 0 {
		t.Errorf("%d payloads were dropped, %d refolds might miss them", dropped, refolds)
	}
}
