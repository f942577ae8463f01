package core_test

import (
	"testing"

	"atoll/gossip"
	"atoll/gossip/wire"
	"atoll/node/core"
	"atoll/tensor/codec"
)

// Two sides part for longer than the union window. One chain is chosen for the
// whole run, everybody takes it, and no token is unaccounted for.
func TestDeepForkEndsAsOneChain(t *testing.T) {
	t.Parallel()
	p := budgetOf(2000)
	p.WindowAccept, p.WindowUnion = 4, 8
	w := newWorld(t, 20, worldConfig{params: p})
	w.found(5)
	w.runFor(4000)
	w.partition(w.nodes[0], w.nodes[1])
	w.runFor(15_000)
	w.partition()
	w.slack = 5 * p.H
	w.finish(patience)
	took, discards := 0, 0
	for _, n := range w.nodes {
		took += n.installs
		discards += n.discards
	}
	if took == 0 || discards == 0 {
		t.Errorf("tips taken %d times, %d own deltas discarded", took, discards)
	}
}

// rogue publishes, in the name of a node, what an honest one never would.
func (w *world) rogue(author, to *node, h wire.Header, payload []byte) wire.Digest {
	h.Author, h.Size, h.Payload = author.id, uint32(len(payload)), wire.Sum(payload)
	h.Precision, h.Codec = 1, uint8(w.cfg.params.Codec)
	sh := wire.SignHeader(author.key, w.run, h)
	w.faulty[author.id] = true
	to.do(func() { to.gossip(author, wire.EncodeHeader(sh, payload)) })
	return sh.Header.ID(w.run)
}

func (w *world) payloadOf(p int, x float32) []byte {
	v := make([]float32, w.plan[p].Len)
	for i := range v {
		v[i] = x
	}
	b, err := codec.Encode(w.cfg.params.Codec, v)
	if err != nil {
		w.fatalf("%v", err)
	}
	return b
}

// An author that signs two deltas for one round, each shown to one node, is left
// out of that round by all, and its later deltas too.
func TestEquivocation(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 21, worldConfig{params: budgetOf(1000)})
	w.found(3)
	w.runFor(3000)
	liar := newNode(w, 9, nodeConfig{})
	w.nodes = append(w.nodes, liar)
	round := w.nodes[0].machine.Rounds().Closed(0) + 1
	h := wire.Header{Fragment: 0, Round: round, Base: round - 1, Steps: 8, Tokens: 8 * tokensPerStep}
	a := w.rogue(liar, w.nodes[0], h, w.payloadOf(0, 1))
	h.Steps--
	b := w.rogue(liar, w.nodes[1], h, w.payloadOf(0, -1))
	w.nodes = w.nodes[:3]
	w.finish(patience)
	for r := uint32(1); r <= w.nodes[0].machine.Rounds().Closed(0); r++ {
		for _, id := range w.nodes[0].disk.rounds[0][r].Folded {
			if wire.Digest(id) == a || wire.Digest(id) == b {
				t.Errorf("round %d folded a delta of the equivocator", r)
			}
		}
	}
}

// Deltas that break the rules, or whose payload does not decode, are refused by
// all and stop nobody.
func TestBadDeltas(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 22, worldConfig{params: budgetOf(1000)})
	w.found(3)
	w.runFor(3000)
	for i, spoil := range []func(*wire.Header, []byte) []byte{
		func(h *wire.Header, b []byte) []byte { h.Tokens = 1 << 40; return b },
		func(h *wire.Header, b []byte) []byte { h.Steps = 1 << 30; return b },
		func(_ *wire.Header, b []byte) []byte { return append(b, make([]byte, 900)...) },
		func(_ *wire.Header, b []byte) []byte { return b[:len(b)-1] },
		func(_ *wire.Header, b []byte) []byte { b[0]++; return b },
	} {
		liar := newNode(w, 9+i, nodeConfig{})
		w.nodes = append(w.nodes, liar)
		round := w.nodes[0].machine.Rounds().Closed(0) + 1
		h := wire.Header{Round: round, Base: round - 1, Steps: 8, Tokens: 8 * tokensPerStep}
		payload := spoil(&h, w.payloadOf(0, 1))
		id := w.rogue(liar, w.nodes[0], h, payload)
		w.runFor(300)
		for _, n := range w.nodes[:3] {
			if n.disk.payloads[id] != nil {
				t.Errorf("bad delta %d is stored by node %d", i, n.index)
			}
			refused, _ := n.machine.Counts()
			if refused != uint64(i+1) {
				t.Errorf("bad delta %d: node %d refused %d", i, n.index, refused)
			}
		}
		w.nodes = w.nodes[:3]
	}
	w.finish(patience)
}

// A payload too large for its fragment is not even fetched, and its header rings
// no bell.
func TestOversizeIsNotFetched(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 23, worldConfig{params: budgetOf(1000)})
	w.found(1)
	w.runFor(300)
	n := w.nodes[0]
	h := wire.Header{Round: 1, Steps: 8, Tokens: 8 * tokensPerStep, Size: 1 << 20, Precision: 1, Codec: uint8(w.cfg.params.Codec)}
	sh := wire.SignHeader(testKey(9), w.run, h)
	w.faulty[sh.Header.Author] = true
	n.machine.Step(w.now, gossip.Received{From: n.id, Message: wire.Message{Header: &sh}})
	for _, e := range n.machine.Effects() {
		if _, ok := e.(gossip.Call); ok {
			t.Error("fetches it")
		}
	}
	w.runFor(core.Time(w.cfg.params.GraceMaxMs))
	if known, _ := n.machine.Rounds().Known(0, 1, [32]byte(sh.Header.ID(w.run))); known {
		t.Error("the rounds know it")
	}
}

// In a run of many windows what is kept stays bounded, and it still ends well.
func TestManyWindows(t *testing.T) {
	t.Parallel()
	p := budgetOf(2400)
	p.H, p.HMin, p.WindowAccept, p.WindowUnion = 4, 1, 4, 9
	w := newWorld(t, 24, worldConfig{params: p, loss: 0.1})
	w.found(3)
	w.finish(patience)
	r := w.nodes[0].machine.Rounds()
	if closed := r.Closed(0); closed < 10*p.WindowUnion {
		t.Fatalf("only %d rounds", closed)
	}
	for _, n := range w.nodes {
		for p := range w.plan {
			if got := len(n.disk.bases[p]); got > 10 {
				t.Errorf("node %d keeps %d bases of fragment %d", n.index, got, p)
			}
		}
	}
}

// The paper's adoption discards what is unpublished at each close: quality
// aside, it ends, as one chain, with the discarded steps in their own column.
func TestOverwrite(t *testing.T) {
	t.Parallel()
	p := budgetOf(1000)
	p.Overwrite = true
	w := newWorld(t, 25, worldConfig{params: p})
	w.found(3)
	w.runUntil("all finished", patience, w.allFinished)
	w.checkSame()
	var overwritten uint64
	for _, n := range w.nodes {
		for p := range w.plan {
			a := n.learner.Account(p)
			overwritten += a.Overwritten.Tokens
			if a.Total().Tokens != n.trained {
				t.Errorf("node %d fragment %d: trained %d, account %+v", n.index, p, n.trained, a)
			}
		}
	}
	if overwritten == 0 {
		t.Error("nothing was overwritten")
	}
}
