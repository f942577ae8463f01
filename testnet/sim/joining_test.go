package sim

import (
	"slices"
	"strings"
	"testing"

	"atoll/gossip/wire"
)

// The peers that a joiner has a snapshot of die before it has caught up: it trains.
func TestJoinerIsLeftAlone(t *testing.T) {
	t.Parallel()
	w := atWork(t, calmScenario(2, 400))
	sources := w.nodes
	n := w.comes(sources...)
	w.look(t, "a snapshot is installed", 1, 10_000, func() bool { return n.Installs > 0 })
	if n.ready() {
		t.Fatal("it trains already")
	}
	for _, d := range sources {
		d.crash()
	}
	w.readyAfter(t, n, 100*heartbeat)
	for _, d := range sources {
		d.restart()
	}
	w.Finish()
}

// A node that comes while a run ends takes the model of the run.
func TestJoinersWhileTheRunEnds(t *testing.T) {
	t.Parallel()
	for share := uint64(94); share <= 104; share += 2 { // in percent of the budget; the last ones come after the end
		w := few(t, 3, 500)
		w.until(t, "nearly the end", w.s.LimitMs, func() bool {
			return 100*w.nodes[0].machine.View().FoldedTokens() >= w.s.Params.Budget*min(share, 100)
		})
		if share > 100 {
			w.RunFor(Time(100 * (share - 100)))
		}
		w.join(NodeSpec{})
		w.join(NodeSpec{Observer: true})
		w.Finish()
	}
}

// What is shown of a join goes through its stages in order.
func TestStagesOfAJoin(t *testing.T) {
	t.Parallel()
	s := calmScenario(3, 600)
	s.Link.LatencyMs = 60
	w := atWork(t, s)
	founders := w.nodes
	n := w.comes()
	var seen []string
	look := func() bool {
		text, done := n.machine.View().JoinStage()
		if done < 0 || done > 1 {
			t.Fatalf("%s: share %g", text, done)
		}
		for _, stage := range []string{"dialling", "peer list", "asking others", "asking", "snapshot", "replaying", "ready"} {
			if strings.HasPrefix(text, stage) && !slices.Contains(seen, stage) {
				seen = append(seen, stage)
			}
		}
		return n.ready()
	}
	look()
	for _, p := range founders {
		w.connect(n, p)
	}
	w.look(t, "it is ready", 5, 30_000, look)
	if want := []string{"dialling", "peer list", "asking", "asking others", "snapshot", "replaying", "ready"}; !slices.Equal(seen, want) {
		t.Errorf("stages %q, want %q", seen, want)
	}
}

// A joiner that is in fetches the headers of the rounds that lead to its tips,
// beside training, until it has them all.
func TestHeadersBeforeTheSnapshot(t *testing.T) {
	t.Parallel()
	w := atWork(t, calmScenario(3, 2000))
	n := w.comes(w.nodes...)
	w.look(t, "it is ready", 1, 20_000, n.ready)
	var before []wire.Digest
	r := n.machine.Rounds()
	for p := range w.plan {
		for _, l := range r.Fragment(p).Links(r.Fragment(p).Base()) {
			for _, id := range l.Folded {
				before = append(before, wire.Digest(id))
			}
		}
	}
	missing := func() int {
		return len(slices.DeleteFunc(slices.Clone(before), func(id wire.Digest) bool {
			_, known, _ := n.disk.Header(id)
			return known
		}))
	}
	if len(before) == 0 || missing() != len(before) {
		t.Fatalf("%d of %d headers are there before it trains", len(before)-missing(), len(before))
	}
	w.until(t, "it has the headers", 30_000, func() bool { return missing() == 0 })
}

// nearTheEnd is a world of n learners that have folded most of the budget.
func nearTheEnd(t *testing.T, n int) *World {
	t.Helper()
	w := few(t, n, 200*n)
	w.until(t, "nearly the end", w.s.LimitMs, func() bool { return 20*w.nodes[0].machine.View().FoldedTokens() > 19*w.s.Params.Budget })
	return w
}

// The run ends while a joiner is on its way in: those that have its end stay until
// the joiner has it too, and go then.
func TestTheEndWaitsForJoiners(t *testing.T) {
	t.Parallel()
	w := nearTheEnd(t, 2)
	founders := slices.Clone(w.nodes)
	for _, n := range founders {
		n.deaf(always, wire.GetChunk)
	}
	joiner := w.comes(founders...)
	w.until(t, "the founders finish", w.s.LimitMs, func() bool { return founders[0].finished && founders[1].finished })
	if joiner.Installs > 0 {
		t.Fatal("the joiner has the snapshot already")
	}
	for _, n := range founders {
		n.liar = nil
	}
	w.until(t, "the joiner finishes", w.s.LimitMs, func() bool {
		if founders[0].mayEnd() || founders[1].mayEnd() {
			t.Fatal("a founder may go before the joiner has the end")
		}
		return joiner.finished
	})
	if joiner.Installs == 0 || !w.same() {
		t.Errorf("the joiner took %d snapshots\n%s", joiner.Installs, w)
	}
	for _, n := range founders {
		if !n.told("has not reached its end") {
			t.Errorf("node %d said %q", n.index, w.checks.told[n])
		}
	}
	w.until(t, "the founders may go", 40*heartbeat, func() bool { return founders[0].mayEnd() && founders[1].mayEnd() })
}

func (n *Node) mayEnd() bool { return n.machine.View().MayEnd(n.clock()) }

// A joiner that loses its connection at the end finds those that have it when it is
// back.
func TestTheEndWaitsForThoseCutOff(t *testing.T) {
	t.Parallel()
	w := nearTheEnd(t, 1)
	founder := w.nodes[0]
	founder.deaf(always, wire.GetChunk)
	joiner := w.comes(founder)
	w.until(t, "the founder finishes", w.s.LimitMs, func() bool { return founder.finished })
	founder.liar, joiner.side = nil, restSide<<1
	w.disconnect(founder, joiner)
	w.RunFor(20 * heartbeat)
	if founder.mayEnd() {
		t.Error("the founder may go though a joiner has lost its connection just now")
	}
	joiner.side = restSide
	w.until(t, "the joiner finishes", w.s.LimitMs, func() bool { return joiner.finished })
	if joiner.Installs == 0 || !w.same() {
		t.Errorf("the joiner took %d snapshots\n%s", joiner.Installs, w)
	}
}

// Among those only that have the end a node goes soon.
func TestTheEndIsShort(t *testing.T) {
	t.Parallel()
	w := few(t, 3, 200)
	w.until(t, "all finish", w.s.LimitMs, w.allFinished)
	w.until(t, "all may go", 10*heartbeat, func() bool {
		return !slices.ContainsFunc(w.nodes, func(n *Node) bool { return !n.mayEnd() })
	})
}
