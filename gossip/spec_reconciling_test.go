package gossip

import (
	"errors"
	"slices"
	"testing"

	"atoll/gossip/effect"
	"atoll/gossip/wire"
	"atoll/gossip/wire/spectest"
)

func TestSpecReconciling(t *testing.T) {
	spectest.Run(t, "U", map[string]spectest.Clause{
		"U-1": spectest.All(specUnequal, specEqualEnds), "U-2": spectest.All(specHeadersAsked, specMissingFetched), "U-2.2": specGuestsBringNoGuests, "U-2.3": specGuestConforms, "U-3": specCloses, "U-3.2": specGuestCloses, "U-6.2": specGuestSnapshot,
		"U-4": specRelations, "U-5": specCourses, "U-6": spectest.All(specTrusted, specAttested, specContributed),
	})
}

func TestRepairBegins(t *testing.T) {
	s := spectest.Load(t)
	numbers(t, s, "repair", map[string]int64{"votes": minAttesters})
	for name, begin := range map[string]func(a *alone) []Effect{
		"unequal heartbeats": func(a *alone) []Effect { return append(a.told(1, apart), a.told(1, apart)...) },
		"a header":           func(a *alone) []Effect { return a.brought(1, a.header(9, 3, 0)) },
		"snapshot":           func(a *alone) []Effect { a.core.Compare(a.now, wire.PeerID{1}); return a.core.Effects() },
		"nothing":            func(a *alone) []Effect { return a.told(1, nil) },
	} {
		if q := questions(t, begin(specAlone(1)), wire.GetRounds); len(q) > 0 != (name != "nothing") {
			t.Errorf("%s: asks %+v", name, q)
		}
	}
}

// repairs reports whether unequal heartbeats of a peer begin a repair with it.
func (a *alone) repairs(t testing.TB, id byte) bool {
	t.Helper()
	e := append(a.told(id, apart), a.told(id, apart)...)
	return len(questions(t, e, wire.GetRounds)) > 0
}

func TestRepairWaits(t *testing.T) {
	if a := newAlone(); a.repairs(t, 1) {
		t.Error("begins with one without a session")
	}
	a := specAlone(1, 2, 3, 4)
	if !a.repairs(t, 1) || a.repairs(t, 1) {
		t.Error("begins twice with one, or never")
	}
	n := int64(1)
	for id := byte(2); id <= 4; id++ {
		if a.repairs(t, id) {
			n++
		}
	}
	if n != int64(maxRepairs) {
		t.Errorf("%d repairs at a time", n)
	}
	a = specAlone(1)
	a.core.FetchSnapshot(a.now)
	if a.core.Effects(); a.repairs(t, 1) {
		t.Error("begins while it fetches a snapshot")
	}
	a.core.snapshot.stage = installing
	if a.repairs(t, 1) {
		t.Error("begins while it puts a snapshot in place")
	}
	if a.core.Installed(a.now, []uint32{0, 0, 0, 0}, nil); !a.repairs(t, 1) {
		t.Error("does not begin afterwards")
	}
}

// pauseAfterVain is how long the core waits after a repair with peer 1 that ends now
// and brought nothing.
func (a *alone) pauseAfterVain(t testing.TB) Time {
	t.Helper()
	a.core.repair.end(a.core.repair.sessions[0], "ended")
	return a.pause(t)
}

// pause is how long the core waits from now until it begins a repair with peer 1.
func (a *alone) pause(t testing.TB) Time {
	t.Helper()
	if n := len(a.core.repair.sessions); n != 0 {
		t.Fatalf("%d repairs go on", n)
	}
	a.core.Effects()
	for from := a.now; ; a.wait(50, 1) {
		if a.repairs(t, 1) {
			return a.now - from
		}
		a.core.env.Find(wire.PeerID{1}).Recount()
	}
}

func TestRepairPause(t *testing.T) {
	a := specAlone(1)
	a.repairs(t, 1)
	period, longest := Time(a.core.HeartbeatPeriodMs()), Time(repairBackoffMaxMs)
	for i, want := 0, period; i < 9; i, want = i+1, min(2*want, longest) {
		if got := a.pauseAfterVain(t); got != want {
			t.Errorf("pause %d is %d, want %d", i, got, want)
		}
	}
	// What a peer says of its rounds costs it nothing: deltas do.
	parts := Time(fruitfulParts)
	for name, want := range map[string]Time{"a delta": (period/parts + 49) / 50 * 50, "a round without": period} {
		a := specAlone(1)
		a.repairs(t, 1)
		a.pauseAfterVain(t) // the next one would be longer
		a.core.repair.end(a.core.repair.sessions[0], "ended")
		a.chain.closed[0] = 0
		e := a.shown(a.compares(t, 1, 4, 0), 4, func(i int, r *wire.RangeAnswer) {
			if i == 0 && name == "a delta" {
				r.Sets = []wire.Digest{{5}}
			}
		})
		if name == "a delta" {
			h := a.signed(9, 1)
			a.answer(questions(t, e, wire.GetHeaders)[0], wire.EncodeHeaders([]wire.SignedHeader{h}))
			a.core.Complete(a.now, h.Header.ID(a.run), nil)
			e = a.core.Effects()
		}
		if len(find[CatchUp](e)) == 0 {
			t.Fatalf("%s: closes nothing", name)
		}
		if got := a.pause(t); got != want {
			t.Errorf("pause after one that brought %s is %d, want %d", name, got, want)
		}
		if got := a.pauseAfterVain(t); got != 2*period {
			t.Errorf("the next pause after %s is %d, want %d", name, got, 2*period)
		}
	}
	a.core.repair.end(a.core.repair.sessions[0], "ended")
	a.core.Compare(a.now, wire.PeerID{1})
	if len(a.core.repair.sessions) != 1 {
		t.Error("waits though a snapshot was taken")
	}
}

func TestRepairRangesAsked(t *testing.T) {
	a := newAlone()
	a.holds(9, 0, 300, 1)
	a.chain.base[0] = 20
	q := a.compares(t, 1, 310, 0)
	if want := []wire.Range{{From: 45, To: 310}, {Fragment: 1, From: 1, To: 1}}; !slices.Equal(q.Ranges, want) {
		t.Errorf("asks for %v, want %v", q.Ranges, want)
	}
	a = newAlone()
	a.holds(9, 0, 5, 1)
	a.chain.base[0] = 3
	if q := a.compares(t, 1, 1_000_000, 2); q.Ranges[0] != (wire.Range{From: 4, To: 5 + 256}) {
		t.Errorf("asks for %v", q.Ranges)
	}
	a = newAlone()
	a.up(1)
	q = questions(t, a.brought(1, a.header(9, 5, 0)), wire.GetRounds)[0] // it has sent no heartbeat yet
	if q.Ranges[0] != (wire.Range{From: 1, To: 16}) {
		t.Errorf("asks one without a heartbeat for %v", q.Ranges)
	}
}

func TestRepairRangesCut(t *testing.T) {
	s := spectest.Load(t)
	most, all := int(s.Number(t, "limits", "MaxRangeRounds")), int(s.Number(t, "limits", "MaxRangesRounds"))
	a := newAlone()
	a.core.env.cfg.WindowUnion = 20_000
	q := a.compares(t, 1, 10_000, 10_000)
	got, requests := []int{0, 0}, 0
	for {
		requests++
		rounds := 0
		for _, r := range q.Ranges {
			if r.From != uint32(got[r.Fragment])+1 || r.Rounds() > most {
				t.Errorf("asks for %v after %v", r, got)
			}
			got[r.Fragment] += r.Rounds()
			rounds += r.Rounds()
		}
		if rounds > all {
			t.Errorf("%d rounds in a request", rounds)
		}
		if len(a.core.env.Calls()) != 1+1 { // and the peer list's
			t.Errorf("%d requests at a time", len(a.core.env.Calls())-1)
		}
		next := questions(t, a.shown(q, 10_000, nil), wire.GetRounds)
		if len(next) == 0 {
			break
		}
		q = next[0]
	}
	if !slices.Equal(got, []int{10_000, 10_000}) || requests != 2 {
		t.Errorf("asks for %v in %d requests", got, requests)
	}
}

func TestRepairBaseAsked(t *testing.T) {
	a := newAlone()
	a.holds(9, 0, 6, 1)
	q := a.compares(t, 1, 6, 0)
	e := a.shown(q, 6, func(i int, r *wire.RangeAnswer) {
		if i == 0 {
			r.Base = 4
			r.Sets = make([]wire.Digest, 0)
		}
	})
	if q := questions(t, e, wire.GetRounds); len(q) != 1 || !slices.Equal(q[0].Ranges, []wire.Range{{From: 5, To: 5}}) {
		t.Errorf("asks %+v", q)
	}
	a = newAlone()
	if q := questions(t, a.shown(a.compares(t, 1, 0, 0), 0, nil), wire.GetRounds); len(q) != 0 {
		t.Errorf("the same base: asks %+v", q)
	}
}

func TestRepairThenDecides(t *testing.T) {
	a := newAlone()
	a.holds(9, 0, 6, 1)
	q := a.compares(t, 1, 6, 0)
	e := a.shown(q, 6, func(i int, r *wire.RangeAnswer) { r.Base = uint32(4 * (1 - i)); r.Sets = []wire.Digest{{7}} })
	probe := questions(t, e)
	if len(probe) != 1 || probe[0].Kind != wire.GetRounds {
		t.Fatalf("asks %+v before it knows all", probe)
	}
	if next := questions(t, a.shown(probe[0], 6, nil)); len(next) != 1 || next[0].Kind != wire.GetHeaders {
		t.Errorf("asks %+v", next)
	}
}

// shows answers a request for sets with a set of its own in each of some rounds.
func (a *alone) differs(t testing.TB, q question, closed uint32, keys ...wire.RoundKey) []Effect {
	t.Helper()
	return a.shown(q, closed, func(i int, r *wire.RangeAnswer) {
		f := q.Ranges[i].Fragment
		for round := q.Ranges[i].From; round <= q.Ranges[i].To; round++ {
			d, _ := a.chain.SetDigest(int(f), round)
			if slices.Contains(keys, wire.RoundKey{Fragment: f, Round: round}) {
				d = wire.Digest{byte(round), 1}
			}
			r.Sets = append(r.Sets, d)
		}
	})
}

func specHeadersAsked(t *testing.T, s *spectest.Spec) {
	a := newAlone()
	a.holds(9, 0, 3, 1)
	a.holds(9, 1, 3, 1)
	q := a.compares(t, 1, 200, 3)
	differ := []wire.RoundKey{{Fragment: 1, Round: 2}, {Round: 1}, {Round: 3}}
	for r := uint32(100); r < 200; r++ {
		differ = append(differ, wire.RoundKey{Round: r})
	}
	got := questions(t, a.differs(t, q, 200, differ...), wire.GetHeaders)
	if len(got) != 1 || len(got[0].Rounds) != int(repairBatch) {
		t.Fatalf("asks %+v", got)
	}
	if want := []wire.RoundKey{{Round: 1}, {Fragment: 1, Round: 2}, {Round: 3}, {Round: 100}}; !slices.Equal(got[0].Rounds[:4], want) {
		t.Errorf("asks for %v", got[0].Rounds[:4])
	}
}

func TestRepairHeadersUnfit(t *testing.T) {
	for name, change := range map[string]func(a *alone, h *wire.SignedHeader){
		"fits":              func(*alone, *wire.SignedHeader) {},
		"another round":     func(a *alone, h *wire.SignedHeader) { *h = a.signed(9, 2) },
		"another signature": func(_ *alone, h *wire.SignedHeader) { h.Sig[0] ^= 1 },
	} {
		a := newAlone()
		good, h := a.signed(8, 1), a.signed(9, 1)
		change(a, &h)
		e := a.answer(a.lists(t, 1), wire.EncodeHeaders([]wire.SignedHeader{good, h}))
		taken, ended := count[Offer](e), len(a.core.repair.sessions) == 0
		if name == "fits" && (taken != 2 || ended) || name != "fits" && (taken != 0 || !ended) {
			t.Errorf("%s: %d taken, ended %v", name, taken, ended)
		}
	}
}

func specMissingFetched(t *testing.T, _ *spectest.Spec) {
	a := newAlone()
	held, bad, missing := a.signed(7, 1), a.signed(8, 1), a.signed(9, 1)
	a.chain.store(held, []byte{1})
	a.brought(2, bad)
	a.core.Complete(a.now, bad.Header.ID(a.run), errors.New("refused"))
	a.core.Effects()
	e := a.answer(a.lists(t, 1), wire.EncodeHeaders([]wire.SignedHeader{held, bad, missing}))
	q := questions(t, e, wire.GetPayload)
	if len(q) != 1 || q[0].Digest != missing.Header.ID(a.run) || q[0].to != 1 {
		t.Errorf("asks %+v", q)
	}
	if o := find[Offer](e); len(o) != 1 || !o[0].Repair {
		t.Errorf("offers %+v", o)
	}
}

// batches begins a repair in which a peer shows a delta of a key in rounds that
// fill two batches. It answers the first, with two headers more than may be on their way,
// and returns them.
func (a *alone) batches(t testing.TB) (first []wire.SignedHeader) {
	t.Helper()
	a.holds(9, 0, 70, 1)
	q := a.compares(t, 1, 70, 0)
	var keys []wire.RoundKey
	for r := uint32(1); r <= 70; r++ {
		keys = append(keys, wire.RoundKey{Round: r})
	}
	asked := questions(t, a.differs(t, q, 70, keys...), wire.GetHeaders)
	for _, k := range asked[0].Rounds[:repairAhead+2] {
		first = append(first, a.signed(9, k.Round))
	}
	if e := a.answer(asked[0], wire.EncodeHeaders(first)); len(questions(t, e, wire.GetHeaders)) != 0 {
		t.Fatal("asks for the next batch before most payloads are here")
	}
	return first
}

func TestRepairNextBatch(t *testing.T) {
	a := newAlone()
	for i, h := range a.batches(t) {
		if i == 0 {
			a.chain.store(h, []byte{1})
			a.core.Complete(a.now, h.Header.ID(a.run), nil)
		} else {
			a.core.Complete(a.now, h.Header.ID(a.run), ErrUnwanted)
		}
		q := questions(t, a.core.Effects(), wire.GetHeaders)
		if i != 1 && len(q) != 0 || i == 1 && (len(q) != 1 || q[0].Rounds[0].Round != 65) {
			t.Errorf("after payload %d: asks %+v", i+1, q)
		}
	}
}

// The last payloads of a batch come after the headers of the last one: the repair ends with what is missing.
func TestRepairEndsWithThePayloads(t *testing.T) {
	a := newAlone()
	first := a.batches(t)
	for _, h := range first[:2] {
		a.core.Complete(a.now, h.Header.ID(a.run), ErrUnwanted)
	}
	a.answer(questions(t, a.core.Effects(), wire.GetHeaders)[0], wire.EncodeHeaders(nil))
	for i, h := range first[2:] {
		if len(a.core.repair.sessions) != 1 {
			t.Fatalf("ended before payload %d of %d", i+1, len(first)-2)
		}
		a.core.Complete(a.now, h.Header.ID(a.run), ErrUnwanted)
	}
	if len(a.core.repair.sessions) != 0 {
		t.Error("goes on with nothing left")
	}
}

func TestRepairCutHeaders(t *testing.T) {
	s := spectest.Load(t)
	whole := int(s.Number(t, "limits", "MaxHeaders") - s.Number(t, "answering", "round"))
	for n, want := range map[int]int{whole - 1: 0, whole: 2} {
		ses := &session{batch: []wire.RoundKey{{Round: 1}, {Round: 2}, {Round: 3}, {Round: 4}}}
		headers := slices.Repeat([]wire.SignedHeader{{Header: wire.Header{Round: 1}}}, n-1)
		ses.requeue(append(headers, wire.SignedHeader{Header: wire.Header{Round: 2}}))
		if len(ses.todo) != want || want > 0 && ses.todo[0].Round != 3 {
			t.Errorf("%d headers: asks again for %v", n, ses.todo)
		}
	}
}

func specCloses(t *testing.T, _ *spectest.Spec) {
	// The peer shows a delta in round 1 of fragment 0, and has closed 4 of it and 3
	// of the other.
	for name, c := range map[string]struct {
		end  func(a *alone, id wire.Digest)
		want []CatchUp
	}{
		"held": {func(a *alone, id wire.Digest) { a.core.Complete(a.now, id, nil) },
			[]CatchUp{{Peer: wire.PeerID{1}, Round: 4}, {Peer: wire.PeerID{1}, Fragment: 1, Round: 3}}},
		"not wanted by the run": {func(a *alone, id wire.Digest) { a.core.Complete(a.now, id, ErrUnwanted) },
			[]CatchUp{{Peer: wire.PeerID{1}, Round: 4}, {Peer: wire.PeerID{1}, Fragment: 1, Round: 3}}},
		"missing": {func(a *alone, id wire.Digest) { a.core.Complete(a.now, id, errors.New("refused")) }, []CatchUp{{Peer: wire.PeerID{1}, Fragment: 1, Round: 3}}},
	} {
		a := newAlone()
		q := a.compares(t, 1, 4, 3)
		e := a.shown(q, 9, func(i int, r *wire.RangeAnswer) {
			r.Closed = uint32(5 - 2*i) // of fragment 0 a round more than was compared
			if i == 0 {
				r.Sets = []wire.Digest{{5}}
			}
		})
		h := a.signed(9, 1)
		a.answer(questions(t, e, wire.GetHeaders)[0], wire.EncodeHeaders([]wire.SignedHeader{h}))
		c.end(a, h.Header.ID(a.run))
		if got := find[CatchUp](a.core.Effects()); !slices.Equal(got, c.want) {
			t.Errorf("%s: closes %v, want %v", name, got, c.want)
		}
	}
}

func TestRepairEnds(t *testing.T) {
	for name, end := range map[string]func(a *alone, q question){
		"goes on": func(a *alone, _ question) { a.wait(1000, 1) },
		"is gone": func(a *alone, _ question) { a.core.Step(a.now, PeerDown{Peer: wire.PeerID{1}}) },
		"outruns it": func(a *alone, _ question) {
			a.core.repair.sessions[0].reconciling = true
			a.core.env.Find(wire.PeerID{1}).Heartbeat = &wire.Heartbeat{Closed: []uint32{0, a.core.env.cfg.WindowUnion + 1}}
			a.wait(100, 1)
		},
		"is silent":   func(a *alone, _ question) { a.wait(11_000) },
		"refuses":     func(a *alone, q question) { a.fails(q, wire.Refused) },
		"is busy":     func(a *alone, q question) { a.fails(q, wire.Busy) },
		"is wrong":    func(a *alone, q question) { a.answer(q, nil) },
		"says naught": func(a *alone, _ question) { a.wait(Time(effect.CallMs)+effect.CallGraceMs+100, 1) },
		"dawdles": func(a *alone, _ question) {
			a.core.env.Queue = &effect.Queue{Now: a.core.env.Now}
			a.wait(Time(repairTtlMs)+100, 1)
		},
	} {
		a := newAlone()
		end(a, a.compares(t, 1, 0, 0))
		if ended := len(a.core.repair.sessions) == 0; ended != (name != "goes on") {
			t.Errorf("a peer that %s: ended %v", name, ended)
		}
	}
	if a := newAlone(); a.compares(t, 1, 0, 0).call.TimeoutMs != int64(effect.CallMs) {
		t.Error("another time for an answer")
	}
}
