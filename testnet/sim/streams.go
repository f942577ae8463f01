package sim

import (
	"errors"
	"slices"

	"atoll/gossip"
	"atoll/gossip/wire"
)

var (
	errDown   = errors.New("peer is not reachable")
	errHungUp = errors.New("the asker hung up")
)

// exchange is a stream: a request, and the answer that it waits for.
type exchange struct {
	by, to  *Node // to is nil where nobody has this key
	id      uint64
	request []byte
	max     int
	reached Time    // when the request was there
	over    bool    // nobody waits for the answer any more
	handle  uint64  // at the other node
	stream  *stream // on which the answer is under way
	tookMs  Time    // from its first byte to its last; 0 where it is short
	once    func([]byte, error)
}

// hangUp ends the requests to a peer: streams end with their connection.
func (n *Node) hangUp(p *Node) {
	for _, o := range slices.Clone(n.calls) {
		if o.to == p {
			o.once(nil, errDown)
		}
	}
}

// call sends a stream request; it is answered, once, also where nobody is.
func (n *Node) call(e gossip.Call) {
	w, p := n.w, n.w.byID[e.To]
	x := &exchange{by: n, to: p, id: e.ID, request: e.Request, max: e.MaxResponse}
	x.once = n.onAnswer(x)
	n.calls = append(n.calls, x)
	if p == nil || !n.linked(p) {
		w.after(1, func() { x.once(nil, errDown) })
		return
	}
	n.BytesOut += int64(len(e.Request))
	w.after(Time(e.TimeoutMs), func() { x.once(nil, errDown) })
	w.at(n.departs(len(e.Request))+n.resent(), func() {
		if !p.linked(n) {
			x.once(nil, errDown)
			return
		}
		if w.blocked(n, p) {
			return // the timeout will tell
		}
		if wait := p.landing(len(e.Request)); wait > 0 {
			w.after(wait, func() { p.requested(x) })
			return
		}
		p.requested(x)
	})
}

// forgetMs is how long a node may take to answer a request whose asker has hung up.
const forgetMs = 10_000

// hangs ends a request whose answer the node does not wait for any more. The other one
// hears of it.
func (n *Node) hangs(call uint64) {
	i := slices.IndexFunc(n.calls, func(x *exchange) bool { return x.id == call })
	if i < 0 {
		return
	}
	x, p := n.calls[i], n.calls[i].to
	n.later(0, func() { x.once(nil, errHungUp) })
	n.w.after(n.resent(), func() {
		if p == nil || !p.up || p.waiting[x.handle] != x {
			return
		}
		p.do(func() { // when it is awake: what it answers until then is for nobody
			p.machine.Step(p.clock(), gossip.Replied{Handle: x.handle})
			n.w.after(forgetMs, func() {
				if p.waiting[x.handle] == x {
					delete(p.waiting, x.handle)
				}
			})
		})
	})
}

// onAnswer ends an exchange, once. An answer that is under way is for nobody then.
func (n *Node) onAnswer(x *exchange) func([]byte, error) {
	life := n.lives
	return func(b []byte, err error) {
		i := slices.Index(n.calls, x)
		if i < 0 || n.lives != life {
			return
		}
		x.over = true
		n.calls = slices.Delete(n.calls, i, i+1)
		n.w.cancel(x)
		x.came(b, err)
		n.do(func() {
			n.machine.Step(n.clock(), gossip.Answered{Call: x.id, Response: b, Err: err, TookMs: x.tookMs})
		})
	}
}

// requested takes a request.
func (n *Node) requested(x *exchange) {
	n.BytesIn += int64(len(x.request))
	x.reached = n.w.now
	n.do(func() {
		n.handle++
		n.waiting[n.handle] = x
		x.handle = n.handle
		n.machine.Step(n.clock(), gossip.Requested{Handle: n.handle, From: x.by.id, Request: x.request})
	})
}

// answer sends a response to the asker, and notes when it has left.
func (n *Node) answer(handle uint64, b []byte, payload wire.Digest) {
	q, ok := n.waiting[handle]
	if !ok {
		n.broken("core", "answered handle %d twice", handle)
		return
	}
	delete(n.waiting, handle)
	n.trace.Served(payload, q.by.id, q.reached)
	if n.lies() {
		b = n.liar.answers(q, b)
	}
	if b == nil { // a liar that lets others wait
		n.later(0, func() { n.machine.Step(n.clock(), gossip.Replied{Handle: handle}) })
		return
	}
	if len(b) > q.max {
		n.broken("core", "answered with %d bytes, at most %d were asked for", len(b), q.max)
	}
	a := answer{exchange: q, handle: handle, bytes: b, size: n.w.weighs(b, payload), payload: payload}
	if n.isBulk(q.by, a.size) {
		n.paces(a)
		return
	}
	n.BytesOut += int64(a.size)
	n.later(n.departs(a.size)-n.w.now+n.resent(), func() {
		if wait := q.by.landing(a.size); wait > 0 {
			n.later(wait, func() { n.delivers(a) })
			return
		}
		n.delivers(a)
	})
}

// answer is a response on its way.
type answer struct {
	*exchange
	handle  uint64
	bytes   []byte
	size    int // on a link
	payload wire.Digest
}

// weighs is the bytes that an answer has on a link: payloads stand for longer ones where
// the scenario says so.
func (w *World) weighs(b []byte, payload wire.Digest) int {
	if payload == (wire.Digest{}) || w.s.PayloadScale == 0 {
		return len(b)
	}
	return int(w.s.PayloadScale * float64(len(b)))
}

// paces sends a long answer, in turns with others. Where the asker is gone before its
// end, the rest does not leave.
func (n *Node) paces(a answer) {
	replied := func() { n.machine.Step(n.clock(), gossip.Replied{Handle: a.handle}) }
	if a.over {
		n.later(0, replied)
		return
	}
	began := n.w.now
	left := func() {
		a.tookMs = max(n.w.now-began, 1)
		n.BytesOut += int64(a.size)
		n.later(0, func() { n.machine.Step(n.clock(), gossip.Left{Handle: a.handle}) })
		n.later(n.resent(), func() { n.delivers(a) })
	}
	n.w.sends(n, transfer{call: a.exchange, left: left, cut: func() { n.later(0, replied) }}, a.size)
}

// delivers brings an answer to its asker.
func (n *Node) delivers(a answer) {
	p := a.by
	if !n.linked(p) || n.w.blocked(n, p) {
		n.machine.Step(n.clock(), gossip.Replied{Handle: a.handle})
		if !n.linked(p) {
			a.once(nil, errDown)
		}
		return
	}
	p.BytesIn += int64(a.size)
	if a.payload != (wire.Digest{}) {
		p.PayloadIn += int64(a.size)
	}
	n.book.hands(a.payload)
	n.machine.Step(n.clock(), gossip.Replied{Handle: a.handle, Payload: a.payload})
	a.once(a.bytes, nil)
}
