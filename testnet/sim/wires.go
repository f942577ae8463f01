package sim

import (
	"slices"

	"atoll/gossip"
	"atoll/gossip/wire"
)

// message is a gossip message under way, opened once for all who will get it:
// opening is a pure function of its bytes.
type message struct {
	key   uint64 // of its bytes
	size  int
	open  wire.Message
	delta wire.Digest // the id, if it is a header
	born  Time
	nodes []int32 // by node: copies, or when the earliest on its way arrives, see met
}

// What is known of a message and a node: nothing, or that the node has it, or in a
// lean world how long after the message's birth its earliest copy arrives.
const (
	nothing = 0
	has     = -1
)

func (w *World) newMessage(b []byte, open func(wire.RunID, []byte) (wire.Message, error)) *message {
	m := &message{key: keyOf(b), size: len(b), born: w.now, nodes: make([]int32, len(w.nodes))}
	var err error
	if m.open, err = open(w.run, b); err != nil {
		w.broken("sim", "an honest node published a bad message: %v", err)
	}
	if m.open.Header != nil {
		m.delta = m.open.Header.Header.ID(w.run)
	}
	return m
}

// met records that a node has the message, and reports whether it had it before.
func (m *message) met(index int) (again bool) {
	m.grow(index)
	again = m.nodes[index] == has
	m.nodes[index] = has
	return again
}

// grow makes room for a node that joined meanwhile.
func (m *message) grow(index int) {
	for len(m.nodes) <= index {
		m.nodes = append(m.nodes, nothing)
	}
}

func (n *Node) publish(b []byte) {
	m := n.w.newMessage(b, n.w.verifier.ownMessage)
	m.met(n.index)
	n.flood(m, nil)
}

// flood forwards a gossip message to the neighbours but one.
func (n *Node) flood(m *message, except *Node) {
	for _, p := range n.links {
		if p == except {
			continue
		}
		n.send(p, m)
		if n.link.Duplicate > 0 && n.w.rng.Float64() < n.link.Duplicate {
			n.send(p, m)
		}
	}
}

// queueMs is what gossip may wait for the uplink: about the 32 messages that a
// queue of gossipsub holds, on a slow line.
const queueMs = 1000

// send puts a copy on the wire, unless it is lost. In a lean world a copy that
// would only be a duplicate is not sent.
func (n *Node) send(p *Node, m *message) {
	w := n.w
	if n.uplink.free > float64(w.now+queueMs) { // full queues drop, as gossipsub's do
		w.counts.MessagesLost++
		return
	}
	at := n.departs(m.size) + n.delay()
	if w.s.Lean {
		m.grow(p.index)
		due, earliest := int32(at-m.born), m.nodes[p.index]
		if earliest == has || earliest != nothing && earliest <= due {
			return
		}
		m.nodes[p.index] = due
	}
	n.BytesOut += int64(m.size)
	if w.blocked(n, p) || n.link.Loss > 0 && w.rng.Float64() < n.link.Loss {
		w.counts.MessagesLost++
		return
	}
	w.counts.Messages++
	w.queue.push(event{at: at, kind: eventHop, to: p, from: n, msg: m, life: p.lives})
}

// arrives takes a copy off the wire.
func (n *Node) arrives(from *Node, m *message) {
	if !n.linked(from) || n.w.blocked(from, n) {
		return
	}
	n.BytesIn += int64(m.size)
	if n.paused != 0 {
		n.asleep = append(n.asleep, func() { n.receive(from, m) })
		return
	}
	n.receive(from, m)
	n.replica.Execute()
}

// receive gives a message to the machine and passes it on, as a validator does.
func (n *Node) receive(from *Node, m *message) {
	if m.met(n.index) {
		if m.open.Header != nil {
			n.machine.Step(n.clock(), gossip.Forwarded{From: from.id, ID: m.delta})
		}
		return
	}
	if n.ignores(from, m.open) {
		return
	}
	if m.open.Header != nil && !n.w.s.Lean {
		n.heard[m.delta] = true
	}
	if !n.lies() || !n.liar.mute {
		n.flood(m, from)
	}
	n.machine.Step(n.clock(), gossip.Received{From: from.id, Message: m.open})
}

// ignores reports whether a message goes no further, in the order of a node's validator. A liar knows no bounds.
func (n *Node) ignores(from *Node, m wire.Message) bool {
	held := func(err error) bool { return n.liar == nil && err != nil }
	return held(n.limiter.Spares(n.clock(), from.id, m)) || n.stranger(from, m) || held(n.limiter.Check(n.clock(), from.id, m))
}

// blocked says that nothing gets from a to b.
func (w *World) blocked(a, b *Node) bool {
	return a.side&b.side == 0 || len(w.cuts) > 0 && w.cuts[pair{a.index, b.index}]
}

func (w *World) apart(a, b *Node) bool { return w.blocked(a, b) || w.blocked(b, a) }

func (n *Node) linked(p *Node) bool { return slices.Contains(n.links, p) }

// dial connects two nodes after a handshake, if they reach each other.
func (w *World) dial(n *Node, index int) {
	if index < 0 || index >= len(w.nodes) || w.nodes[index] == n || n.linked(w.nodes[index]) {
		return
	}
	life := n.lives
	w.after(2*dialDelay*n.delay(), func() {
		if n.lives == life {
			w.connect(n, w.nodes[index])
		}
	})
}

// redial tries the addresses of the link, and of those that were peers before a
// restart, for as long as the node runs.
func (n *Node) redial() {
	for _, i := range n.contacts {
		n.w.dial(n, i)
	}
}

func (w *World) connect(a, b *Node) {
	if a == b || !a.up || !b.up || a.paused != 0 || b.paused != 0 || a.linked(b) || w.apart(a, b) || !w.session(a, b) {
		return
	}
	a.links, b.links = insert(a.links, b), insert(b.links, a)
	a.peerUp(b)
	b.peerUp(a)
}

// insert keeps neighbours in order of index, so that nothing depends on chance.
func insert(links []*Node, p *Node) []*Node {
	i, _ := slices.BinarySearchFunc(links, p.index, func(n *Node, index int) int { return n.index - index })
	return slices.Insert(links, i, p)
}

func (w *World) disconnect(a, b *Node) {
	if b == nil || !a.linked(b) {
		return
	}
	a.links = slices.DeleteFunc(slices.Clone(a.links), func(p *Node) bool { return p == b })
	b.links = slices.DeleteFunc(slices.Clone(b.links), func(p *Node) bool { return p == a })
	a.peerDown(b)
	b.peerDown(a)
	a.hangUp(b)
	b.hangUp(a)
}

func (n *Node) peerUp(p *Node) {
	signed, record := p.record, p.said
	n.do(func() {
		n.answered = n.answered || len(n.contacts) == 0 || slices.Contains(n.contacts, p.index)
		n.machine.Step(n.clock(), gossip.PeerUp{Peer: p.id, Signed: signed, Record: record})
	})
}

func (n *Node) peerDown(p *Node) {
	n.do(func() { n.machine.Step(n.clock(), gossip.PeerDown{Peer: p.id}) })
}

// notice closes connections over which nothing gets, once a transport would.
func (w *World) notice() {
	for _, a := range w.nodes {
		for _, b := range slices.Clone(a.links) {
			if w.apart(a, b) {
				w.after(noticeMs/2+w.rng.Int64N(noticeMs), func() {
					if w.apart(a, b) {
						w.disconnect(a, b)
					}
				})
			}
		}
	}
}
