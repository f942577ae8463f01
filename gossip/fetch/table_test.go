package fetch

import (
	"bytes"
	"testing"

	"atoll/gossip/effect"
	"atoll/gossip/peers"
	"atoll/gossip/wire"

	"pgregory.net/rapid"
)

// Headers of strangers fill an eighth of the payloads wanted, the newest in place of the oldest,
// and leave room for those that are known.
func TestStrangersWantsGiveWay(t *testing.T) {
	a := begunWith(1, 2)
	a.up(1)
	first := a.announces(1, keyOf(0), 2)
	var last wire.Digest
	for i := range uint32(2 * maxStrangersWants) {
		last = a.announces(1, keyOf(i+1), 2)
	}
	if n := len(a.Fetch.wants); n != maxStrangersWants || a.strangers != n {
		t.Errorf("%d payloads wanted, %d of strangers", n, a.strangers)
	}
	if a.byID[last] == nil {
		t.Error("the newest is not wanted")
	}
	if w := a.byID[first]; w == nil || len(w.calls) == 0 {
		t.Error("the one that is asked for gave way")
	}
	if id := a.announces(1, wire.PeerID{2}, 3); a.byID[id] == nil {
		t.Error("one who is known has no room")
	}
	// Once an author is folded its wants do not give way any more.
	a.chain.contributed[a.byID[last].header.Header.Author] = true
	a.Tick()
	for i := range uint32(2 * maxStrangersWants) {
		a.announces(1, keyOf(i+1_000_000), 2)
	}
	if a.byID[last] == nil {
		t.Error("one who came to be known gave way to strangers")
	}
}

// What somebody who is known holds is wanted whoever signed it.
func TestVouchedWantsStay(t *testing.T) {
	a := begunWith(1)
	a.up(1)
	a.up(3)
	want := func(from byte, i uint32) wire.Digest {
		h := header(0, 2, 0)
		h.Header.Author = keyOf(i)
		id := idOf(h)
		a.Want(id, &h, wire.PeerID{from})
		return id
	}
	vouched := want(1, 1)
	for i := range uint32(2 * maxStrangersWants) {
		want(3, 10+i)
	}
	if a.byID[vouched] == nil || a.strangers > maxStrangersWants {
		t.Errorf("%d wants of strangers, and the other one is there: %v", a.strangers, a.byID[vouched] != nil)
	}
}

// An author that says that it has none of what it announced comes after all others until a payload
// of its comes.
func TestAuthorThatOwesComesLast(t *testing.T) {
	a := begunWith(1, 2)
	a.up(1)
	a.up(2)
	bare := header(1, 2, 0)
	q := a.brought(1, bare)
	if len(q) != 1 {
		t.Fatalf("asks %+v", q)
	}
	a.fails(q[0], wire.NotFound)
	next := header(1, 3, 1)
	a.brought(1, next)
	if w := a.byID[idOf(next)]; w.class != doubtful {
		t.Errorf("its next: %+v", w)
	}
	a.Stored(idOf(next))
	if a.Failing(wire.PeerID{1}) {
		t.Error("it owes something after a payload came")
	}
}

// Where several peers hold what is missing, they give it together.
func TestHoldersShareTheLoad(t *testing.T) {
	a := newAlone()
	for id := byte(1); id <= 3; id++ {
		a.up(id)
	}
	for salt := range uint32(3 * MaxPullsPerPeer) {
		s := header(byte(10+salt), 1, salt)
		id := idOf(s)
		a.add(id, &s, wantTtlMs, true)
		for peer := byte(1); peer <= 3; peer++ {
			a.Listed(id, wire.PeerID{peer})
		}
	}
	a.Tick()
	for peer := byte(1); peer <= 3; peer++ {
		if n := peerOf(a.Find(wire.PeerID{peer})).calls; n != MaxPullsPerPeer {
			t.Errorf("%d requests to peer %d, want %d", n, peer, MaxPullsPerPeer)
		}
	}
}

// A disk that failed is tried with one payload, and is soon trusted again once it
// takes some.
func TestDiskIsTrustedAgain(t *testing.T) {
	var d Disk
	for range 2 {
		d.Failed(1000)
		if n := d.Allows(1000+DiskRetryMs-1, MaxPulls); n != 0 {
			t.Errorf("%d requests in the pause", n)
		}
		for want := 1; want < MaxPulls; want *= 2 {
			if n := d.Allows(1000+DiskRetryMs, MaxPulls); n != want {
				t.Errorf("%d requests, want %d", n, want)
			}
			d.Worked()
		}
		for range 100 {
			d.Worked()
		}
		if n := d.Allows(1000+DiskRetryMs, MaxPulls); n != MaxPulls {
			t.Errorf("%d requests, want %d", n, MaxPulls)
		}
	}
	if n := d.Allows(1000+diskSlowMs, MaxPulls); n != MaxPulls {
		t.Errorf("%d requests after a while", n)
	}
}

// An author whose payload came owes nothing, however long this node's disk takes.
func TestSlowDiskIsNotTheAuthors(t *testing.T) {
	a := newAlone(1)
	for round := range uint32(2 * MostOwed) {
		h := header(1, 1+round, 0)
		payload := bytes.Repeat([]byte{byte(round)}, 3000)
		h.Header.Payload = wire.Sum(payload)
		q := a.brought(1, h)
		if len(q) != 1 {
			t.Fatalf("round %d: asks %+v", 1+round, q)
		}
		a.answer(q[0], payload)
	}
	if a.wait(storeTtlMs+100, 1); !a.Idle() || a.Failing(wire.PeerID{1}) {
		t.Errorf("waits on: %v, and takes the author for a failing source: %v", !a.Idle(), a.Failing(wire.PeerID{1}))
	}
}

// Whatever comes in whatever order: bounds hold, what is right is handed up once, each end is told, and nothing is left in the end.
func TestFetchAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := begunWith(1, 2)
		for id := byte(1); id <= 4; id++ {
			a.up(id)
			a.told(id, func(*wire.Heartbeat) {})
		}
		var open []question
		payloads := map[wire.Digest][]byte{}
		ask := func(q []question) { open = append(open, q...) }
		header := func(t *rapid.T) (wire.SignedHeader, []byte) {
			payload := bytes.Repeat([]byte{rapid.Byte().Draw(t, "payload")}, 1+rapid.IntRange(0, 2).Draw(t, "size")*2000)
			h := header(byte(rapid.IntRange(1, 6).Draw(t, "author")), uint32(rapid.IntRange(1, 5).Draw(t, "round")), 0)
			h.Header.Size, h.Header.Payload = uint32(len(payload)), wire.Sum(payload)
			payloads[idOf(h)] = payload
			return h, payload
		}
		peer := func(t *rapid.T) wire.PeerID { return wire.PeerID{byte(rapid.IntRange(1, 4).Draw(t, "peer"))} }
		take := func(t *rapid.T) (q question) {
			if len(open) == 0 {
				t.Skip("nobody is asked")
			}
			i := rapid.IntRange(0, len(open)-1).Draw(t, "question")
			q = open[i]
			open = append(open[:i], open[i+1:]...)
			return q
		}
		t.Repeat(map[string]func(*rapid.T){
			"announced": func(t *rapid.T) { h, _ := header(t); ask(a.brought(peer(t)[0], h)) },
			"listed": func(t *rapid.T) {
				h, _ := header(t)
				from := peer(t)
				if a.Want(idOf(h), &h, from) {
					a.Listed(idOf(h), from)
				}
				ask(a.asks())
			},
			"inline": func(t *rapid.T) { h, payload := header(t); a.Came(idOf(h), &h, payload); ask(a.asks()) },
			"answer": func(t *rapid.T) {
				q := take(t)
				payload, taken := payloads[q.Digest], 0
				if rapid.IntRange(0, 3).Draw(t, "wrong") == 0 {
					payload = append(bytes.Clone(payload), 1)
				}
				awaited := a.byID[q.Digest] != nil && a.byID[q.Digest].state == asked
				e := a.answer(q, payload)
				for _, f := range find[effect.Fetched](e) {
					taken++
					if f.ID != q.Digest || !bytes.Equal(f.Payload, payloads[f.ID]) {
						t.Fatalf("hands up %v with %x", f.ID, f.Payload)
					}
				}
				if right := len(payload) == len(payloads[q.Digest]); taken > 0 != (awaited && right) {
					t.Fatalf("an answer that is awaited %v and right %v is taken %d times", awaited, right, taken)
				}
				ask(questions(e))
			},
			"no": func(t *rapid.T) {
				ask(a.fails(take(t), rapid.SampledFrom([]wire.Status{wire.Busy, wire.NotFound, wire.Refused}).Draw(t, "status")))
			},
			"stored":     func(t *rapid.T) { h, _ := header(t); a.Stored(idOf(h)) },
			"not stored": func(t *rapid.T) { h, _ := header(t); a.NotStored(idOf(h)) },
			"useless":    func(t *rapid.T) { h, _ := header(t); a.Useless(idOf(h)) },
			"time":       func(t *rapid.T) { ask(a.wait(effect.Time(rapid.IntRange(1, 2_000).Draw(t, "ms")), 1, 2, 3)) },
			"folded":     func(t *rapid.T) { a.chain.contributed[peer(t)] = true },
			"final":      func(t *rapid.T) { a.final = max(a.final, uint32(rapid.IntRange(0, 4).Draw(t, "round"))) },
			"": func(t *rapid.T) {
				a.Sizes(func(what string, count, most int) {
					if count < 0 || count > most {
						t.Fatalf("%d %s, at most %d", count, what, most)
					}
				})
				calls := 0
				for _, w := range a.Fetch.wants {
					a.wanted[w.id] = true
					if calls += len(w.calls); w.state != asked && len(w.calls) > 0 || a.byID[w.id] != w {
						t.Fatalf("%+v", w)
					}
				}
				if calls > a.flying { // what ended is in flight until its call is over
					t.Fatalf("%d requests of wants, %d in flight", calls, a.flying)
				}
			},
		})
		a.Clear()
		for range (storeTtlMs+2*peers.DeadlineMaxMs+wire.MaxWaitMs)/10_000 + 1 {
			a.At(a.Now + 10_000)
			a.ExpireCalls()
			a.Tick()
		}
		for _, p := range a.List {
			if of := *peerOf(p); of.calls != 0 || of.relayed != 0 || of.bytes != 0 {
				t.Fatalf("peer %v: %+v is left", p.ID, of)
			}
		}
		for id := range payloads {
			if _, told := a.ended[id]; a.wanted[id] && !told {
				t.Fatalf("the end of %v is not told", id)
			}
		}
		if !a.Idle() || a.flying != 0 || a.bytes != 0 || a.inDoubt != 0 || a.strangers != 0 || len(a.counts) != 0 {
			t.Fatalf("%d wants, %d in flight with %d bytes, %d of them doubtful, %d strange, %d authors are left", len(a.Fetch.wants), a.flying, a.bytes, a.inDoubt, a.strangers, len(a.counts))
		}
	})
}
