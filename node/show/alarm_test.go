package show

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

// newScreen is a screen of so many fragments.
func newScreen(fragments int) *Screen {
	return New(slog.New(slog.DiscardHandler), nil, wire.PeerID{9}, fragments, outer.Params{WindowUnion: 4})
}

func (v *Screen) lastEvent() status.Event { return v.events[len(v.events)-1] }

// A peer with another state is named, and so is the one that was wrong, with
// what to do about it.
func TestOtherStateIsShown(t *testing.T) {
	v, peer := newScreen(1), wire.PeerID{7}
	v.Saw(gossip.StateDiffers{Peer: peer, Rounds: []uint32{3}})
	if e := v.lastEvent(); e.Peer != peer.String() || !strings.Contains(e.Text, "another state") {
		t.Errorf("event %+v", e)
	}
	v.Saw(core.Verdict{Peer: peer, Fragment: 2, Round: 9})
	if e := v.lastEvent(); e.Peer != peer.String() || !strings.Contains(e.Text, "this peer's state is wrong") {
		t.Errorf("event %+v", e)
	}
	v.Saw(core.Verdict{Peer: peer, Fragment: 2, Own: true, Round: 9})
	if e := v.lastEvent(); e.Peer != v.self.String() || !strings.Contains(e.Text, "this node's state was wrong from round 9") {
		t.Errorf("event %+v", e)
	}
}

// A run ends whatever one machine holds, but its end does not call digests the
// same that are not.
func TestFinishedTellsOtherStates(t *testing.T) {
	v, peer := newScreen(1), wire.PeerID{7}
	v.Finished(true, nil)
	if e := v.lastEvent(); !strings.Contains(e.Text, "same digests") {
		t.Errorf("event %+v", e)
	}
	v.Finished(false, nil)
	if e := v.lastEvent(); strings.Contains(e.Text, "same digests") || !strings.Contains(e.Text, "other deltas") {
		t.Errorf("event %+v", e)
	}
	v.Finished(true, []wire.PeerID{peer})
	if e := v.lastEvent(); e.Peer != peer.String() || strings.Contains(e.Text, "same digests") || !strings.Contains(e.Text, "another state") {
		t.Errorf("event %+v", e)
	}
}
