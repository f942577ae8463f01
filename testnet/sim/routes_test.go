package sim

import (
	"math/rand/v2"
	"slices"
	"testing"

	"atoll/gossip"
	"atoll/gossip/wire"
)

// delivery is a delta as gossip brings it.
type delivery struct {
	id   wire.Digest
	open wire.Message
}

// The same deltas by other routes give the same result. An observer hears each
// delta of a world of learners from strangers, once or twice, late or early, in
// any order that the windows allow. It comes to what that world came to.
func TestTwoRoutesOneResult(t *testing.T) {
	t.Parallel()
	s := calmScenario(4, 600)
	w, err := New(s)
	if err != nil {
		t.Fatal(err)
	}
	w.Finish()
	if w.Err() != nil {
		t.Fatal(w.Err())
	}
	chain, state := w.first().machine.View().Digests()
	for route := range uint64(4) {
		o := observe(t, s, shuffled(w.deliveries(), route))
		if c, st := o.machine.View().Digests(); c != chain || st != state {
			t.Errorf("route %d: chain %v, state %v; the learners came to %v, %v", route, c, st, chain, state)
		}
	}
}

// deliveries are all deltas that a node holds, by round.
func (w *World) deliveries() (all []delivery) {
	n := w.first()
	n.disk.Deltas(func(id wire.Digest, h *wire.SignedHeader, payload []byte) {
		all = append(all, delivery{id, wire.Message{Header: h, Inline: payload}})
	})
	slices.SortFunc(all, func(a, b delivery) int {
		x, y := a.open.Header.Header, b.open.Header.Header
		if x.Round != y.Round {
			return int(x.Round) - int(y.Round)
		}
		return a.id.Compare(b.id)
	})
	return all
}

// shuffled moves deliveries by up to some places and repeats some.
func shuffled(all []delivery, seed uint64) []delivery {
	rng := rand.New(rand.NewPCG(seed, 9))
	const apart = 12 // deltas: about a round of three fragments and four learners
	out := slices.Clone(all)
	for i := range out {
		j := min(i+rng.IntN(apart), len(out)-1)
		out[i], out[j] = out[j], out[i]
	}
	for range len(all) / 4 {
		i := rng.IntN(len(out))
		out = slices.Insert(out, i, out[max(0, i-rng.IntN(apart))])
	}
	return out
}

// observe lets a lone observer hear the deliveries, some at a time.
func observe(t *testing.T, s Scenario, all []delivery) *Node {
	t.Helper()
	s.Founders = []NodeSpec{{Observer: true}}
	w, err := New(s)
	if err != nil {
		t.Fatal(err)
	}
	n := w.nodes[0]
	for i, d := range all {
		h := d.open.Header.Header
		w.checks.ledger[d.id] = &h
		n.do(func() { n.machine.Step(n.clock(), gossip.Received{From: wire.PeerID{byte(i)}, Message: d.open}) })
		if i%5 == 0 {
			w.RunFor(40)
		}
	}
	w.RunFor(10 * s.Params.GraceMaxMs)
	if w.Err() != nil {
		t.Fatal(w.Err())
	}
	return n
}
