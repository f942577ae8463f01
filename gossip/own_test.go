package gossip

import (
	"slices"
	"testing"

	"atoll/gossip/wire"
)

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
}

// The first peer to answer may be one that knows nothing: others that show up a
// moment later are heard before the node goes on, and those that come after that
// are asked all the same.
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

// Who is joining itself knows nothing, and its answer does not count.
func TestOwnDeltasOfJoinersDoNotCount(t *testing.T) {
	w := newWorld(t, 4, 2, options{})
	w.nodes[0].state = wire.Joining
	w.nodes[1].core.AskOwn(0, true)
	w.runUntil(10_000)
	if _, known := w.nodes[1].ownHeaders(); known {
		t.Error("a joiner's word counted")
	}
	w.nodes[0].state = wire.Training
	w.runUntil(w.now + 5000)
	if _, known := w.nodes[1].ownHeaders(); !known {
		t.Error("was not asked again")
	}
}

// Headers that this key did not sign are nothing to go by.
func TestOwnDeltasCannotBeInvented(t *testing.T) {
	w := newWorld(t, 5, 2, options{})
	forged := wire.SignHeader(w.nodes[0].key, w.run, wire.Header{
		Author: w.nodes[0].id, Round: 1000, Base: 999, Steps: 1, Tokens: 1, Precision: 1, Codec: 1, Size: 1,
	})
	forged.Header.Author = w.nodes[1].id
	w.nodes[0].lie = func(kind wire.RequestKind, answer []byte) []byte {
		if kind == wire.GetOwn {
			return wire.Response{Status: wire.OK, Body: wire.EncodeHeaders([]wire.SignedHeader{forged})}.Encode()
		}
		return answer
	}
	w.nodes[1].core.AskOwn(0, true)
	w.runUntil(5000)
	if rounds, known := w.nodes[1].ownHeaders(); !known || len(rounds) != 0 {
		t.Errorf("believed %v, done %t", rounds, known)
	}
}

// Looking for a peer's deltas takes long: it is done for each now and then.
func TestOwnDeltasAreToldRarely(t *testing.T) {
	a := newAlone()
	request := wire.Request{Kind: wire.GetOwn}
	for peer := range byte(3) {
		if s := status(a.ask(1, peer+1, request)); s != wire.OK {
			t.Errorf("status %v for the first request of peer %d", s, peer+1)
		}
		if s := status(a.ask(2, peer+1, request)); s != wire.Busy {
			t.Errorf("status %v for the second request of peer %d, want busy", s, peer+1)
		}
	}
	a.now += ownToldMs
	if s := status(a.ask(3, 1, request)); s != wire.OK {
		t.Errorf("status %v after a while", s)
	}
}

// answeredOwn lets time pass and answers what peers are asked of own deltas: nothing is
// known, but of those that fail no answer comes. It reports OwnKnown.
func (a *alone) answeredOwn(ms Time, fail ...byte) (known bool) {
	for range ms / 100 {
		a.now += 100
		for _, p := range a.core.peers.list {
			if p.connected {
				a.core.Alive(a.now, p.id)
			}
		}
		a.core.Tick(a.now)
		for _, e := range a.core.Effects() {
			switch e := e.(type) {
			case OwnKnown:
				known = true
			case Call:
				a.answerOwn(e, slices.Contains(fail, e.To[0]))
			}
		}
	}
	return known
}

func (a *alone) answerOwn(c Call, fails bool) {
	if r, _ := wire.DecodeRequest(c.Request); r.Kind != wire.GetOwn {
		return
	}
	if fails {
		a.core.Answered(a.now, c.ID, nil, errNoAnswer)
		return
	}
	a.core.Answered(a.now, c.ID, wire.Response{Status: wire.OK, Body: wire.EncodeHeaders(nil)}.Encode(), nil)
}

// A peer whose connection broke while it was asked may be the one that knows: the
// others' answers do not do.
func TestOwnDeltasOfAllWhoAreHere(t *testing.T) {
	a := newAlone()
	a.connect(1, 2)
	a.core.AskOwn(a.now, true)
	if a.answeredOwn(60_000, 2) {
		t.Error("known before all who are here have answered")
	}
	a.core.PeerDown(a.now, wire.PeerID{2})
	if a.answeredOwn(60_000) {
		t.Error("known though one of them is gone and has not answered")
	}
	a.connect(2)
	if !a.answeredOwn(2 * ownRetryMs) {
		t.Error("not known when all have answered")
	}
}

// So may one that took part in the run and is silent: on the other side of a cut, or
// starting again. One that left said so; of one that is heard through others, and
// shows this node's chain, they know what it knows.
func TestOwnDeltasOfSilentPeers(t *testing.T) {
	for _, c := range []struct {
		name    string
		stands  bool
		changes func(p *peer)
		known   bool
	}{
		{"a stranger", false, func(*peer) {}, true},
		{"a contributor", true, func(*peer) {}, false},
		{"one that left", true, func(p *peer) { p.beat = &wire.Beat{State: wire.Leaving} }, true},
		{"one that joins with nothing", true, func(p *peer) { p.beat = &wire.Beat{State: wire.Joining} }, true},
		{"one that starts again", true, func(p *peer) { p.beat = &wire.Beat{State: wire.Joining, Folded: 1} }, false},
	} {
		a := newAlone()
		a.chain.standing = map[wire.PeerID]bool{{3}: c.stands}
		a.connect(1)
		c.changes(a.core.ensure(wire.PeerID{3}, false))
		a.core.AskOwn(a.now, true)
		if known := a.answeredOwn(60_000); known != c.known || a.core.AwaitsOwn() == known {
			t.Errorf("%s: known %t, want %t", c.name, known, c.known)
		}
	}
	a := newAlone()
	a.chain.standing = map[wire.PeerID]bool{{3}: true}
	a.connect(1)
	p := a.core.ensure(wire.PeerID{3}, false)
	p.beat, p.beats.same = &wire.Beat{State: wire.Training}, true
	a.core.AskOwn(a.now, true)
	a.core.Alive(a.now, p.id)
	if !a.answeredOwn(5000) {
		t.Error("waits for one that shows this node's chain")
	}
}
