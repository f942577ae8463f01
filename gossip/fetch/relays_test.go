package fetch

import (
	"testing"

	"atoll/gossip/effect"
	"atoll/gossip/peers"
	"atoll/gossip/wire"

	"pgregory.net/rapid"
)

// thin is a core whose peers 1, 2, ... have uplinks of so many bytes per ms, as this node
// has with the first number. Each publishes so many bytes per ms.
func thin(own, publishes float64, uploads ...float64) *alone {
	a := newAlone()
	a.At(2 * FlowMinMs)
	watched := flow{from: a.Now - FlowMinMs, bytes: publishes * FlowMinMs}
	a.peers.Heartbeats.Set(peers.SelfState{State: wire.Training, Upload: 1000 * own, Full: own > 0})
	a.peers.Heartbeats.Send()
	a.relays.own = watched
	for i, u := range uploads {
		id := byte(i + 1)
		a.up(id)
		a.told(id, func(b *wire.Heartbeat) { b.Upload, b.Full = 1000*u, u > 0 })
		peerOf(a.peer(id)).publishes = watched
	}
	a.peers.Tick()
	a.Take()
	return a
}

// delta is the id of the i-th delta of a test.
func delta(i int) wire.Digest { return wire.Sum([]byte{byte(i), byte(i >> 8)}) }

// share is how often, of a thousand deltas of an author, a peer is asked first; a peer of
// 0 is nobody, as everybody asks the author.
func (a *alone) share(author byte) map[byte]int {
	asked := map[byte]int{}
	for i := range 1000 {
		asked[a.relays.via(a.relays.load(), delta(i), wire.PeerID{author})[0]]++
	}
	return asked
}

func TestRelayWhereTheAuthorIsThin(t *testing.T) {
	for name, c := range map[string]struct {
		own, publishes float64
		uploads        []float64
		relayed        bool
	}{
		"one is thin":                      {12500, 250, []float64{625, 12500, 12500}, true},
		"it has room":                      {12500, 150, []float64{625, 12500, 12500}, false},
		"all are as thin":                  {625, 250, []float64{625, 625, 625}, false},
		"its uplink is not known":          {12500, 250, []float64{0, 12500, 12500}, false},
		"those of all others are unknown":  {0, 250, []float64{625, 0, 0}, false},
		"it has just begun":                {12500, 0, []float64{625, 12500, 12500}, false},
		"it is thin beside one other node": {12500, 800, []float64{625}, false},
	} {
		a := thin(c.own, c.publishes, c.uploads...)
		if direct := a.share(1)[0]; (direct == 0) != c.relayed || (direct == 1000) == c.relayed {
			t.Errorf("%s: %d of 1000 are asked of the author by all", name, direct)
		}
		for _, id := range []byte{2, 3} {
			if int(id) <= len(c.uploads) && a.share(id)[0] != 1000 && c.uploads[id-1] > 1000 {
				t.Errorf("%s: deltas of peer %d, which has room, are relayed", name, id)
			}
		}
	}
}

// What each relays follows the room of its uplink.
func TestRelaysShareByRoom(t *testing.T) {
	a := thin(5000, 250, 625, 10000, 5000)
	asked := a.share(1)
	// As the first in rank this node asks the author itself.
	if first := asked[1]; first < 150 || first > 300 {
		t.Errorf("this node is first %d times in 1000, and has 5 of 20 parts", first)
	}
	if twice := float64(asked[2]) / float64(asked[3]); twice < 1.7 || twice > 2.8 {
		t.Errorf("peer 2 is asked %d times and peer 3 %d times", asked[2], asked[3])
	}
}

// Only as much is relayed as others have room for.
func TestRelayAsMuchAsThereIsRoom(t *testing.T) {
	// The author lacks room for 2/3 x 750 = 500 bytes/ms, and one has 0.85 x 1176.5 - 750 = 250.
	a := thin(750/uplinkFill, 250, 400, 1176.5, 750/uplinkFill)
	if direct := a.share(1)[0]; direct < 400 || direct > 600 {
		t.Errorf("%d of 1000 are asked of the author", direct)
	}
}

// All receivers agree: one asks the author, and the others ask that one, which has room.
func TestRelaysAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(3, maxRelayed).Draw(t, "receivers")
		uploads := []float64{100}
		for range n {
			uploads = append(uploads, rapid.SampledFrom([]float64{0, 100, 3000, 10000, 1e6}).Draw(t, "upload"))
		}
		a := thin(3000, 40, uploads...)
		author := wire.PeerID{1}
		load, id := a.relays.load(), wire.Digest{rapid.Byte().Draw(t, "delta")}
		relay := load.relay(id, author)
		if relay == (wire.PeerID{}) {
			return
		}
		for i, u := range load.uplinks {
			a.Config.Self = u.id // the relay does not depend on who asks; see above
			via, want := a.relays.via(load, id, author), relay
			if u.id == relay {
				want = author
			}
			if via != want || !load.of(relay).relays {
				t.Fatalf("receiver %d asks %v, want %v", i, via, want)
			}
		}
	})
}

// Uplinks that are not clearly thinner than most give to everybody: rates that are measured
// of equal links differ.
func TestEqualUplinksRelayNothing(t *testing.T) {
	for author, relays := range map[float64]bool{625: true, 1200: true, 1300: false, 2400: false} {
		a := thin(2500, 400, author, 2500, 2500)
		if direct := a.share(1)[0] == 1000; direct == relays {
			t.Errorf("an author of %v bytes/ms among 2500: all asked of it is %v", author, direct)
		}
	}
}

// One that has no credit left is relied on again after a while, each time a longer one.
func TestRelayThatFailsIsShunned(t *testing.T) {
	a := thin(12500, 250, 625, 12500, 12500)
	p := a.peer(2)
	for i, pause := range []effect.Time{shunMinMs, 2 * shunMinMs, 4 * shunMinMs} {
		for shuns := false; !shuns; i++ {
			if a.share(1)[2] == 0 {
				t.Fatalf("not relied on before, with a pause of %d", pause)
			}
			shuns = a.relays.failed(p)
			if i == 0 && shuns || i > 0 && !shuns {
				t.Errorf("after %d failures shunned %v", i+1, shuns)
			}
		}
		a.relays.failed(p) // another delta that it owed
		a.Now += pause - 1

		for _, p := range a.List {
			a.Hear(p)
			peerOf(p).publishes.add(a.Now, int(250*pause))
		}
		if n := a.share(1)[2]; n != 0 {
			t.Errorf("relied on %d times in a pause of %d", n, pause)
		}
		a.Now++

	}
	for range 10 { // it gives two of three
		a.relays.gave(p)
		a.relays.gave(p)
		if a.relays.failed(p) {
			t.Error("shunned though it gives two of three")
		}
	}
}

// asksOfThin has a delta of a thin author come, and returns whom this node asks first.
func asksOfThin(t *testing.T, want func(via byte) bool) (a *alone, id wire.Digest, q question) {
	t.Helper()
	for i := range uint32(100) {
		a = thin(12500, 250, 625, 12500, 12500)
		h := header(1, 1, i)
		id = idOf(h)
		if !want(a.relays.via(a.relays.load(), id, h.Header.Author)[0]) {
			continue
		}
		return a, id, a.brought(1, h)[0]
	}
	t.Fatal("no delta has this way")
	return a, id, q
}

// The first asks the author. The others ask the relay to park, then others only in case
// that they have it, and the author last.
func TestFetchOverARelay(t *testing.T) {
	if _, _, q := asksOfThin(t, func(via byte) bool { return via == 1 }); q.to != 1 || q.WaitMs == 0 {
		t.Errorf("the first asks %+v", q)
	}
	a, id, q := asksOfThin(t, func(via byte) bool { return via == 2 })
	if q.to != 2 || q.WaitMs == 0 {
		t.Fatalf("asks %+v", q)
	}
	a.Forwarded(id, wire.PeerID{3})
	a.Take()
	next := a.fails(q, wire.NotFound)
	if len(next) != 1 || next[0].to != 3 || next[0].WaitMs != 0 {
		t.Fatalf("then asks %+v", next)
	}
	last := a.fails(next[0], wire.NotFound)
	if len(last) != 1 || last[0].to != 1 || last[0].WaitMs == 0 {
		t.Errorf("at last asks %+v", last)
	}
}

// What waits at a relay that is shunned is asked of the next.
func TestFetchRoundABadRelay(t *testing.T) {
	a, id, _ := asksOfThin(t, func(via byte) bool { return via == 2 })
	p := a.peer(2)
	for !a.relays.failed(p) {
	}
	a.goRound(p.ID)
	via := a.byID[id].via
	a.Pump()
	if q := a.asks(); len(q) != 1 || q[0].to != via[0] || via[0] == 2 || q[0].WaitMs == 0 {
		t.Errorf("asks %+v, by way of %v", q, via)
	}
}

// What waits at a relay leaves its slots for what it holds.
func TestFetchBesideARelay(t *testing.T) {
	a := thin(12500, 250, 625, 12500)
	for i := range uint32(200) {
		h := header(1, 1+i%8, i)
		h.Header.Author[5] = byte(i)
		a.add(idOf(h), &h, wantTtlMs, true).goVia(wire.PeerID{2})
	}
	a.Tick()
	if n := len(a.asks()); n != maxRelayCalls {
		t.Errorf("%d wait at the relay", n)
	}
	h := header(2, 1, 7)
	if q := a.brought(2, h); len(q) != 1 || q[0].to != 2 {
		t.Errorf("for its own delta asks %+v", q)
	}
}
