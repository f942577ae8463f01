package fetch

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"atoll/gossip/effect"
	"atoll/gossip/peers"
	"atoll/gossip/wire"
)

func TestFetchSourceOrder(t *testing.T) {
	a := newAlone(9, 3, 2, 4)
	h := header(9, 1, 0)
	e := a.brought(3, h)
	a.Forwarded(idOf(h), wire.PeerID{4})
	a.Forwarded(idOf(h), wire.PeerID{2})
	a.Forwarded(idOf(h), wire.PeerID{9})
	if got := a.inTurn(t, append(e, a.asks()...)); !bytes.Equal(got[:4], []byte{3, 4, 2, 9}) {
		t.Errorf("asks %v", got)
	}
}

func TestFetchOneSource(t *testing.T) {
	a := newAlone(1, 2, 9)
	h := header(9, 1, 0)
	e := a.brought(1, h)
	a.Forwarded(idOf(h), wire.PeerID{2})
	e = append(e, a.asks()...)
	if q := append(e, a.wait(1000, 1, 2, 9)...); len(q) != 1 {
		t.Errorf("asks %+v", q)
	}
}

func TestFetchTries(t *testing.T) {
	a := newAlone(1, 9)
	got := a.inTurn(t, a.brought(1, header(9, 1, 0)))
	if want := bytes.Repeat([]byte{1, 9}, int(MaxTries)); !bytes.Equal(got, want) {
		t.Errorf("asks %v, want %v", got, want)
	}
}

func TestFetchBusySource(t *testing.T) {
	pause := effect.Time(BusyRetryMs)
	for _, st := range []wire.Status{wire.Busy, wire.NotFound, wire.Refused} {
		a := newAlone(1)
		q := a.brought(1, header(9, 1, 0))
		if e := append(a.fails(q[0], st), a.wait(pause-1, 1)...); len(e) != 0 {
			t.Errorf("%v: asked at once: %+v", st, e)
		}
		if q = a.wait(1, 1); len(q) != 1 {
			t.Errorf("%v: not asked again: %+v", st, q)
		}
	}
	a := newAlone(1, 2)
	h := header(9, 1, 0)
	q := a.brought(1, h)
	a.fails(q[0], wire.NotFound)
	a.Forwarded(idOf(h), wire.PeerID{2})
	if q = a.asks(); len(q) != 1 || q[0].to != 2 {
		t.Errorf("meanwhile asks %+v", q)
	}
}

func TestFetchBusyTries(t *testing.T) {
	a := newAlone(1)
	q := a.brought(1, header(9, 1, 0))
	for range 5 {
		a.fails(q[0], wire.Busy)
		if q = a.wait(BusyRetryMs, 1); len(q) != 1 {
			t.Fatalf("not asked again: %+v", q)
		}
	}
	if got := a.inTurn(t, a.fails(q[0], wire.NotFound)); len(got) != int(MaxTries)-1 {
		t.Errorf("%d more requests", len(got))
	}
}

func TestFetchSources(t *testing.T) {
	most := byte(maxPayloadSources)
	a := newAlone()
	for id := range most + 5 {
		a.up(id + 20)
	}
	a.up(9)
	h := header(9, 1, 0)
	e := a.brought(20, h)
	a.Forwarded(idOf(h), wire.PeerID{99}) // no session
	for id := byte(1); id < most+5; id++ {
		a.Forwarded(idOf(h), wire.PeerID{id + 20})
	}
	got := a.inTurn(t, append(e, a.asks()...))
	if want := 2 * int(most); len(got) != want || bytes.Contains(got, []byte{99}) { // 99 has a place among them
		t.Errorf("asks %v, %d times, want %d", got, len(got), want)
	}
}

// asksFor is the request for a payload of so many bytes, of a peer with a rate.
func asksFor(t testing.TB, size int, sends peers.Rate) question {
	t.Helper()
	a := newAlone(1)
	if sends > 0 {
		a.peer(1).Rate = sends
	}
	h := header(9, 1, 0)
	h.Header.Size = uint32(size)
	return a.brought(1, h)[0]
}

// A server may park a request for as long as the wire allows.
func TestFetchWait(t *testing.T) {
	slack := int64(peers.RateSlack)
	least, longest := int64(peers.DeadlineMinMs), int64(wire.MaxWaitMs)
	for size, want := range map[int]int64{1: least, 1_000_000: 1_000_000 * slack / 1000, 50_000_000: longest} {
		if q := asksFor(t, size, 1000); int64(q.WaitMs) != want {
			t.Errorf("%d bytes at 1000: waits %d, want %d", size, q.WaitMs, want)
		}
	}
}

// A request lasts as long as its wait and, twice, as a transfer may take.
func TestFetchDeadline(t *testing.T) {
	slack := int64(peers.RateSlack)
	least, longest := int64(peers.DeadlineMinMs), int64(peers.DeadlineMaxMs)
	for _, c := range []struct {
		size int
		rate peers.Rate
		want int64
	}{{1, 1000, least}, {1_000_000, 1000, 1_000_000 * slack / 1000}, {60_000_000, 1000, 60_000_000 * slack / 1000}, {60_000_000, 100, longest}} {
		if q := asksFor(t, c.size, c.rate); q.call.TimeoutMs != int64(q.WaitMs)+2*c.want {
			t.Errorf("%d bytes at %g: %d after a wait of %d, want %d", c.size, c.rate, q.call.TimeoutMs-int64(q.WaitMs), q.WaitMs, 2*c.want)
		}
	}
}

// A peer that sends to several at once takes longer than it says. Each request that came to
// no end in its time gets the next one twice as much, until one is answered in usual time.
func TestFetchDeadlineDoubles(t *testing.T) {
	a := newAlone(1)
	asks := func(round uint32) (q question, travels int64) {
		t.Helper()
		q = a.brought(1, header(9, round, 0))[0]
		return q, q.call.TimeoutMs - int64(q.WaitMs)
	}
	forget := func() {
		clear(a.byID)
		a.Fetch.wants = nil
	}
	const usual = 2 * peers.DeadlineMinMs
	for i := range uint32(maxLate + 2) {
		q, travels := asks(1 + i)
		if want := int64(usual) << min(i, maxLate); travels != want {
			t.Errorf("after %d requests without end one may take %d ms, want %d", i, travels, want)
		}
		a.failsWith(q, wire.MaxWaitMs+travels, errors.New("no end"))
		forget()
	}
	q, _ := asks(maxLate + 3)
	a.gives(q, 10, []byte("short"), 0)
	forget()
	if q, travels := asks(maxLate + 4); travels != usual {
		t.Errorf("after an answer in time request %+v may take %d ms, want %d", q, travels, usual)
	}
}

// A payload that waited for its turn longer than it may be asked for still has it.
func TestFetchAfterALongWait(t *testing.T) {
	a := newAlone(1)
	var last *want
	for i := range uint32(2 * MaxPulls) {
		h := header(8, 1+i%2, i/2)
		a.Want(idOf(h), &h, wire.PeerID{1})
		last = a.Fetch.wants[len(a.Fetch.wants)-1]
	}
	if last.state != waiting {
		t.Fatal("all were asked at once")
	}
	last.until = a.Now - 1
	for _, w := range slices.Clone(a.Fetch.wants) {
		if w != last {
			a.end(w.id, Missing)
		}
	}
	if a.wait(1, 1); last.state != asked {
		t.Error("is never asked for")
	}
}

// What a peer was asked for before goes ahead of what it is asked for now.
func TestFetchDeadlineOfTheNext(t *testing.T) {
	a := newAlone(1)
	a.peer(1).Rate = 100
	for i, q := range a.floodsOf(1, 1, 3, 1_000_000) {
		if want := int64(i+1) * 1_000_000 * peers.RateSlack / 100; q.call.TimeoutMs-int64(q.WaitMs) != 2*want {
			t.Errorf("request %d: %d ms, want %d", i, q.call.TimeoutMs-int64(q.WaitMs), 2*want)
		}
	}
}

// Another source is asked when the first is overdue, and what the first brings then is
// still taken.
func TestFetchOverdue(t *testing.T) {
	payload := bytes.Repeat([]byte{7}, 3000)
	for _, late := range []int{0, 1} {
		a := newAlone(1, 2, 9)
		h := header(9, 1, 0)
		h.Header.Payload = wire.Sum(payload)
		q := a.brought(1, h)
		a.Forwarded(idOf(h), wire.PeerID{2})
		timeout := effect.Time(2 * peers.DeadlineMinMs)
		if more := a.wait(timeout-1, 1, 2, 9); len(more) != 0 {
			t.Fatalf("asks %+v before the first is overdue", more)
		}
		q = append(q, a.wait(100, 1, 2, 9)...)
		if len(q) != 2 || q[1].to != 2 {
			t.Fatalf("asks %+v", q)
		}
		if more := a.wait(peers.DeadlineMinMs, 1, 2, 9); len(more) != 0 {
			t.Errorf("asks a third: %+v", more)
		}
		e := a.answer(q[late], payload)
		if len(find[effect.Fetched](e)) != 1 {
			t.Errorf("answer %d is not taken", late)
		}
		if ends := find[effect.Hangup](e); len(ends) != 1 || ends[0].ID != q[1-late].call.ID {
			t.Errorf("answer %d is not wanted any more, and ended are %v", 1-late, ends)
		}
		if e := a.answer(q[1-late], payload); len(find[effect.Fetched](e)) != 0 || a.flying != 0 {
			t.Errorf("the other answer is taken too, or its slot stays taken")
		}
	}
}

// A rate is what came over the time in which it came, not since it was asked for.
func TestFetchRate(t *testing.T) {
	first, least := int64(peers.FirstRate), int(peers.RateMinBytes)
	rateOf := func(a *alone) int64 { return int64(a.peer(1).Rate) }
	for _, guess := range []int64{first, first * 4} {
		a := newAlone()
		a.up(1)
		if rateOf(a) != first {
			t.Errorf("a first guess of %d", rateOf(a))
		}
		a.peer(1).Rate = peers.Rate(guess)
		for round, c := range []struct {
			size     int
			tookMs   int64
			measured bool
		}{{least - 1, 10, false}, {least, 0, false}, {least, 10, true}} {
			h := header(9, uint32(round+1), 0)
			payload := bytes.Repeat([]byte{7}, c.size)
			h.Header.Size, h.Header.Payload = uint32(c.size), wire.Sum(payload)
			q := a.brought(1, h)
			a.gives(q[0], 2000, payload, c.tookMs)
			if measured := rateOf(a) != guess; measured != c.measured {
				t.Errorf("%d bytes in %d ms: %d", c.size, c.tookMs, rateOf(a))
			}
		}
		if got, want := rateOf(a), int64(least)/10; got < want-1 {
			t.Errorf("%d, measured %d", got, want)
		}
	}
}

// In a run that was made for links on which payloads take minutes, one of a peer of which nothing is known has as long, unless the
// peer says what its uplink carries. The first that comes says what it does carry, though that is less than the guess.
func TestFetchOfLongTransfers(t *testing.T) {
	const sweep, size = 300_000, 100_000
	for _, upload := range []float64{0, 1e6} {
		a := newAlone()
		a.cfg.SweepMs = sweep
		h := header(9, 1, 0)
		payload := bytes.Repeat([]byte{7}, size)
		h.Header.Size, h.Header.Payload = size, wire.Sum(payload)
		a.up(1)
		q := a.peer(1)
		q.Heartbeat = &wire.Heartbeat{Upload: upload}
		call := a.brought(1, h)[0]
		if long := call.call.TimeoutMs >= 2*sweep; long != (upload == 0) {
			t.Errorf("uplink of %g bytes/s: a timeout of %d ms", upload, call.call.TimeoutMs)
		}
		a.gives(call, 100_000, payload, 100_000)
		if got := float64(q.Rate); got < 1 || got > 1.01 || !peerOf(q).measured {
			t.Errorf("uplink of %g bytes/s: then %g bytes/ms", upload, got)
		}
	}
}

func TestFetchWrongBytes(t *testing.T) {
	for name, payload := range map[string][]byte{"another digest": make([]byte, 3000), "another size": make([]byte, 2999)} {
		a := newAlone(1, 9)
		q := a.brought(1, header(9, 1, 0))
		if got := a.inTurn(t, questions(a.answer(q[0], payload))); !bytes.Equal(got, []byte{9, 9}) {
			t.Errorf("%s: then asks %v", name, got)
		}
	}
}

func TestFetchPulls(t *testing.T) {
	a := newAlone()
	all := 0
	for id := byte(1); id < 20; id++ {
		a.up(id)
		n := len(a.floods(id, 1, 30))
		if all += n; n > int(MaxPullsPerPeer) || id == 1 && n < int(MaxPullsPerPeer) {
			t.Errorf("%d requests to one peer", n)
		}
	}
	if all != int(MaxPulls) {
		t.Errorf("%d requests at once", all)
	}
	few, many, small := int64(MaxPullsPerPeer), int64(maxSmallPulls), int64(smallPullBytes)
	for size, want := range map[int64]int64{1: many, small / many: many, small / 20: 20, small / few: few, small: few} {
		a := newAlone(1)
		if n := len(a.floodsOf(1, 1, 2*int(many), uint32(size))); n != int(want) {
			t.Errorf("%d requests to one peer for payloads of %d bytes, want %d", n, size, want)
		}
	}
}

func TestFetchStrangers(t *testing.T) {
	a := begunWith(8)
	all := 0
	for id := byte(1); id < 20; id++ {
		a.up(id)
		n := len(a.floods(id, 2, 30))
		if all += n; n > int(maxDoubtfulPerPeer) || id == 1 && n < int(maxDoubtfulPerPeer) {
			t.Errorf("%d requests to one peer", n)
		}
	}
	if all != int(maxDoubtful) {
		t.Errorf("%d requests at once", all)
	}
}

// Authors become contributors while their payloads are waited for.
func TestFetchAcquainted(t *testing.T) {
	a := begunWith(8)
	a.up(1)
	asked := a.floods(1, 2, 30)
	a.chain.contributed = map[wire.PeerID]bool{}
	for id := range a.counts {
		a.chain.contributed[id] = true
	}
	more := a.wait(100, 1)
	if n := len(asked) + len(more); n != int(MaxPullsPerPeer) {
		t.Errorf("%d requests, %d of them before", n, len(asked))
	}
	for _, q := range append(asked, more...) {
		a.fails(q, wire.NotFound)
	}
	if p := a.inDoubt; p != 0 {
		t.Errorf("%d requests for strangers are counted still", p)
	}
}

func TestFetchStrangersLast(t *testing.T) {
	a := begunWith(8)
	a.up(1)
	q := a.floods(1, 2, 10)
	var own []question
	for i := range int(MaxPullsPerPeer) {
		h := header(8, 2+uint32(i)%2, 0)
		h.Header.Fragment = uint16(i) % 2
		h.Header.Round += uint32(i) / 2
		own = append(own, a.brought(1, h)...)
	}
	if n := len(own); n != int(MaxPullsPerPeer)-len(q) {
		t.Errorf("%d requests beside %d for strangers", n, len(q))
	}
	next := a.fails(q[0], wire.NotFound)
	if len(next) != 1 || a.byID[next[0].Digest].header.Header.Author != (wire.PeerID{8}) {
		t.Errorf("then asks %+v", next)
	}
}

// A full disk lets one request go at a time: that for the contributor's delta, which
// came later, is the first.
func TestFetchContributorFirst(t *testing.T) {
	a := begunWith(8)
	a.up(1)
	a.disk.Failed(a.Now)
	a.brought(1, header(9, 2, 0))
	a.brought(1, header(8, 2, 0))
	q := a.wait(DiskRetryMs, 1)
	if len(q) != 1 || a.byID[q[0].Digest].header.Header.Author != (wire.PeerID{8}) {
		t.Errorf("asks %+v first", q)
	}
}

func TestFetchGivenUp(t *testing.T) {
	a := newAlone(1)
	h := header(9, 1, 0)
	id := idOf(h)
	if a.inTurn(t, a.brought(1, h)); a.byID[id] != nil {
		t.Error("wanted though nobody has it")
	}
	after := effect.Time(wantTtlMs)
	for wanted, ms := range map[bool]effect.Time{true: after, false: after + 100} {
		a = newAlone(1)
		q := a.brought(1, h)
		for a.Now < ms {
			q = append(q, a.wait(min(1000, ms-a.Now), 1)...)
			for _, q := range q {
				a.fails(q, wire.Busy)
			}
			q = nil
		}
		if (a.byID[id] != nil) != wanted {
			t.Errorf("wanted %v after %d", !wanted, a.Now)
		}
	}
}

// What takes minutes is asked for twice in any case.
func TestLargeFetchesHaveTimeForTwo(t *testing.T) {
	for size, more := range map[int]bool{1000: false, 60_000_000: true} {
		q := asksFor(t, size, 1000)
		until := effect.Time(wantTtlMs)
		if more {
			until = wantAsks * q.call.TimeoutMs
		}
		a := newAlone(1)
		a.peer(1).Rate = 1000
		h := header(9, 1, 0)
		h.Header.Size = uint32(size)
		a.brought(1, h)
		if w := a.byID[idOf(h)]; w == nil || w.until != a.Now+until {
			t.Errorf("%d bytes: asked for until %+v, want %d", size, w, until)
		}
	}
}

func TestFetchWanted(t *testing.T) {
	a := newAlone(1)
	most, one := int(maxWants), int(maxWantsPerAuthor)
	for i := range one + 10 {
		h := header(9, 1, uint32(i))
		a.Want(idOf(h), &h, wire.PeerID{1})
	}
	if n := len(a.Fetch.wants); n != one {
		t.Errorf("%d of one author", n)
	}
	a.floods(1, 1, 256)
	for i := range most {
		h := header(9, 1, 0)
		h.Header.Author = wire.PeerID{100, byte(i), byte(i >> 8)}
		a.Want(idOf(h), &h, wire.PeerID{1})
	}
	if n := len(a.Fetch.wants); n != most {
		t.Errorf("%d in all", n)
	}
}

// A node with a capped downlink asks for what that carries in DownAheadMs, and for two
// payloads if these are more; the rest follows as answers come.
func TestFetchWithinTheDownlink(t *testing.T) {
	for _, c := range []struct {
		size   uint32
		downMs float64
		want   int
	}{{10_000, 10, 5}, {10_000, 9.99, 4}, {100_000, 10, MinDownCalls}, {100, 1e6, MaxPulls}} {
		a := newAlone()
		a.SetDown(c.downMs)
		var asked []question
		for id := byte(1); id < 20; id++ {
			a.up(id)
			asked = append(asked, a.floodsOf(id, 1, 30, c.size)...)
		}
		if c.size < 1000 && len(asked) < c.want || c.size >= 1000 && len(asked) != c.want {
			t.Errorf("%d requests at once for %d bytes each at %v bytes/ms, want %d", len(asked), c.size, c.downMs, c.want)
		}
		if more := a.fails(asked[0], wire.NotFound); len(more) != 1 {
			t.Errorf("after an answer it asks for %d more, want 1", len(more))
		}
	}
}

// Requests that came to no end together double the time of the next one once, however many they were.
func TestFetchLateTogether(t *testing.T) {
	a := newAlone(1)
	together := a.floodsOf(1, 1, 4, 1)
	if len(together) != 4 {
		t.Fatalf("asks %+v", together)
	}
	a.At(a.Now + wire.MaxWaitMs + 2*peers.DeadlineMinMs)
	for _, q := range together {
		a.failsWith(q, 0, errors.New("no end"))
	}
	if late := peerOf(a.peer(1)).late; late != 1 {
		t.Errorf("after %d requests without end the time was doubled %d times", len(together), late)
	}
}
