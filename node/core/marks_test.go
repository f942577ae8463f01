package core_test

import (
	"testing"

	"atoll/gossip/wire"
	"atoll/node/core"
)

// restartEmpty boots a crashed node with nothing but its key.
func (n *node) restartEmpty() {
	for p := range n.w.plan {
		n.lost += n.learner.Account(p).Total().Tokens
	}
	n.disk = newDisk(len(n.w.plan))
	n.cfg.keyOnly, n.cfg.alone, n.known = true, false, false
	n.boot(nil)
	n.w.connectAll()
}

// A key that lost its disk signs no round twice, whenever that happened, and
// contributes again.
func TestKeyWithoutItsDisk(t *testing.T) {
	t.Parallel()
	raised := 0
	for seed := range uint64(12) {
		w := newWorld(t, 70+seed, worldConfig{params: budgetOf(1200), latencyMs: 40})
		w.found(3)
		n := w.nodes[1]
		w.runFor(3000 + core.Time(seed)*37)
		n.crash()
		w.runFor(core.Time(seed%3) * 400)
		n.restartEmpty()
		before := n.steps
		w.slack = 2 * w.cfg.params.H
		w.finish(patience) // fails where a round is signed twice
		if !n.known || n.steps == before {
			t.Errorf("seed %d: marks known %t, %d steps since the restart", seed, n.known, n.steps-before)
		}
		if n.learner.Account(0).Folded.Tokens == 0 {
			t.Errorf("seed %d: nothing is folded of what it made since", seed)
		}
		raised += n.raised
	}
	if raised == 0 {
		t.Error("no restart was close enough to an own delta to matter")
	}
}

// Where nobody can know what a key signed, it publishes after a while.
func TestKeyWithoutItsDiskAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 90, worldConfig{params: budgetOf(300)})
	w.found(1)
	w.runFor(2000)
	n := w.nodes[0]
	n.crash()
	clear(w.signed) // nobody is left who could tell
	n.restartEmpty()
	w.runFor(20_000)
	if n.machine.Rounds().Closed(0) > 0 {
		t.Fatal("published before it had waited for anybody")
	}
	if n.steps == 0 {
		t.Fatal("did not train meanwhile")
	}
	w.runUntil("it publishes by itself", 700_000, func() bool { return n.machine.Rounds().Closed(0) > 0 })
}

// A peer that takes the question and never answers holds nobody for ever.
func TestKeyWithoutItsDiskBesideADeafPeer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 91, worldConfig{params: budgetOf(1 << 20)})
	w.found(2)
	w.nodes[0].ignores = wire.GetOwn
	w.runFor(2000)
	n := w.nodes[1]
	n.crash()
	n.restartEmpty()
	w.runFor(60_000)
	if n.known {
		t.Fatal("took no answer for one")
	}
	w.runUntil("it publishes", 600_000, func() bool { return n.known })
}
