package gossip

import (
	"testing"

	"pgregory.net/rapid"

	"atoll/gossip/peers"
	"atoll/gossip/wire"
)

func hinted(id byte) Hinted {
	return Hinted{Peer: wire.PeerID{id}, Addrs: []string{string('a' + rune(id%26))}}
}

// ticks lets time pass in steps of 250 ms and returns the effects with their times.
func (a *alone) ticks(ms int64) (effects []Effect, at []Time) {
	for end := a.now + ms; a.now < end; {
		a.now += 250
		a.core.Tick(a.now)
		for _, e := range a.core.Effects() {
			effects, at = append(effects, e), append(at, a.now)
		}
	}
	return effects, at
}

// The first hint is dialled at once, a few times, and forgotten.
func TestHintIsDialled(t *testing.T) {
	a := newAlone()
	if got := find[Dial](a.step(hinted(1))); len(got) != 1 || got[0].Addrs[0] != "b" {
		t.Fatalf("dials %v", got)
	}
	a.step(hinted(1))
	effects, _ := a.ticks(600_000)
	if got := find[Dial](effects); len(got) != peers.MaxHintTries-1 {
		t.Errorf("dials %d times more, want %d", len(got), peers.MaxHintTries-1)
	}
	if n := a.core.peers.Hints(); n != 0 {
		t.Errorf("keeps %d hints that led nowhere", n)
	}
}

// A hint of a peer that is connected, of this node, or without a place is worth nothing.
func TestHintsThatSayNothing(t *testing.T) {
	a := newAlone()
	a.connect(1)
	for _, in := range []Hinted{hinted(1), {Peer: a.core.env.cfg.Self, Addrs: []string{"x"}}, {Peer: wire.PeerID{2}}} {
		if got := find[Dial](a.step(in)); len(got) != 0 {
			t.Errorf("%+v: dials %v", in, got)
		}
	}
	if got := a.core.Peers().Known(); got != 1 {
		t.Errorf("knows %d peers, want the one that is connected", got)
	}
}

// However many hints come, and from whom, the dials are as slow as those of the peer list, what is
// kept is bounded, and nothing of it is passed on.
func TestHintsAreBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := newAlone()
		dials, began := 0, a.now
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			for range rapid.IntRange(0, 100).Draw(t, "hints") {
				in := Hinted{Peer: wire.PeerID{rapid.Byte().Draw(t, "id"), rapid.Byte().Draw(t, "id")}, Addrs: make([]string, rapid.IntRange(0, 20).Draw(t, "addresses"))}
				dials += len(find[Dial](a.step(in)))
			}
			if n := a.core.peers.Hints(); n > peers.MaxHints {
				t.Fatalf("keeps %d hints", n)
			}
			a.now += rapid.Int64Range(0, 3000).Draw(t, "ms")
			a.core.Tick(a.now)
			dials += len(find[Dial](a.core.Effects()))
		}
		if most := int((a.now-began)*peers.MaxDials/peers.DialPeriodMs) + 1; dials > most {
			t.Errorf("%d dials in %d ms, at most %d", dials, a.now-began, most)
		}
		if n := len(a.core.env.List); n != 0 {
			t.Errorf("%d peers from hints are in the peer list", n)
		}
	})
}

// A node with enough neighbours dials no hints.
func TestHintsOfNoNeed(t *testing.T) {
	a := newAlone()
	for id := range byte(a.core.env.cfg.TargetPeers) {
		a.connect(100 + id)
	}
	if got := find[Dial](a.step(hinted(1))); len(got) != 0 {
		t.Errorf("dials %v", got)
	}
}

// Where addresses change, a node that has nobody looks for peers soon and then ever more
// rarely, one with some now and then. On one network nobody looks.
func TestDiscover(t *testing.T) {
	seeks := func(a *alone, ms int64) (n int) {
		effects, _ := a.ticks(ms)
		return len(find[Discover](effects))
	}
	a := newAlone()
	if got := seeks(a, 3_600_000); got != 0 {
		t.Errorf("looks %d times on one network", got)
	}
	a.step(Reached{})
	effects, at := a.ticks(3_600_000)
	if got := len(find[Discover](effects)); got < 12 || got > 24 {
		t.Errorf("a node that has nobody looks %d times in an hour", got)
	}
	for i, e := range effects {
		if _, ok := e.(Discover); ok {
			if first := at[i] - (a.now - 3_600_000); first > peers.DiscoverFirstMs+1000 {
				t.Errorf("looks first after %d ms", first)
			}
			break
		}
	}
	a.connect(1)
	if got := seeks(a, 3_600_000); got < 9 || got > 13 {
		t.Errorf("one with a neighbour looks %d times in an hour", got)
	}
	a.connect(2, 3, 4)
	if got := seeks(a, 3_600_000); got > 3 {
		t.Errorf("one with %d neighbours looks %d times in an hour", peers.WantNeighbours, got)
	}
	for id := byte(1); id <= 4; id++ {
		a.step(PeerDown{Peer: wire.PeerID{id}})
	}
	if got := seeks(a, 5_000); got != 1 {
		t.Errorf("one that lost all looks %d times in five seconds", got)
	}
}
