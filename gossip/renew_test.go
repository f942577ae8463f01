package gossip

import (
	"slices"
	"testing"

	"atoll/gossip/wire"
)

// moving is a world of n snapshot sources whose tips take half a minute over a joiner's link, and that go on training.
func moving(t *testing.T, n int) *world {
	w := ran(t, 80, n, options{fragments: 12, tipBytes: 8 * wire.ChunkSize, link: 1000})
	w.trains(1000, 4000)
	return w
}

// taken are the rounds of the tips that a joiner took.
func (n *node) taken() (rounds []uint32) {
	for _, e := range n.effects {
		if s, ok := e.(Snapshot); ok {
			return roundsOf(s.Manifest)
		}
	}
	return nil
}

// A joiner takes each tip about as new as it was when its turn came, and fetches nothing twice for it: from one source,
// from four, from such as the link names and others; ATOLL_LONG=1 has all four of these worlds.
func TestJoinTakesNewerTips(t *testing.T) {
	t.Parallel()
	for _, sources := range []int{1, 4} {
		for _, trusted := range []bool{true, false} {
			if !long && trusted != (sources == 1) {
				continue
			}
			w := moving(t, sources)
			var link []wire.PeerID
			if trusted {
				link = append(link, w.nodes[0].id)
			}
			first := w.nodes[0].chain.closed[0]
			n := w.join(link...)
			if !w.runUntilTrue(w.now+180_000, n.joined) {
				t.Fatalf("%d sources: not in: %v", sources, n.core.snapshot.transfer.String())
			}
			last, took := w.nodes[0].chain.closed[0], n.taken()
			if !slices.IsSorted(took) {
				t.Errorf("%d sources: tips of rounds %v, those of later fragments are older", sources, took)
			}
			if age := last - took[len(took)-1]; age > (last-first)/2 {
				t.Errorf("%d sources: the last tip is of round %d, the run went from %d to %d", sources, took[len(took)-1], first, last)
			}
			if came := n.link.got + n.link.cut; came > w.snapshotSize()+wire.ChunkSize {
				t.Errorf("%d sources: %d bytes came for a snapshot of %d", sources, came, w.snapshotSize())
			}
			for _, h := range n.pulled {
				if open := first + 1; h.Round > open && h.Round <= took[h.Fragment] {
					t.Fatalf("%d sources: the payload of fragment %d round %d came in vain: its tip is of round %d", sources, h.Fragment, h.Round, took[h.Fragment])
				}
			}
			if !w.runUntilTrue(w.now+60_000, w.equal) {
				t.Errorf("%d sources: never equal", sources)
			}
		}
	}
}

// Newer tips are taken only if most peers know them, as the first were. With those of a liar a joiner goes on with what
// it has.
func TestJoinRefusesInventedNewerTips(t *testing.T) {
	t.Parallel()
	w := moving(t, 5)
	liar := w.nodes[0]
	liar.boasts()
	n := w.join()
	w.runUntil(w.now + 2000)
	if n.core.snapshot.source != liar.id {
		t.Fatal("the liar is not the source")
	}
	liar.lies(func(f *wire.FragmentManifest) {
		if f.Round > 0 {
			f.Chain = wire.Sum([]byte{1})
		}
	})
	if !w.runUntilTrue(w.now+240_000, func() bool { return equal(append([]*node{n}, w.nodes[1:5]...)) }) {
		t.Fatal("the joiner never had the snapshot of the others")
	}
	if n.core.Fetch().Lacks != "" || !n.joined() {
		t.Error("it gave up what it had")
	}
}

// A source that cannot give newer tips, others that do not have them, and a source that goes away meanwhile cost no byte.
func TestJoinGoesOnWithoutNewerTips(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault func(w *world)
		newer bool
	}{
		"none":                    {func(*world) {}, true},
		"the source answers none": {func(w *world) { w.nodes[0].ignores = wire.GetSnapshot }, false},
		"others have none": {func(w *world) {
			w.after(2000, func() {
				for _, n := range w.nodes[1:3] {
					n.ignores = wire.GetSnapshot
				}
			})
		}, false},
		"the source dies": {func(w *world) { w.after(10_000, func() { w.kill(0) }) }, true},
		"another joins":   {func(w *world) { w.after(1, func() { w.join() }) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := moving(t, 3)
			first := w.nodes[0].chain.closed[0]
			n := w.join(w.nodes[0].id)
			c.fault(w)
			if !w.runUntilTrue(w.now+180_000, n.joined) {
				t.Fatalf("not in: %v", n.core.snapshot.transfer.String())
			}
			if came := n.link.got + n.link.cut; came > w.snapshotSize()+2*wire.ChunkSize {
				t.Errorf("%d bytes came for a snapshot of %d", came, w.snapshotSize())
			}
			if newer := slices.Max(n.taken()) > first+1; newer != c.newer {
				t.Errorf("took tips of rounds %v, the first were of %d", n.taken(), first)
			}
		})
	}
}
