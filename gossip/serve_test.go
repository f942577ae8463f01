package gossip

import (
	"slices"
	"testing"

	"atoll/gossip/hello"
	"atoll/gossip/peers"
	"atoll/gossip/serve"
	"atoll/gossip/wire"
)

// ask gives a request to the core and returns what it causes.
func (a *alone) ask(handle uint64, from byte, r wire.Request) []Effect {
	a.core.Step(a.now, Requested{Handle: handle, From: wire.PeerID{from}, Request: r.Encode()})
	return a.core.Effects()
}

// status returns the status of the one Reply among effects, 0 if there is none.
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
	a.core.headers.Add(id, &h)
	return id
}

func payloadRequest(id wire.Digest, wait uint32) wire.Request {
	return wire.Request{Kind: wire.GetPayload, Digest: id, WaitMs: wait}
}

// Who has no use for a payload says so at once: those that wait lose the time in
// which others could give it.
func TestUnwantedPayloadIsNotWaitedFor(t *testing.T) {
	a := newAlone()
	h := a.header(9, 1, 0)
	id := h.Header.ID(a.run)
	a.core.headers.Add(id, &h)
	a.connect(3)
	a.core.fetch.Want(id, &h, wire.PeerID{3})
	a.ask(1, 2, payloadRequest(id, 5000))
	a.core.Complete(a.now, id, ErrUnwanted)
	if s := status(a.core.Effects()); s != wire.NotFound {
		t.Errorf("parked request got %v", s)
	}
	if s := status(a.ask(2, 2, payloadRequest(id, 5000))); s != wire.NotFound {
		t.Errorf("later request got %v", s)
	}
}

// Who hangs up while it waits gets nothing, and takes no slot.
func TestHungUpRequestIsForgotten(t *testing.T) {
	a := newAlone()
	h := a.header(9, 1, 0)
	a.ask(1, 2, payloadRequest(h.Header.ID(a.run), 5000))
	a.core.Step(a.now, Replied{Handle: 1})
	a.chain.store(h, []byte{1})
	a.core.Complete(a.now, h.Header.ID(a.run), nil)
	if e := a.core.Effects(); count[ReplyPayload](e) != 0 || a.core.size("parked requests of one peer") != 0 {
		t.Errorf("answers %v", e)
	}
}

// TestBytesUnderWayAreBounded: what has no slot waits for one.
func TestBytesUnderWayAreBounded(t *testing.T) {
	a := newAlone()
	big := a.hold(9, 1, serve.MaxServingPerPeer-1)
	a.ask(1, 2, payloadRequest(big, 0))
	if s := status(a.ask(2, 2, payloadRequest(big, 0))); s != wire.Busy {
		t.Errorf("status %v without a slot, want busy", s)
	}
	if e := a.ask(3, 2, wire.Request{Kind: wire.GetChunk}); len(e) != 0 {
		t.Errorf("a chunk without a slot does not wait: %v", e)
	}
	if e := a.ask(4, 2, payloadRequest(big, 5000)); len(e) != 0 {
		t.Fatalf("want it parked, got %v", e)
	}
	a.core.Step(a.now, Replied{Handle: 1})
	if e := a.core.Effects(); count[ReplyPayload](e) != 1 || count[ReplyChunk](e) != 0 {
		t.Errorf("a slot is free and the waiting request gets %v", e)
	}
	a.core.Step(a.now, Replied{Handle: 77}) // unknown handles are nobody's
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

func TestStateMismatchIsToldOnce(t *testing.T) {
	a := newAlone()
	a.connect(1)
	chain, state, _ := a.core.peers.Heartbeats.DigestsAt([]uint32{0, 0})
	state[0]++
	for seq := range uint64(3) {
		b := wire.Heartbeat{Author: wire.PeerID{1}, Seq: seq + 1, State: wire.Training, Closed: []uint32{0, 0},
			Unpublished: []uint64{0, 0}, Chain: chain, StateDigest: state}
		a.core.Step(a.now, Received{From: wire.PeerID{1}, Message: wire.Message{Heartbeat: &b}})
	}
	if n := count[StateDiffers](a.core.Effects()); n != 1 {
		t.Errorf("told %d times, want once", n)
	}
}

// TestAgreementAwaitsHeartbeats has a node come back when the run ends: a peer that is
// connected and has sent no heartbeat yet is waited for until it is silent.
func TestAgreementAwaitsHeartbeats(t *testing.T) {
	a := newAlone()
	a.core.SetSelf(a.now, peers.SelfState{State: wire.Stopped})
	a.connect(1)
	if ok, _ := a.core.Chains().Agreed(a.now); ok {
		t.Error("agrees with a peer that has said nothing")
	}
	for range 100 {
		a.now += 1000
		a.core.Tick(a.now)
	}
	if ok, _ := a.core.Chains().Agreed(a.now); !ok {
		t.Error("a silent peer keeps the run from ending")
	}
}

// TestAgreementOfStates has peers at rest show the chain of this node. The run
// may end, and a peer that shows another state is named.
func TestAgreementOfStates(t *testing.T) {
	a := newAlone()
	a.core.SetSelf(a.now, peers.SelfState{State: wire.Stopped})
	a.connect(1, 2, 3)
	chain, state, _ := a.core.peers.Heartbeats.DigestsAt([]uint32{0, 0})
	other := state
	other[0]++
	shows := func(id byte, seq uint64, state wire.Digest) {
		b := wire.Heartbeat{Author: wire.PeerID{id}, Seq: seq, State: wire.Stopped, Closed: []uint32{0, 0},
			Unpublished: []uint64{0, 0}, Chain: chain, StateDigest: state}
		a.core.Step(a.now, Received{From: wire.PeerID{id}, Message: wire.Message{Heartbeat: &b}})
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
		if got := a.core.Chains().OtherStates(a.now); !slices.Equal(got, c.want) {
			t.Errorf("case %d: other states at %v, want %v", i, got, c.want)
		}
		if agreed, _ := a.core.Chains().Agreed(a.now); !agreed {
			t.Errorf("case %d: equal chains do not agree", i)
		}
	}
}

func TestCompareAndCancel(t *testing.T) {
	a := newAlone()
	a.connect(1)
	a.core.Compare(a.now, wire.PeerID{1})
	if len(a.core.repair.sessions) != 1 || !a.core.Peers().All()[0].Repairing {
		t.Error("no repair was started")
	}
	a.core.FetchSnapshot(a.now)
	if text, _ := a.core.JoinPhase(); text == "" {
		t.Error("no fetch was started")
	}
	a.core.CancelFetch(a.now)
	if text, _ := a.core.JoinPhase(); text != "" {
		t.Errorf("cancelled, but %q", text)
	}
	if a.core.HeartbeatPeriodMs() != 1000 {
		t.Errorf("heartbeat period %d", a.core.HeartbeatPeriodMs())
	}
}

// One that sends no heartbeats, by its record, may ask for more than the genesis, and its connection is
// left as it is.
func TestStatelessMayAsk(t *testing.T) {
	for _, stateless := range []bool{true, false} {
		a := newAlone()
		a.step(PeerUp{Peer: wire.PeerID{1}, Signed: hello.Signed{Bytes: []byte{1}}, Record: hello.Record{Seq: 1, Role: hello.Observer, Stateless: stateless}})
		a.ask(1, 1, wire.Request{Kind: wire.GetPeerList})
		var anew int
		for range 100 {
			anew += len(find[Reconnect](a.wait(a.core.HeartbeatPeriodMs()/2, 1)))
		}
		if stateless == (anew > 0) {
			t.Errorf("stateless %v: connects anew %d times", stateless, anew)
		}
	}
}
