package sim

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"atoll/gossip/wire"
	"atoll/node/core"
	"atoll/optimizer/outer"
	"atoll/testnet/fault"
)

// newWorld makes a world that keeps every promise for as long as the test runs.
func newWorld(t *testing.T, s Scenario) *World {
	t.Helper()
	w, err := New(s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if w.Err() != nil {
			t.Error(w.Err())
		}
	})
	return w
}

// few is a world of n learners that begin a run of so many steps.
func few(t *testing.T, n, steps int) *World {
	t.Helper()
	return newWorld(t, calmScenario(n, steps))
}

// atWork lets the learners of a scenario fold some rounds.
func atWork(t *testing.T, s Scenario) *World {
	t.Helper()
	w := newWorld(t, s)
	w.until(t, "some rounds are folded", 60_000, func() bool { return w.nodes[0].machine.View().FoldedTokens() > 100*TokensPerStep })
	return w
}

// deserted is a world whose only node has gone.
func deserted(t *testing.T, s Scenario) *World {
	t.Helper()
	w := newWorld(t, s)
	w.nodes[0].disturb(Fault{Kind: fault.Lose})
	return w
}

// until runs until cond holds, and fails where it does not within so many ms.
func (w *World) until(t *testing.T, what string, limit Time, cond func() bool) {
	t.Helper()
	w.look(t, what, 50, limit, cond)
}

// look does so with a look every so often.
func (w *World) look(t *testing.T, what string, every, limit Time, cond func() bool) {
	t.Helper()
	for end := w.now + limit; !cond(); w.RunFor(every) {
		if w.now >= end || w.err != nil {
			t.Fatalf("not within %d ms: %s\n%s", limit, what, w)
		}
	}
}

// readyAfter is how long a node takes until it is ready.
func (w *World) readyAfter(t *testing.T, n *Node, limit Time) Time {
	t.Helper()
	began := w.now
	w.look(t, "it is ready", 5, limit, n.ready)
	return w.now - began
}

func (n *Node) ready() bool { return n.machine.View().Phase() == core.Ready }

// comes starts a node whose link names those peers.
func (w *World) comes(link ...*Node) *Node {
	n := newNode(w, len(w.nodes), NodeSpec{}, false)
	for _, p := range link {
		n.contacts = append(n.contacts, p.index)
	}
	return w.starts(n)
}

// comesBack starts a node of a key whose disk is lost. The link of a founder names
// nobody.
func (w *World) comesBack(founder bool, link ...*Node) *Node {
	n := newNode(w, len(w.nodes), NodeSpec{}, founder)
	n.keyOnly, n.linkless = true, founder
	for _, p := range link {
		n.contacts = append(n.contacts, p.index)
	}
	return w.starts(n)
}

func (w *World) starts(n *Node) *Node {
	w.nodes = append(w.nodes, n)
	w.byID[n.id] = n
	n.boot()
	n.redial()
	return n
}

// told reports whether a node said something about its way in or out.
func (n *Node) told(text string) bool {
	return slices.ContainsFunc(n.w.checks.told[n], func(s string) bool { return strings.Contains(s, text) })
}

// equalTo reports whether two nodes have one chain and one state two rounds
// below those that both have folded, as heartbeats compare them.
func (n *Node) equalTo(p *Node) bool {
	for f := range n.w.plan {
		round := min(n.machine.Rounds().Fragment(f).Tip().Round, p.machine.Rounds().Fragment(f).Tip().Round)
		round -= min(round, agreeLag)
		a, known := n.machine.Rounds().Fragment(f).Link(round)
		b, _ := p.machine.Rounds().Fragment(f).Link(round)
		if !known || a.Chain != b.Chain || a.State != b.State {
			return false
		}
	}
	return true
}

// ownRecords is how many own deltas a restart would find.
func (n *Node) ownRecords() int {
	own, _ := n.disk.Own() // which has no errors
	return len(own)
}

// folds reports whether a node folded a delta.
func (n *Node) folds(id wire.Digest) bool {
	for p := range n.w.plan {
		for _, l := range n.disk.Records(p) {
			if slices.Contains(l.Folded, outer.ID(id)) {
				return true
			}
		}
	}
	return false
}

// answering has a node answer as no honest one does; nil is no answer.
func (n *Node) answering(answer func(l *liar, to *Node, q wire.Request, honest []byte) []byte) {
	n.w.checks.faulty[n.id] = true
	n.liar = &liar{n: n, behaviour: behaviour{answer: answer}, payloads: map[wire.Digest][]byte{}, claimed: make([]uint64, len(n.w.plan))}
}

// deaf has a node answer no request of some kinds while it is to be deaf.
func (n *Node) deaf(still func() bool, kinds ...wire.RequestKind) {
	n.answering(func(_ *liar, _ *Node, q wire.Request, honest []byte) []byte {
		if slices.Contains(kinds, q.Kind) && still() {
			return nil
		}
		return honest
	})
}

func always() bool { return true }

// brokenSnapshot gives tips with values that do not come to their state.
func brokenSnapshot(l *liar, _ *Node, q wire.Request, honest []byte) []byte {
	n := l.n
	switch q.Kind {
	case wire.GetChunk:
		return chunkAnswer(l.payloads[q.Digest])
	case wire.GetManifest, wire.GetSnapshot:
		m, err := core.ManifestOf(core.GivenTips(n.w.s.Params, n.machine.Rounds(), q.At), q.At == nil, func(p int, d core.GivenTip) (wire.FragmentManifest, error) {
			tip, err := n.replica.GivenTip(p, d)
			if err != nil {
				return wire.FragmentManifest{}, err
			}
			f, chunks := core.CutSnapshot(bent(tip), d.Links)
			maps.Copy(l.payloads, chunks)
			return f, nil
		})
		if err == nil {
			return wire.Found(wire.EncodeManifest(n.key, n.w.run, m))
		}
	}
	return honest
}

// bent is a tip with a value changed, and the digest of the right one.
func bent(tip *outer.Tip) *outer.Tip {
	wrong := *tip
	wrong.Global = slices.Clone(tip.Global)
	wrong.Global[0]++
	return &wrong
}
