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

// join adds a node that fetches a snapshot from those it is connected to.
func (w *world) join(trusted ...wire.PeerID) *node {
	n := w.add()
	n.state = wire.Joining
	n.core.env.Config.Trusted = trusted
	for i := range w.nodes[:n.index] {
		w.connect(n.index, i)
	}
	n.do(func() { n.core.FetchSnapshot(w.now) })
	return n
}

func TestJoinTakesSnapshotFromManyPeers(t *testing.T) {
	w := ran(t, 20, 4, options{tipBytes: 2 << 20})
	n := w.join()
	n.core.Effects()
	if !w.runUntilTrue(w.now+60_000, w.equal) {
		t.Fatal("the joiner never had the snapshot of the others")
	}
	for _, e := range n.effects {
		if s, ok := e.(Event); ok && s.Kind == EventSnapshot {
			if strings.Contains(s.Text, "all ") && !strings.Contains(s.Text, "from 4 peers") {
				t.Errorf("chunks did not come from all peers: %s", s.Text)
			}
		}
	}
	if !said(n, "takes a snapshot attested by 4 of 4") {
		t.Error("a joiner whose link names nobody does not say who attests the snapshot")
	}
}

// said reports whether an event of the node has that text in it.
func said(n *node, text string) bool {
	return slices.ContainsFunc(n.effects, func(e Effect) bool {
		v, ok := e.(Event)
		return ok && strings.Contains(v.Text, text)
	})
}
