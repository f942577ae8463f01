package gossip

import (
	"slices"
	"testing"

	"atoll/gossip/fetch"
	"atoll/gossip/peers"
	"atoll/gossip/serve"
	"atoll/gossip/wire"
)

// busyServer is a core with an uplink of 1000 bytes per ms, on which an answer of a
// second leaves to peer 9.
func busyServer(t *testing.T) *alone {
	t.Helper()
	a := newAlone()
	a.now = 1
	a.core.SetSelf(a.now, peers.SelfState{State: wire.Training, Upload: 1e6, Full: true})
	if got := a.given(a.ask(900, 9, payloadRequest(a.hold(99, 1, 1e6), 0))); !slices.Equal(got, []uint64{900}) {
		t.Fatalf("begins %v", got)
	}
	return a
}

// given are the handles of payloads that leave.
func (a *alone) given(e []Effect) (handles []uint64) {
	for _, r := range find[ReplyPayload](e) {
		handles = append(handles, r.Handle)
	}
	return handles
}

// gone says that an answer has left, and returns what leaves then.
func (a *alone) gone(handle uint64) []uint64 {
	a.core.Step(a.now, Left{Handle: handle})
	return a.given(a.core.Effects())
}

// A peer gets one payload after the other, and the next one as soon as the last byte of
// the one before is on its way.
func TestUplinkOneAfterTheOther(t *testing.T) {
	a := busyServer(t)
	first, second := a.hold(8, 1, 1e6), a.hold(7, 1, 1e6)
	if got := a.given(a.ask(1, 1, payloadRequest(first, 5000))); !slices.Equal(got, []uint64{1}) {
		t.Errorf("a peer that gets nothing is kept waiting: %v", got)
	}
	if e := a.ask(2, 1, payloadRequest(second, 5000)); len(e) != 0 {
		t.Errorf("its next does not wait: %v", e)
	}
	if st := status(a.ask(3, 1, payloadRequest(second, 0))); st != wire.Busy {
		t.Errorf("one that does not wait gets %v", st)
	}
	if got := a.gone(1); !slices.Equal(got, []uint64{2}) {
		t.Errorf("then %v", got)
	}
}

// As much leaves at once as covers a round trip.
func TestUplinkIsFull(t *testing.T) {
	a := newAlone()
	a.core.SetSelf(a.now, peers.SelfState{State: wire.Training, Upload: 1e6, Full: true})
	begun := 0
	for i := range uint64(20) {
		begun += len(a.given(a.ask(i, 1, payloadRequest(a.hold(byte(i+1), 1, 50_000), 5000))))
	}
	if want := serve.AheadMs * 1000 / 50_000; begun != want {
		t.Errorf("%d payloads of 50 ms leave at once, want %d", begun, want)
	}
}

// A peer that reads slowly takes no more of the uplink than its bytes do.
func TestUplinkOfASlowReader(t *testing.T) {
	a := busyServer(t)
	for i := range uint64(4) {
		a.ask(i, 1, payloadRequest(a.hold(byte(i+1), 1, 100_000), 60_000))
	}
	a.gone(0)
	a.now += 2000 // nothing has left to peer 9
	if got := a.given(a.wait(100)); len(got) == 0 {
		t.Error("nothing leaves to a peer because another one reads slowly")
	}
}

// The payload whose header came first goes first, those of old rounds after all others,
// and one that the asker got before at last.
func TestUplinkOrder(t *testing.T) {
	a := busyServer(t)
	a.chain.closed[0] = 10
	ids := map[string]wire.Digest{}
	for _, c := range []struct {
		name  string
		round uint32
	}{{"again", 11}, {"old", 10 - serve.OpenRounds}, {"first", 11}, {"second", 10}, {"third", 11}} {
		ids[c.name] = a.hold(byte(len(ids)+1), c.round, 1e6)
	}
	a.ask(1, 1, payloadRequest(ids["again"], 60_000))
	order := []string{"again", "old", "third", "second", "first"}
	for i, name := range order {
		if e := a.ask(uint64(10+i), 1, payloadRequest(ids[name], 60_000)); len(e) != 0 {
			t.Fatalf("%s does not wait: %v", name, e)
		}
	}
	a.gone(900)
	next := a.gone(1)
	for _, want := range []string{"first", "second", "third", "old", "again"} {
		if len(next) != 1 || order[next[0]-10] != want {
			t.Fatalf("gives %v, want %s", next, want)
		}
		next = a.gone(next[0])
	}
}

// A repair does not wait for ever for what is more urgent.
func TestUplinkRepairHasItsTurn(t *testing.T) {
	a := busyServer(t)
	a.chain.closed[0] = 10
	a.ask(1, 1, payloadRequest(a.hold(1, 10, 9e6), 60_000))
	a.ask(2, 1, payloadRequest(a.hold(2, 10-serve.OpenRounds, 1e6), 60_000))
	a.now += serve.RepairWaitMs
	a.ask(3, 1, payloadRequest(a.hold(3, 10, 1e6), 60_000))
	if got := a.gone(1); !slices.Equal(got, []uint64{2}) {
		t.Errorf("gives %v", got)
	}
}

// While payloads wait, chunks take an eighth of the uplink.
func TestUplinkChunksGiveWay(t *testing.T) {
	a := busyServer(t)
	a.now = 10_000
	if got := sent(a.chunk(5, 50)); len(got) != 1 {
		t.Fatalf("the first chunk waits: %v", got)
	}
	a.leaves(50)
	a.ask(1, 1, payloadRequest(a.hold(1, 1, 9e6), 60_000))
	a.ask(2, 1, payloadRequest(a.hold(2, 1, 9e6), 60_000))
	a.chunk(5, 51)
	span := Time(serve.ChunkParts * wire.ChunkSize / 1000)
	if got := sent(a.wait(span)); len(got) != 0 {
		t.Errorf("before its part is due: %v", got)
	}
	if got := sent(a.wait(100)); !slices.Equal(got, []uint64{51}) {
		t.Errorf("then %v", got)
	}
}

// What did not come whole was not given.
func TestUplinkGivenInVain(t *testing.T) {
	a := busyServer(t)
	first, second := a.hold(8, 1, 1e6), a.hold(7, 1, 1e6)
	a.ask(1, 1, payloadRequest(first, 60_000))
	a.ask(2, 1, payloadRequest(second, 60_000))
	a.ask(3, 1, payloadRequest(first, 60_000))
	a.core.Step(a.now, Replied{Handle: 1})
	if got := a.given(a.core.Effects()); !slices.Equal(got, []uint64{3}) {
		t.Errorf("gives %v", got)
	}
}

// A thin author gives an own delta to two as soon as it can, and to others when nothing
// else waits.
func TestUplinkOfAThinAuthor(t *testing.T) {
	a := specAlone(1, 2, 3)
	for id := byte(1); id <= 3; id++ {
		a.told(id, func(b *wire.Heartbeat) { b.Upload, b.Full = 12_500_000, true })
	}
	a.core.SetSelf(a.now, peers.SelfState{State: wire.Training, Upload: 625_000, Full: true})
	a.core.HeartbeatNow(a.now)
	a.wait(1)
	a.core.fetch.Published(1)
	a.wait(fetch.FlowMinMs, 1, 2, 3)
	a.core.fetch.Published(250 * fetch.FlowMinMs)
	own := func(salt uint32) (id wire.Digest) {
		h := a.header(0, 1+salt, salt)
		h.Header.Author, h.Header.Size = a.core.env.cfg.Self, 400_000
		id = h.Header.ID(a.run)
		a.chain.store(h, []byte{1})
		a.core.headers.Add(id, &h)
		return id
	}
	first, second := own(0), own(1)
	for peer := byte(1); peer <= serve.OwnCopies; peer++ {
		if got := a.given(a.ask(uint64(peer), peer, payloadRequest(first, 60_000))); len(got) != 1 {
			t.Fatalf("peer %d gets %v", peer, got)
		}
	}
	a.ask(10, 3, payloadRequest(first, 60_000))
	a.ask(11, 2, payloadRequest(second, 60_000))
	for i, want := range []uint64{11, 10} {
		if got := a.gone(uint64(2 + 9*i)); !slices.Equal(got, []uint64{want}) {
			t.Errorf("then gives %v, want %d", got, want)
		}
		a.gone(1)
	}
}

// Two that take each other for the relay do not wait for each other.
func TestRelayDoesNotWaitForItsChild(t *testing.T) {
	a := specAlone(1, 2, 3)
	for id, upload := range []float64{1: 625_000, 2: 12_500_000, 3: 12_500_000} {
		if id > 0 {
			a.told(byte(id), func(b *wire.Heartbeat) { b.Upload, b.Full = upload, true })
		}
	}
	a.core.SetSelf(a.now, peers.SelfState{State: wire.Training, Upload: 12_500_000, Full: true})
	a.core.HeartbeatNow(a.now)
	published := func(round, size uint32) (wire.Digest, []question) {
		h := a.header(1, round, round)
		h.Header.Size = size
		return h.Header.ID(a.run), questions(t, a.brought(1, h), wire.GetPayload)
	}
	a.wait(1, 1, 2, 3)
	published(1, 1)
	a.wait(fetch.FlowMinMs, 1, 2, 3)
	published(2, 250*fetch.FlowMinMs)
	for round := uint32(3); round < 100; round++ {
		a.chain.closed[0] = round - 1
		id, q := published(round, 3000)
		if len(q) != 1 || q[0].to != 2 {
			continue
		}
		if st := status(a.ask(1, 2, payloadRequest(id, 5000))); st != wire.NotFound {
			t.Errorf("the relay that asks back gets %v", st)
		}
		if st := status(a.ask(2, 3, payloadRequest(id, 5000))); st != 0 {
			t.Errorf("another one gets %v", st)
		}
		return
	}
	t.Fatal("nothing is asked of peer 2 first")
}
