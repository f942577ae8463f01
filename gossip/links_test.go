package gossip

import (
	"slices"

	"atoll/gossip/wire"
)

// link is how a node is connected to all others: what it sends and what it
// receives stands in line, at options.link bytes per ms.
type link struct {
	upFree, downFree Time
	onWire           []*shipment // that this node sends
	got              int64       // bytes of chunks that arrived whole
	sent             int64       // bytes of answers
	cut              int64       // bytes that arrived of chunks that did not
}

// shipment is an answer on its way.
type shipment struct {
	to      *node
	bytes   int
	arrives Time // when its last byte does
	lost    bool
}

// ship sends an answer over the links of both nodes.
func (n *node) ship(to *node, handle uint64, b []byte, payload wire.Digest, once func([]byte, error)) {
	w := n.w
	n.link.upFree = max(w.now, n.link.upFree) + Time(float64(len(b))/n.uplink())
	n.link.sent += int64(len(b))
	to.link.downFree = max(n.link.upFree, to.link.downFree+Time(float64(len(b))/w.opt.link))
	s := &shipment{to: to, bytes: len(b), arrives: to.link.downFree + w.delay()}
	n.link.onWire = append(n.link.onWire, s)
	core := n.core
	w.after(n.link.upFree-w.now, func() {
		if n.up && n.core == core {
			n.do(func() { n.core.Step(w.now, Left{Handle: handle}) })
		}
	})
	w.after(s.arrives-w.now, func() {
		n.link.onWire = slices.DeleteFunc(n.link.onWire, func(x *shipment) bool { return x == s })
		if n.up && n.core == core {
			n.do(func() { n.core.Step(w.now, replied(handle, b, payload, s.lost)) })
		}
		if s.lost {
			once(nil, errDown)
			return
		}
		if len(b) > wire.ChunkSize/2 {
			to.link.got += int64(len(b) - 1) // without the status
		}
		once(b, nil)
	})
}

// replied says that an answer is there, and whether it is a payload.
func replied(handle uint64, b []byte, payload wire.Digest, lost bool) Replied {
	if lost || len(b) == 0 || wire.Status(b[0]) != wire.OK {
		return Replied{Handle: handle}
	}
	return Replied{Handle: handle, Payload: payload}
}

// uplink is what a node sends in a ms.
func (n *node) uplink() float64 {
	if n.rate > 0 {
		return n.rate
	}
	return n.w.opt.link
}

// hangUp ends the calls to a node whose connection is gone.
func (n *node) hangUp(to *node) {
	for _, end := range n.asked[to.index] {
		n.w.after(1, func() { end(nil, errDown) })
	}
	delete(n.asked, to.index)
}

// sever loses what is on the way to a node whose connection is gone.
func (n *node) sever(to *node) {
	for _, s := range n.link.onWire {
		if s.to != to || s.lost {
			continue
		}
		s.lost = true
		left := int(float64(s.arrives-n.w.now) * n.w.opt.link)
		if left < s.bytes && s.bytes > wire.ChunkSize/2 {
			to.link.cut += int64(s.bytes - left)
		}
	}
}
