package gossip

import (
	"math"
	"slices"
	"testing"

	"atoll/gossip/wire"
)

// changed runs a world in which node 0 changes its answers to requests of
// kind k, and checks that the others still end with equal chains.
func changed(t *testing.T, k wire.RequestKind, lie func(body []byte) []byte) *world {
	t.Helper()
	w := newWorld(t, 30, 5, options{loss: 0.2})
	w.nodes[0].lie = func(kind wire.RequestKind, b []byte) []byte {
		if kind != k || b[0] != byte(wire.OK) {
			return b
		}
		return wire.Response{Status: wire.OK, Body: lie(b[1:])}.Encode()
	}
	w.train(8, fixed(2000))
	w.after(1000, func() { w.partition(2) })
	w.after(2200, w.merge)
	w.runUntil(4000)
	if !w.runUntilTrue(120_000, func() bool { return equal(w.nodes[1:]) }) {
		t.Fatalf("a lying %v answer keeps the others apart", k)
	}
	return w
}

func rounds(t *testing.T, body []byte, change func(a *wire.RangeAnswer)) []byte {
	var answers []wire.RangeAnswer
	if err := wire.Unmarshal(body, &answers); err != nil {
		t.Fatal(err)
	}
	for i := range answers {
		change(&answers[i])
	}
	return wire.EncodeRounds(answers)
}

func TestLyingRounds(t *testing.T) {
	lies := map[string]func(a *wire.RangeAnswer){
		"closed far ahead": func(a *wire.RangeAnswer) { a.Closed = math.MaxUint32 },
		"base above":       func(a *wire.RangeAnswer) { a.Base = a.Closed + 1 },
		"all sets differ": func(a *wire.RangeAnswer) {
			for i := range a.Sets {
				a.Sets[i][0]++
			}
		},
		"no sets": func(a *wire.RangeAnswer) { a.Sets = nil },
	}
	for name, lie := range lies {
		t.Run(name, func(t *testing.T) {
			changed(t, wire.GetRounds, func(b []byte) []byte { return rounds(t, b, lie) })
		})
	}
}

func TestLyingHeaders(t *testing.T) {
	lies := map[string]func(b []byte) []byte{
		"cut":    func(b []byte) []byte { return b[:len(b)/2] },
		"none":   func([]byte) []byte { return nil },
		"forged": func(b []byte) []byte { b = slices.Clone(b); b[len(b)-1]++; return b },
		"twice":  func(b []byte) []byte { return append(slices.Clone(b), b...) },
	}
	for name, lie := range lies {
		t.Run(name, func(t *testing.T) { changed(t, wire.GetHeaders, lie) })
	}
}

// TestStrangersChainIsNotTaken has a newcomer show a longer chain that begins
// where the others can no longer refold. They would have to give up theirs, on the
// claim of a node that never did anything for the run.
func TestStrangersChainIsNotTaken(t *testing.T) {
	w := newWorld(t, 35, 4, options{window: 64})
	w.train(10, fixed(1500))
	w.runUntil(6000)
	for _, n := range w.nodes {
		for f := range n.chain.base {
			n.chain.baseChain[f], _ = n.chain.ChainDigest(f, 6)
			n.chain.base[f] = 6
		}
		n.effects = nil
	}
	stranger := w.add()
	for f := range stranger.chain.closed {
		stranger.chain.closed[f] = 12
	}
	for i := range 4 {
		w.connect(i, stranger.index)
	}
	w.runUntil(30_000)
	for _, n := range w.nodes[:4] {
		if slices.ContainsFunc(n.effects, isSnapshot) {
			t.Errorf("node %d gave up its chain for that of a stranger", n.index)
		}
		if !slices.ContainsFunc(n.effects, func(e Effect) bool { m, ok := e.(BaseMismatch); return ok && m.Peer == stranger.id && !m.Take }) {
			t.Errorf("node %d did not say why it holds", n.index)
		}
	}
}
