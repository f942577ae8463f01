package gossip

import (
	"testing"

	"atoll/gossip/hello"
	"atoll/gossip/wire"
)

// deafUntil makes a world of two in which no gossip flows until its connection was
// made anew so many times; it returns how often that was so far.
func deafUntil(t *testing.T, times int) (w *world, reconnects func() int) {
	reconnects = func() (n int) {
		for _, node := range w.nodes {
			n += countEffects[Reconnect](node)
		}
		return n
	}
	w = newWorld(t, 1, 2, options{})
	w.deaf = func(int, int) bool { return reconnects() < times }
	return w, reconnects
}

func countEffects[E Effect](n *node) (count int) {
	for _, e := range n.effects {
		if _, ok := e.(E); ok {
			count++
		}
	}
	return count
}

func (n *node) hears(p *node) bool {
	entry := n.core.peers.find(p.id)
	return entry != nil && entry.connected && !entry.watch.unheard
}

// A connection on which no gossip flows is made anew, before either side takes the
// other for silent, and without blame.
func TestWatchdogReconnects(t *testing.T) {
	w, reconnects := deafUntil(t, 1)
	a, b := w.nodes[0], w.nodes[1]
	heard := func() bool { return a.hears(b) && b.hears(a) }
	if !w.runUntilTrue(Time(silentBeats)*200, heard) {
		t.Fatalf("gossip does not flow after %d reconnects", reconnects())
	}
	w.runUntil(w.now + 60_000)
	if n := reconnects(); n == 0 || n > 2 || !heard() {
		t.Errorf("%d reconnects, heard %v", n, heard())
	}
	for _, n := range w.nodes {
		if countEffects[Misbehaved](n)+countEffects[Drop](n) > 0 || n.core.peers.list[0].silent {
			t.Errorf("node %d blames or lost its peer: %v", n.index, n.effects)
		}
	}
}

// Where it does not help it is tried less and less often.
func TestWatchdogIsBounded(t *testing.T) {
	w, reconnects := deafUntil(t, 1<<30)
	w.runUntil(3_600_000)
	if n := reconnects(); n < 10 || n > 2*20 {
		t.Errorf("%d reconnects in an hour", n)
	}
}

// A node that says nothing itself yet expects nothing.
func TestWatchdogWaitsForOwnBeats(t *testing.T) {
	w, reconnects := deafUntil(t, 1<<30)
	for _, n := range w.nodes {
		n.state = 0
	}
	for _, n := range w.nodes {
		n.boot()
	}
	w.disconnect(0, 1)
	w.connect(0, 1)
	w.runUntil(60_000)
	if n := reconnects(); n > 0 {
		t.Errorf("%d reconnects", n)
	}
}

// A peer that has asked for genesis only may still be starting, for however long that
// takes: its connection stays. Once it asks for what only a node that runs needs, it
// has to be heard.
func TestWatchdogLetsPeersStart(t *testing.T) {
	a := newAlone()
	a.connect(2)
	reconnects := func(from, to Time) (n int) {
		for a.now = from; a.now < to; a.now += 100 {
			a.core.Tick(a.now)
			n += count[Reconnect](a.core.Effects())
		}
		return n
	}
	a.ask(1, 2, wire.Request{Kind: wire.GetGenesis, Run: a.run})
	if n := reconnects(0, 60_000); n > 0 {
		t.Errorf("%d reconnects of a peer that is starting", n)
	}
	a.ask(2, 2, wire.Request{Kind: wire.GetRoster})
	if n := reconnects(60_000, 60_000+deafBeats*1000); n > 0 {
		t.Errorf("%d reconnects of a peer that has just begun", n)
	}
	if n := reconnects(60_000+deafBeats*1000, 66_000); n != 1 {
		t.Errorf("%d reconnects of a peer that runs and is not heard, want one", n)
	}
}

// A peer that restarts before its old connection is seen to end never goes down: its
// new process has to be heard all the same.
func TestWatchdogAwaitsEachProcess(t *testing.T) {
	w, reconnects := deafUntil(t, 0)
	a, b := w.nodes[0], w.nodes[1]
	if !w.runUntilTrue(10_000, func() bool { return a.hears(b) }) {
		t.Fatal("gossip does not flow")
	}
	before := reconnects()
	w.deaf = func(int, int) bool { return reconnects() == before }
	_, r := b.record()
	r.Seq, r.StartedMs = 2, 2
	s, err := hello.Sign(b.key, r)
	if err != nil {
		t.Fatal(err)
	}
	a.do(func() { a.core.RecordChanged(w.now, b.id, s, r) })
	if a.hears(b) {
		t.Fatal("the old process counts for the new one")
	}
	if !w.runUntilTrue(w.now+10_000, func() bool { return a.hears(b) }) || reconnects() == before {
		t.Errorf("heard %v after %d reconnects", a.hears(b), reconnects()-before)
	}
}

// A transfer is not cut.
func TestWatchdogLetsTransfersEnd(t *testing.T) {
	w, reconnects := deafUntil(t, 1<<30)
	for _, n := range w.nodes {
		n.core.peers.list[0].serve.bytes = wire.ChunkSize
	}
	w.runUntil(10_000)
	if n := reconnects(); n > 0 {
		t.Errorf("%d reconnects during a transfer", n)
	}
}
