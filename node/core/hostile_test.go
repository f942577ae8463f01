package core_test

import (
	"errors"
	"slices"
	"testing"

	"atoll/gossip"
	"atoll/gossip/wire"
	"atoll/node/core"
	"atoll/optimizer/outer"
	"atoll/optimizer/rounds"
)

// mostTokens is the largest claim that a header may make: more than the budget
// of any run here.
func (w *world) mostTokens() uint64 {
	return uint64(w.cfg.params.MaxSteps) * w.cfg.params.MaxTokensPerStep
}

// expectSteps runs for some time in which every node steps as if alone.
func (w *world) expectSteps(span core.Time) {
	w.t.Helper()
	before := w.trained()
	w.runFor(span)
	want := 0
	for _, n := range w.alive() {
		want += int(span / n.stepMs())
	}
	if got := w.trained() - before; got < want-len(w.nodes) {
		w.fatalf("%d steps in %d ms, want %d\n%s", got, span, want, w)
	}
}

// A stranger's headers claim the whole budget, one of them far ahead and one
// inside the window, and no payload follows. Nobody stops for them.
func TestPromisesOfAStranger(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 30, worldConfig{params: budgetOf(1000)})
	w.found(3)
	w.runFor(3000)
	s := w.stranger(90)
	for p := range w.plan {
		closed := w.nodes[0].machine.Rounds().Closed(p)
		for _, ahead := range []uint32{1000, 5, 1} {
			s.announces(p, closed+ahead, w.mostTokens())
		}
	}
	w.expectSteps(10_000)
	w.finish(patience)
}

// Strangers beat that they hold more than the budget unpublished, or train for
// ever. Their keys stand before those of all learners, so that the last steps
// would be theirs. The run reaches its budget and ends.
func TestBeatsOfStrangers(t *testing.T) {
	t.Parallel()
	for _, connected := range []bool{false, true} {
		w := newWorld(t, 31, worldConfig{params: budgetOf(600)})
		w.found(3)
		w.runFor(2000)
		for _, s := range w.firstStrangers(3) {
			if connected {
				s.connects()
			}
			w.every(200, func() { s.beats(wire.Training, 1<<40) })
		}
		w.expectSteps(10_000)
		w.finish(patience)
	}
}

// firstStrangers are n keys that come before those of all nodes.
func (w *world) firstStrangers(n int) []*stranger {
	var out []*stranger
	for i := 100; len(out) < n; i++ {
		s := w.stranger(i)
		if !slices.ContainsFunc(w.nodes, func(n *node) bool { return n.id.Compare(s.id) < 0 }) {
			out = append(out, s)
		}
	}
	return out
}

// A learner that did its share claims more than the budget, again and again,
// and never publishes again: each node stops for it once and for a while.
func TestBeatsOfAFallenLearner(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 32, worldConfig{params: budgetOf(600)})
	w.found(4)
	w.runFor(4000)
	fallen := &stranger{node: w.nodes[3], seq: 1 << 40}
	w.faulty[fallen.id] = true
	fallen.crash()
	w.nodes = w.nodes[:3]
	w.every(200, func() { fallen.beats(wire.Training, 1<<40) })
	w.runUntil("all finished", patience, w.allFinished)
	w.checkSame()
}

// A learner is barred for a proof about one round of one fragment. The others
// reach the budget, and all of them end, the barred one too.
func TestBarredLearner(t *testing.T) {
	t.Parallel()
	for i := range 3 {
		w := newWorld(t, 33, worldConfig{params: budgetOf(800)})
		w.found(3)
		w.runFor(4000)
		barred := &stranger{node: w.nodes[i]}
		w.faulty[barred.id] = true
		proof := barred.proof(1, w.nodes[0].machine.Rounds().Closed(1)+3)
		barred.says(w.nodes[(i+1)%3], wire.EncodeEvidence(proof))
		w.finish(patience)
	}
}

// For every round that opens a stranger shows a header that claims the whole
// budget and whose payload never comes. Rounds are as many as they would be, and
// nobody stops.
func TestHollowBells(t *testing.T) {
	t.Parallel()
	const span = 15_000
	run := func(hollow bool) (rounds uint32) {
		w := newWorld(t, 34, worldConfig{params: budgetOf(1000)})
		w.found(3)
		w.runFor(1000)
		if s := w.stranger(90); hollow {
			w.every(50, func() {
				for p := range w.plan {
					s.announces(p, w.nodes[0].machine.Rounds().Closed(p)+1, w.mostTokens())
				}
			})
		}
		w.expectSteps(span)
		rounds = w.nodes[0].machine.Rounds().Closed(0)
		w.finish(patience)
		return rounds
	}
	calm, raced := run(false), run(true)
	if raced > calm+calm/4 || raced < calm-calm/4 {
		t.Errorf("%d rounds with hollow bells, %d without", raced, calm)
	}
}

// holds wants all that the machine holds to be within its bounds, and one count.
func (n *node) holds(what string, want int) {
	n.w.t.Helper()
	found := false
	n.machine.Sizes(func(name string, count, most int) {
		if found = found || name == what; count > most || name == what && count != want {
			n.w.t.Errorf("%d %s, at most %d are allowed; want %d %s", count, name, most, want, what)
		}
	})
	if !found {
		n.w.t.Errorf("nobody counts %s", what)
	}
}

// Fresh keys flood the open round, the rounds ahead and the evidence. What is
// kept of it is bounded, and the run goes on to its budget.
func TestFloodOfFreshKeys(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 35, worldConfig{params: budgetOf(600)})
	w.found(2)
	w.runFor(2000)
	n := w.nodes[0]
	round := n.machine.Rounds().Closed(0) + 1
	const flood = 1100
	payload, kept := w.payloadOf(0, 1), map[uint32]int{}
	for i := range uint32(flood) {
		for k, at := range []uint32{round, round + 1, round + 2 + i%8, round + 500} {
			s := w.stranger(1000 + 4*int(i) + k)
			sh := s.signs(0, at, 1, payload)
			n.do(func() { n.machine.Step(w.now, gossip.Received{From: n.id, Message: wire.Message{Header: &sh}}) })
			if known, _ := n.machine.Rounds().Known(0, at, [32]byte(sh.Header.ID(w.run))); known {
				kept[at-round]++
			}
		}
	}
	n.holds("headers met", 4096)
	n.holds("deltas of one round", int(kept[0]))
	parked := 0
	for ahead, count := range kept {
		if ahead >= 2 {
			parked += count
		}
	}
	if kept[0] == 0 || kept[0] >= flood || kept[1] >= flood || parked == 0 || parked > 256 || kept[500] > 0 {
		t.Errorf("kept of the open and the next round %d and %d, of those ahead %d", kept[0], kept[1], parked)
	}
	w.finish(patience)
}

// Fresh keys prove of themselves that they signed twice, more of them for one
// round than are kept, and others to each node; or for rounds far ahead.
func TestFloodOfEvidence(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 36, worldConfig{params: budgetOf(600)})
	w.found(3)
	w.runFor(2000)
	for i := range 150 {
		n := w.nodes[i%3]
		s, closed := w.stranger(1000+i), n.machine.Rounds().Closed(0)
		s.says(n, wire.EncodeEvidence(s.proof(0, closed+1)))
		far := w.stranger(2000 + i)
		far.says(n, wire.EncodeEvidence(far.proof(0, closed+1000)))
		if n.machine.Rounds().Barred(outer.Author(far.id)) {
			t.Fatal("a proof about a round far ahead is kept")
		}
	}
	w.nodes[0].holds("headers of evidence for one round", 64)
	barred := 0
	for i := range 150 {
		if w.nodes[0].machine.Rounds().Barred(outer.Author(w.stranger(1000 + i).id)) {
			barred++
		}
	}
	if barred == 0 || barred > 32 {
		t.Errorf("%d keys are barred for one round, want at most 32", barred)
	}
	w.finish(patience)
}

// Where no more evidence is kept, that against a delta that the node holds is used all
// the same, and stored, once: after a restart its author is out of the round as well.
func TestEvidenceThatIsUsedIsStored(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 38, worldConfig{params: budgetOf(600)})
	w.found(1)
	w.runFor(2000)
	n := w.nodes[0]
	round := n.machine.Rounds().Closed(0) + 1
	says := func(m wire.Message) {
		n.do(func() { n.machine.Step(w.now, gossip.Received{From: n.id, Message: m}) })
		w.runFor(diskMs)
	}
	for i := range 40 {
		proof := w.stranger(1000+i).proof(0, round)
		says(wire.Message{Evidence: &proof})
	}
	liar := w.stranger(90)
	proof := liar.proof(0, round)
	says(wire.Message{Header: &proof.A})
	for range 2 {
		says(wire.Message{Evidence: &proof})
	}
	if stored := n.disk.evidence; len(stored) != 33 || stored[32] != proof {
		t.Fatalf("%d proofs are stored, want the 32 that are kept and the one that is used", len(stored))
	}
	n.crash()
	n.boot(n.load())
	d := core.DeltaOf(proof.A.Header.ID(w.run), proof.A.Header)
	if err := n.machine.Rounds().Offer(w.now, d, true); !errors.Is(err, rounds.ErrBarred) {
		t.Errorf("after a restart a delta of its author is taken: %v", err)
	}
}

// The first of two deltas for one round has no payload, the second one has: none
// of them is folded.
func TestFirstOfTwoIsHollow(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 37, worldConfig{params: budgetOf(600)})
	w.found(3)
	w.runFor(3000)
	s := w.stranger(90)
	round := w.nodes[0].machine.Rounds().Closed(0) + 1
	payload := w.payloadOf(0, 1)
	hollow, whole := s.signs(0, round, 8, payload), s.signs(0, round, 9, payload)
	s.says(w.nodes[0], wire.EncodeHeader(hollow, nil))
	s.says(w.nodes[1], wire.EncodeHeader(whole, payload))
	w.finish(patience)
	for _, n := range w.nodes {
		for _, sh := range []wire.SignedHeader{hollow, whole} {
			id := outer.ID(sh.Header.ID(w.run))
			for r, l := range n.disk.rounds[0] {
				if slices.Contains(l.Folded, id) {
					t.Errorf("node %d folded a delta of the equivocator in round %d", n.index, r)
				}
			}
		}
	}
}

// A node alone closes many rounds while the others, slower and with more tokens,
// close few. It takes their tips, and cannot publish until they come to rounds
// that it did not sign. Nobody stops for it meanwhile.
func TestMarkAheadOfTheChain(t *testing.T) {
	t.Parallel()
	p := budgetOf(1000)
	p.WindowAccept, p.WindowUnion = 4, 8
	w := newWorld(t, 38, worldConfig{params: p})
	for i := range 5 {
		w.add(nodeConfig{alone: true, divisor: 1 + 2*core.Time(min(i, 1))})
	}
	fast := w.nodes[0]
	w.runFor(3000)
	w.partition(fast)
	w.runFor(40_000)
	w.partition()
	w.runUntil("tips are taken", 20_000, func() bool { return fast.installs > 0 })
	closed := w.nodes[1].machine.Rounds().Closed(0)
	if mark := fast.disk.marks[0]; mark < closed+10 {
		t.Fatalf("the mark is %d, others closed %d", mark, closed)
	}
	w.expectSteps(10_000)
	w.finish(patience)
}
