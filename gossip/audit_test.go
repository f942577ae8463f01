package gossip

import (
	"slices"
	"testing"

	"atoll/gossip/wire"
)

// audits are those that the outer side of a node was asked for.
func (n *node) audits() (all []Audit) {
	for _, e := range n.effects {
		if e, ok := e.(Audit); ok {
			all = append(all, e)
		}
	}
	return all
}

// auditWorld trains some rounds among nodes that keep the given bases of each
// fragment; node 1 miscalculates fragment 1 from round 6 on.
func auditWorld(t *testing.T, bases ...uint32) *world {
	w := newWorld(t, 5, 3, options{})
	for _, n := range w.nodes {
		n.chain.bases = [][]uint32{bases, bases, bases}
	}
	w.nodes[1].chain.wrong = map[int]uint32{1: 6}
	w.train(10, fixed(100))
	return w
}

// Both sides of a difference are asked to fold again from the newest base up to
// which they agree, in the fragment that differs and in no other; those that
// agree with each other are left alone.
func TestAuditFindsCommonGround(t *testing.T) {
	w := auditWorld(t, 0, 2, 5, 7, 8)
	w.runUntil(w.now + 20_000)
	for i, n := range w.nodes {
		others := []wire.PeerID{w.nodes[1].id}
		if i == 1 {
			others = []wire.PeerID{w.nodes[0].id, w.nodes[2].id}
		}
		got := n.audits()
		if len(got) != 1 || got[0].Fragment != 1 || got[0].Shared != 5 || !slices.Contains(others, got[0].Peer) {
			t.Errorf("node %d was asked for %+v", i, got)
		}
	}
}

// What peers answer to an audit need not make sense.
func TestAuditOfALiar(t *testing.T) {
	for name, body := range map[string]func([]byte) []byte{
		"nothing": func([]byte) []byte { return nil },
		"cut":     func(b []byte) []byte { return b[:len(b)/2] },
		"noise":   func(b []byte) []byte { return slices.Repeat([]byte{0xff}, len(b)) },
	} {
		w := auditWorld(t, 0, 5)
		w.nodes[1].lie = func(kind wire.RequestKind, b []byte) []byte {
			if kind == wire.GetRounds {
				return body(b)
			}
			return b
		}
		w.runUntil(w.now + 200_000)
		if n := w.nodes[0]; len(n.audits()) != 0 || n.core.audit.busy {
			t.Errorf("%s: %d audits, busy %t", name, len(n.audits()), n.core.audit.busy)
		}
	}
}
