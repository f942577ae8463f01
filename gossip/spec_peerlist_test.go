package gossip

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"atoll/gossip/hello"
	"atoll/gossip/member"
	"atoll/gossip/peers"
	"atoll/gossip/wire"
	"atoll/gossip/wire/spectest"
)

func TestSpecPeerList(t *testing.T) {
	spectest.Run(t, "K", map[string]spectest.Clause{
		"K-1": specPeerListAsked, "K-2": specPeerListBody, "K-2.2": specPeerListNear, "K-2.3": specPeerListHints, "K-2.4": specPeerListNames, "K-2.5": specPeerListWords, "K-2.6": specWordsHeeded, "K-3": specPeerListNewest, "K-4": specFaultTable,
		"K-5": specVisitors, "K-5.2": specVisitors, "K-5.3": specVisitsEnd, "K-5.4": specVisitorStays,
	})
}

func specPeerListAsked(t *testing.T, s *spectest.Spec) {
	a := newAlone()
	for _, begin := range []func(started int64) []Effect{
		func(started int64) []Effect {
			a.core.Step(a.now, PeerUp{Peer: wire.PeerID{1}, Signed: hello.Signed{}, Record: hello.Record{StartedMs: started, Seq: uint64(started)}})
			return a.core.Effects()
		},
		func(started int64) []Effect { // before the old connection was seen to end
			a.core.Step(a.now, RecordChanged{Peer: wire.PeerID{1}, Signed: hello.Signed{}, Record: hello.Record{StartedMs: started, Seq: uint64(started)}})
			return a.core.Effects()
		},
	} {
		for range 2 {
			started := a.core.HeartbeatPeriodMs() + int64(len(a.core.env.Calls()))
			if q := questions(t, begin(started)); len(q) != 1 || q[0].Kind != wire.GetPeerList || q[0].to != 1 {
				t.Errorf("asks %+v", q)
			}
			if q := questions(t, begin(started)); len(q) != 0 {
				t.Errorf("asks the same process again: %+v", q)
			}
		}
	}
}

// What strangers said of a peer is in no peer list, whether it is known or not.
func specPeerListHints(t *testing.T, _ *spectest.Spec) {
	a := newAlone()
	a.connect(1)
	a.step(Hinted{Peer: wire.PeerID{2}, Addrs: []string{"/ip4/5.0.0.2/tcp/1"}})
	a.step(Hinted{Peer: wire.PeerID{1}, Addrs: []string{"/ip4/5.0.0.1/tcp/1"}})
	e := find[Reply](a.ask(1, 1, wire.Request{Kind: wire.GetPeerList}))
	if len(e) != 1 || strings.Contains(string(e[0].Response), "5.0.0") {
		t.Errorf("answers %+v", e)
	}
}

// Members learn what the machines are called, also of machines that they are not connected to. Guests, visitors and keys of which nothing is
// known do not; in a run that is open all do. Of a name that nobody could show nothing is kept.
func specPeerListNames(t *testing.T, _ *spectest.Spec) {
	a := newAlone()
	record := func(key int, name string) hello.Signed {
		s, err := hello.Parse(recordOf(t, key, a.run, func(r *hello.Record) { r.Seq, r.Name = 5, name }))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	far, bad := wire.PeerIDOf(testKey(4)), wire.PeerIDOf(testKey(5))
	a.connect(1, 2, 3)
	a.step(OwnRecord{Signed: record(0, ""), Named: record(0, "own")})
	a.learns(t, record(4, "").Encode(), record(4, "far").Encode(), record(5, "").Encode(), record(5, "no/name").Encode())
	for id, want := range map[wire.PeerID]string{far: "far", bad: "", {2}: ""} {
		if got := a.core.env.Find(id).Name(); got != want {
			t.Errorf("%v is called %q, want %q", id, got, want)
		}
	}
	names := func(asker wire.PeerID) (names []string) {
		list, err := wire.DecodePeerList(a.core.peers.ListFor(a.core.env.Find(asker)))
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range list.Records {
			s, _ := hello.Parse(b)
			if r, err := s.Open(); err != nil || r.Name != "" {
				names = append(names, r.Name)
			}
		}
		return names
	}
	both := []string{"own", "far"}
	if got := names(wire.PeerID{1}); !slices.Equal(got, both) {
		t.Errorf("in an open run they are %q", got)
	}
	a.guests(t, []wire.PeerID{{2}}, peersOf(1)...)
	for id, want := range map[byte][]string{1: both, 2: nil, 3: nil, 77: nil} {
		if got := names(wire.PeerID{id}); !slices.Equal(got, want) {
			t.Errorf("key %d sees %q, want %q", id, got, want)
		}
	}
}

// end is an owner's end of the invite of members, which keeps some who came by it.
func (a *alone) end(kept ...wire.PeerID) (words []member.Word) {
	for _, h := range wire.NewEnd(0, 3, wire.PeerIDOf(testKey(52)), kept, []byte("it leaked")) {
		words = append(words, member.Word{Statement: wire.SignHeader(testKey(50), a.run, h), Reason: "it leaked"})
	}
	return words
}

// Whoever asks hears all owners' words, with their reasons: members, guests and visitors.
func specPeerListWords(t *testing.T, _ *spectest.Spec) {
	a := newAlone()
	a.connect(1, 2)
	a.guests(t, peersOf(2), peersOf(1, 9)...)
	words := a.end(wire.PeerID{1})
	if _, err := a.core.env.cfg.Members.AddWords(words...); err != nil {
		t.Fatal(err)
	}
	for _, asker := range []wire.PeerID{{1}, {2}, {77}} {
		list, err := wire.DecodePeerList(a.core.peers.ListFor(a.core.env.Find(asker)))
		if err != nil {
			t.Fatal(err)
		}
		if told, err := member.ParseWords(list.Words); err != nil || !sameWords(told, words) {
			t.Errorf("%v hears %+v, %v", asker, told, err)
		}
	}
}

func sameWords(told, words []member.Word) bool {
	return len(told) == len(words) && !slices.ContainsFunc(words, func(w member.Word) bool { return !slices.Contains(told, w) })
}

// A node that comes after a revocation, or was away, knows from a peer list who is out, and has it kept, once. Whom an owner keeps is
// never out.
func specWordsHeeded(t *testing.T, _ *spectest.Spec) {
	a := newAlone()
	a.guests(t, nil, peersOf(1, 2)...)
	var list wire.PeerList
	words := a.end(wire.PeerID{1})
	for _, w := range []member.Word{words[1], words[0]} {
		list.Words = append(list.Words, w.Encode())
	}
	e := find[Revoked](a.learnsAll(t, list))
	if len(e) != 1 || !slices.Equal(e[0].Words, words) {
		t.Errorf("%+v", e)
	}
	if m := a.core.env.cfg.Members; !m.Out(wire.PeerID{2}) || m.Out(wire.PeerID{1}) {
		t.Error("not just the one is out that the owner does not keep")
	}
	if e := find[Revoked](a.learnsAll(t, list)); len(e) != 0 {
		t.Errorf("again: %+v", e)
	}
}

func TestPeerListPeriod(t *testing.T) {
	a := newAlone()
	a.connect(1, 2)
	a.now = peers.PeerListAgainMs
	var asked []byte
	for range 3 {
		for _, q := range questions(t, a.wait(Time(peers.PeerListPeriodMs), 1, 2), wire.GetPeerList) {
			asked = append(asked, q.to)
			a.answer(q, wire.PeerList{}.Encode())
		}
	}
	if len(asked) != 3 || asked[0] == asked[1] || asked[0] != asked[2] {
		t.Errorf("asks %v in three periods", asked)
	}
	a = newAlone()
	many := []byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}
	a.connect(many...)
	if q := questions(t, a.wait(Time(3*int64(peers.PeerListPeriodMs)), many...), wire.GetPeerList); len(q) != 0 {
		t.Errorf("with %d sessions it asks %d times", len(many), len(q))
	}
}

func TestPeerListAgain(t *testing.T) {
	again := Time(peers.PeerListAgainMs)
	a := newAlone()
	a.connect(1)
	newer := func(b *wire.Heartbeat) { b.Capability = 9 }
	a.now = again - 1
	if q := questions(t, a.told(1, newer)); len(q) != 0 {
		t.Errorf("asks again after %d ms: %+v", a.now, q)
	}
	a.now = again
	if q := questions(t, a.told(1, newer)); len(q) != 1 {
		t.Errorf("asks %+v after %d ms", q, a.now)
	}
}

func TestPeerListNewer(t *testing.T) {
	a := newAlone()
	a.connect(1)
	a.core.env.Find(wire.PeerID{1}).Record().Seq = 5
	a.now = peers.PeerListAgainMs
	if q := questions(t, a.told(1, func(b *wire.Heartbeat) { b.Capability = 5 })); len(q) != 0 {
		t.Errorf("asks for the record that it has: %+v", q)
	}
	if q := questions(t, a.told(1, func(b *wire.Heartbeat) { b.Capability = 6 })); len(q) != 1 || q[0].Kind != wire.GetPeerList || q[0].to != 1 {
		t.Errorf("asks %+v", q)
	}
	if q := questions(t, a.told(2, func(b *wire.Heartbeat) { b.Capability = 6 })); len(q) != 0 {
		t.Errorf("asks one that is not connected: %+v", q)
	}
}

// peerListOf is what a node answers.
func (a *alone) peerListOf(t testing.TB) (seqs []uint64) {
	t.Helper()
	e := find[Reply](a.ask(1, 1, wire.Request{Kind: wire.GetPeerList}))
	list, err := wire.DecodePeerList(e[0].Response[1:])
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range list.Records {
		signed, err := hello.Parse(b)
		if err != nil {
			t.Fatal(err)
		}
		r, err := signed.Open()
		if err != nil {
			t.Fatal(err)
		}
		seqs = append(seqs, r.Seq)
	}
	return seqs
}

func specPeerListBody(t *testing.T, s *spectest.Spec) {
	a := newAlone()
	own, err := hello.Parse(recordOf(t, 0, a.run, func(r *hello.Record) { r.Seq = 1000 }))
	if err != nil {
		t.Fatal(err)
	}
	a.core.Step(a.now, OwnRecord{Signed: own})
	peer := func(key int, connected bool, heard Time) {
		signed, _ := hello.Parse(recordOf(t, key, a.run, func(r *hello.Record) { r.Seq = uint64(key) }))
		r, _ := signed.Open()
		a.core.Step(heard, PeerUp{Peer: r.Author, Signed: signed, Record: r})
		if !connected {
			a.core.Step(heard, PeerDown{Peer: r.Author})
		}
	}
	peer(1, false, 10)
	peer(2, true, 20)
	peer(3, false, 30)
	peer(4, true, 40)
	a.core.Effects()
	if got := a.peerListOf(t); !slices.Equal(got, []uint64{1000, 4, 2, 3, 1}) {
		t.Errorf("records of %v", got)
	}
	for key := 5; key < 400; key++ {
		peer(key, false, Time(key))
	}
	a.core.Effects()
	if got := a.peerListOf(t); len(got) != int(s.Number(t, "limits", "MaxPeerList")) {
		t.Errorf("%d records", len(got))
	}
}

// learns gives a core a peer list of records.
func (a *alone) learns(t testing.TB, records ...[]byte) []Effect {
	t.Helper()
	return a.learnsAll(t, wire.PeerList{Records: records})
}

// learnsAll gives a core a peer list.
func (a *alone) learnsAll(t testing.TB, list wire.PeerList) []Effect {
	t.Helper()
	a.now += peers.PeerListAgainMs
	a.core.Step(a.now, PeerDown{Peer: wire.PeerID{1}})
	q := questions(t, a.up(1), wire.GetPeerList)
	if len(q) != 1 {
		t.Fatalf("asked %+v", q)
	}
	return a.answer(q[0], list.Encode())
}

func TestPeerListSkips(t *testing.T) {
	a := newAlone()
	e := a.learns(t, recordOf(t, 7, wire.RunID{99}, nil), recordOf(t, 0, a.run, nil), recordOf(t, 8, a.run, nil))
	if a.core.Peers().Known() != 2 || a.core.env.Find(wire.PeerIDOf(testKey(8))) == nil {
		t.Errorf("knows %v", a.core.Peers().All())
	}
	sameIDs(t, "blamed", blamed(e))
}

func specPeerListNewest(t *testing.T, _ *spectest.Spec) {
	a := newAlone()
	for _, seq := range []uint64{4, 6, 5} {
		a.learns(t, recordOf(t, 8, a.run, func(r *hello.Record) { r.Seq = seq; r.StartedMs = int64(10 - seq) }))
	}
	if got := a.core.env.Find(wire.PeerIDOf(testKey(8))).Record().Seq; got != 6 {
		t.Errorf("keeps %d", got)
	}
}

// hasAddrs makes peers known, with addresses.
func (a *alone) hasAddrs(ids []byte, addrs ...string) {
	for _, id := range ids {
		p := a.core.env.Ensure(wire.PeerID{id}, false)
		named := make([]string, len(addrs))
		for i := range addrs {
			named[i] = fmt.Sprint(id, addrs[i])
		}
		p.Keep(hello.Signed{Bytes: []byte{1}}, &hello.Record{Seq: 1, Addrs: named})
	}
}

func dialled(effects []Effect) (addrs []string) {
	for _, d := range find[Dial](effects) {
		addrs = append(addrs, d.Addrs...)
	}
	return addrs
}

func TestPeerListDials(t *testing.T) {
	a := newAlone()
	self := a.core.env.cfg.Self[0]
	ids := []byte{self - 2, self - 1, self + 1, self + 2, self + 3}
	for _, id := range ids {
		a.hasAddrs([]byte{id}, "a")
	}
	want := []string{fmt.Sprint(self+1, "a"), fmt.Sprint(self+2, "a"), fmt.Sprint(self+3, "a"), fmt.Sprint(self-2, "a")}
	if int64(len(want)) != int64(peers.MaxDials) {
		t.Fatal("the example is of another number")
	}
	a.core.Tick(a.now)
	if got := dialled(a.core.Effects()); !slices.Equal(got, want) {
		t.Errorf("dials %v, want %v", got, want)
	}
	period := Time(peers.DialPeriodMs)
	if got := dialled(a.wait(period - 1)); len(got) != 0 {
		t.Errorf("dials %v before the time", got)
	}
	if got := dialled(a.wait(1)); len(got) == 0 {
		t.Error("dials nobody when it is time")
	}
	a = newAlone()
	for id := range byte(peers.DefaultTarget) {
		a.connect(id + 100)
	}
	a.hasAddrs([]byte{1}, "a")
	if got := dialled(a.wait(3 * period)); len(got) != 0 {
		t.Errorf("dials %v with enough sessions", got)
	}
}

// dialTimes are when a core that knows one peer dials each of its addresses.
func dialTimes(n int, addrs ...string) (times []Time, order []string) {
	a := newAlone()
	a.hasAddrs([]byte{5}, addrs...)
	for ; len(times) < n; a.now += 500 {
		a.core.Tick(a.now)
		for _, d := range dialled(a.core.Effects()) {
			times, order = append(times, a.now), append(order, d[1:])
		}
	}
	return times, order
}

func TestPeerListDialAll(t *testing.T) {
	times, order := dialTimes(6, "a", "b", "c")
	if !slices.Equal(order, []string{"a", "b", "c", "a", "b", "c"}) || times[2] != times[0] || times[3] != times[0]+peers.DialBackoffMinMs {
		t.Errorf("dials %v at %v", order, times)
	}
}

func TestPeerListDialPause(t *testing.T) {
	pause, longest := Time(peers.DialBackoffMinMs), Time(peers.DialBackoffMaxMs)
	times, _ := dialTimes(10, "a")
	for i, want := 1, pause; i < len(times); i, want = i+1, min(2*want, longest) {
		if times[i]-times[i-1] != want {
			t.Errorf("pause %d is %d, want %d", i, times[i]-times[i-1], want)
		}
	}
}

func TestPeerListKnown(t *testing.T) {
	a := newAlone()
	most := int(peers.MaxPeers)
	for i := range most {
		id := wire.PeerID{1, byte(i), byte(i >> 8)}
		a.core.env.Ensure(id, true)
		if i != 7 {
			a.core.heardOf(Time(most-i), id) // time is held: see below
			a.core.env.Find(id).Heard = Time(most - i)
		}
	}
	id := func(i int) wire.PeerID { return wire.PeerID{1, byte(i), byte(i >> 8)} }
	a.core.env.Find(id(most - 1)).Connected = true
	a.now = 1 << 40
	a.core.at(a.now)
	for i, gone := range []wire.PeerID{id(7), id(most - 2), id(most - 3)} {
		a.told(byte(i+2), nil)
		if a.core.Peers().Known() != most || a.core.env.Find(gone) != nil {
			t.Errorf("%d known, and the one to forget is not the one forgotten", a.core.Peers().Known())
		}
	}
	if a.core.env.Find(id(most-1)) == nil {
		t.Error("forgets one with a session")
	}
}

func TestPeerListKnownHeard(t *testing.T) {
	a := newAlone()
	for i := range int64(peers.MaxPeers) {
		p := a.core.env.Ensure(wire.PeerID{1, byte(i), byte(i >> 8)}, true)
		a.core.env.Hear(p)
	}
	a.told(2, nil)
	if a.core.env.Find(wire.PeerID{2}) != nil {
		t.Error("a peer that is only heard of displaces one that is heard")
	}
	a.up(3)
	if a.core.env.Find(wire.PeerID{3}) == nil {
		t.Error("a session finds no room")
	}
}

func TestPeerListFaults(t *testing.T) {
	a := newAlone()
	a.connect(1)
	drops := 0
	most := int64(peers.MaxFaults)
	for i := range 2 * most {
		a.core.Step(a.now, Requested{Handle: uint64(i), From: wire.PeerID{1}, Request: []byte{9, 9}})
		n := count[Drop](a.core.Effects())
		if drops += n; n > 0 != (i+1 == most || i+1 == 2*most) {
			t.Errorf("%d drops after %d faults", drops, i+1)
		}
	}
	a.core.Step(a.now, PeerDown{Peer: wire.PeerID{1}})
	for range most {
		if a.core.Step(a.now, Requested{Handle: 99, From: wire.PeerID{1}, Request: nil}); count[Drop](a.core.Effects()) != 0 {
			t.Error("drops one that is not connected")
		}
	}
}
