package gossip

import (
	"slices"
	"testing"

	"atoll/gossip/hello"
	"atoll/gossip/wire"
)

// ask gives a request to the core and returns what it causes.
func (a *alone) ask(handle uint64, from byte, r wire.Request) []Effect {
	a.core.Serve(a.now, handle, wire.PeerID{from}, r.Encode())
	return a.core.Effects()
}

// status is that of the one Reply among effects, 0 if there is none.
func status(effects []Effect) wire.Status {
	for _, e := range effects {
		if r, ok := e.(Reply); ok {
			return wire.Status(r.Response[0])
		}
	}
	return 0
}

func (a *alone) hold(author byte, round uint32, size int) wire.Digest {
	h := a.header(author, round, 0)
	h.Header.Size = uint32(size)
	a.chain.store(h, []byte{1})
	id := h.Header.ID(a.run)
	a.core.headers.seen.add(id, &h)
	return id
}

func payloadRequest(id wire.Digest, wait uint32) wire.Request {
	return wire.Request{Kind: wire.GetPayload, Digest: id, WaitMs: wait}
}

func TestPayloadIsServedAtOnce(t *testing.T) {
	a := newAlone()
	id := a.hold(9, 1, 5000)
	e := a.ask(1, 2, payloadRequest(id, 0))
	if count[ReplyPayload](e) != 1 {
		t.Fatalf("effects %v", e)
	}
}

func TestPayloadRequestParksUntilStored(t *testing.T) {
	a := newAlone()
	h := a.header(9, 1, 0)
	id := h.Header.ID(a.run)
	if e := a.ask(1, 2, payloadRequest(id, 5000)); len(e) != 0 {
		t.Fatalf("a request for what is not held is answered with %v", e)
	}
	a.chain.store(h, []byte{1})
	a.core.Stored(a.now, id)
	if e := a.core.Effects(); count[ReplyPayload](e) != 1 {
		t.Errorf("stored, and the parked request gets %v", e)
	}
	if p := a.core.peers.find(wire.PeerID{2}); p.serve.parked != 0 {
		t.Errorf("%d requests still parked", p.serve.parked)
	}
}

func TestParkedRequestEnds(t *testing.T) {
	a := newAlone()
	id := wire.Digest{1}
	a.ask(1, 2, payloadRequest(id, 5000))
	a.ask(2, 2, payloadRequest(id, 0))
	a.core.Tick(5000)
	if s := status(a.core.Effects()); s != wire.NotFound {
		t.Errorf("status %v after the wait, want not found", s)
	}
}

// Who forwards a header is asked for its payload. A node that is too far behind to
// fetch it, like a joiner, says so at once, whichever of the two came first.
func TestNothingIsParkedForWhatDoesNotCome(t *testing.T) {
	a := newAlone()
	a.connect(3)
	h := a.header(9, a.core.cfg.WindowAccept, 0)
	id := h.Header.ID(a.run)
	if e := a.ask(1, 2, payloadRequest(id, 5000)); len(e) != 0 {
		t.Fatalf("a request ahead of its header is answered with %v", e)
	}
	a.core.Received(a.now, wire.PeerID{3}, wire.Message{Header: &h})
	a.core.Tick(a.now + 20)
	if s := status(a.core.Effects()); s != wire.Status(0) {
		t.Errorf("status %v for a payload that is fetched", s)
	}

	h = a.header(9, 1+a.core.cfg.WindowAccept, 0)
	id = h.Header.ID(a.run)
	a.ask(2, 2, payloadRequest(id, 5000))
	a.core.Received(a.now, wire.PeerID{3}, wire.Message{Header: &h})
	a.core.Tick(a.now + 20)
	if s := status(a.core.Effects()); s != wire.NotFound {
		t.Errorf("status %v of a request that waits for a payload which is not fetched, want not found", s)
	}
	if s := status(a.ask(3, 2, payloadRequest(id, 5000))); s != wire.NotFound {
		t.Errorf("status %v of a request for a payload which is not fetched, want not found", s)
	}
}

func TestInvalidPayloadIsNotServed(t *testing.T) {
	a := newAlone()
	h := a.header(9, 1, 0)
	id := h.Header.ID(a.run)
	a.core.headers.seen.add(id, &h)
	a.connect(3)
	a.core.pull.want(id, &h, wire.PeerID{3})
	a.ask(1, 2, payloadRequest(id, 5000))
	a.core.Invalid(a.now, id, "not finite")
	if s := status(a.core.Effects()); s != wire.NotFound {
		t.Errorf("parked request got %v", s)
	}
	if s := status(a.ask(2, 2, payloadRequest(id, 5000))); s != wire.NotFound {
		t.Errorf("later request got %v", s)
	}
}

// Who has no use for a payload says so at once: those that wait lose the time in
// which others could give it.
func TestUnwantedPayloadIsNotWaitedFor(t *testing.T) {
	a := newAlone()
	h := a.header(9, 1, 0)
	id := h.Header.ID(a.run)
	a.core.headers.seen.add(id, &h)
	a.connect(3)
	a.core.pull.want(id, &h, wire.PeerID{3})
	a.ask(1, 2, payloadRequest(id, 5000))
	a.core.Unwanted(a.now, id)
	if s := status(a.core.Effects()); s != wire.NotFound {
		t.Errorf("parked request got %v", s)
	}
	if s := status(a.ask(2, 2, payloadRequest(id, 5000))); s != wire.NotFound {
		t.Errorf("later request got %v", s)
	}
}

func TestParkingIsBounded(t *testing.T) {
	a := newAlone()
	for i := range uint64(maxParkedPerPeer) {
		a.ask(i, 2, payloadRequest(wire.Digest{byte(i)}, 5000))
	}
	if s := status(a.ask(99, 2, payloadRequest(wire.Digest{99}, 5000))); s != wire.Busy {
		t.Errorf("status %v for one too many, want busy", s)
	}
	if s := status(a.ask(100, 3, payloadRequest(wire.Digest{99}, 5000))); s != 0 {
		t.Errorf("another peer gets %v", s)
	}
}

// TestBytesUnderWayAreBounded: what has no place waits for one.
func TestBytesUnderWayAreBounded(t *testing.T) {
	a := newAlone()
	big := a.hold(9, 1, maxServingPerPeer-1)
	a.ask(1, 2, payloadRequest(big, 0))
	if s := status(a.ask(2, 2, payloadRequest(big, 0))); s != wire.Busy {
		t.Errorf("status %v without a place, want busy", s)
	}
	if e := a.ask(3, 2, wire.Request{Kind: wire.GetChunk}); len(e) != 0 {
		t.Errorf("a chunk without a place does not wait: %v", e)
	}
	if e := a.ask(4, 2, payloadRequest(big, 5000)); len(e) != 0 {
		t.Fatalf("want it parked, got %v", e)
	}
	a.core.Replied(a.now, 1)
	if e := a.core.Effects(); count[ReplyPayload](e) != 1 || count[ReplyChunk](e) != 0 {
		t.Errorf("a place is free and the waiting request gets %v", e)
	}
	a.core.Replied(a.now, 77) // unknown handles are nobody's
}

func TestPlaceComesBackWithoutReplied(t *testing.T) {
	a := newAlone()
	a.ask(1, 2, wire.Request{Kind: wire.GetChunk})
	if a.core.serve.bytesAway == 0 {
		t.Fatal("a chunk takes no place")
	}
	a.core.Tick(servingTtlMs + 1)
	if n := a.core.serve.bytesAway; n != 0 {
		t.Errorf("%d bytes under way for ever", n)
	}
}

func TestAnswerLargerThanTheLimitGoesAlone(t *testing.T) {
	a := newAlone()
	if e := a.ask(1, 2, payloadRequest(a.hold(9, 1, maxServingPerPeer+1), 0)); count[ReplyPayload](e) != 1 {
		t.Errorf("got %v", e)
	}
}

func TestCostlyRequestsAreLimited(t *testing.T) {
	a := newAlone()
	request := wire.Request{Kind: wire.GetRoster}
	for i := range uint64(maxAsksPerSecond) {
		if e := a.ask(i, 2, request); status(e) != wire.OK {
			t.Fatalf("request %d: %v", i, e)
		}
	}
	if s := status(a.ask(99, 2, request)); s != wire.Busy {
		t.Errorf("status %v for one too many in a second, want busy", s)
	}
	a.now += 1000
	if e := a.ask(100, 2, request); status(e) != wire.OK {
		t.Errorf("a second later: %v", e)
	}
}

func TestGenesisIsThatOfTheRun(t *testing.T) {
	a := newAlone()
	if e := a.ask(1, 2, wire.Request{Kind: wire.GetGenesis, Run: a.run}); count[ReplyGenesis](e) != 1 {
		t.Errorf("own run: %v", e)
	}
	if s := status(a.ask(2, 2, wire.Request{Kind: wire.GetGenesis, Run: wire.RunID{99}})); s != wire.NotFound {
		t.Errorf("another run: %v", s)
	}
}

func TestFragmentsOfAnotherRunAreRefused(t *testing.T) {
	a := newAlone()
	for _, r := range []wire.Request{
		{Kind: wire.GetRounds, Ranges: []wire.Range{{Fragment: 2, From: 1, To: 1}}},
		{Kind: wire.GetHeaders, Rounds: []wire.RoundKey{{Fragment: 2, Round: 1}}},
	} {
		if s := status(a.ask(1, 2, r)); s != wire.Refused {
			t.Errorf("%v: status %v, want refused", r.Kind, s)
		}
	}
}

// manyHeaders is a chain whose every round has n headers.
type manyHeaders struct {
	*fakeChain
	n int
}

func (m manyHeaders) Signed(f int, r uint32) []wire.SignedHeader {
	h := wire.SignedHeader{Header: wire.Header{Fragment: uint16(f), Round: r, Steps: 1, Size: 1}}
	return slices.Repeat([]wire.SignedHeader{h}, m.n)
}

// TestCutAnswersAreAskedForAgain: a server sends whole rounds up to what fits,
// and the asker finds out where it stopped.
func TestCutAnswersAreAskedForAgain(t *testing.T) {
	a := newAlone()
	a.core.serve.chain = manyHeaders{a.chain, 1500}
	a.core.env.chain = a.core.serve.chain
	keys := []wire.RoundKey{{Round: 1}, {Round: 2}, {Round: 3}, {Round: 4}}
	e := a.ask(1, 2, wire.Request{Kind: wire.GetHeaders, Rounds: keys})
	headers, err := wire.DecodeHeaders(e[0].(Reply).Response[1:])
	if err != nil || len(headers) != 3000 {
		t.Fatalf("%d headers, %v; want two whole rounds", len(headers), err)
	}
	s := &session{batch: keys}
	s.requeue(headers)
	if !slices.Equal(s.todo, keys[2:]) {
		t.Errorf("to be asked again: %v, want %v", s.todo, keys[2:])
	}
	s = &session{batch: keys}
	if s.requeue(headers[:1500]); len(s.todo) != 0 {
		t.Errorf("a short answer is whole, but %v is asked again", s.todo)
	}
}

func TestRoundsAnswerEndsAtLastDelta(t *testing.T) {
	a := newAlone()
	a.hold(9, 3, 10)
	a.chain.close(0, 6)
	got := a.core.serve.rangeAnswer(0, wire.Range{From: 1, To: 4000})
	if len(got.Sets) != 3 || got.Closed != 6 || got.Chain.IsZero() && got.Base != 0 {
		t.Errorf("answer %+v", got)
	}
	if !got.Sets[0].IsZero() || got.Sets[2].IsZero() {
		t.Error("sets are not those of rounds 1 to 3")
	}
}

func TestRosterTellsOwnRecordFirst(t *testing.T) {
	w := newWorld(t, 50, 3, options{})
	w.runUntil(1000)
	n := w.nodes[1]
	records, err := wire.DecodeRoster(n.core.roster.body())
	if err != nil || len(records) != 3 {
		t.Fatalf("%d records, %v", len(records), err)
	}
	own, _ := n.record()
	if !slices.Equal(records[0], own.Encode()) {
		t.Error("the first record is another's")
	}
}

func TestNewerRecordIsFetched(t *testing.T) {
	a := newAlone()
	a.connect(1)
	p := a.core.peers.find(wire.PeerID{1})
	a.now = rosterAgainMs
	b := wire.Beat{Author: p.id, Seq: 1, State: wire.Training, Closed: []uint32{0, 0}, Unpublished: []uint64{0, 0}, Capability: 5}
	a.core.Received(a.now, p.id, wire.Message{Beat: &b})
	if n := len(calls(a.core.Effects())); n != 1 {
		t.Errorf("%d calls after a beat that names a newer record, want the roster", n)
	}
	a.core.RecordChanged(a.now, p.id, hello.Signed{Bytes: []byte{1}}, hello.Record{Seq: 5})
	a.core.RecordChanged(a.now, p.id, hello.Signed{Bytes: []byte{1}}, hello.Record{Seq: 4})
	if got := a.core.Peers()[0].Record.Seq; got != 5 {
		t.Errorf("record %d kept, want 5", got)
	}
}

// TestDiallingBacksOff: each address in turn, then a pause that doubles.
func TestDiallingBacksOff(t *testing.T) {
	a := newAlone()
	p := a.core.ensure(wire.PeerID{5}, false)
	p.keep(hello.Signed{Bytes: []byte{1}}, &hello.Record{Seq: 1, Addrs: []string{"a", "b"}})
	var at []Time
	for a.now = 0; a.now < 200_000; a.now += 1000 {
		a.core.Tick(a.now)
		if count[Dial](a.core.Effects()) > 0 {
			at = append(at, a.now)
		}
	}
	want := []Time{0, 5000, 10_000, 15_000, 25_000, 30_000, 50_000, 55_000, 95_000, 100_000, 180_000, 185_000}
	if !slices.Equal(at, want) {
		t.Errorf("dialled at %v, want %v", at, want)
	}
}

// TestLostPeerIsDialledOn: whoever was heard within the hour is tried at short
// intervals however long it stays away, so that a partition heals soon.
func TestLostPeerIsDialledOn(t *testing.T) {
	a := newAlone()
	a.connect(1)
	p := a.core.peers.find(wire.PeerID{1})
	p.roster.record.Addrs = []string{"a"}
	a.core.PeerDown(a.now, p.id)
	lost, last, longest := a.now, a.now, Time(0)
	for ; a.now < lost+lostForMs; a.now += 1000 {
		a.core.Tick(a.now)
		if count[Dial](a.core.Effects()) > 0 {
			longest, last = max(longest, a.now-last), a.now
		}
	}
	if longest > 2*dialBackoffLostMs || last < lost+lostForMs-2*dialBackoffLostMs {
		t.Errorf("%d ms between two tries, the last after %d ms", longest, last-lost)
	}
}

func TestStateMismatchIsToldOnce(t *testing.T) {
	a := newAlone()
	a.connect(1)
	chain, state, _ := a.core.beats.digestsAt([]uint32{0, 0})
	state[0]++
	for seq := range uint64(3) {
		b := wire.Beat{Author: wire.PeerID{1}, Seq: seq + 1, State: wire.Training, Closed: []uint32{0, 0},
			Unpublished: []uint64{0, 0}, Chain: chain, StateDigest: state}
		a.core.Received(a.now, wire.PeerID{1}, wire.Message{Beat: &b})
	}
	if n := count[StateDiffers](a.core.Effects()); n != 1 {
		t.Errorf("told %d times, want once", n)
	}
}

// TestAgreementAwaitsBeats has a node come back when the run ends: a peer that is
// connected and has not beaten is waited for until it is silent.
func TestAgreementAwaitsBeats(t *testing.T) {
	a := newAlone()
	a.core.SetSelf(a.now, SelfState{State: wire.Stopped})
	a.connect(1)
	if ok, _ := a.core.Agreement(a.now); ok {
		t.Error("agrees with a peer that has said nothing")
	}
	for range 100 {
		a.now += 1000
		a.core.Tick(a.now)
	}
	if ok, _ := a.core.Agreement(a.now); !ok {
		t.Error("a silent peer keeps the run from ending")
	}
}

// TestAgreementOfStates has peers at rest show the chain of this node: the run
// may end, and whoever shows another state is named.
func TestAgreementOfStates(t *testing.T) {
	a := newAlone()
	a.core.SetSelf(a.now, SelfState{State: wire.Stopped})
	a.connect(1, 2, 3)
	chain, state, _ := a.core.beats.digestsAt([]uint32{0, 0})
	other := state
	other[0]++
	shows := func(id byte, seq uint64, state wire.Digest) {
		b := wire.Beat{Author: wire.PeerID{id}, Seq: seq, State: wire.Stopped, Closed: []uint32{0, 0},
			Unpublished: []uint64{0, 0}, Chain: chain, StateDigest: state}
		a.core.Received(a.now, wire.PeerID{id}, wire.Message{Beat: &b})
	}
	for i, c := range []struct {
		states [3]wire.Digest
		want   []wire.PeerID
	}{
		{[3]wire.Digest{state, state, state}, nil},
		{[3]wire.Digest{state, other, {}}, []wire.PeerID{{2}}}, // zero: not known there yet
		{[3]wire.Digest{other, other, state}, []wire.PeerID{{1}, {2}}},
		{[3]wire.Digest{state, state, state}, nil},
	} {
		for id, s := range c.states {
			shows(byte(id+1), uint64(i+1), s)
		}
		if got := a.core.OtherStates(a.now); !slices.Equal(got, c.want) {
			t.Errorf("case %d: other states at %v, want %v", i, got, c.want)
		}
		if agreed, _ := a.core.Agreement(a.now); !agreed {
			t.Errorf("case %d: equal chains do not agree", i)
		}
	}
}

func TestCompareAndCancel(t *testing.T) {
	a := newAlone()
	a.connect(1)
	a.core.Compare(a.now, wire.PeerID{1})
	if len(a.core.repair.sessions) != 1 || !a.core.Peers()[0].Repairing {
		t.Error("no repair was started")
	}
	a.core.FetchFrom(a.now, wire.PeerID{1})
	if text, _ := a.core.JoinPhase(); text == "" {
		t.Error("no fetch was started")
	}
	a.core.CancelFetch(a.now)
	if text, _ := a.core.JoinPhase(); text != "" {
		t.Errorf("cancelled, but %q", text)
	}
	if a.core.BeatPeriodMs() != 1000 {
		t.Errorf("beat period %d", a.core.BeatPeriodMs())
	}
}

func TestBeatPeriodGrowsWithTheRun(t *testing.T) {
	a := newAlone()
	for i := range 99 {
		a.connect(byte(i + 1))
	}
	a.core.Tick(0)
	if got := a.core.BeatPeriodMs(); got != 100*beatMsPerPeer {
		t.Errorf("period %d ms with 100 nodes, want %d", got, 100*beatMsPerPeer)
	}
}
