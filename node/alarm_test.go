package node

import (
	"log/slog"
	"strings"
	"testing"

	"atoll/gossip"
	"atoll/gossip/wire"
	"atoll/node/core"
	"atoll/node/status"
	"atoll/optimizer/outer"
)

// newViewer is a node as far as its screen needs it.
func newViewer() *node {
	n := &node{log: slog.New(slog.DiscardHandler)}
	n.view = newView(1, outer.Params{WindowUnion: 4})
	return n
}

func (n *node) lastEvent() status.Event { return n.view.events[len(n.view.events)-1] }

// A peer with another state is named, and so is the one that was wrong, with
// what to do about it.
func TestOtherStateIsShown(t *testing.T) {
	n, peer := newViewer(), wire.PeerID{7}
	n.view.record(n, gossip.StateDiffers{Peer: peer, Rounds: []uint32{3}})
	if e := n.lastEvent(); e.Peer != peer.String() || !strings.Contains(e.Text, "another state") {
		t.Errorf("event %+v", e)
	}
	n.view.verdict(n, core.Verdict{Peer: peer, Fragment: 2, Round: 9})
	if e := n.lastEvent(); e.Peer != peer.String() || !strings.Contains(e.Text, "this peer's state is wrong") {
		t.Errorf("event %+v", e)
	}
	n.view.verdict(n, core.Verdict{Peer: peer, Fragment: 2, Own: true, Round: 9})
	if e := n.lastEvent(); e.Peer != n.self.String() || !strings.Contains(e.Text, "this node's state was wrong from round 9") {
		t.Errorf("event %+v", e)
	}
}

// A run ends whatever one machine holds, but its end does not call digests the
// same that are not.
func TestFinishedTellsOtherStates(t *testing.T) {
	n, peer := newViewer(), wire.PeerID{7}
	n.view.finished(n, true, nil)
	if e := n.lastEvent(); !strings.Contains(e.Text, "same digests") {
		t.Errorf("event %+v", e)
	}
	n.view.finished(n, false, nil)
	if e := n.lastEvent(); strings.Contains(e.Text, "same digests") || !strings.Contains(e.Text, "other deltas") {
		t.Errorf("event %+v", e)
	}
	n.view.finished(n, true, []wire.PeerID{peer})
	if e := n.lastEvent(); e.Peer != peer.String() || strings.Contains(e.Text, "same digests") || !strings.Contains(e.Text, "another state") {
		t.Errorf("event %+v", e)
	}
}
