package core_test

import (
	"slices"
	"strings"
	"testing"

	"atoll/gossip"
	"atoll/gossip/wire"
	"atoll/node/core"
)

// beat is the shortest beat period of virtual nodes in ms.
const beat = 200

// tells reports whether a node said something about its way in.
func (n *node) tells(text string) bool {
	return slices.ContainsFunc(n.said, func(s string) bool { return strings.Contains(s, text) })
}

// equalTo reports whether two nodes have one chain and one state two rounds
// below those that both have closed and folded, as beats compare them.
func (n *node) equalTo(p *node) bool {
	for f := range n.w.plan {
		round := min(n.machine.Rounds().Tip(f).Round, p.machine.Rounds().Tip(f).Round)
		round -= min(round, 2)
		a, known := n.machine.Rounds().Link(f, round)
		b, _ := p.machine.Rounds().Link(f, round)
		if !known || a.Chain != b.Chain || a.State != b.State {
			return false
		}
	}
	return true
}

// third is a world of n learners that have reached a third of the budget.
func third(t *testing.T, seed uint64, n int, cfg worldConfig) *world {
	w := newWorld(t, seed, cfg)
	w.found(n)
	w.runUntil("a third", patience, func() bool { return w.nodes[0].machine.FoldedTokens() > w.cfg.params.Budget/3 })
	return w
}

// A joiner trains when it shows the digests of a live peer, not before.
func TestJoinerTrainsWithEqualDigests(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		w := third(t, 40+seed, 3, worldConfig{params: budgetOf(1000), loss: 0.05, latencyMs: 30})
		equal := false
		w.onReady = func(n *node) {
			equal = slices.ContainsFunc(w.nodes[:3], n.equalTo)
		}
		n := w.add(nodeConfig{})
		w.runUntil("the joiner trains", 20_000, func() bool { return n.ready > 0 })
		if !equal || !n.tells("digest equal") {
			t.Errorf("seed %d: it trains, equal %v, and said %q", seed, equal, n.said)
		}
		w.finish(patience)
	}
}

// The peers that a joiner has tips of die before it has caught up: it trains.
func TestJoinerIsLeftAlone(t *testing.T) {
	t.Parallel()
	w := third(t, 45, 2, worldConfig{params: budgetOf(400)})
	n := w.add(nodeConfig{})
	w.runUntil("tips are installed", 10_000, func() bool { return n.installs > 0 })
	if n.ready > 0 {
		t.Fatal("it trains already")
	}
	w.nodes[0].crash()
	w.nodes[1].crash()
	w.runUntil("the joiner trains", 10*10*beat, func() bool { return n.ready > 0 })
	w.nodes[0].restartNode()
	w.nodes[1].restartNode()
	w.finish(patience)
}

// Nobody gives anything to a joiner whose only peer hangs: it begins by itself,
// and is one with the others when they are back.
func TestJoinerOfHungPeers(t *testing.T) {
	t.Parallel()
	w := third(t, 46, 2, worldConfig{params: budgetOf(400)})
	w.nodes[0].hang()
	w.nodes[1].hang()
	n := w.add(nodeConfig{})
	w.runUntil("the joiner trains", 15_000, func() bool { return n.ready > 0 })
	w.nodes[0].wake()
	w.nodes[1].wake()
	w.slack = 200
	w.finish(patience)
}

// The only donor is gone for minutes in the middle of the transfer: the joiner
// waits for it, says so, and makes nothing of genesis that its return would undo.
// If it never comes back, the joiner begins in the end.
func TestJoinerWaitsForItsDonor(t *testing.T) {
	t.Parallel()
	for _, back := range []bool{true, false} {
		w := third(t, 49, 1, worldConfig{params: budgetOf(3000), bytesMs: 5})
		n := w.add(nodeConfig{})
		w.runUntil("a donor is in sight", 10_000, func() bool {
			seen := false
			n.machine.Gossip().Peers().Beats(func(wire.PeerID, *wire.Beat, gossip.Time) { seen = true })
			return seen
		})
		if n.installs > 0 {
			t.Fatal("it has the tips already")
		}
		w.nodes[0].crash()
		w.runFor(5 * 60_000)
		if stage, _ := n.machine.JoinStage(); n.ready > 0 || !strings.Contains(stage, "waits") || !n.tells("waits up to 10 minutes") {
			t.Errorf("it trains %v, shows %q, and said %q", n.ready > 0, stage, n.said)
		}
		if back {
			w.nodes[0].restartNode()
		}
		w.runUntil("the joiner trains", 10*60_000, func() bool { return n.ready > 0 })
		if (n.installs > 0) != back || n.tells("trains from there") == back {
			t.Errorf("%d installs, said %q", n.installs, n.said)
		}
	}
}

// A donor of broken tips, named in the link and first to be asked: the joiner
// finds out when it puts them together, and takes those of others.
func TestDonorOfBrokenTips(t *testing.T) {
	t.Parallel()
	w := third(t, 47, 3, worldConfig{params: budgetOf(600)})
	liar := w.nodes[0]
	liar.spoils = true
	w.faulty[liar.id] = true
	n := w.add(nodeConfig{trusted: []wire.PeerID{liar.id}})
	w.runUntil("the joiner trains", 20_000, func() bool { return n.ready > 0 })
	if n.installs == 0 || !n.tells("digest equal") {
		t.Errorf("%d installs, said %q", n.installs, n.said)
	}
	w.finish(patience)
}

// The only peer gives broken tips for ever: in the end the joiner begins from
// genesis, and says why.
func TestOnlyDonorOfBrokenTips(t *testing.T) {
	t.Parallel()
	w := third(t, 48, 1, worldConfig{params: budgetOf(3000)})
	liar := w.nodes[0]
	liar.spoils = true
	w.faulty[liar.id] = true
	n := w.add(nodeConfig{trusted: []wire.PeerID{liar.id}})
	w.runUntil("the joiner trains", 120_000, func() bool { return n.ready > 0 })
	if n.installs != 0 || !n.tells("gave nothing that fits this run") {
		t.Errorf("%d installs, said %q", n.installs, n.said)
	}
}

// A node that comes back with its disk shows the digests of the others before it
// trains, and takes no longer than two beat periods for it.
func TestRestartCatchesUp(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		w := third(t, 50+seed, 3, worldConfig{params: budgetOf(1500)})
		n := w.nodes[1]
		n.crash()
		w.runFor(3000)
		equal := false
		w.onReady = func(n *node) { equal = n.equalTo(w.nodes[0]) }
		n.restartNode()
		began := w.now
		w.runUntil("it trains again", 4*beat, func() bool { return n.ready > 0 })
		if took := n.ready - began; took > 2*beat+2*tickMs || !equal {
			t.Errorf("seed %d: trains after %d ms, equal %v", seed, took, equal)
		}
		w.finish(patience)
	}
}

// With nobody to reach, one that comes back with its disk trains after a beat
// period; one whose peers hang, after two.
func TestRestartWaitsForNobody(t *testing.T) {
	t.Parallel()
	for _, hung := range []bool{false, true} {
		w := third(t, 55, 3, worldConfig{params: budgetOf(1500)})
		for _, n := range w.nodes[1:] {
			if n.hang(); !hung {
				n.wake()
				n.crash()
			}
		}
		n := w.nodes[0]
		n.crash()
		n.restartNode()
		began := w.now
		w.runUntil("it trains again", 4*beat, func() bool { return n.ready > 0 })
		most := core.Time(beat + 2*tickMs)
		if hung {
			most += beat
		}
		if took := n.ready - began; took > most {
			t.Errorf("peers hung %v: trains after %d ms, want %d", hung, took, most)
		}
	}
}

// Whoever comes while a run ends takes the model of the run.
func TestJoinersWhileTheRunEnds(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		w := newWorld(t, 60+seed, worldConfig{params: budgetOf(500)})
		w.found(3)
		share := 94 + 2*seed // in percent of the budget; the last one comes after the end
		w.runUntil("nearly the end", patience, func() bool {
			return w.nodes[0].machine.FoldedTokens() >= w.cfg.params.Budget*min(share, 100)/100
		})
		if share > 100 {
			w.runFor(core.Time(100 * (share - 100)))
		}
		w.add(nodeConfig{})
		w.add(nodeConfig{observer: true})
		w.slack = 40
		w.finish(patience)
	}
}

// Eight come at once to a run of three: all get in, and all of them contribute.
func TestEightJoiners(t *testing.T) {
	t.Parallel()
	w := third(t, 70, 3, worldConfig{params: budgetOf(3000)})
	for range 8 {
		w.add(nodeConfig{trusted: []wire.PeerID{w.nodes[0].id}})
	}
	began := w.now
	w.runUntil("all train", 30_000, func() bool {
		return !slices.ContainsFunc(w.nodes, func(n *node) bool { return n.ready == 0 })
	})
	if took := w.now - began; took > 5000 {
		t.Errorf("all train after %d ms", took)
	}
	w.slack = 8 * w.cfg.params.H
	w.finish(patience)
	for _, n := range w.nodes {
		if w.complete() != nil && w.folded()[n][0] == 0 {
			t.Errorf("nothing of node %d is folded", n.index)
		}
	}
}

// What is shown of a join goes through its stages in order.
func TestStagesOfAJoin(t *testing.T) {
	t.Parallel()
	w := third(t, 71, 3, worldConfig{params: budgetOf(600), latencyMs: 60, bytesMs: 4})
	n := newNode(w, 3, nodeConfig{})
	w.nodes = append(w.nodes, n)
	n.boot(nil)
	var seen []string
	look := func() bool {
		text, done := n.machine.JoinStage()
		if done < 0 || done > 1 {
			t.Fatalf("%s: share %g", text, done)
		}
		for _, stage := range []string{"dialling", "roster", "asking others", "asking", "snapshot", "replaying", "ready"} {
			if strings.HasPrefix(text, stage) && !slices.Contains(seen, stage) {
				seen = append(seen, stage)
			}
		}
		return n.ready > 0
	}
	look()
	w.connectAll()
	for end := w.now + 30_000; w.now < end && !look(); {
		w.runFor(5)
	}
	want := []string{"dialling", "roster", "asking", "asking others", "snapshot", "replaying", "ready"}
	if !slices.Equal(seen, want) {
		t.Errorf("stages %q, want %q", seen, want)
	}
	w.finish(patience)
}

// A joiner that is in fetches the headers of the rounds that lead to its tips,
// beside training, until it has them all.
func TestHeadersBeforeTheTips(t *testing.T) {
	t.Parallel()
	w := third(t, 72, 3, worldConfig{params: budgetOf(2000)})
	n := w.add(nodeConfig{})
	var before []wire.Digest
	w.onReady = func(*node) {
		r := n.machine.Rounds()
		for p := range w.plan {
			for _, l := range r.Links(p, r.Base(p)) {
				for _, id := range l.Folded {
					before = append(before, wire.Digest(id))
				}
			}
		}
	}
	missing := func() (ids int) {
		for _, id := range before {
			if _, known := n.disk.history[id]; !known {
				ids++
			}
		}
		return ids
	}
	w.runUntil("the joiner trains", 20_000, func() bool { return n.ready > 0 })
	if len(before) == 0 || missing() != len(before) {
		t.Fatalf("%d of %d headers are there before it trains", len(before)-missing(), len(before))
	}
	w.runUntil("it has the headers", 30_000, func() bool { return missing() == 0 })
	w.finish(patience)
}
