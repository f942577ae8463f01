package core_test

import (
	"testing"

	"atoll/node/core"
)

// minute is that in ms.
const minute core.Time = 60_000

// The run ends while a joiner is on its way in: those that have its end stay until
// the joiner has it too, and go then.
func TestTheEndWaitsForJoiners(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 80, worldConfig{params: budgetOf(400), bytesMs: 1})
	w.found(2)
	founders := w.nodes[:2]
	for _, n := range founders {
		n.goes = true
	}
	w.runUntil("nearly the end", patience, func() bool { return 20*founders[0].machine.FoldedTokens() > 19*w.cfg.params.Budget })
	joiner := w.add(nodeConfig{})
	w.runUntil("the founders finish", patience, func() bool { return founders[0].finished && founders[1].finished })
	if joiner.installs > 0 {
		t.Fatal("the joiner has the tips already")
	}
	w.runUntil("the joiner finishes", patience, func() bool { return joiner.finished })
	if joiner.installs == 0 || !w.same() {
		t.Errorf("the joiner took tips %d times\n%s", joiner.installs, w)
	}
	for _, n := range founders {
		if !n.tells("does not show its end") {
			t.Errorf("node %d said %q", n.index, n.said)
		}
	}
	w.runUntil("the founders go", 40*beat, func() bool { return !founders[0].up && !founders[1].up })
}

// A peer that never says anything keeps a node whose run is over for as long as a
// joiner would wait for it, and one that falls silent on its way in no longer than
// its silence takes to show.
func TestTheEndWaitsOnlySoLong(t *testing.T) {
	t.Parallel()
	for _, mute := range []bool{false, true} {
		w := newWorld(t, 81, worldConfig{params: budgetOf(200), bytesMs: 0.1})
		w.found(1)
		founder := w.nodes[0]
		founder.goes = true
		w.runUntil("nearly the end", patience, func() bool { return 20*founder.machine.FoldedTokens() > 19*w.cfg.params.Budget })
		stuck := newNode(w, 1, nodeConfig{})
		stuck.hung = mute
		w.nodes = append(w.nodes, stuck)
		stuck.boot(nil)
		w.connectAll()
		w.runUntil("the run is over", patience, func() bool { return founder.finished })
		stuck.hang()
		w.runFor(8 * minute)
		if founder.up != mute {
			t.Errorf("mute %v: eight minutes after the end the founder is up %v", mute, founder.up)
		}
		w.runUntil("the founder goes", 3*minute, func() bool { return !founder.up })
	}
}

// A joiner that loses its connection at the end finds those that have it when it is
// back.
func TestTheEndWaitsForThoseCutOff(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 83, worldConfig{params: budgetOf(200), bytesMs: 1})
	w.found(1)
	founder := w.nodes[0]
	founder.goes = true
	w.runUntil("nearly the end", patience, func() bool { return 20*founder.machine.FoldedTokens() > 19*w.cfg.params.Budget })
	joiner := w.add(nodeConfig{})
	w.runUntil("the founder finishes", patience, func() bool { return founder.finished })
	w.partition(joiner)
	w.runFor(20 * beat)
	w.partition()
	w.runUntil("the joiner finishes", patience, func() bool { return joiner.finished })
	if joiner.installs == 0 || !w.same() {
		t.Errorf("the joiner took tips %d times\n%s", joiner.installs, w)
	}
}

// With nobody in sight, or with those only that have the end, a node goes soon.
func TestTheEndIsShort(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 82, worldConfig{params: budgetOf(200)})
	w.found(3)
	w.runUntil("all finish", patience, w.allFinished)
	for _, n := range w.nodes {
		n.goes = true
	}
	w.runUntil("all go", 10*beat, func() bool { return len(w.alive()) == 0 })
}
