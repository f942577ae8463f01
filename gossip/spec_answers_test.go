package gossip

import (
	"errors"
	"slices"
	"testing"

	"atoll/gossip/effect"
	"atoll/gossip/fetch"
	"atoll/gossip/peers"
	"atoll/gossip/serve"
	"atoll/gossip/wire"
	"atoll/gossip/wire/spectest"
)

func TestSpecAnswers(t *testing.T) {
	spectest.Run(t, "A", map[string]spectest.Clause{
		"A-1": spectest.All(specRefusedRequest, specOtherRun), "A-2": specOtherGenesis, "A-3": specPayloadHeld, "A-4": specPayloadLate,
		"A-5": specPayloadInvalid, "A-6": specJoiningAnswers, "A-6.2": specPausedAnswers, "A-6.3": specOwnUnmet, "A-7": specBaseAnswered,
		"A-8": spectest.All(specHeadersAnswered, specHeadersOfRound), "A-9": specOwnAnswered, "A-9.2": specCertificatesAnswered, "A-9.3": specCertificatesOfHeaders,
		"A-11": specPartsHeld, "A-11.2": specPartsNotHeld, "A-11.3": specLeastGiven, "A-11.4": specSpread,
		"A-10": spectest.All(specAsks, specParked, specOwnRarely, specManifestsOfOne),
	})
}

func specRefusedRequest(t *testing.T, s *spectest.Spec) {
	numbers(t, s, "answering", map[string]int64{"parked of one": fetch.MaxParkedPerPeer, "asks": serve.MaxAsksPerSecond, "round": serve.MaxRoundHeaders, "own": serve.OwnToldMs, "manifests": serve.MaxSnapshotAsks, "manifest period": serve.SnapshotAsksMs, "spread": spreadMs})
	for name, b := range map[string][]byte{"nothing": nil, "a kind": {wire.Version, 99}, "a version": {1, 2}, "too late": wire.Request{Kind: wire.GetPayload, WaitMs: 60_001}.Encode()} {
		a := newAlone()
		a.core.Step(a.now, Requested{Handle: 1, From: wire.PeerID{1}, Request: b})
		if st := status(a.core.Effects()); st != wire.Refused {
			t.Errorf("%s: %v", name, st)
		}
	}
}

func specOtherGenesis(t *testing.T, _ *spectest.Spec) {
	a := newAlone()
	if st := status(a.ask(1, 1, wire.Request{Kind: wire.GetGenesis, Run: wire.RunID{9}})); st != wire.NotFound {
		t.Errorf("another run: %v", st)
	}
	if e := a.ask(1, 1, wire.Request{Kind: wire.GetGenesis, Run: a.run}); count[ReplyGenesis](e) != 1 {
		t.Errorf("the run: %v", e)
	}
}

func specPayloadHeld(t *testing.T, _ *spectest.Spec) {
	a := newAlone()
	h := a.header(9, 1, 0)
	id := h.Header.ID(a.run)
	if e := a.ask(1, 1, payloadRequest(id, 5000)); len(e) != 0 {
		t.Fatalf("answers %v", e)
	}
	a.now = 4000
	a.chain.store(h, []byte{1})
	a.core.Complete(a.now, id, nil)
	for _, e := range [][]Effect{a.core.Effects(), a.ask(2, 2, payloadRequest(id, 0))} {
		if r := find[ReplyPayload](e); len(r) != 1 || r[0].ID != id {
			t.Errorf("held: %v", e)
		}
	}
}

func specPayloadLate(t *testing.T, _ *spectest.Spec) {
	a := newAlone()
	a.ask(1, 1, payloadRequest(wire.Digest{1}, 5000))
	if e := a.wait(4999); status(e) != 0 {
		t.Errorf("before: %v", status(e))
	}
	if st := status(a.wait(1)); st != wire.NotFound {
		t.Errorf("after the wait: %v", st)
	}
	if st := status(a.ask(2, 1, payloadRequest(wire.Digest{1}, 0))); st != wire.NotFound {
		t.Errorf("without a wait: %v", st)
	}
	big := a.hold(9, 1, serve.MaxServingPerPeer)
	a.ask(3, 1, payloadRequest(big, 0))
	a.ask(4, 1, payloadRequest(big, 1000))
	if st := status(a.wait(1000)); st != wire.Busy {
		t.Errorf("held and without a slot: %v", st)
	}
}

func specPayloadInvalid(t *testing.T, _ *spectest.Spec) {
	a := specAlone(1)
	h := a.header(9, 1, 0)
	a.brought(1, h)
	a.ask(1, 2, payloadRequest(h.Header.ID(a.run), 5000))
	a.core.Complete(a.now, h.Header.ID(a.run), errors.New("refused"))
	if st := status(a.core.Effects()); st != wire.NotFound {
		t.Errorf("one that waits gets %v", st)
	}
	if st := status(a.ask(2, 2, payloadRequest(h.Header.ID(a.run), 5000))); st != wire.NotFound {
		t.Errorf("one that comes later gets %v", st)
	}
}

func TestAnswerNotExpected(t *testing.T) {
	fetched, far := newAlone().header(9, 16, 0), newAlone().header(9, 17, 0)
	for name, c := range map[string]struct {
		h    wire.SignedHeader
		want wire.Status
	}{"fetched": {fetched, 0}, "too far ahead to be fetched": {far, wire.NotFound}} {
		id := c.h.Header.ID(newAlone().run)
		a := specAlone(1)
		a.brought(1, c.h)
		if st := status(a.ask(7, 2, payloadRequest(id, 5000))); st != c.want {
			t.Errorf("%s: answers %v", name, st)
		}
		a = specAlone(1)
		a.ask(7, 2, payloadRequest(id, 5000))
		a.brought(1, c.h)
		if st := status(a.wait(100, 1)); st != c.want {
			t.Errorf("%s, and asked for before its header came: answers %v", name, st)
		}
	}
	a := specAlone(1)
	q := questions(t, a.brought(1, fetched), wire.GetPayload)
	a.ask(7, 2, payloadRequest(fetched.Header.ID(a.run), 5000))
	for range fetch.MaxTries - 1 {
		if st := status(a.fails(q[0], wire.NotFound)); st != 0 {
			t.Errorf("still fetched: answers %v", st)
		}
		q = questions(t, a.wait(fetch.BusyRetryMs, 1), wire.GetPayload)
	}
	if st := status(a.fails(q[0], wire.NotFound)); st != wire.NotFound {
		t.Errorf("given up: answers %v", st)
	}
}

func specParked(t *testing.T, s *spectest.Spec) {
	a := newAlone()
	most, one := int64(serve.MaxParked), s.Number(t, "answering", "parked of one")
	waiting := int64(0)
	for peer := byte(1); peer < 100; peer++ {
		for i := range one + 1 {
			switch st := status(a.ask(1, peer, payloadRequest(wire.Digest{byte(i), 5}, 5000))); {
			case st == 0:
				waiting++
			case st != wire.Busy || i < one && waiting < most:
				t.Fatalf("%v for request %d of peer %d with %d waiting", st, i, peer, waiting)
			}
		}
	}
	if waiting != most {
		t.Errorf("%d wait", waiting)
	}
}

func TestAnswerBytesAway(t *testing.T) {
	one, all := int(serve.MaxServingPerPeer), int(serve.MaxServing)
	least := int(serve.ServingFloor)
	gives := func(a *alone, peer byte, size int) bool {
		return count[ReplyPayload](a.ask(1, peer, payloadRequest(a.hold(9, uint32(a.now)+1, size), 0))) == 1
	}
	a := newAlone()
	if !gives(a, 1, one-least) || !gives(a, 1, 1) || gives(a, 1, 1) {
		t.Error("another number of bytes to one peer")
	}
	if a = newAlone(); !gives(a, 1, 2*all) || gives(a, 1, 1) {
		t.Error("one that is alone may be larger, and nothing beside it")
	}
	a = newAlone()
	for peer := range byte(all / one) {
		if !gives(a, peer+1, one) {
			t.Errorf("nothing for peer %d", peer+1)
		}
	}
	if gives(a, 99, 1) {
		t.Error("more bytes over all peers")
	}
}

func TestAnswerGivenBack(t *testing.T) {
	after := peers.Rate(peers.FirstRate).TransferMs(serve.MaxServingPerPeer) // longer than serve.ServingTtlMs
	for name, end := range map[string]func(a *alone) Time{
		"goes on":    func(*alone) Time { return after },
		"has left":   func(a *alone) Time { a.core.Step(a.now, Left{Handle: 7}); return 0 },
		"is there":   func(a *alone) Time { a.core.Step(a.now, Replied{Handle: 7}); return 0 },
		"is unknown": func(*alone) Time { return after + 100 },
	} {
		a := newAlone()
		a.ask(7, 1, payloadRequest(a.hold(9, 1, serve.MaxServingPerPeer), 0))
		a.wait(end(a))
		free := count[ReplyPayload](a.ask(8, 1, payloadRequest(a.hold(9, 2, 1), 0))) == 1
		if want := name == "is there" || name == "is unknown"; free != want {
			t.Errorf("an answer that %s: its slot is free %v", name, free)
		}
	}
}

// costly are requests that take hashing, which a node of two fragments answers.
func (a *alone) costly() []wire.Request {
	return []wire.Request{
		{Kind: wire.GetPeerList}, {Kind: wire.GetRounds, Ranges: []wire.Range{{From: 1, To: 1}}}, {Kind: wire.GetHeaders, Rounds: []wire.RoundKey{{Round: 1}}},
		{Kind: wire.GetManifest}, {Kind: wire.GetSnapshot, At: []uint32{0, 0}}, {Kind: wire.GetOwn},
	}
}

func specAsks(t *testing.T, s *spectest.Spec) {
	for _, r := range newAlone().costly() {
		a := newAlone()
		for range s.Number(t, "answering", "asks") {
			if st := status(a.ask(1, 1, wire.Request{Kind: wire.GetPeerList})); st != wire.OK {
				t.Fatalf("%v", st)
			}
		}
		if st := status(a.ask(1, 1, r)); st != wire.Busy {
			t.Errorf("one more, %v: %v", r.Kind, st)
		}
		if e := a.ask(1, 2, r); status(e) == wire.Busy {
			t.Errorf("of another peer, %v: busy", r.Kind)
		}
		a.now += 1000
		if e := a.ask(1, 1, r); status(e) == wire.Busy {
			t.Errorf("a second later, %v: busy", r.Kind)
		}
	}
}

func specJoiningAnswers(t *testing.T, _ *spectest.Spec) {
	for _, r := range newAlone().costly() {
		a := newAlone()
		a.core.SetSelf(0, peers.SelfState{State: wire.Joining})
		if busy := status(a.ask(1, 1, r)) == wire.Busy; busy == (r.Kind == wire.GetPeerList) {
			t.Errorf("%v: busy %v", r.Kind, busy)
		}
	}
}

func specOtherRun(t *testing.T, _ *spectest.Spec) {
	for _, c := range []struct {
		r    wire.Request
		want wire.Status
	}{
		{wire.Request{Kind: wire.GetRounds, Ranges: []wire.Range{{From: 1, To: 1}, {Fragment: 1, From: 1, To: 1}}}, wire.OK},
		{wire.Request{Kind: wire.GetRounds, Ranges: []wire.Range{{From: 1, To: 1}, {Fragment: 2, From: 1, To: 1}}}, wire.Refused},
		{wire.Request{Kind: wire.GetHeaders, Rounds: []wire.RoundKey{{Fragment: 1, Round: 1}}}, wire.OK},
		{wire.Request{Kind: wire.GetHeaders, Rounds: []wire.RoundKey{{Fragment: 2, Round: 1}}}, wire.Refused},
		{wire.Request{Kind: wire.GetSnapshot, At: []uint32{1}}, wire.Refused},
		{wire.Request{Kind: wire.GetSnapshot, At: []uint32{1, 1, 1}}, wire.Refused},
		{wire.Request{Kind: wire.GetSnapshot, At: []uint32{1, 1}}, 0},
	} {
		if st := status(newAlone().ask(1, 1, c.r)); st != c.want {
			t.Errorf("%+v: %v, want %v", c.r, st, c.want)
		}
	}
}

// setsOf asks a core for the rounds of fragment 0.
func (a *alone) setsOf(t testing.TB, from, to uint32) wire.RangeAnswer {
	t.Helper()
	ask := []wire.Range{{From: from, To: to}}
	e := find[Reply](a.ask(1, 1, wire.Request{Kind: wire.GetRounds, Ranges: ask}))
	answers, err := wire.DecodeRounds(e[0].Response[1:], ask)
	if err != nil {
		t.Fatal(err)
	}
	return answers[0]
}

func specBaseAnswered(t *testing.T, _ *spectest.Spec) {
	a := newAlone()
	a.holds(9, 0, 300, 1)
	if got := a.setsOf(t, 1, 1); got.Base != 300-256 || got.Closed != 300 {
		t.Errorf("base %d, closed %d", got.Base, got.Closed)
	}
	a.chain.base[0] = 100
	if got := a.setsOf(t, 1, 1); got.Base != 100 {
		t.Errorf("base %d", got.Base)
	}
}

func TestAnswerSetsAnswered(t *testing.T) {
	a := newAlone()
	a.holds(9, 0, 4, 1)
	for _, round := range []uint32{7, 4 + 16, 4 + 17} {
		a.chain.store(a.header(8, round, 0), []byte{1})
	}
	got := a.setsOf(t, 2, 100)
	if len(got.Sets) != 20-2+1 || got.Sets[0].IsZero() || got.Sets[5].IsZero() || !got.Sets[4].IsZero() || got.Sets[18].IsZero() {
		t.Errorf("%d sets %v", len(got.Sets), got.Sets)
	}
	if got := a.setsOf(t, 2, 19); len(got.Sets) != 6 {
		t.Errorf("%d sets up to round 19", len(got.Sets))
	}
}

// headersFor asks for the headers of rounds 1 to n of a chain with so many each.
func headersFor(t testing.TB, each func(round uint32) int, n uint32) (got map[uint32]int, order []uint32) {
	t.Helper()
	a := newAloneOn(func(c *fakeChain) Chain { return sized{c, each} })
	var keys []wire.RoundKey
	for r := n; r > 0; r-- {
		keys = append(keys, wire.RoundKey{Round: r})
	}
	e := find[Reply](a.ask(1, 1, wire.Request{Kind: wire.GetHeaders, Rounds: keys}))
	headers, err := wire.DecodeHeaders(e[0].Response[1:])
	if err != nil {
		t.Fatal(err)
	}
	got = map[uint32]int{}
	for _, h := range headers {
		if got[h.Header.Round]++; got[h.Header.Round] == 1 {
			order = append(order, h.Header.Round)
		}
	}
	return got, order
}

func specHeadersAnswered(t *testing.T, _ *spectest.Spec) {
	got, order := headersFor(t, func(uint32) int { return 1000 }, 6)
	if !slices.Equal(order, []uint32{6, 5, 4, 3}) || got[3] != 1000 {
		t.Errorf("rounds %v, %v", order, got)
	}
	got, order = headersFor(t, func(round uint32) int { return map[uint32]int{4: 2000, 3: 2000, 2: 1000, 1: 5}[round] }, 4)
	if !slices.Equal(order, []uint32{4, 3}) {
		t.Errorf("rounds %v, %v, though round 2 does not fit", order, got)
	}
}

// sized is a chain whose rounds have as many headers as each says.
type sized struct {
	*fakeChain
	each func(round uint32) int
}

func (c sized) Signed(f int, r uint32) []wire.SignedHeader {
	return manyHeaders{c.fakeChain, c.each(r)}.Signed(f, r)
}

func specHeadersOfRound(t *testing.T, s *spectest.Spec) {
	most := int(s.Number(t, "answering", "round"))
	got, order := headersFor(t, func(uint32) int { return most + 5 }, 3)
	if !slices.Equal(order, []uint32{3, 2}) || got[3] != most {
		t.Errorf("rounds %v, %v", order, got)
	}
}

func specOwnAnswered(t *testing.T, _ *spectest.Spec) {
	a := newAlone()
	id := wire.PeerIDOf(testKey(5))
	say := func(f uint16, round uint32, held bool) {
		h := wire.SignHeader(testKey(5), a.run, wire.Header{Fragment: f, Round: round, Steps: 1, Size: 1})
		if held {
			a.chain.store(h, []byte{1})
			return
		}
		a.brought(1, h)
	}
	say(0, 3, true)
	say(0, 2, false)
	say(1, 4, true)
	say(1, 9, false)
	a.core.Step(a.now, Requested{Handle: 1, From: id, Request: wire.Request{Kind: wire.GetOwn}.Encode()})
	headers, err := wire.DecodeHeaders(find[Reply](a.core.Effects())[0].Response[1:])
	if err != nil || len(headers) != 2 || headers[0].Header.Round != 3 || headers[1].Header.Round != 9 {
		t.Errorf("%+v, %v", headers, err)
	}
}

func specOwnUnmet(t *testing.T, _ *spectest.Spec) {
	a := newAlone()
	ask := func() wire.Status { return status(a.ask(1, 1, wire.Request{Kind: wire.GetOwn})) }
	a.core.SetSelf(a.now, peers.SelfState{State: wire.Training, Unreached: true})
	if got := ask(); got != wire.Busy {
		t.Errorf("one that met nobody answers %v", got)
	}
	a.now += serve.OwnToldMs
	a.core.SetSelf(a.now, peers.SelfState{State: wire.Training})
	if got := ask(); got != wire.OK {
		t.Errorf("one that met others since answers %v", got)
	}
	a = newAlone()
	a.core.SetSelf(a.now, peers.SelfState{State: wire.Training, Unreached: true})
	a.brought(2, wire.SignHeader(testKey(5), a.run, wire.Header{Round: 4, Steps: 1, Size: 1}))
	a.core.Step(a.now, Requested{Handle: 1, From: wire.PeerIDOf(testKey(5)), Request: wire.Request{Kind: wire.GetOwn}.Encode()})
	if got := status(a.core.Effects()); got != wire.OK {
		t.Errorf("one that knows what the asker signed answers %v", got)
	}
}

func specOwnRarely(t *testing.T, s *spectest.Spec) {
	a := newAlone()
	ask := func(peer byte) wire.Status { return status(a.ask(1, peer, wire.Request{Kind: wire.GetOwn})) }
	if ask(1) != wire.OK || ask(1) != wire.Busy || ask(2) != wire.OK {
		t.Error("not once for each")
	}
	a.now = Time(s.Number(t, "answering", "own")) - 1
	if ask(1) != wire.Busy {
		t.Error("again before the time")
	}
	if a.now++; ask(1) != wire.OK {
		t.Error("not again")
	}
}

// part has a peer ask for one of the first parts of a blob.
func (a *alone) part(handle uint64, peer byte, blob wire.Digest, parts int) []Effect {
	return a.ask(handle, peer, wire.Request{Kind: wire.GetPart, Digest: blob, Parts: wire.AllParts(parts)})
}

func specPartsHeld(t *testing.T, _ *spectest.Spec) {
	for _, state := range []wire.State{wire.Joining, wire.Training, wire.Stopped, wire.Observing} {
		a := newAlone()
		a.core.SetSelf(0, peers.SelfState{State: state})
		a.core.KeepBlob(0, Blob{wire.Digest{1}, 3 * wire.PartSize})
		a.core.KeepParts(0, wire.Digest{2}, setOf(1))
		e := a.ask(1, 1, wire.Request{Kind: wire.GetHoldings, Digests: []wire.Digest{{2}, {3}, {1}}})
		held, err := wire.DecodeHoldings(find[Reply](e)[0].Response[1:], 3)
		if err != nil || held[0] != setOf(1) || !held[1].Empty() || held[2] != wire.AllParts(3) {
			t.Errorf("%v: %v, %v", state, held, err)
		}
		if r := find[ReplyPart](a.part(2, 1, wire.Digest{2}, 3)); len(r) != 1 || r[0].Index != 1 {
			t.Errorf("%v: gives %v", state, r)
		}
	}
}

func specPartsNotHeld(t *testing.T, _ *spectest.Spec) {
	a := newAlone()
	a.core.KeepParts(0, wire.Digest{1}, setOf(2))
	for _, blob := range []wire.Digest{{1}, {9}} {
		if st := status(a.part(1, 1, blob, 2)); st != wire.NotFound {
			t.Errorf("blob %v: %v", blob, st)
		}
	}
	a.part(1, 1, wire.Digest{1}, 3)
	a.part(2, 1, wire.Digest{1}, 3) // waits for its turn
	a.core.DropBlob(0, wire.Digest{1})
	a.core.Step(a.now, Left{Handle: 1})
	if st := status(a.core.Effects()); st != wire.NotFound {
		t.Errorf("one that is gone when it could leave: %v", st)
	}
}

// gives is the part that a peer is given, -1 if none.
func (a *alone) givesPart(handle uint64, peer byte, parts int) int {
	r := find[ReplyPart](a.part(handle, peer, wire.Digest{1}, parts))
	a.leaves(handle)
	if len(r) != 1 {
		return -1
	}
	return r[0].Index
}

func specLeastGiven(t *testing.T, _ *spectest.Spec) {
	a := newAlone()
	a.core.KeepBlob(0, Blob{wire.Digest{1}, 3 * wire.PartSize})
	var order []int
	for i, parts := range []int{2, 2, 3, 2, 3, 3} {
		order = append(order, a.givesPart(uint64(i), byte(i+1), parts))
	}
	if !slices.Equal(order, []int{0, 1, 2, 0, 1, 2}) {
		t.Errorf("gives %v", order)
	}
}

func specSpread(t *testing.T, s *spectest.Spec) {
	for _, full := range []bool{false, true} {
		a := newAlone()
		a.core.KeepBlob(0, Blob{wire.Digest{1}, 2 * wire.PartSize})
		a.core.SetSelf(0, peers.SelfState{State: wire.Training, Upload: 1e6, Full: full})
		if a.givesPart(1, 1, 1) != 0 || a.givesPart(2, 2, 2) != 1 {
			t.Error("the first copies are not given")
		}
		st := status(a.part(3, 3, wire.Digest{1}, 2))
		if busy := st == wire.Busy; busy != full {
			t.Errorf("a second copy, uplink full %v: %v", full, st)
		}
		a.now += Time(s.Number(t, "answering", "spread"))
		if got := a.givesPart(4, 4, 2); full && got != 0 {
			t.Errorf("gives %d after that time", got)
		}
	}
}

// makes reports whether a request for a snapshot is answered.
func (a *alone) makes(handle uint64, peer byte, at ...uint32) bool {
	r := wire.Request{Kind: wire.GetManifest}
	if at != nil {
		r = wire.Request{Kind: wire.GetSnapshot, At: at}
	}
	e := a.ask(handle, peer, r)
	return count[ReplyManifest](e) == 1 && status(e) != wire.Busy
}

func specManifestsOfOne(t *testing.T, s *spectest.Spec) {
	a := newAlone()
	most := uint64(s.Number(t, "answering", "manifests"))
	if !a.makes(1, 1) || a.makes(2, 1, 0, 0) {
		t.Error("not one at a time")
	}
	a = newAlone()
	for i := range most {
		if !a.makes(i, 1) {
			t.Fatalf("manifest %d is not answered", i)
		}
		a.core.Step(a.now, Left{Handle: i})
	}
	a.now = Time(s.Number(t, "answering", "manifest period")) - 1
	if a.makes(90, 1) {
		t.Error("one more in the period")
	}
	if a.now++; !a.makes(91, 1) {
		t.Error("none after the period")
	}
}

func TestAnswerManifestsAtOnce(t *testing.T) {
	a := newAlone()
	most := byte(serve.MaxSnapshotsMade)
	for i := range most {
		if !a.makes(uint64(i), i+1, 1, 1) {
			t.Fatalf("a snapshot for peer %d is not answered", i+1)
		}
	}
	if a.makes(90, 90, 1, 1) || !a.makes(91, 91) {
		t.Error("one more snapshot, or none of the node's own choice")
	}
}

func TestAnswerManifestIsOver(t *testing.T) {
	for name, end := range map[string]func(a *alone){
		"goes on":      func(*alone) {},
		"has left":     func(a *alone) { a.core.Step(a.now, Left{Handle: 1}) },
		"failed":       func(a *alone) { a.core.Step(a.now, Replied{Handle: 1}) },
		"took so long": func(a *alone) { a.wait(Time(effect.CallMs)) },
	} {
		a := newAlone()
		a.makes(1, 1)
		if end(a); a.makes(2, 1) != (name != "goes on") {
			t.Errorf("after one that %s", name)
		}
	}
}

// chunk has a peer ask for one, by a number.
func (a *alone) chunk(peer byte, number uint64) []Effect {
	return a.ask(number, peer, wire.Request{Kind: wire.GetChunk, Digest: wire.Digest{byte(number)}})
}

// sent are the handles of chunks that leave.
func sent(e []Effect) (handles []uint64) {
	for _, r := range find[ReplyChunk](e) {
		handles = append(handles, r.Handle)
	}
	return handles
}

// leaves says that a chunk has left and that its asker has it.
func (a *alone) leaves(handle uint64) []uint64 {
	a.core.Step(a.now, Left{Handle: handle})
	a.core.Step(a.now, Replied{Handle: handle})
	return sent(a.core.Effects())
}

func TestAnswerChunkAtATime(t *testing.T) {
	a := newAlone()
	most := uint64(serve.MaxChunkAhead)
	if got := sent(a.chunk(1, 0)); len(got) != 1 {
		t.Fatalf("sends %v", got)
	}
	for i := range most {
		if e := a.chunk(1, i+1); len(e) != 0 {
			t.Errorf("request %d: %v", i, e)
		}
	}
	if st := status(a.chunk(1, 90)); st != wire.Busy {
		t.Errorf("one more: %v", st)
	}
	for i := range most {
		if got := a.leaves(i); !slices.Equal(got, []uint64{i + 1}) {
			t.Errorf("after chunk %d: %v", i, got)
		}
	}
}

// replying has a payload on its way to some peer.
func (c *Core) replying(t testing.TB, a *alone) {
	t.Helper()
	if e := a.ask(900, 90, payloadRequest(a.hold(9, 1, 5000), 0)); count[ReplyPayload](e) != 1 {
		t.Fatalf("%v", e)
	}
}

func TestAnswerChunksAway(t *testing.T) {
	for most, payload := range map[int]bool{serve.MaxChunksAway: false, serve.MaxChunksBeside: true} {
		a := newAlone()
		if payload {
			a.core.replying(t, a)
		}
		var all []uint64
		for peer := byte(1); peer < 8; peer++ {
			all = append(all, sent(a.chunk(peer, uint64(peer)))...)
		}
		if len(all) != most {
			t.Errorf("a payload under way %v: %d chunks, want %d", payload, len(all), most)
		}
	}
}

func TestAnswerChunkStuck(t *testing.T) {
	a := newAlone()
	a.core.replying(t, a)
	a.chunk(1, 1)
	a.chunk(2, 2)
	slot := Time(serve.ChunkSlotMs)
	if got := sent(a.wait(slot - 1)); len(got) != 0 {
		t.Errorf("before: %v", got)
	}
	if got := sent(a.wait(1)); !slices.Equal(got, []uint64{2}) {
		t.Errorf("after: %v", got)
	}
}

func TestAnswerChunkAskers(t *testing.T) {
	a := newAlone()
	most := byte(serve.MaxChunkAskers)
	for peer := range most {
		if st := status(a.chunk(peer+1, uint64(peer))); st != 0 {
			t.Errorf("peer %d: %v", peer+1, st)
		}
	}
	if st := status(a.chunk(most+1, 90)); st != wire.Busy {
		t.Errorf("one more: %v", st)
	}
}

func TestAnswerChunkGivesWay(t *testing.T) {
	turn := Time(serve.ChunkTurnMs)
	a := newAlone()
	for peer := range byte(serve.MaxChunkAskers) {
		a.chunk(peer+1, 10*uint64(peer+1))
		a.chunk(peer+1, 10*uint64(peer+1)+1)
	}
	a.core.env.Config.Trusted = []wire.PeerID{{1}} // it is slow, and has contributed
	a.now = turn - 1
	for peer := uint64(2); peer < 9; peer++ {
		if peer != 4 {
			a.core.Step(a.now, Left{Handle: 10 * peer})
		}
	}
	a.core.Effects()
	if st := status(a.chunk(90, 900)); st != wire.Busy {
		t.Errorf("before its turn is over: %v", st)
	}
	a.now = turn
	e := a.chunk(90, 900)
	var away []uint64
	for _, r := range find[Reply](e) {
		if wire.Status(r.Response[0]) == wire.Busy {
			away = append(away, r.Handle)
		}
	}
	if !slices.Equal(away, []uint64{41}) {
		t.Errorf("turned away: %v", away)
	}
}

func TestAnswerChunkWait(t *testing.T) {
	a := newAlone()
	a.chunk(1, 1)
	a.chunk(1, 2)
	wait := Time(serve.ChunkWaitMs)
	if e := a.wait(wait - 1); status(e) != 0 {
		t.Errorf("before: %v", e)
	}
	if st := status(a.wait(1)); st != wire.Busy {
		t.Errorf("after: %v", st)
	}
	a.core.Step(a.now, Left{Handle: 1})
	a.core.Tick(a.now + 1)
	if n := a.core.size("askers of chunks"); n != 0 {
		t.Errorf("%d askers are remembered for nothing", n)
	}
}
