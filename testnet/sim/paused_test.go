package sim

import (
	"testing"

	"atoll/gossip"
	"atoll/gossip/wire"
	"atoll/gossip/wire/spectest"
)

// pausedAt says whether a node's newest heartbeat at a peer says that it is paused.
func (n *Node) pausedAt(p *Node) (paused bool) {
	p.machine.Gossip().Peers().Heartbeats(func(id wire.PeerID, b *wire.Heartbeat, _ gossip.Time) {
		paused = paused || id == n.id && b.Paused
	})
	return paused
}

func (n *Node) closed() uint32 { return n.machine.Rounds().Fragment(0).Closed() }

// pauses has a node pause until it rests.
func (n *Node) pauses(t *testing.T) {
	t.Helper()
	if !n.rest(true) {
		t.Fatal("cannot be paused")
	}
	n.w.until(t, "it rests", 6000, n.machine.View().Resting)
}

func specPaused(t *testing.T, _ *spectest.Spec) {
	w := few(t, 2, 3000)
	w.RunFor(3050)
	n := w.nodes[1]
	steps, published := n.Steps, len(n.book.own)
	if n.unpublished() == 0 {
		t.Fatal("nothing is unpublished")
	}
	n.rest(true)
	w.look(t, "its peer knows", 1, heartbeat, func() bool { return n.pausedAt(w.nodes[0]) })
	w.until(t, "it rests", 6000, n.machine.View().Resting)
	if n.Steps != steps || len(n.book.own) <= published || n.unpublished() > 0 {
		t.Errorf("%d steps more, %d deltas more, %d steps unpublished", n.Steps-steps, len(n.book.own)-published, n.unpublished())
	}
	closed, payloads := n.closed(), n.PayloadIn
	w.RunFor(20_000)
	if !n.linked(w.nodes[0]) || !n.pausedAt(w.nodes[0]) {
		t.Error("its peer does not hear it any more")
	}
	if n.closed() != closed {
		t.Errorf("%d rounds close while it rests", n.closed()-closed)
	}
	if n.PayloadIn != payloads {
		t.Errorf("%d bytes of payloads come while it rests", n.PayloadIn-payloads)
	}
}

// The others step and close rounds as if a paused learner were not there; when it goes on it
// contributes again within some rounds.
func TestPausedLearnerIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	w := few(t, 4, 3000)
	w.RunFor(5000)
	n, other := w.nodes[3], w.nodes[0]
	n.pauses(t)
	steps := n.Steps
	closed, began := other.closed(), w.now
	for _, p := range w.nodes[:3] {
		before := p.Steps
		w.RunFor(10_000)
		if got, want := p.Steps-before, int(10_000/p.stepMs()); got < want-1 {
			t.Errorf("node %d takes %d steps in 10 s beside one that is paused, want %d", p.index, got, want)
		}
	}
	if got, want := other.closed()-closed, uint32((w.now-began)/(2*w.s.StepMs*Time(w.s.Params.H))); got < want {
		t.Errorf("%d rounds closed in %d ms, want at least %d", got, w.now-began, want)
	}
	if n.Steps != steps {
		t.Errorf("it takes %d steps", n.Steps-steps)
	}
	n.rest(false)
	at := w.now
	w.until(t, "it contributes", 10_000, func() bool { return n.contributed+Start >= at })
	w.until(t, "all are on one chain", 10_000, func() bool { return w.Together() && n.equalTo(other) })
}

// A run ends beside a learner that stays paused. Its budget is made by the others, and they
// do not stay for it.
func TestRunEndsBesideAPausedLearner(t *testing.T) {
	t.Parallel()
	s := calmScenario(3, 400)
	s.Unmended = true
	w := newWorld(t, s)
	w.RunFor(3000)
	n := w.nodes[2]
	n.pauses(t)
	last := w.now
	w.until(t, "the others may go", 60_000, func() bool {
		if w.nodes[0].may || w.nodes[1].may {
			last = w.now
		}
		return w.nodes[0].mayEnd() && w.nodes[1].mayEnd()
	})
	if took := w.now - last; took > doubtMs {
		t.Errorf("they may go %d ms after the last step: they wait for the paused one", took)
	}
	if !w.nodes[0].equalTo(w.nodes[1]) || w.nodes[2].mayEnd() {
		t.Error("the two differ, or the paused one takes itself for finished")
	}
	// It goes on while they are there, and takes the end from them.
	n.rest(false)
	w.until(t, "it has the end as well", 20_000, func() bool { return n.mayEnd() && n.equalTo(w.nodes[0]) })
}

// Half of a run is paused at a time, by turns: every promise of the checkers holds, and all
// that is made counts.
func TestPausedByTurns(t *testing.T) {
	t.Parallel()
	for i, faults := range []string{
		"rest 0-1 @3s, work 0-1 @20s, rest 2-3 @20s, work 2-3 @40s",
		"rest 0 @3s, rest 1 @3s, rest 2 @3s, rest 3 @3s, work 0 @13s, work 1 @14s, work 2 @15s, work 3 @16s",
		"rest 1 @3s, kill 1 @9s, start 1 @12s, rest 2 @5s, work 2 @9s",
		"rest 1 @3s, work 1 @3500ms, rest 1 @4s, work 1 @4100ms, rest 1 @5s, work 1 @30s",
		"rest 1 @3s, leave 1 @20s", "rest 1 @3s, leave 1 @3100ms",
		"rest 1 @3s, pause 1 @5s, resume 1 @20s, work 1 @22s",
		"partition 0,1 @3s, rest 1 @4s, merge @10s, work 1 @15s",
	} {
		if !taken(i, 3) {
			continue
		}
		if r := play(t, withFaults(t, 4, 80, faults)); r.Counts.Faults["rest"] == 0 {
			t.Errorf("%s: nothing rests", faults)
		}
	}
}

// A newcomer that is paused before it has the run's tips does not begin a run of its own,
// however long that lasts, and is in soon after.
func TestPausedNewcomer(t *testing.T) {
	t.Parallel()
	w := atWork(t, calmScenario(2, 3000))
	n := w.comes(w.nodes[0])
	n.rest(true)
	w.RunFor(2 * aloneMs)
	if w.RunFor(60_000); n.ready() || n.machine.View().FoldedTokens() > 0 {
		t.Fatalf("it is in phase %v", n.machine.View().Phase())
	}
	n.rest(false)
	w.until(t, "it trains", 20_000, func() bool { return n.ready() && n.may })
	w.until(t, "it is on the chain", 20_000, func() bool { return n.equalTo(w.nodes[0]) })
}

// A newcomer whose peers are all paused waits for one that goes on.
func TestNewcomerAmongPaused(t *testing.T) {
	t.Parallel()
	w := atWork(t, calmScenario(2, 3000))
	for _, p := range w.nodes {
		p.pauses(t)
	}
	n := w.comes(w.nodes[0])
	if w.RunFor(120_000); n.ready() {
		t.Fatal("it trains from genesis beside a run that is paused")
	}
	w.nodes[1].rest(false)
	w.until(t, "it trains", 20_000, func() bool { return n.ready() && n.may })
}

// A laptop is closed for ten minutes, in which its connections end. It contributes again
// within 20 s, heartbeat periods as in a real run.
func TestLidClosedForTenMinutes(t *testing.T) {
	t.Parallel()
	s := calmScenario(3, 20_000)
	s.HeartbeatMs = 2000
	w := newWorld(t, s)
	w.RunFor(5000)
	n := w.nodes[2]
	n.pause()
	w.RunFor(600_000)
	if len(n.links) > 0 {
		t.Fatal("connections outlived the sleep")
	}
	n.resume()
	at, before := w.now, w.foldedOf(n)
	w.until(t, "another node folds what it made since", 20_000, func() bool { return w.foldedOf(n) > before })
	t.Logf("after %d ms", w.now-at)
}

// foldedOf counts the deltas of a node in the chain of the first one.
func (w *World) foldedOf(n *Node) (count int) {
	for _, folds := range w.folds(w.nodes[0]) {
		for id := range folds {
			if n.book.own[id] != nil {
				count++
			}
		}
	}
	return count
}
