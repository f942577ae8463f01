package core_test

import (
	"atoll/gossip"
	"atoll/gossip/wire"
	"atoll/node/core"
)

// stranger is a key without a node behind it: it says what it likes, and answers
// nothing.
type stranger struct {
	*node
	seq uint64 // of its beats
}

// stranger makes the key of that number; honest nodes have small ones.
func (w *world) stranger(number int) *stranger {
	s := &stranger{node: newNode(w, number, nodeConfig{})}
	w.faulty[s.id] = true
	return s
}

// connects makes it a peer of all nodes, with a capability record.
func (s *stranger) connects() {
	for _, n := range s.w.alive() {
		n.links[s.node], s.links[n] = true, true
		signed, record := s.record()
		n.do(func() {
			n.machine.Step(s.w.now, gossip.PeerUp{Peer: s.id, Signed: signed, Record: record})
		})
	}
}

// says gives a gossip message to one node, which spreads it.
func (s *stranger) says(to *node, b []byte) {
	to.do(func() { to.gossip(s.node, b) })
}

// signs makes a header of the most steps for a round, with so many tokens.
func (s *stranger) signs(fragment int, round uint32, tokens uint64, payload []byte) wire.SignedHeader {
	return wire.SignHeader(s.key, s.w.run, wire.Header{
		Author: s.id, Fragment: uint16(fragment), Round: round, Base: round - 1, Steps: s.w.cfg.params.MaxSteps, Tokens: tokens,
		Precision: 1, Codec: uint8(s.w.cfg.params.Codec), Size: uint32(len(payload)), Payload: wire.Sum(payload),
	})
}

// announces shows a header whose payload never comes.
func (s *stranger) announces(fragment int, round uint32, tokens uint64) {
	sh := s.signs(fragment, round, tokens, s.w.payloadOf(fragment, 1))
	s.says(s.w.nodes[0], wire.EncodeHeader(sh, nil))
}

// proof is evidence that the owner of the key signed two deltas for one round.
func (s *stranger) proof(fragment int, round uint32) wire.Evidence {
	payload := s.w.payloadOf(fragment, 1)
	return wire.Evidence{A: s.signs(fragment, round, 1, payload), B: s.signs(fragment, round, 2, payload)}
}

// beats says of every fragment that so many tokens are unpublished, and of the
// rounds what node 0 has.
func (s *stranger) beats(state wire.State, unpublished uint64) {
	r := s.w.nodes[0].machine.Rounds()
	s.seq++
	b := wire.Beat{Author: s.id, Incarnation: start, Seq: s.seq, State: state, Capability: 1, TokensPerSecond: 1e6}
	for p := range s.w.plan {
		b.Unpublished = append(b.Unpublished, unpublished)
		b.Closed = append(b.Closed, r.Closed(p))
	}
	s.says(s.w.nodes[0], wire.EncodeBeat(s.key, s.w.run, b))
}

// every does something now, and again each ms.
func (w *world) every(ms core.Time, do func()) {
	do()
	w.after(ms, func() { w.every(ms, do) })
}

// trained are the inner steps of all nodes.
func (w *world) trained() (steps int) {
	for _, n := range w.nodes {
		steps += n.steps
	}
	return steps
}
