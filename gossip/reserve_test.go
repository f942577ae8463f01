package gossip

import (
	"slices"
	"testing"

	"atoll/gossip/hello"
	"atoll/gossip/peers"
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
	if got := slotsAsked(a.wait(10*peers.SlotPauseMinMs, 1, 2)); len(got) != 0 {
		t.Errorf("asks %v again", got)
	}
	if got := slotsAsked(a.step(PeerDown{Peer: wire.PeerID{10}})); len(got) != 1 || got[0] < 12 {
		t.Errorf("asks %v when a relay is gone", got)
	}
	if got := slotsReleased(a.step(Reached{Public: true})); len(got) != 2 || !slices.Contains(got, 11) {
		t.Errorf("gives up its slots at %v once it is public", got)
	}
	if got := slotsAsked(a.wait(10*peers.SlotPauseMinMs, 1, 2)); len(got) != 0 {
		t.Errorf("a public node asks %v", got)
	}
}

// A node that says nothing of its reach, as on one network, asks for no slots.
func TestReserveOnlyWhereNeeded(t *testing.T) {
	a := newAlone()
	if got := append(slotsAsked(a.relay(10)), slotsAsked(a.wait(10*peers.SlotPauseMinMs, 10))...); len(got) != 0 {
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
	for i, want := 0, Time(peers.SlotPauseMinMs); i < len(times); i, want = i+1, 2*want {
		if last := (append([]Time{0}, times...))[i]; times[i]-last != want {
			t.Errorf("pause %d is %d, want %d", i, times[i]-last, want)
		}
	}
}

// With a slot missing, a relay that is only known is dialled, even with neighbours enough.
func TestReserveDialsRelays(t *testing.T) {
	a := newAlone()
	for id := range byte(peers.DefaultTarget) {
		a.connect(id + 100)
	}
	for id, relays := range map[byte]bool{20: true, 21: false} {
		a.core.env.Ensure(wire.PeerID{id}, false).Keep(hello.Signed{Bytes: []byte{1}}, &hello.Record{Seq: 1, Relays: relays, Addrs: []string{"a" + string('0'+rune(id-20))}})
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
	var asked []question
	up := func(key int, near bool) wire.PeerID {
		s := record(key, near)
		r, _ := s.Open()
		asked = append(asked, questions(t, a.step(PeerUp{Peer: r.Author, Signed: s, Record: r, Near: near}), wire.GetPeerList)...)
		return r.Author
	}
	a.step(OwnRecord{Signed: record(0, false), Near: record(0, true)})
	inside, outside := up(2, true), up(3, false)
	a.answer(asked[0], wire.PeerList{Records: [][]byte{record(2, false).Encode(), record(2, true).Encode(), record(4, true).Encode()}}.Encode())
	for _, c := range []struct {
		asker     wire.PeerID
		near, all int
	}{{inside, 3, 6}, {outside, 0, 3}, {wire.PeerID{77}, 0, 3}} {
		list, err := wire.DecodePeerList(a.core.peers.ListFor(a.core.env.Find(c.asker)))
		if err != nil {
			t.Fatal(err)
		}
		near := 0
		for _, b := range list.Records {
			s, _ := hello.Parse(b)
			if r, _ := s.Open(); r.Near {
				near++
			}
		}
		if near != c.near || len(list.Records) != c.all {
			t.Errorf("%d records, %d of them for the network, want %d and %d", len(list.Records), near, c.all, c.near)
		}
	}
}

// A record that a heartbeat names as newer, of a peer that is not connected, is asked for where the heartbeat came from.
func TestPeerListNewerOfAStranger(t *testing.T) {
	a := newAlone()
	a.connect(1)
	a.step(Reached{Public: true})
	a.now = peers.PeerListAgainMs
	if q := questions(t, a.toldBy(1, 2, func(b *wire.Heartbeat) { b.Capability = 6 }), wire.GetPeerList); len(q) != 1 || q[0].to != 1 {
		t.Errorf("asks %+v", q)
	}
}
