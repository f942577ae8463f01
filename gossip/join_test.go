package gossip

import (
	"slices"
	"strings"
	"testing"

	"atoll/gossip/wire"
)

// ran is a world whose nodes have trained and rest.
func ran(t *testing.T, seed uint64, n int, opt options) *world {
	w := newWorld(t, seed, n, opt)
	w.train(6, fixed(2000))
	w.mustSettle(30_000)
	return w
}

// join adds a node that fetches tips from those it is connected to.
func (w *world) join(trusted ...wire.PeerID) *node {
	n := w.add()
	n.state = wire.Joining
	n.core.cfg.Trusted = trusted
	for i := range w.nodes[:n.index] {
		w.connect(n.index, i)
	}
	n.do(func() { n.core.FetchTips(w.now) })
	return n
}

func TestJoinTakesTipsFromManyPeers(t *testing.T) {
	w := ran(t, 20, 4, options{tipBytes: 2 << 20})
	n := w.join()
	n.core.Effects()
	if !w.runUntilTrue(w.now+60_000, w.equal) {
		t.Fatal("the joiner never had the tips of the others")
	}
	for _, e := range n.effects {
		if s, ok := e.(Event); ok && s.Kind == EventSnapshot {
			if strings.Contains(s.Text, "all ") && !strings.Contains(s.Text, "from 4 peers") {
				t.Errorf("chunks did not come from all peers: %s", s.Text)
			}
		}
	}
	if !said(n, "takes tips attested by 4 of 4") {
		t.Error("a joiner whose link names nobody does not say who attests its donor's tips")
	}
}

// said reports whether an event of the node has that text in it.
func said(n *node, text string) bool {
	return slices.ContainsFunc(n.effects, func(e Effect) bool {
		v, ok := e.(Event)
		return ok && strings.Contains(v.Text, text)
	})
}

// While chunks are under way no payload travels to the joiner.
func TestChunksComeAlone(t *testing.T) {
	const rate, period, size = 1000, 500, 40_000
	w := donors(t, 61, 4, 8, rate)
	w.trains(period, size)
	w.runUntil(w.now + 2*period)
	n := w.join(w.nodes[0].id)
	if !w.runUntilTrue(w.now+60_000, func() bool { return len(n.chunks) > 0 }) {
		t.Fatal("no chunk came")
	}
	before := n.received
	if !w.runUntilTrue(w.now+60_000, n.joined) {
		t.Fatal("the joiner never had tips")
	}
	if n.received > before {
		t.Errorf("%d bytes of payloads came beside the chunks", n.received-before)
	}
}

// Of each author the newest header of a fragment is kept back, as far as there is room, until it is the turn of the fragment.
func TestAside(t *testing.T) {
	a := newAlone()
	s := &a.core.aside
	take := func(author byte, fragment uint16, round uint32) bool {
		h := a.header(author, round, 0)
		h.Header.Fragment = fragment
		return s.keep(heardOf{h.Header.ID(a.run), &h, wire.PeerID{1}})
	}
	if take(1, 0, 1) {
		t.Fatal("a header is kept back of a node that does not join")
	}
	s.begin()
	for _, round := range []uint32{4, 6, 5} {
		if !take(1, 0, round) || !take(1, 1, round) {
			t.Fatalf("the header of round %d is not kept back", round)
		}
	}
	if s.count != 2 {
		t.Errorf("%d headers are kept, want the newest of each fragment", s.count)
	}
	a.core.Effects()
	s.turn(0)
	offers := slices.DeleteFunc(a.core.Effects(), func(e Effect) bool { _, ok := e.(Offer); return !ok })
	if len(offers) != 1 || offers[0].(Offer).Header.Header.Round != 6 || s.count != 1 || take(1, 0, 7) {
		t.Errorf("%d offers, %d kept", len(offers), s.count)
	}
	for i := range 2 * maxAside {
		h := a.header(1, 1, 0)
		h.Header.Author, h.Header.Fragment = wire.PeerID{9, byte(i), byte(i >> 8)}, 1
		s.keep(heardOf{h.Header.ID(a.run), &h, wire.PeerID{1}})
	}
	if s.count != maxAside {
		t.Errorf("%d headers are kept, want %d", s.count, maxAside)
	}
	if s.end(); s.count != 0 || s.fragments != nil {
		t.Errorf("%d headers are kept at the end", s.count)
	}
}

// turns are the fragments that requests to compare rounds are for, in order.
func (a *alone) turns(t *testing.T) (fragments []uint16) {
	t.Helper()
	for _, c := range calls(a.core.Effects()) {
		q, err := wire.DecodeRequest(c.Request)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range q.Ranges {
			fragments = append(fragments, r.Fragment)
		}
	}
	return fragments
}

// On fresh tips a joiner has one fragment catch up after the other, the last one first: the next is compared once little of the one
// before is waited for, and only then are its headers taken.
func TestFragmentsCatchUpInTurn(t *testing.T) {
	a := newAlone()
	a.core.SetSelf(0, SelfState{State: wire.Joining})
	a.connect(1)
	r := &a.core.repair
	r.snapshot.took = 1
	r.aside.begin()
	s := &session{peer: a.core.peers.find(wire.PeerID{1}), until: repairTtlMs, waiting: map[wire.Digest]uint16{}}
	r.sessions = append(r.sessions, s)
	r.plan(s)
	s.ranges = nil
	a.core.Effects()
	r.unite(s)
	if got := a.turns(t); !slices.Equal(got, []uint16{1}) {
		t.Fatalf("it compares fragments %v first, want the last", got)
	}
	for i := range byte(freshFew + 1) {
		s.waiting[wire.Digest{i}] = 1
	}
	r.compared(s)
	if got := a.turns(t); got != nil || r.aside.fragments[1] != nil || r.aside.fragments[0] == nil {
		t.Fatalf("it compares fragments %v while %d payloads of the one before are waited for", got, len(s.waiting))
	}
	delete(s.waiting, wire.Digest{0})
	r.goOn(s)
	if got := a.turns(t); !slices.Equal(got, []uint16{0}) || r.aside.fragments[0] != nil {
		t.Errorf("it compares fragments %v then", got)
	}
	if !s.lacks(1) || !s.lacks(0) {
		t.Error("a fragment lacks nothing though it is compared, or waits for payloads")
	}
}

// What repair brings a node on fresh tips is asked for as far as 300 ms of its link carry. What is announced is beside that.
func TestCatchUpLeavesTheLinkToNewDeltas(t *testing.T) {
	const size = 3000 // of each payload
	for _, c := range []struct {
		perMs float64
		most  int // payloads asked for
	}{{0, 7}, {4 * size / catchUpAheadMs, 4}, {1, 2}} {
		a := newAlone()
		a.connect(1, 2, 3, 4, 5, 6, 7, 8)
		p, s := &a.core.pull, &a.core.snapshot
		s.took, s.perMs = 1, c.perMs
		for peer := byte(1); peer <= 7; peer++ {
			h := a.header(10+peer, 1, uint32(peer))
			p.want(h.Header.ID(a.run), &h, wire.PeerID{peer})
		}
		if got := count[Call](a.core.Effects()); got != c.most {
			t.Errorf("at %v bytes a millisecond %d payloads of old rounds are asked for, want %d", c.perMs, got, c.most)
		}
		h := a.header(9, 2, 9)
		p.announced(h.Header.ID(a.run), &h, wire.PeerID{8})
		if got := count[Call](a.core.Effects()); got != 1 {
			t.Errorf("at %v bytes a millisecond %d payloads of what is announced are asked for", c.perMs, got)
		}
	}
}
