package gossip

import (
	"slices"
	"testing"

	"atoll/gossip/peers"
	"atoll/gossip/wire"
	"atoll/gossip/wire/spectest"
)

// pausedSelf is what a learner says that its owner has paused.
var pausedSelf = peers.SelfState{State: wire.Stopped, Paused: true}

func specPausedAnswers(t *testing.T, _ *spectest.Spec) {
	a := specAlone(1, 2)
	id := a.hold(9, 1, 3000)
	if e := a.ask(1, 1, payloadRequest(wire.Digest{5}, 5000)); len(e) != 0 {
		t.Fatalf("one that waits gets %v", e)
	}
	a.chunk(2, 7)
	a.chunk(2, 8) // waits behind the first
	a.core.SetSelf(a.now, pausedSelf)
	if e := a.ask(3, 1, payloadRequest(id, 0)); count[ReplyPayload](e) != 1 {
		t.Fatalf("paused, and with deltas to hand over, it answers %v", e)
	}
	a.core.Pause(a.now, true)
	var turned []uint64
	for _, r := range find[Reply](a.core.Effects()) {
		if wire.Status(r.Response[0]) == wire.Busy {
			turned = append(turned, r.Handle)
		}
	}
	if !slices.Equal(turned, []uint64{1, 8}) {
		t.Errorf("turns %v away, want those that wait: 1 and 8", turned)
	}
	for _, r := range []wire.Request{payloadRequest(id, 5000), {Kind: wire.GetChunk}, {Kind: wire.GetManifest}, {Kind: wire.GetSnapshot, At: []uint32{0, 0}}} {
		if e := a.ask(9, 1, r); status(e) != wire.Busy {
			t.Errorf("%v: %v", r.Kind, e)
		}
	}
	for _, r := range []wire.Request{
		{Kind: wire.GetPeerList}, {Kind: wire.GetOwn}, {Kind: wire.GetHeaders, Rounds: []wire.RoundKey{{Round: 1}}},
		{Kind: wire.GetRounds, Ranges: []wire.Range{{From: 1, To: 1}}},
	} {
		if e := a.ask(10, 1, r); status(e) != wire.OK {
			t.Errorf("%v: %v", r.Kind, e)
		}
	}
	a.core.Pause(a.now, false)
	if e := a.ask(11, 1, payloadRequest(id, 0)); count[ReplyPayload](e) != 1 {
		t.Errorf("going on it answers %v", e)
	}
}

// Whatever was asked for is hung up, and nothing heavy is asked for until the core goes on.
func TestRestAsksForNothingHeavy(t *testing.T) {
	a := specAlone(1, 2)
	if len(questions(t, a.brought(1, a.header(9, 1, 0)), wire.GetPayload)) != 1 {
		t.Fatal("asks for no payload")
	}
	a.core.SetSelf(a.now, pausedSelf)
	a.core.Pause(a.now, true)
	if e := a.core.Effects(); count[Hangup](e) != 1 {
		t.Errorf("hangs up %d calls: %v", count[Hangup](e), e)
	}
	e := a.brought(1, a.header(8, 1, 0))
	if count[Offer](e) != 1 {
		t.Errorf("a header that comes is not offered: %v", e)
	}
	for range 4 {
		e = append(e, a.told(1, apart)...)
		e = append(e, a.wait(1000, 1, 2)...)
	}
	a.core.FetchSnapshot(a.now)
	e = append(e, a.wait(5000, 1, 2)...)
	if q := questions(t, e, wire.GetPayload, wire.GetRounds, wire.GetManifest, wire.GetChunk); len(q) != 0 {
		t.Errorf("asks %+v", q)
	}
	if text, _ := a.core.JoinPhase(); text == "" {
		t.Error("the snapshot fetch is forgotten")
	}
	a.core.Pause(a.now, false)
	if q := questions(t, a.wait(anotherSourceMs/2, 1, 2), wire.GetManifest); len(q) != 1 {
		t.Errorf("goes on with %+v, want a request for a snapshot", q)
	}
}

// A snapshot fetch that is paused in any of its stages begins again where snapshot sources are chosen.
func TestRestInAFetch(t *testing.T) {
	w := ran(t, 71, 3, options{tipBytes: 2 << 20, rate: 2000})
	n := w.join(w.nodes[0].id)
	for i, ms := range []Time{0, 60, 150, 300, 400} {
		w.runUntil(w.now + ms)
		n.do(func() { n.core.Pause(w.now, true) })
		received := n.received
		w.runUntil(w.now + 3000)
		if n.joined() {
			t.Fatalf("pause %d: has its snapshot already", i)
		}
		if n.received != received {
			t.Errorf("pause %d: %d payload bytes come", i, n.received-received)
		}
		if text, _ := n.core.JoinPhase(); !n.core.Paused() || text == "" {
			t.Errorf("pause %d: paused %v, %q", i, n.core.Paused(), text)
		}
		n.do(func() { n.core.Pause(w.now, false) })
	}
	if !w.runUntilTrue(w.now+20_000, n.joined) {
		t.Error("never has its snapshot")
	}
}

// Nobody looks for anything at a paused peer, nor waits for it at the end of a run.
func TestPausedPeerIsLeftAlone(t *testing.T) {
	paused := func(b *wire.Heartbeat) { apart(b); b.State, b.Paused, b.Folded = wire.Stopped, true, 1000 }
	a := specAlone(1, 2)
	var e []Effect
	for range 4 {
		e = append(e, a.told(1, paused)...)
		e = append(e, a.told(2, func(b *wire.Heartbeat) { b.State, b.Lag = wire.Stopped, 0 })...)
		e = append(e, a.wait(500, 1, 2)...)
	}
	if q := questions(t, e, wire.GetRounds); len(q) != 0 {
		t.Errorf("compares rounds with it: %+v", q)
	}
	a.core.SetSelf(a.now, peers.SelfState{State: wire.Stopped})
	if agreed, _ := a.core.Chains().Agreed(a.now); !agreed {
		t.Error("waits for it to agree")
	}
	if id, lacking := a.core.Chains().Lacking(a.now); lacking {
		t.Errorf("waits for %v to reach the end", id)
	}
	a.core.FetchSnapshot(a.now)
	if q := questions(t, append(a.core.Effects(), a.wait(3000, 1, 2)...), wire.GetManifest); len(q) != 1 || q[0].to != 2 {
		t.Errorf("asks %+v for a snapshot, want peer 2", q)
	}
	if a.told(1, apart); !a.isLive(1) {
		t.Error("not live once it goes on")
	}
}

// One of three is paused for a part of a run, and brought up to date after: the others
// do not wait for it, and give it nothing meanwhile.
func TestRestInARun(t *testing.T) {
	w := newWorld(t, 72, 3, options{})
	n := w.nodes[2]
	w.train(20, fixed(4000))
	var received int64
	w.after(2000, func() {
		n.state, n.paused = wire.Stopped, true
		n.do(func() { n.core.Pause(w.now, true) })
		received = n.received
	})
	w.after(6000, func() {
		if n.received != received {
			t.Errorf("%d payload bytes came while it was paused", n.received-received)
		}
		if at, behind := w.nodes[0].chain.closed[0], n.chain.closed[0]; at < behind+8 {
			t.Errorf("the others closed round %d, the paused one %d: they wait", at, behind)
		}
		n.state, n.paused = wire.Training, false
		n.do(func() { n.core.Pause(w.now, false) })
	})
	w.mustSettle(60_000)
}
