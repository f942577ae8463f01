package sim

import (
	"errors"
	"slices"

	"atoll/gossip"
	"atoll/gossip/wire"
)

var errDown = errors.New("peer is not reachable")

// asked is a stream request that waits for its reply.
type asked struct {
	by      *Node
	request []byte
	max     int
	once    func([]byte, error)
}

// open is a request that waits for its answer.
type open struct {
	id   uint64
	to   *Node
	once func([]byte, error)
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
	w, p, life := n.w, n.w.byID[e.To], n.lives
	once := func(b []byte, err error) {
		i := slices.IndexFunc(n.calls, func(o open) bool { return o.id == e.ID })
		if i >= 0 && n.lives == life {
			n.calls = slices.Delete(n.calls, i, i+1)
			n.do(func() { n.machine.Step(n.clock(), gossip.Answered{Call: e.ID, Response: b, Err: err}) })
		}
	}
	n.calls = append(n.calls, open{e.ID, p, once})
	if p == nil || !n.linked(p) {
		w.after(1, func() { once(nil, errDown) })
		return
	}
	n.BytesOut += int64(len(e.Request))
	w.after(Time(e.TimeoutMs), func() { once(nil, errDown) })
	w.at(n.departs(len(e.Request))+w.resent(), func() {
		if !p.linked(n) {
			once(nil, errDown)
			return
		}
		if w.blocked(n, p) {
			return // the timeout will tell
		}
		p.BytesIn += int64(len(e.Request))
		p.do(func() {
			p.handle++
			p.waiting[p.handle] = asked{by: n, request: e.Request, max: e.MaxResponse, once: once}
			p.machine.Step(p.clock(), gossip.Requested{Handle: p.handle, From: n.id, Request: e.Request})
		})
	})
}

// resendMs is what a lost packet of a stream costs: it is sent again.
const resendMs = 200

// resent is the delay of a stream, with what is lost on the way sent again.
func (w *World) resent() Time {
	d := w.delay()
	for w.link.Loss > 0 && w.rng.Float64() < w.link.Loss {
		d += resendMs
	}
	return d
}

// answer sends a response to the asker, and notes when it has left.
func (n *Node) answer(handle uint64, b []byte, payload wire.Digest) {
	w := n.w
	q, ok := n.waiting[handle]
	if !ok {
		n.broken("core", "answered handle %d twice", handle)
		return
	}
	delete(n.waiting, handle)
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
	n.BytesOut += int64(len(b))
	n.later(n.departs(len(b))-w.now+w.resent(), func() {
		if !n.linked(q.by) || w.blocked(n, q.by) {
			n.machine.Step(n.clock(), gossip.Replied{Handle: handle})
			if !n.linked(q.by) {
				q.once(nil, errDown)
			}
			return
		}
		q.by.BytesIn += int64(len(b))
		n.book.hands(payload)
		n.machine.Step(n.clock(), gossip.Replied{Handle: handle, Payload: payload})
		q.once(b, nil)
	})
}
