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
	sent, got        int64       // bytes of chunks that left and that arrived whole
	cut              int64       // bytes that arrived of chunks that did not
}

// shipment is an answer on its way.
type shipment struct {
	to         *node
	bytes      int
	start, end Time // when its first and its last byte leave
	lost       bool
}

// ship sends an answer over the links of both nodes.
func (n *node) ship(to *node, handle uint64, b []byte, once func([]byte, error)) {
	w := n.w
	took := Time(float64(len(b)) / w.opt.link)
	s := &shipment{to: to, bytes: len(b), start: max(w.now, n.link.upFree)}
	s.end = s.start + took
	n.link.upFree = s.end
	to.link.downFree = max(s.end, to.link.downFree+took)
	n.link.onWire = append(n.link.onWire, s)
	core := n.core
	w.after(s.end-w.now, func() {
		if n.up && n.core == core {
			n.link.sent += int64(len(b))
			n.do(func() { n.core.Left(w.now, handle) })
		}
	})
	w.after(to.link.downFree-w.now+w.delay(), func() {
		n.link.onWire = slices.DeleteFunc(n.link.onWire, func(x *shipment) bool { return x == s })
		if n.up && n.core == core {
			n.do(func() { n.core.Replied(w.now, handle) })
		}
		if s.lost {
			once(nil, errDown)
			return
		}
		if len(b) > wire.ChunkSize/2 {
			to.link.got += int64(len(b))
		}
		once(b, nil)
	})
}

// sever loses what is on the way to a node whose connection is gone.
func (n *node) sever(to *node) {
	for _, s := range n.link.onWire {
		if s.to != to || s.lost {
			continue
		}
		s.lost = true
		if sent := n.w.now - s.start; sent > 0 && s.bytes > wire.ChunkSize/2 {
			to.link.cut += min(int64(float64(sent)*n.w.opt.link), int64(s.bytes))
		}
	}
}
