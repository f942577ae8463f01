package sim

import (
	"slices"
	"testing"

	"atoll/gossip/wire"
	"atoll/node/trace"
	"atoll/optimizer/outer"
	"atoll/tensor/codec"
)

// Every delta of a node's ledger has a line of its life there, in which one thing comes
// after the other. To look changes nothing.
func TestTraceHasEveryDelta(t *testing.T) {
	t.Parallel()
	s := withFaults(t, 4, 60, "partition 0+1 @3s, merge @8s")
	s.Params.Codec, s.Params.Fragments = codec.F32, 1 // payloads that are too long to go along with headers
	s.Link.BytesMs = 200
	untraced := play(t, s)
	s.Trace = true
	w := newWorld(t, s)
	w.Finish()
	r := w.Result()
	if r.Err != nil || r.History != untraced.History {
		t.Fatalf("%v; traced it is %s, untraced %s", r.Err, r.History, untraced.History)
	}
	type key struct {
		delta wire.Digest
		node  wire.PeerID
	}
	lines, drafted := map[key]trace.Line{}, map[wire.Digest]int64{}
	for _, l := range r.Trace.Lines {
		lines[key{l.Delta, l.Node}] = l
		if l.Own() {
			drafted[l.Delta] = l.Drafted
		}
	}
	for _, n := range w.nodes {
		n.folded(t, func(id wire.Digest) {
			l, ok := lines[key{id, n.id}]
			if !ok || l.End != trace.Adopted {
				t.Fatalf("node %d folded %v, and its line is %+v", n.index, id, l)
			}
			if l.Drafted == 0 || l.Drafted != drafted[id] {
				t.Errorf("drafted at %d, by its author's line at %d", l.Drafted, drafted[id])
			}
			checkOrder(t, l)
		})
	}
	sum := trace.Sum(r.Trace)
	if sum.Late == 0 || sum.Requests < sum.Deltas {
		t.Errorf("%d of %d deltas were late, after %d requests: this world shows too little", sum.Late, sum.Deltas, sum.Requests)
	}
}

// folded calls f with the deltas of a node's ledger.
func (n *Node) folded(t *testing.T, f func(wire.Digest)) {
	t.Helper()
	for p := range n.w.plan {
		last, _ := n.disk.LastRound(p)
		err := n.disk.Rounds(p, 1, last, func(l outer.Link) error {
			for _, id := range l.Folded {
				f(wire.Digest(id))
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// checkOrder: what is known of a life comes in its order, and nothing that must be is not.
func checkOrder(t *testing.T, l trace.Line) {
	t.Helper()
	at := []int64{l.Drafted, l.Announced}
	switch {
	case l.Own():
		at = []int64{l.Drafted, l.Verified, l.Announced, l.Held}
	case l.Inline:
		at = append(at, l.Heard, l.Verified, l.Held)
	default:
		at = append(at, l.Heard, l.Asked, l.Requested, l.Reached, l.Begun, l.FirstByte, l.LastByte, l.Verified, l.Held)
	}
	if !l.Late {
		at = append(at, l.Closed)
	}
	if at = append(at, l.Folded, l.Adopted); !slices.IsSorted(at) || at[0] == 0 || slices.Contains(at, 0) {
		t.Errorf("out of order: %v, of %+v", at, l)
	}
	if l.Late != (l.Closed < l.Held) {
		t.Errorf("late is %v: %+v", l.Late, l)
	}
}
