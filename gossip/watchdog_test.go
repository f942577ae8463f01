package gossip

import (
	"testing"

	"atoll/gossip/peers"
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
	entry := n.core.env.Find(p.id)
	return entry != nil && entry.Connected && entry.Heartbeat != nil
}

// A connection on which no gossip flows is made anew, before either side takes the
// other for silent, and without blame.
func TestWatchdogReconnects(t *testing.T) {
	w, reconnects := deafUntil(t, 1)
	a, b := w.nodes[0], w.nodes[1]
	heard := func() bool { return a.hears(b) && b.hears(a) }
	if !w.runUntilTrue(Time(peers.SilentHeartbeats)*200, heard) {
		t.Fatalf("gossip does not flow after %d reconnects", reconnects())
	}
	w.runUntil(w.now + 60_000)
	if n := reconnects(); n == 0 || n > 2 || !heard() {
		t.Errorf("%d reconnects, heard %v", n, heard())
	}
	for _, n := range w.nodes {
		if countEffects[Misbehaved](n)+countEffects[Drop](n) > 0 || n.core.env.List[0].Silent {
			t.Errorf("node %d blames or lost its peer: %v", n.index, n.effects)
		}
	}
}
