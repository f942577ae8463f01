package gossip

import (
	"slices"
	"testing"

	"atoll/gossip/hello"
	"atoll/gossip/wire"
	"atoll/gossip/wire/spectest"
)

// relay connects a peer that relays.
func (a *alone) relay(id byte) []Effect {
	return a.step(PeerUp{Peer: wire.PeerID{id}, Signed: hello.Signed{Bytes: []byte{1}}, Record: hello.Record{Seq: 1, Relays: true}})
}

func (a *alone) step(in Input) []Effect {
	a.core.Step(a.now, in)
	return a.core.Effects()
}

// slotsAsked are the peers that the effects ask for slots.
func slotsAsked(effects []Effect) (ids []byte) {
	for _, e := range find[Reserve](effects) {
		ids = append(ids, e.Peer[0])
	}
	return ids
}

// slotsReleased are those at which they give them up.
func slotsReleased(effects []Effect) (ids []byte) {
	for _, e := range find[Release](effects) {
		ids = append(ids, e.Peer[0])
	}
	return ids
}

// A node that others do not reach has two slots, at peers that relay.
func TestReserveTwoSlots(t *testing.T) {
	a := newAlone()
	a.connect(1, 2)
	got := slotsAsked(a.step(Reached{}))
	for id := byte(10); id < 15; id++ {
		got = append(got, slotsAsked(a.relay(id))...)
	}
	if !slices.Equal(got, []byte{10, 11}) {
		t.Fatalf("asks %v for slots", got)
	}
	if got := slotsAsked(a.wait(10*slotPauseMinMs, 1, 2)); len(got) != 0 {
		t.Errorf("asks %v again", got)
	}
	if got := slotsAsked(a.step(PeerDown{Peer: wire.PeerID{10}})); len(got) != 1 || got[0] < 12 {
		t.Errorf("asks %v when a relay is gone", got)
	}
	if got := slotsReleased(a.step(Reached{Public: true})); len(got) != 2 || !slices.Contains(got, 11) {
		t.Errorf("gives up its slots at %v once it is public", got)
	}
	if got := slotsAsked(a.wait(10*slotPauseMinMs, 1, 2)); len(got) != 0 {
		t.Errorf("a public node asks %v", got)
	}
}

// A node that says nothing of its reach, as on one network, asks for no slots.
func TestReserveOnlyWhereNeeded(t *testing.T) {
	a := newAlone()
	if got := append(slotsAsked(a.relay(10)), slotsAsked(a.wait(10*slotPauseMinMs, 10))...); len(got) != 0 {
		t.Errorf("asks %v", got)
	}
}

// One that refuses is asked again after pauses that double; another one at once.
func TestReserveRefused(t *testing.T) {
	a := newAlone()
	a.step(Reached{})
	a.relay(10)
	a.relay(11)
	a.relay(12)
	if got := slotsAsked(a.step(Reserved{Peer: wire.PeerID{10}})); !slices.Equal(got, []byte{12}) {
		t.Fatalf("asks %v", got)
	}
	a.step(PeerDown{Peer: wire.PeerID{11}})
	a.step(PeerDown{Peer: wire.PeerID{12}})
	var times []Time
	for len(times) < 5 {
		a.now += 1000
		a.core.Tick(a.now)
		if slices.Contains(slotsAsked(a.core.Effects()), 10) {
			times = append(times, a.now)
			a.step(Reserved{Peer: wire.PeerID{10}})
		}
	}
	for i, want := 0, Time(slotPauseMinMs); i < len(times); i, want = i+1, 2*want {
		if last := (append([]Time{0}, times...))[i]; times[i]-last != want {
			t.Errorf("pause %d is %d, want %d", i, times[i]-last, want)
		}
	}
}

// With a slot missing, a relay that is only known is dialled, even with neighbours enough.
func TestReserveDialsRelays(t *testing.T) {
	a := newAlone()
	for id := range byte(defaultTargetPeers) {
		a.connect(id + 100)
	}
	for id, relays := range map[byte]bool{20: true, 21: false} {
		a.core.env.ensure(wire.PeerID{id}, false).keep(hello.Signed{Bytes: []byte{1}}, &hello.Record{Seq: 1, Relays: relays, Addrs: []string{"a" + string('0'+rune(id-20))}})
	}
	if got := dialled(a.step(Reached{})); !slices.Equal(got, []string{"a0"}) {
		t.Errorf("dials %v", got)
	}
}

// Addresses of a network are told to peers on it, and to nobody else.
func specPeerListNear(t *testing.T, _ *spectest.Spec) {
	a := newAlone()
	record := func(key int, near bool) hello.Signed {
		s, err := hello.Parse(recordOf(t, key, a.run, func(r *hello.Record) { r.Seq, r.Near = uint64(100*key), near }))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	up := func(key int, near bool) wire.PeerID {
		s := record(key, near)
		r, _ := s.Open()
		a.step(PeerUp{Peer: r.Author, Signed: s, Record: r, Near: near})
		return r.Author
	}
	a.step(OwnRecord{Signed: record(0, false), Near: record(0, true)})
	inside, outside := up(2, true), up(3, false)
	a.core.peerList.learnAll(inside, wire.EncodePeerList([][]byte{record(2, false).Encode(), record(2, true).Encode(), record(4, true).Encode()}))
	for _, c := range []struct {
		asker     wire.PeerID
		near, all int
	}{{inside, 3, 6}, {outside, 0, 3}, {wire.PeerID{77}, 0, 3}} {
		records, err := wire.DecodePeerList(a.core.peerList.body(a.core.env.peers.find(c.asker)))
		if err != nil {
			t.Fatal(err)
		}
		near := 0
		for _, b := range records {
			s, _ := hello.Parse(b)
			if r, _ := s.Open(); r.Near {
				near++
			}
		}
		if near != c.near || len(records) != c.all {
			t.Errorf("%d records, %d of them for the network, want %d and %d", len(records), near, c.all, c.near)
		}
	}
}

// A node dials what both records of a peer name, those of its own network first, and the
// newer replace the older.
func TestPeerListKeepsBothKinds(t *testing.T) {
	a := newAlone()
	p := a.core.env.ensure(wire.PeerID{9}, false)
	keep := func(seq uint64, near bool, addr string) {
		p.keep(hello.Signed{Bytes: []byte(addr)}, &hello.Record{Seq: seq, Near: near, Addrs: []string{addr}})
	}
	keep(1, false, "out")
	keep(1, true, "in")
	keep(1, false, "again")
	if !slices.Equal(p.peerList.addrs, []string{"in", "out"}) {
		t.Errorf("dials %v", p.peerList.addrs)
	}
	keep(2, true, "in2")
	keep(1, false, "old")
	if !slices.Equal(p.peerList.addrs, []string{"in2"}) {
		t.Errorf("dials %v", p.peerList.addrs)
	}
}

// A record that a heartbeat names as newer, of a peer that is not connected, is asked for where the heartbeat came from.
func TestPeerListNewerOfAStranger(t *testing.T) {
	a := newAlone()
	a.connect(1)
	a.step(Reached{Public: true})
	a.now = peerListAgainMs
	if q := questions(t, a.toldBy(1, 2, func(b *wire.Heartbeat) { b.Capability = 6 }), wire.GetPeerList); len(q) != 1 || q[0].to != 1 {
		t.Errorf("asks %+v", q)
	}
}

// Peers in networks where a node has no neighbour are dialled before others, those whose network
// does not show as well, and these where there are no more.
func TestPeerListDialsOtherNetworksFirst(t *testing.T) {
	a := newAlone()
	a.connect(1)
	a.core.env.peers.find(wire.PeerID{1}).peerList.addrs = []string{"/ip4/5.0.0.1/tcp/1"}
	for id, addr := range map[byte]string{
		2: "/ip4/5.0.7.2/tcp/1", 3: "/ip4/5.0.9.3/tcp/1", 4: "/ip4/6.0.0.4/tcp/1", 5: "/ip4/6.0.1.5/tcp/1",
		6: "/ip6/2600:1::6/tcp/1", 7: "/ip6/2600:1:2::7/tcp/1", 8: "/ip4/5.0.0.1/tcp/1/p2p/x/p2p-circuit", 9: "/dns4/example.org/tcp/1",
	} {
		a.core.env.ensure(wire.PeerID{id}, false).peerList.addrs = []string{addr}
	}
	networks := func(effects []Effect) (ids []byte) {
		for _, e := range find[Dial](effects) {
			ids = append(ids, e.Peer[0])
		}
		slices.Sort(ids)
		return ids
	}
	a.core.peerList.dialSome()
	if got := networks(a.core.Effects()); !slices.Equal(got, []byte{2, 4, 6, 9}) {
		t.Errorf("dials %v first", got)
	}
	a.core.peerList.dialSome()
	if got := networks(a.core.Effects()); !slices.Equal(got, []byte{3, 5, 7, 8}) {
		t.Errorf("dials %v then", got)
	}
}

// Peers that are reached through relays which a node is connected to anyway come before those
// whose relay it would have to dial, and are dialled through these alone at first.
func TestPeerListDialsThroughRelaysAtHand(t *testing.T) {
	const here, there = "/ip4/5.0.0.1/tcp/1/p2p/h", "/ip4/6.0.0.1/tcp/1/p2p/t"
	a := newAlone()
	a.relay(1)
	a.core.env.peers.find(wire.PeerID{1}).peerList.addrs = []string{here}
	for id := byte(2); id < 12; id++ {
		addrs := []string{there + "/p2p-circuit/p2p/x"}
		if id%3 == 0 {
			addrs = append(addrs, here+"/p2p-circuit/p2p/x")
		}
		a.core.env.ensure(wire.PeerID{id}, false).peerList.addrs = addrs
	}
	a.core.Effects()
	a.core.peerList.dialSome()
	dials := find[Dial](a.core.Effects())
	for i, e := range dials {
		at := e.Peer[0]%3 == 0
		if at != (i < 3) || at && len(e.Addrs) != 1 {
			t.Errorf("dial %d is of %d at %v", i, e.Peer[0], e.Addrs)
		}
	}
	if len(dials) != maxDials {
		t.Errorf("%d dials", len(dials))
	}
	p := a.core.env.peers.find(wire.PeerID{3})
	if again := a.core.peerList.waysTo(p); len(again) != 2 {
		t.Errorf("after an attempt in vain it is dialled at %v", again)
	}
}

// Where addresses change, a peer that is lost is dialled soon.
func TestPeerListRedialsSoon(t *testing.T) {
	for _, moves := range []bool{false, true} {
		a := newAlone()
		if moves {
			a.step(Reached{Public: true})
		}
		a.connect(5)
		a.hasAddrs([]byte{5}, "a")
		p := a.core.env.peers.find(wire.PeerID{5})
		p.peerList.addrs = []string{"5a"}
		a.wait(redialMs, 5)
		a.core.peerList.nextDial = a.now + dialPeriodMs
		a.step(PeerDown{Peer: p.id})
		if got := dialled(a.wait(redialMs)); len(got) > 0 != moves {
			t.Errorf("addresses change %v: dials %v", moves, got)
		}
	}
}

// Nobody waits for a peer that holds nothing of the run, or asks it for a snapshot.
func TestStatelessIsNotAwaited(t *testing.T) {
	for _, stateless := range []bool{false, true} {
		a := newAlone()
		a.step(PeerUp{Peer: wire.PeerID{5}, Signed: hello.Signed{Bytes: []byte{1}}, Record: hello.Record{Seq: 1, Role: hello.Observer, Stateless: stateless}})
		p := a.core.env.peers.find(wire.PeerID{5})
		_, lacking := a.core.heartbeats.lacking()
		if lacking == stateless || a.core.heartbeats.awaited(p) == stateless || a.core.snapshot.isSource(p) == stateless {
			t.Errorf("stateless %v: lacking %v, awaited %v, is a source %v", stateless, lacking, a.core.heartbeats.awaited(p), a.core.snapshot.isSource(p))
		}
	}
}
