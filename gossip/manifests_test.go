package gossip

import (
	"testing"

	"atoll/gossip/wire"
)

// tips has a peer ask for the tips of rounds that it chose.
func (a *alone) tips(handle uint64, from byte, round uint32) []Effect {
	return a.ask(handle, from, wire.Request{Kind: wire.GetTips, At: []uint32{round, round}})
}

func TestOneManifestAtATimeForOnePeer(t *testing.T) {
	a := newAlone()
	if e := a.ask(1, 2, wire.Request{Kind: wire.GetManifest}); count[ReplyManifest](e) != 1 {
		t.Fatalf("got %v", e)
	}
	if s := status(a.tips(2, 2, 1)); s != wire.Busy {
		t.Errorf("status %v for a second one, want busy", s)
	}
	a.core.Left(a.now, 1)
	if e := a.tips(3, 2, 1); count[ReplyManifest](e) != 1 {
		t.Errorf("after the first has left: %v", e)
	}
	a.core.Replied(a.now, 3) // its stream has failed
	if e := a.tips(4, 2, 2); count[ReplyManifest](e) != 1 {
		t.Errorf("after the second has failed: %v", e)
	}
}

// Whoever asks for other rounds each time makes few of them wait, and keeps no
// joiner from what all of them share.
func TestManifestsOfChosenRoundsAreFew(t *testing.T) {
	a := newAlone()
	for i := range uint64(maxTipsMade) {
		if e := a.tips(i, byte(i)+1, uint32(i)); count[ReplyManifest](e) != 1 {
			t.Fatalf("request %d: %v", i, e)
		}
	}
	if s := status(a.tips(50, 50, 9)); s != wire.Busy {
		t.Errorf("status %v for one too many, want busy", s)
	}
	if e := a.ask(51, 51, wire.Request{Kind: wire.GetManifest}); count[ReplyManifest](e) != 1 {
		t.Errorf("a joiner gets %v", e)
	}
	a.core.Tick(a.now + callMs)
	a.core.Effects()
	if e := a.tips(52, 52, 9); count[ReplyManifest](e) != 1 {
		t.Errorf("after nobody waits for those any more: %v", e)
	}
}

func TestManifestsForOnePeerAreRare(t *testing.T) {
	a := newAlone()
	for i := range uint64(maxTipAsks) {
		if e := a.tips(i, 2, uint32(i)); count[ReplyManifest](e) != 1 {
			t.Fatalf("request %d: %v", i, e)
		}
		a.core.Left(a.now, i)
		a.now += 1000
	}
	if s := status(a.tips(50, 2, 9)); s != wire.Busy {
		t.Errorf("status %v for one too many, want busy", s)
	}
	a.now = tipAsksMs
	if e := a.tips(51, 2, 9); count[ReplyManifest](e) != 1 {
		t.Errorf("after a while: %v", e)
	}
}
