package gossip

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"atoll/gossip/peers"
	"atoll/gossip/wire"
)

// sessions are the peers with a session.
func (a *alone) sessions() (ids []byte) {
	for _, p := range a.core.env.Linked {
		ids = append(ids, p.ID[0])
	}
	return ids
}

// inTurn fails each request for a payload and returns who was asked, in order, until
// nobody is asked any more.
func (a *alone) inTurn(t testing.TB, e []Effect) (asked []byte) {
	t.Helper()
	for {
		q := questions(t, e, wire.GetPayload)
		if len(q) == 0 {
			q = questions(t, a.wait(busyRetryMs, a.sessions()...), wire.GetPayload)
		}
		if len(q) == 0 {
			return asked
		}
		if len(q) > 1 {
			t.Fatalf("asks %d at a time", len(q))
		}
		asked = append(asked, q[0].to)
		e = a.fails(q[0], wire.NotFound)
	}
}

func TestFetchSourceOrder(t *testing.T) {
	a := specAlone(9, 3, 2, 4)
	h := a.header(9, 1, 0)
	e := a.brought(3, h)
	a.core.Step(a.now, Forwarded{From: wire.PeerID{4}, ID: h.Header.ID(a.run)})
	a.core.Step(a.now, Forwarded{From: wire.PeerID{2}, ID: h.Header.ID(a.run)})
	a.core.Step(a.now, Forwarded{From: wire.PeerID{9}, ID: h.Header.ID(a.run)})
	if got := a.inTurn(t, append(e, a.core.Effects()...)); !bytes.Equal(got[:4], []byte{3, 4, 2, 9}) {
		t.Errorf("asks %v", got)
	}
}

func TestFetchOneSource(t *testing.T) {
	a := specAlone(1, 2, 9)
	h := a.header(9, 1, 0)
	e := a.brought(1, h)
	a.core.Step(a.now, Forwarded{From: wire.PeerID{2}, ID: h.Header.ID(a.run)})
	e = append(e, a.core.Effects()...)
	if q := questions(t, append(e, a.wait(1000, 1, 2, 9)...), wire.GetPayload); len(q) != 1 {
		t.Errorf("asks %+v", q)
	}
}

func TestFetchTries(t *testing.T) {
	a := specAlone(1, 9)
	got := a.inTurn(t, a.brought(1, a.header(9, 1, 0)))
	if want := bytes.Repeat([]byte{1, 9}, int(maxTries)); !bytes.Equal(got, want) {
		t.Errorf("asks %v, want %v", got, want)
	}
}

func TestFetchBusySource(t *testing.T) {
	pause := Time(busyRetryMs)
	for _, st := range []wire.Status{wire.Busy, wire.NotFound, wire.Refused} {
		a := specAlone(1)
		q := questions(t, a.brought(1, a.header(9, 1, 0)), wire.GetPayload)
		if e := questions(t, append(a.fails(q[0], st), a.wait(pause-1, 1)...), wire.GetPayload); len(e) != 0 {
			t.Errorf("%v: asked at once: %+v", st, e)
		}
		if q = questions(t, a.wait(1, 1), wire.GetPayload); len(q) != 1 {
			t.Errorf("%v: not asked again: %+v", st, q)
		}
	}
	a := specAlone(1, 2)
	h := a.header(9, 1, 0)
	q := questions(t, a.brought(1, h), wire.GetPayload)
	a.fails(q[0], wire.NotFound)
	a.core.Step(a.now, Forwarded{From: wire.PeerID{2}, ID: h.Header.ID(a.run)})
	if q = questions(t, a.core.Effects(), wire.GetPayload); len(q) != 1 || q[0].to != 2 {
		t.Errorf("meanwhile asks %+v", q)
	}
}

func TestFetchBusyTries(t *testing.T) {
	a := specAlone(1)
	q := questions(t, a.brought(1, a.header(9, 1, 0)), wire.GetPayload)
	for range 5 {
		a.fails(q[0], wire.Busy)
		if q = questions(t, a.wait(busyRetryMs, 1), wire.GetPayload); len(q) != 1 {
			t.Fatalf("not asked again: %+v", q)
		}
	}
	if got := a.inTurn(t, a.fails(q[0], wire.NotFound)); len(got) != int(maxTries)-1 {
		t.Errorf("%d more requests", len(got))
	}
}

// offered has peer 2 bring a header that peer 1 lists in a repair.
func (a *alone) offered(t testing.TB, author int) (early []question, listing question, answer []byte) {
	t.Helper()
	h := a.signed(author, 1)
	early = questions(t, a.brought(2, h), wire.GetPayload)
	return early, a.lists(t, 1), wire.EncodeHeaders([]wire.SignedHeader{h})
}

func TestFetchHolderFirst(t *testing.T) {
	a := specAlone(2)
	early, listing, headers := a.offered(t, 9)
	if len(early) != 1 || early[0].to != 2 {
		t.Fatalf("asks %+v", early)
	}
	a.answer(listing, headers)
	if got := a.inTurn(t, a.fails(early[0], wire.NotFound)); len(got) < 2 || got[0] != 1 {
		t.Errorf("then asks %v", got)
	}
	// The author is the last source, and is that also when it lists the delta.
	a = specAlone(2)
	h := a.signed(9, 1)
	id, author := h.Header.ID(a.run), h.Header.Author
	a.brought(2, h)
	a.core.pull.holder(id, author)
	if w := a.core.pull.byID[id]; len(w.sources) != 1 || w.sources[0].id != (wire.PeerID{2}) {
		t.Errorf("sources %+v", w.sources)
	}
}

func TestFetchHolderTries(t *testing.T) {
	tries := int(maxTries)
	a := specAlone(1)
	h := a.signed(9, 1)
	q := questions(t, a.brought(1, h), wire.GetPayload)
	for range tries - 1 {
		a.fails(q[0], wire.NotFound)
		q = questions(t, a.wait(busyRetryMs, 1), wire.GetPayload)
	}
	a.answer(a.lists(t, 1), wire.EncodeHeaders([]wire.SignedHeader{h}))
	if got := a.inTurn(t, a.fails(q[0], wire.NotFound)); len(got) != tries {
		t.Errorf("asked %d times more", len(got))
	}
}

func TestFetchFinalPayload(t *testing.T) {
	for base, wanted := range map[uint32]bool{0: true, 1: false} {
		a := specAlone(2)
		_, listing, headers := a.offered(t, 9)
		a.answer(listing, headers)
		ses := a.core.repair.sessions[0]
		a.chain.closed[0], a.chain.base[0] = base, base
		a.wait(100, 1, 2)
		if got := len(a.core.pull.wants) == 1; got != wanted {
			t.Errorf("union base %d: wanted %v", base, got)
		}
		if ended := len(a.core.repair.sessions) == 0; ended == wanted || ses.fragments[0].partial {
			t.Errorf("union base %d: the repair ended %v, and misses something %v", base, ended, ses.fragments[0].partial)
		}
	}
}

func TestFetchSources(t *testing.T) {
	most := byte(maxPayloadSources)
	a := specAlone()
	for id := range most + 5 {
		a.up(id + 20)
	}
	a.up(9)
	h := a.header(9, 1, 0)
	e := a.brought(20, h)
	a.core.Step(a.now, Forwarded{From: wire.PeerID{99}, ID: h.Header.ID(a.run)}) // no session
	for id := byte(1); id < most+5; id++ {
		a.core.Step(a.now, Forwarded{From: wire.PeerID{id + 20}, ID: h.Header.ID(a.run)})
	}
	got := a.inTurn(t, append(e, a.core.Effects()...))
	if want := 2 * int(most); len(got) != want || bytes.Contains(got, []byte{99}) { // 99 has a place among them
		t.Errorf("asks %v, %d times, want %d", got, len(got), want)
	}
}

// asksFor is the request for a payload of so many bytes, of a peer with a rate.
func asksFor(t testing.TB, size int, sends peers.Rate) question {
	t.Helper()
	a := specAlone(1)
	if sends > 0 {
		a.core.env.Find(wire.PeerID{1}).Rate = sends
	}
	h := a.header(9, 1, 0)
	h.Header.Size = uint32(size)
	return questions(t, a.brought(1, h), wire.GetPayload)[0]
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
	a := specAlone(1)
	asks := func(round uint32) (call uint64, travels int64) {
		t.Helper()
		q := questions(t, a.brought(1, a.header(9, round, 0)), wire.GetPayload)[0]
		return q.call.ID, q.call.TimeoutMs - int64(q.WaitMs)
	}
	ends := func(call uint64, after Time, response []byte, err error) {
		a.now += after
		a.core.Step(a.now, Answered{Call: call, Response: response, Err: err})
		a.core.Effects()
		clear(a.core.pull.byID)
		a.core.pull.wants = nil
	}
	const usual = 2 * peers.DeadlineMinMs
	for i := range uint32(maxLate + 2) {
		call, travels := asks(1 + i)
		if want := int64(usual) << min(i, maxLate); travels != want {
			t.Errorf("after %d requests without end one may take %d ms, want %d", i, travels, want)
		}
		ends(call, wire.MaxWaitMs+travels, nil, errors.New("no end"))
	}
	call, _ := asks(maxLate + 3)
	ends(call, 10, wire.Response{Status: wire.OK, Body: []byte("short")}.Encode(), nil)
	if call, travels := asks(maxLate + 4); travels != usual {
		t.Errorf("after an answer in time request %d may take %d ms, want %d", call, travels, usual)
	}
}

// A payload that waited for its turn longer than it may be asked for still has it.
func TestFetchAfterALongWait(t *testing.T) {
	a := specAlone(1)
	var last *want
	for i := range uint32(2 * maxPulls) {
		h := a.header(8, 1+i%2, i/2)
		a.core.pull.want(h.Header.ID(a.run), &h, wire.PeerID{1})
		last = a.core.pull.wants[len(a.core.pull.wants)-1]
	}
	if last.asked {
		t.Fatal("all were asked at once")
	}
	last.until = a.now - 1
	for _, w := range slices.Clone(a.core.pull.wants) {
		if w != last {
			a.core.pull.end(w.id, missing)
		}
	}
	if a.wait(1, 1); !last.asked {
		t.Error("is never asked for")
	}
}

// What a peer was asked for before goes ahead of what it is asked for now.
func TestFetchDeadlineOfTheNext(t *testing.T) {
	a := specAlone(1)
	a.core.env.Find(wire.PeerID{1}).Rate = 100
	for i, q := range a.floodsOf(t, 1, 1, 3, 1_000_000) {
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
		a := specAlone(1, 2, 9)
		h := a.header(9, 1, 0)
		h.Header.Payload = wire.Sum(payload)
		q := questions(t, a.brought(1, h), wire.GetPayload)
		a.core.Step(a.now, Forwarded{From: wire.PeerID{2}, ID: h.Header.ID(a.run)})
		timeout := Time(2 * peers.DeadlineMinMs)
		if more := questions(t, a.wait(timeout-1, 1, 2, 9), wire.GetPayload); len(more) != 0 {
			t.Fatalf("asks %+v before the first is overdue", more)
		}
		q = append(q, questions(t, a.wait(100, 1, 2, 9), wire.GetPayload)...)
		if len(q) != 2 || q[1].to != 2 {
			t.Fatalf("asks %+v", q)
		}
		if more := questions(t, a.wait(peers.DeadlineMinMs, 1, 2, 9), wire.GetPayload); len(more) != 0 {
			t.Errorf("asks a third: %+v", more)
		}
		e := a.answer(q[late], payload)
		if count[Fetched](e) != 1 {
			t.Errorf("answer %d is not taken", late)
		}
		if ends := find[Hangup](e); len(ends) != 1 || ends[0].ID != q[1-late].call.ID {
			t.Errorf("answer %d is not wanted any more, and ended are %v", 1-late, ends)
		}
		if e := a.answer(q[1-late], payload); count[Fetched](e) != 0 || a.core.pull.flying != 0 {
			t.Errorf("the other answer is taken too, or its slot stays taken")
		}
	}
}

// A rate is what came over the time in which it came, not since it was asked for.
func TestFetchRate(t *testing.T) {
	first, least := int64(peers.FirstRate), int(peers.RateMinBytes)
	rateOf := func(a *alone) int64 { return int64(a.core.env.Find(wire.PeerID{1}).Rate) }
	for _, guess := range []int64{first, first * 4} {
		a := newAlone()
		a.connect(1)
		if rateOf(a) != first {
			t.Errorf("a first guess of %d", rateOf(a))
		}
		a.core.env.Find(wire.PeerID{1}).Rate = peers.Rate(guess)
		for round, c := range []struct {
			size     int
			tookMs   int64
			measured bool
		}{{least - 1, 10, false}, {least, 0, false}, {least, 10, true}} {
			h := a.header(9, uint32(round+1), 0)
			a.chain.closed[0] = uint32(round + 1)
			payload := bytes.Repeat([]byte{7}, c.size)
			h.Header.Size, h.Header.Payload = uint32(c.size), wire.Sum(payload)
			q := questions(t, a.brought(1, h), wire.GetPayload)
			a.now += 2000
			a.core.Step(a.now, Answered{Call: q[0].call.ID, Response: wire.Response{Status: wire.OK, Body: payload}.Encode(), TookMs: c.tookMs})
			a.core.Effects()
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
		a.core.env.cfg.SweepMs = sweep
		h := a.header(9, 1, 0)
		a.chain.closed[0] = 1
		payload := bytes.Repeat([]byte{7}, size)
		h.Header.Size, h.Header.Payload = size, wire.Sum(payload)
		a.connect(1)
		q := a.core.env.Find(wire.PeerID{1})
		q.Heartbeat = &wire.Heartbeat{Upload: upload}
		call := questions(t, a.brought(1, h), wire.GetPayload)[0]
		if long := call.call.TimeoutMs >= 2*sweep; long != (upload == 0) {
			t.Errorf("uplink of %g bytes/s: a timeout of %d ms", upload, call.call.TimeoutMs)
		}
		a.core.Step(a.now+100_000, Answered{Call: call.call.ID, Response: wire.Response{Status: wire.OK, Body: payload}.Encode(), TookMs: 100_000})
		if got := float64(q.Rate); got < 1 || got > 1.01 || !pullOf(q).measured {
			t.Errorf("uplink of %g bytes/s: then %g bytes/ms", upload, got)
		}
	}
}

func TestFetchWrongBytes(t *testing.T) {
	for name, payload := range map[string][]byte{"another digest": make([]byte, 3000), "another size": make([]byte, 2999)} {
		a := specAlone(1, 9)
		q := questions(t, a.brought(1, a.header(9, 1, 0)))
		if got := a.inTurn(t, a.answer(q[0], payload)); !bytes.Equal(got, []byte{9, 9}) {
			t.Errorf("%s: then asks %v", name, got)
		}
	}
}

func TestFetchInvalid(t *testing.T) {
	a := specAlone(1, 2)
	h := a.header(9, 1, 0)
	payload := bytes.Repeat([]byte{7}, 3000)
	h.Header.Payload = wire.Sum(payload)
	id := h.Header.ID(a.run)
	q := questions(t, a.brought(1, h))
	if e := a.answer(q[0], payload); count[Fetched](e) != 1 {
		t.Fatalf("%v", e)
	}
	a.core.Complete(a.now, id, errors.New("does not decode"))
	a.core.Step(a.now, Forwarded{From: wire.PeerID{2}, ID: id})
	if e := append(a.core.Effects(), a.brought(2, h)...); len(questions(t, e)) != 0 {
		t.Errorf("fetches it again: %v", e)
	}
	if st := status(a.ask(7, 2, payloadRequest(id, 5000))); st != wire.NotFound {
		t.Errorf("answers %v", st)
	}
}

// floods has a peer bring headers of as many authors, and returns the requests.
func (a *alone) floods(t testing.TB, from byte, round uint32, headers int) []question {
	t.Helper()
	return a.floodsOf(t, from, round, headers, largeBytes)
}

// largeBytes is the size of a payload so large that eight together are not small.
const largeBytes = 3000

// floodsOf has payloads of so many bytes.
func (a *alone) floodsOf(t testing.TB, from byte, round uint32, headers int, size uint32) []question {
	t.Helper()
	var e []Effect
	for i := range headers {
		h := a.header(200, round, 0)
		h.Header.Size = size
		h.Header.Author[1], h.Header.Author[2] = byte(i), from
		e = append(e, a.brought(from, h)...)
	}
	return questions(t, e, wire.GetPayload)
}

func TestFetchPulls(t *testing.T) {
	a := specAlone()
	all := 0
	for id := byte(1); id < 20; id++ {
		a.up(id)
		n := len(a.floods(t, id, 1, 30))
		if all += n; n > int(maxPullsPerPeer) || id == 1 && n < int(maxPullsPerPeer) {
			t.Errorf("%d requests to one peer", n)
		}
	}
	if all != int(maxPulls) {
		t.Errorf("%d requests at once", all)
	}
	few, many, small := int64(maxPullsPerPeer), int64(maxSmallPulls), int64(smallPullBytes)
	for size, want := range map[int64]int64{1: many, small / many: many, small / 20: 20, small / few: few, small: few} {
		a := specAlone(1)
		if n := len(a.floodsOf(t, 1, 1, 2*int(many), uint32(size))); n != int(want) {
			t.Errorf("%d requests to one peer for payloads of %d bytes, want %d", n, size, want)
		}
	}
}

func TestFetchStrangers(t *testing.T) {
	a := specAlone()
	a.holds(8, 0, 1, 100)
	all := 0
	for id := byte(1); id < 20; id++ {
		a.up(id)
		n := len(a.floods(t, id, 2, 30))
		if all += n; n > int(maxSpeculativePerPeer) || id == 1 && n < int(maxSpeculativePerPeer) {
			t.Errorf("%d requests to one peer", n)
		}
	}
	if all != int(maxSpeculative) {
		t.Errorf("%d requests at once", all)
	}
}

// Authors become contributors while their payloads are waited for.
func TestFetchAcquainted(t *testing.T) {
	a := specAlone()
	a.holds(8, 0, 1, 100)
	a.up(1)
	asked := a.floods(t, 1, 2, 30)
	a.chain.contributed = map[wire.PeerID]bool{}
	for id := range a.core.pull.counts {
		a.chain.contributed[id] = true
	}
	more := questions(t, a.wait(100, 1), wire.GetPayload)
	if n := len(asked) + len(more); n != int(maxPullsPerPeer) {
		t.Errorf("%d requests, %d of them before", n, len(asked))
	}
	for _, q := range append(asked, more...) {
		a.fails(q, wire.NotFound)
	}
	if p := a.core.pull.speculative; p != 0 {
		t.Errorf("%d requests for strangers are counted still", p)
	}
}

func TestFetchStrangersLast(t *testing.T) {
	a := specAlone()
	a.holds(8, 0, 1, 100)
	a.up(1)
	q := a.floods(t, 1, 2, 10)
	var own []Effect
	for i := range int(maxPullsPerPeer) {
		h := a.header(8, 2+uint32(i)%2, 0)
		h.Header.Fragment = uint16(i) % 2
		h.Header.Round += uint32(i) / 2
		own = append(own, a.brought(1, h)...)
	}
	if n := len(questions(t, own, wire.GetPayload)); n != int(maxPullsPerPeer)-len(q) {
		t.Errorf("%d requests beside %d for strangers", n, len(q))
	}
	next := questions(t, a.fails(q[0], wire.NotFound), wire.GetPayload)
	if len(next) != 1 || a.core.pull.byID[next[0].Digest].header.Header.Author != (wire.PeerID{8}) {
		t.Errorf("then asks %+v", next)
	}
}

// A full disk lets one request go at a time: that for the contributor's delta, which
// came later, is the first.
func TestFetchContributorFirst(t *testing.T) {
	a := specAlone(1)
	a.holds(8, 0, 1, 100)
	a.core.pull.disk.failed(a.now)
	a.brought(1, a.header(9, 2, 0))
	a.brought(1, a.header(8, 2, 0))
	q := questions(t, a.wait(diskRetryMs, 1), wire.GetPayload)
	if len(q) != 1 || a.core.pull.byID[q[0].Digest].header.Header.Author != (wire.PeerID{8}) {
		t.Errorf("asks %+v first", q)
	}
}

func TestFetchGivenUp(t *testing.T) {
	a := specAlone(1)
	h := a.header(9, 1, 0)
	id := h.Header.ID(a.run)
	if a.inTurn(t, a.brought(1, h)); a.core.pull.byID[id] != nil {
		t.Error("wanted though nobody has it")
	}
	after := Time(wantTtlMs)
	for wanted, ms := range map[bool]Time{true: after, false: after + 100} {
		a = specAlone(1)
		q := questions(t, a.brought(1, h))
		for a.now < ms {
			q = append(q, questions(t, a.wait(min(1000, ms-a.now), 1), wire.GetPayload)...)
			for _, q := range q {
				a.fails(q, wire.Busy)
			}
			q = nil
		}
		if (a.core.pull.byID[id] != nil) != wanted {
			t.Errorf("wanted %v after %d", !wanted, a.now)
		}
	}
}

// What takes minutes is asked for twice in any case.
func TestLargeFetchesHaveTimeForTwo(t *testing.T) {
	for size, more := range map[int]bool{1000: false, 60_000_000: true} {
		q := asksFor(t, size, 1000)
		until := Time(wantTtlMs)
		if more {
			until = wantAsks * q.call.TimeoutMs
		}
		a := specAlone(1)
		a.core.env.Find(wire.PeerID{1}).Rate = 1000
		h := a.header(9, 1, 0)
		h.Header.Size = uint32(size)
		a.brought(1, h)
		if w := a.core.pull.byID[h.Header.ID(a.run)]; w == nil || w.until != a.now+until {
			t.Errorf("%d bytes: asked for until %+v, want %d", size, w, until)
		}
	}
}

func TestFetchWantedAgain(t *testing.T) {
	a := newAlone()
	a.connect(1)
	h := a.signed(9, 1)
	a.inTurn(t, a.brought(1, h))
	e := a.answer(a.lists(t, 1), wire.EncodeHeaders([]wire.SignedHeader{h}))
	if q := questions(t, e, wire.GetPayload); len(q) != 1 || q[0].Digest != h.Header.ID(a.run) {
		t.Errorf("a repair that meets it asks %+v", q)
	}
}

func TestFetchWanted(t *testing.T) {
	a := specAlone(1)
	most, one := int(maxWants), int(maxWantsPerAuthor)
	for i := range one + 10 {
		h := a.header(9, 1, uint32(i))
		a.core.pull.want(h.Header.ID(a.run), &h, wire.PeerID{1})
	}
	if n := len(a.core.pull.wants); n != one {
		t.Errorf("%d of one author", n)
	}
	a.floods(t, 1, 1, 256)
	for i := range most {
		h := a.header(9, 1, 0)
		h.Header.Author = wire.PeerID{100, byte(i), byte(i >> 8)}
		a.core.pull.want(h.Header.ID(a.run), &h, wire.PeerID{1})
	}
	if n := len(a.core.pull.wants); n != most {
		t.Errorf("%d in all", n)
	}
}

// A node with a capped downlink asks for what that carries in downAheadMs, and for two
// payloads if these are more; the rest follows as answers come.
func TestFetchWithinTheDownlink(t *testing.T) {
	for _, c := range []struct {
		size   uint32
		downMs float64
		want   int
	}{{10_000, 10, 5}, {10_000, 9.99, 4}, {100_000, 10, minDownCalls}, {100, 1e6, maxPulls}} {
		a := specAlone()
		a.core.env.cfg.DownMs = c.downMs
		var asked []question
		for id := byte(1); id < 20; id++ {
			a.up(id)
			asked = append(asked, a.floodsOf(t, id, 1, 30, c.size)...)
		}
		if c.size < 1000 && len(asked) < c.want || c.size >= 1000 && len(asked) != c.want {
			t.Errorf("%d requests at once for %d bytes each at %v bytes/ms, want %d", len(asked), c.size, c.downMs, c.want)
		}
		if more := questions(t, a.fails(asked[0], wire.NotFound), wire.GetPayload); len(more) != 1 {
			t.Errorf("after an answer it asks for %d more, want 1", len(more))
		}
	}
}
