package gossip

import (
	"slices"
	"testing"

	"atoll/gossip/hello"
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

// Without a base that both sides know from before, nobody folds anything again.
func TestAuditWithoutCommonGround(t *testing.T) {
	w := auditWorld(t, 7, 8)
	w.runUntil(w.now + 20_000)
	for i, n := range w.nodes {
		if got := n.audits(); len(got) != 0 {
			t.Errorf("node %d was asked for %+v", i, got)
		}
	}
}

// A peer that shows another state for ever costs ever less.
func TestAuditsGetRare(t *testing.T) {
	w := auditWorld(t, 0, 5)
	w.nodes[2].up = false
	w.runUntil(w.now + 20*60_000)
	if n := len(w.nodes[0].audits()); n < 4 || n > 6 {
		t.Errorf("%d audits in twenty minutes, want one after 0, 1, 3, 7 and 15", n)
	}
	if w.nodes[0].core.audit.busy {
		t.Error("an audit never ended")
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

// suspect lets some peers show another state, each for half a minute and with a
// key of its own, and returns how many of them were asked about it.
func (a *alone) suspect(peers int, first byte) (asked int) {
	for i := range peers {
		id := wire.PeerID{first, byte(i), byte(i >> 8)}
		a.core.PeerUp(a.now, id, hello.Signed{}, hello.Record{}, hello.Session{})
		p := a.core.peers.find(id)
		p.beat = &wire.Beat{State: wire.Training, Closed: make([]uint32, a.chain.Fragments())}
		a.core.Effects()
		a.core.audit.want(p)
		for _, c := range calls(a.core.Effects()) {
			asked++
			a.core.Answered(a.now, c.ID, nil, errNoAnswer)
		}
		a.core.PeerDown(a.now, id)
		a.now += auditPauseMs / 2
	}
	return asked
}

// New keys do not buy new audits: a liar that changes its key each time makes this
// node fold ever less, and keeps it from no audit with those that contribute.
func TestAuditsOfStrangersGetRare(t *testing.T) {
	a := newAlone()
	if n := a.suspect(80, 1); n != 6 {
		t.Errorf("%d audits with strangers in forty minutes, want one after 0, 1, 3, 7, 15 and 31", n)
	}
	a.core.cfg.Trusted = []wire.PeerID{{2, 0, 0}, {2, 2, 0}}
	if n := a.suspect(3, 2); n != 2 {
		t.Errorf("%d audits with peers of standing, want both", n)
	}
}
