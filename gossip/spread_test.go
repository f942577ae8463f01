package gossip

import (
	"fmt"
	"slices"
	"testing"

	"atoll/gossip/fetch"
	"atoll/gossip/peers"
	"atoll/gossip/wire"
)

// train lets every node publish and close rounds until `rounds`, and then stop.
func (w *world) train(rounds int, sizes func() int) {
	for r := 1; r <= rounds; r++ {
		at := Time(r) * 400
		for _, n := range w.nodes {
			w.after(at+Time(w.rng.IntN(100)), func() { n.round(uint32(r), sizes()) })
			w.after(at+300, func() { n.closeAll(uint32(r)) })
		}
	}
	for _, n := range w.nodes {
		w.after(Time(rounds+1)*400, func() {
			n.state = wire.Stopped
			if n.up {
				n.core.SetSelf(w.now, peers.SelfState{State: n.state})
				n.do(func() { n.core.HeartbeatNow(w.now) })
			}
		})
	}
}

func (n *node) round(r uint32, size int) {
	for f := range n.chain.closed {
		if n.up && n.state == wire.Training && r == n.chain.closed[f]+1 {
			n.publish(f, r, n.w.payload(size))
		}
	}
}

func (n *node) closeAll(r uint32) {
	for f := range n.chain.closed {
		if n.up && !n.core.Paused() && r == n.chain.closed[f]+1 {
			n.chain.close(f, r)
		}
	}
}

// settled reports whether all nodes that are up agree, as they see it and as
// the test does.
func (w *world) settled() bool {
	for _, n := range w.nodes {
		if ok, _ := n.core.Chains().Agreed(w.now); n.up && !ok {
			return false
		}
	}
	return w.equal()
}

func (w *world) equal() bool { return equal(w.nodes) }

// equal reports whether the nodes that are up have the same snapshot.
func equal(nodes []*node) bool {
	first := nodes[0]
	for _, n := range nodes[1:] {
		if !n.up {
			continue
		}
		for f := range n.chain.closed {
			a, _ := first.chain.ChainDigest(f, first.chain.closed[f])
			b, _ := n.chain.ChainDigest(f, n.chain.closed[f])
			if a != b || first.chain.closed[f] != n.chain.closed[f] {
				return false
			}
		}
	}
	return true
}

func (w *world) mustSettle(by Time) {
	w.t.Helper()
	if !w.runUntilTrue(by, w.settled) {
		for _, n := range w.nodes {
			ok, _ := n.core.Chains().Agreed(w.now)
			w.t.Logf("node %d up %v closed %v held %d wants %d sessions %d agrees %v", n.index, n.up, n.chain.closed,
				len(n.chain.held), n.core.size("payloads wanted"), len(n.core.repair.sessions), ok)
		}
		w.t.Fatalf("not settled at %d ms", w.now)
	}
}

func fixed(n int) func() int { return func() int { return n } }

func TestPayloadsArriveAboutOnce(t *testing.T) {
	w := newWorld(t, 2, 8, options{})
	w.train(6, fixed(20_000))
	w.mustSettle(20_000)
	for _, n := range w.nodes {
		need := int64(7 * 6 * 3 * 20_000)
		if n.received < need || n.received > need+need/50 {
			t.Errorf("node %d received %d payload bytes, want about %d", n.index, n.received, need)
		}
	}
}

func TestSetsEqualAfterPartition(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		w := newWorld(t, seed, 6, options{loss: 0.05})
		w.train(20, fixed(2000))
		w.after(2000, func() { w.partition(2) })
		w.after(6000, w.merge)
		w.mustSettle(120_000)
		if n := len(w.nodes[0].chain.held); n != 6*20*3 {
			t.Errorf("seed %d: %d deltas held, want all %d: a partition is a slow link", seed, n, 6*20*3)
		}
	}
}

// TestRandomFaultsEndEqual is the promise: after any schedule of crashes,
// restarts, losses and partitions all nodes come to one chain.
func TestRandomFaultsEndEqual(t *testing.T) {
	t.Parallel()
	for seed := uint64(100); seed < 110; seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			n := 3 + int(seed%5)
			window := []uint32{4, 8, 64}[seed%3]
			w := newWorld(t, seed, n, options{loss: 0.1 * float64(seed%5), window: window, tipBytes: 500})
			w.train(16, func() int { return 100 + w.rng.IntN(3000) })
			for range 3 {
				w.fault(Time(400+w.rng.IntN(4000)), Time(w.rng.IntN(3000)))
			}
			w.runUntil(8000)
			w.mustSettle(300_000)
		})
	}
}

// fault is a partition or a crash, at some time and for some time.
func (w *world) fault(at, lasts Time) {
	n := len(w.nodes)
	if w.rng.IntN(2) == 0 {
		cut := 1 + w.rng.IntN(n-1)
		w.after(at, func() { w.partition(cut) })
		w.after(at+lasts, w.merge)
		return
	}
	i := w.rng.IntN(n)
	w.after(at, func() { w.kill(i) })
	w.after(at+lasts, func() {
		if !w.nodes[i].up {
			w.nodes[i].up = true
			w.nodes[i].boot()
			w.merge()
		}
	})
}

func TestNodeFarBehindTakesSnapshot(t *testing.T) {
	w := newWorld(t, 6, 5, options{tipBytes: 600_000})
	w.nodes[4].state = wire.Observing // it has nothing of its own to lose
	w.after(500, func() { w.kill(4) })
	w.train(30, fixed(2000))
	w.after(12_000, func() {
		n := w.nodes[4]
		n.up, n.state = true, wire.Observing
		n.boot()
		w.merge()
	})
	w.mustSettle(60_000)
	if i := slices.IndexFunc(w.nodes[4].effects, isSnapshot); i < 0 {
		t.Error("a node 28 rounds behind took no snapshot")
	}
}

func isSnapshot(e Effect) bool { _, ok := e.(Snapshot); return ok }

// TestForkBelowTheWindow has two sides that share nothing that either could
// refold: the side with fewer folded tokens takes the other's snapshot.
func TestForkBelowTheWindow(t *testing.T) {
	w := newWorld(t, 7, 5, options{window: 4, tipBytes: 1000})
	w.train(30, fixed(1500))
	w.after(1000, func() { w.partition(2) })
	w.after(11_000, w.merge)
	w.mustSettle(120_000)
	for i, n := range w.nodes {
		took := slices.ContainsFunc(n.effects, isSnapshot)
		if took != (i < 2) {
			t.Errorf("node %d took a snapshot: %v; the two nodes with fewer tokens should", i, took)
		}
	}
}

func TestWithheldPayloadComesFromAnother(t *testing.T) {
	w := newWorld(t, 8, 5, options{})
	w.nodes[0].withhold = true
	w.runUntil(500)
	s := w.nodes[1].publish(0, 1, w.payload(5000))
	id := s.Header.ID(w.run)
	all := func() bool {
		return !slices.ContainsFunc(w.nodes, func(n *node) bool { return !n.chain.Has(id) })
	}
	if !w.runUntilTrue(60_000, all) {
		t.Fatal("a peer that withholds a payload kept others from it")
	}
}

func TestCorruptPayloadMarksItsSource(t *testing.T) {
	w := newWorld(t, 10, 5, options{})
	w.nodes[0].corrupt = true
	w.runUntil(500)
	for _, far := range []int{2, 3} { // from the author, so that node 0 is asked
		w.disconnect(1, far)
	}
	for r := range 10 {
		w.nodes[1].publish(0, uint32(r+1), w.payload(5000))
	}
	w.runUntil(30_000)
	marked := 0
	for _, n := range w.nodes[1:] {
		if len(n.chain.held) != 10 {
			t.Errorf("node %d holds %d of 10 deltas", n.index, len(n.chain.held))
		}
		for _, e := range n.effects {
			if m, ok := e.(Misbehaved); ok && m.Peer == w.nodes[0].id {
				marked++
			} else if ok {
				t.Errorf("node %d marks innocent %v: %s", n.index, m.Peer, m.Reason)
			}
		}
	}
	if marked == 0 {
		t.Error("nobody marked the peer that sent wrong bytes")
	}
}

func TestInvalidPayloadMarksItsAuthor(t *testing.T) {
	w := newWorld(t, 11, 4, options{})
	w.runUntil(500)
	payload := w.payload(5000)
	payload[0] = 'X'
	s := w.nodes[0].publish(0, 1, payload)
	w.runUntil(30_000)
	for _, n := range w.nodes[1:] {
		if n.fetched[s.Header.ID(w.run)] > 1 || n.chain.Has(s.Header.ID(w.run)) {
			t.Errorf("node %d fetched an unusable payload %d times", n.index, n.fetched[s.Header.ID(w.run)])
		}
		for _, v := range n.core.Peers().All() {
			if v.Refused != "" && v.ID != w.nodes[0].id {
				t.Errorf("node %d marks %v, who only passed the header on: %s", n.index, v.ID, v.Refused)
			}
		}
	}
	if v := w.nodes[1].core.Peers().All(); !slices.ContainsFunc(v, func(v PeerView) bool { return v.ID == w.nodes[0].id && v.Refused != "" }) {
		t.Error("the author of an unusable payload is not marked")
	}
}

func TestEquivocationSpreads(t *testing.T) {
	w := newWorld(t, 12, 5, options{loss: 0.2})
	liar := w.nodes[0]
	w.runUntil(500)
	w.partition(3)
	liar.publish(0, 1, w.payload(2000))
	// The other half gets another header for the same round.
	p := w.payload(2000)
	other := wire.SignHeader(liar.key, w.run, wire.Header{Round: 1, Steps: 1, Tokens: 10, Size: 2000, Payload: wire.Sum(p)})
	w.nodes[4].chain.store(other, p)
	w.nodes[4].do(func() { w.nodes[4].core.Announce(w.now, other, p) })
	w.runUntil(2000)
	for _, n := range w.nodes {
		n.closeAll(1)
		n.state = wire.Stopped
	}
	w.merge()
	w.mustSettle(60_000)
	for _, n := range w.nodes {
		if len(n.chain.equivocation) != 1 {
			t.Errorf("node %d holds %d equivocation proofs, want 1", n.index, len(n.chain.equivocation))
		}
		found := 0
		for _, e := range n.effects {
			if _, ok := e.(EquivocationFound); ok {
				found++
			}
		}
		if found != 1 {
			t.Errorf("node %d was told %d times", n.index, found)
		}
	}
}

func TestPeerListConnectsEveryone(t *testing.T) {
	w := newWorld(t, 15, 0, options{})
	for range 8 {
		w.add()
	}
	for i := 1; i < 8; i++ {
		w.connect(0, i) // all know one
	}
	w.runUntil(30_000)
	for _, n := range w.nodes {
		if len(n.links) != 7 {
			t.Errorf("node %d has %d connections, want 7", n.index, len(n.links))
		}
	}
}

func TestSameSeedSameEffects(t *testing.T) {
	trace := func() []string {
		w := newWorld(t, 16, 5, options{loss: 0.2})
		w.tracks = true
		w.train(6, fixed(2500))
		w.after(900, func() { w.partition(2) })
		w.after(1800, w.merge)
		w.runUntil(8000)
		return w.trace
	}
	a, b := trace(), trace()
	if !slices.Equal(a, b) {
		for i := range a {
			if i >= len(b) || a[i] != b[i] {
				t.Fatalf("effect %d differs:\n%s\n%s", i, a[i], b[min(i, len(b)-1)])
			}
		}
		t.Fatal("traces differ in length")
	}
}

// A node whose disk is full fetches little that it cannot keep, however long that
// lasts and however much comes. It fetches all of it once there is room.
func TestFullDiskFetchesLittle(t *testing.T) {
	const rounds, size, minutes = 10, 5000, 3
	w := newWorld(t, 12, 3, options{})
	full := w.nodes[2]
	full.full = true
	for r := range uint32(rounds) {
		w.nodes[0].round(r+1, size)
		w.runUntil(w.now + 1000)
		w.nodes[0].closeAll(r + 1)
		w.nodes[1].closeAll(r + 1)
	}
	w.runUntil(minutes * 60_000)
	got := full.received / size
	if most := int64(fetch.MaxPulls + minutes*60_000/fetch.DiskRetryMs); got == 0 || got > most {
		t.Errorf("%d payloads came in vain, at most %d", got, most)
	}
	full.full = false
	if !w.runUntilTrue(w.now+2*repairBackoffMaxMs, w.equal) {
		t.Errorf("closed %v, the others %v", full.chain.closed, w.nodes[0].chain.closed)
	}
}
