package sim

import (
	"cmp"
	"crypto/ed25519"
	"encoding/binary"
	"testing"

	"atoll/gossip"
	"atoll/gossip/hello"
	"atoll/gossip/wire"
	"atoll/tensor/codec"
)

// outsider is a key without a node: it says what it likes, and answers nothing.
type outsider struct {
	w    *World
	key  ed25519.PrivateKey
	id   wire.PeerID
	seq  uint64 // of its heartbeats
	life int64  // of its process, counted from 0
}

// outsider makes the key of that number.
func (w *World) outsider(number int) *outsider {
	seed := make([]byte, ed25519.SeedSize)
	binary.BigEndian.PutUint32(seed, uint32(number)+1)
	return w.outsiderWith(ed25519.NewKeyFromSeed(seed))
}

func (w *World) outsiderWith(key ed25519.PrivateKey) *outsider {
	o := &outsider{w: w, key: key, id: wire.PeerIDOf(key)}
	w.checks.faulty[o.id] = true
	return o
}

// meets begins a session with a node.
func (o *outsider) meets(t *testing.T, n *Node) {
	t.Helper()
	record := n.said
	record.Author, record.Addrs = o.id, []string{addrOf(maxNodes)}
	signed, err := hello.Sign(o.key, record)
	if err != nil {
		t.Fatal(err)
	}
	n.do(func() { n.machine.Step(n.clock(), gossip.PeerUp{Peer: o.id, Signed: signed, Record: record}) })
}

// says gives a message to a node, which does not pass it on.
func (o *outsider) says(n *Node, m wire.Message) {
	n.do(func() { n.machine.Step(n.clock(), gossip.Received{From: o.id, Message: m}) })
}

// sends has a node hear a heartbeat.
func (o *outsider) sends(n *Node, b wire.Heartbeat) {
	o.seq++
	b.Author, b.Incarnation, b.Seq, b.Closed = o.id, 1+o.life, o.seq, make([]uint32, len(o.w.plan))
	b.PeriodMs = cmp.Or(b.PeriodMs, heartbeat)
	if b.Unpublished == nil {
		b.Unpublished = make([]uint64, len(o.w.plan))
	}
	m, err := wire.Open(o.w.run, wire.EncodeHeartbeat(o.key, o.w.run, b))
	if err != nil {
		panic(err)
	}
	o.says(n, m)
}

// signs makes a header for a payload of its own; folding it is no surprise.
func (o *outsider) signs(h wire.Header, payload []byte) wire.SignedHeader {
	h.Author, h.Codec = o.id, uint8(o.w.s.Params.Codec)
	h.Size, h.Payload = uint32(len(payload)), wire.Sum(payload)
	sh := wire.SignHeader(o.key, o.w.run, h)
	o.w.checks.ledger[sh.Header.ID(o.w.run)] = &sh.Header
	return sh
}

// shows gives a delta of one step to a node.
func (o *outsider) shows(n *Node, h wire.Header) wire.Digest {
	payload := o.w.payload(int(h.Fragment))
	sh := o.signs(h, payload)
	o.says(n, wire.Message{Header: &sh, Inline: payload})
	return sh.Header.ID(o.w.run)
}

// payload is a delta of ones.
func (w *World) payload(p int) []byte {
	v := make([]float32, w.plan[p].Len)
	for i := range v {
		v[i] = 1
	}
	b, err := codec.Encode(w.s.Params.Codec, v)
	if err != nil {
		panic(err)
	}
	return b
}

// headerAt is the header of one step for the round after the one given.
func headerAt(p int, closed uint32) wire.Header {
	return wire.Header{Fragment: uint16(p), Round: closed + 1, Base: closed, Steps: 1, Tokens: TokensPerStep}
}

// spreads gives a message to one node, which passes it on.
func (o *outsider) spreads(n *Node, b []byte) {
	m := o.w.newMessage(b, wire.Open)
	n.do(func() { n.receive(&Node{id: o.id}, m) })
}

// A learner is excluded for a proof about one round of one fragment. The others
// reach the budget, and all of them end, the excluded one too.
func TestExcludedLearner(t *testing.T) {
	t.Parallel()
	for i := range 3 {
		w := few(t, 3, 800)
		w.RunFor(4000)
		o := w.outsiderWith(w.nodes[i].key)
		h := headerAt(1, w.nodes[0].machine.Rounds().Fragment(1).Closed()+2)
		a := o.signs(h, w.payload(1))
		h.Tokens++
		o.spreads(w.nodes[(i+1)%3], wire.EncodeEquivocation(wire.Equivocation{A: a, B: o.signs(h, w.payload(1))}))
		w.Finish()
		for _, n := range w.nodes {
			if !n.machine.Rounds().Excluded(o.id) {
				t.Errorf("node %d does not exclude node %d", n.index, i)
			}
		}
	}
}

// The first of two deltas for one round has no payload, the second one has: none
// of them is folded.
func TestFirstOfTwoHasNoPayload(t *testing.T) {
	t.Parallel()
	w := few(t, 3, 600)
	w.RunFor(3000)
	o, h, payload := w.outsider(90), headerAt(0, w.nodes[0].machine.Rounds().Fragment(0).Closed()), w.payload(0)
	bare := o.signs(h, payload)
	h.Tokens++
	whole := o.signs(h, payload)
	o.spreads(w.nodes[0], wire.EncodeHeader(bare, nil))
	o.spreads(w.nodes[1], wire.EncodeHeader(whole, payload))
	w.Finish()
	for _, n := range w.nodes {
		if n.folds(bare.Header.ID(w.run)) || n.folds(whole.Header.ID(w.run)) {
			t.Errorf("node %d folded one of two deltas for one round", n.index)
		}
	}
}
