package gossip

import (
	"testing"

	"atoll/gossip/wire"
)

// ownClosed are the rounds that those had closed who told a node of its deltas.
func (n *node) ownClosed() (closed []uint32) {
	for _, e := range n.effects {
		if known, is := e.(OwnKnown); is {
			closed = known.Closed
		}
	}
	return closed
}

// ownHeaders are those that a node was told of.
func (n *node) ownHeaders() (rounds map[uint16]uint32, known bool) {
	rounds = map[uint16]uint32{}
	for _, e := range n.effects {
		switch e := e.(type) {
		case OwnHeader:
			rounds[e.Header.Header.Fragment] = max(rounds[e.Header.Header.Fragment], e.Header.Header.Round)
		case OwnKnown:
			known = true
		}
	}
	return rounds, known
}

// A node that lost its disk hears of the newest delta that anybody knows of, one
// whose payload nobody could fetch included.
func TestOwnDeltasAreRemembered(t *testing.T) {
	w := newWorld(t, 3, 3, options{})
	w.train(4, fixed(100))
	w.runUntil(2000)
	n := w.nodes[1]
	n.withhold = true
	n.publish(2, 9, w.payload(5000)) // too large to come along with its header
	w.runUntil(w.now + 500)
	w.kill(1)
	n.chain, n.state = newFakeChain(w.run, 3), wire.Joining
	n.up = true
	n.boot()
	n.core.AskOwn(w.now, true)
	w.connect(1, 0)
	w.connect(1, 2)
	w.runUntil(w.now + 3000)
	rounds, known := n.ownHeaders()
	if !known || rounds[2] != 9 || rounds[0] == 0 || rounds[0] != rounds[1] {
		t.Errorf("told of rounds %v, done %t", rounds, known)
	}
	for f, closed := range n.ownClosed() {
		if most := max(w.nodes[0].chain.Closed(f), w.nodes[2].chain.Closed(f)); closed != most || most == 0 {
			t.Errorf("fragment %d: told that round %d is closed, want %d", f, closed, most)
		}
	}
	if len(n.ownClosed()) != 3 {
		t.Errorf("told of %d fragments, want 3", len(n.ownClosed()))
	}
}

// The first peer to answer may know nothing. The node hears others that show up
// a moment later before it goes on, and still asks those that come after that.
func TestOwnDeltasAreNotOnePeersWord(t *testing.T) {
	for _, late := range []Time{300, 5000} {
		w := newWorld(t, 6, 3, options{})
		w.train(4, fixed(100))
		w.runUntil(2000)
		w.nodes[0].lie = func(kind wire.RequestKind, answer []byte) []byte {
			if kind == wire.GetOwn {
				return wire.Response{Status: wire.OK, Body: wire.EncodeHeaders(nil)}.Encode()
			}
			return answer
		}
		w.kill(1)
		n := w.nodes[1]
		n.chain, n.state, n.up = newFakeChain(w.run, 3), wire.Joining, true
		n.boot()
		n.core.AskOwn(w.now, true)
		w.connect(1, 0)
		w.runUntil(w.now + late)
		if _, known := n.ownHeaders(); known != (late == 5000) {
			t.Errorf("after %d ms with a peer that knows nothing: done %t", late, known)
		}
		w.connect(1, 2)
		w.runUntil(w.now + 3000)
		if rounds, known := n.ownHeaders(); !known || rounds[0] == 0 {
			t.Errorf("another peer after %d ms: told of rounds %v, done %t", late, rounds, known)
		}
	}
}
