package gossip

import (
	"testing"

	"atoll/gossip/effect"
	"atoll/gossip/headers"
	"atoll/gossip/limit"
	"atoll/gossip/wire"
	"atoll/gossip/wire/spectest"
)

func TestSpecHeaders(t *testing.T) {
	spectest.Run(t, "G", map[string]spectest.Clause{
		"G-1": spectest.All(specTwoHeaders, specEquivocationInRepair), "G-1.2": specRevocations, "G-1.3": spectest.All(specGuestsProveNothing, specUnknownProveNothing), "G-2": specEquivocationPublished, "G-3": specUnfit, "G-4": specPassing, "G-4.2": specPassing, "G-4.3": spectest.All(specInvitesShare, specGuestsHeadersShare), "G-4.4": specSlots, "G-4.5": specForgeriesTakeNothing, "G-4.6": specUnknownOfAPeer, "G-4.7": specStrangersUplink, "G-4.8": specStrangersUplink, "G-5": specTooLate, "G-6": specEquivocationPasses, "G-6.2": specRevocationPasses, "G-6.3": specEquivocationPasses,
	})
}

func TestHeaderIsMetOnce(t *testing.T) {
	a := specAlone(1, 2)
	h := a.header(9, 1, 0)
	if e := a.brought(1, h); count[Offer](e) != 1 || len(questions(t, e)) != 1 {
		t.Fatalf("a new header: %v", e)
	}
	if e := a.brought(2, h); len(e) != 0 {
		t.Errorf("the same again: %v", e)
	}
	a.core.Step(a.now, Answered{Call: a.core.env.Calls()[len(a.core.env.Calls())-1], Err: effect.ErrNoAnswer})
	if q := questions(t, a.core.Effects()); len(q) != 1 || q[0].to != 2 {
		t.Errorf("who brought it again is not asked: %+v", q)
	}
	other := h
	other.Sig[0] ^= 1
	if e := a.brought(1, other); count[Offer](e) != 0 {
		t.Error("another signature makes another header")
	}
	for i := range int64(headers.MaxSeen) {
		h := a.header(8, uint32(i+10), 0)
		a.core.headers.Classify(&h)
	}
	if e := a.brought(1, h); count[Offer](e) != 1 {
		t.Error("remembers more headers than the text says")
	}
}

func specUnfit(t *testing.T, _ *spectest.Spec) {
	for name, change := range map[string]func(h *wire.Header){
		"fits":             func(*wire.Header) {},
		"another fragment": func(h *wire.Header) { h.Fragment = 2 },
		"too large":        func(h *wire.Header) { h.Size = 5001 },
	} {
		a := specAlone(1)
		a.core.headers.MaxPayload = 5000
		h := a.header(9, 1, 0)
		change(&h.Header)
		if e := a.brought(1, h); (count[Offer](e) == 1) != (name == "fits") {
			t.Errorf("%s: %v", name, e)
		}
	}
	a := newAlone()
	a.core.headers.MaxPayload = 0 // less than any payload
	if e := a.answer(a.lists(t, 1), wire.EncodeHeaders([]wire.SignedHeader{a.signed(9, 1)})); count[Offer](e) != 0 {
		t.Errorf("brought by a repair: %v", e)
	}
}

func specTwoHeaders(t *testing.T, _ *spectest.Spec) {
	one := func(a *alone) wire.SignedHeader { return a.header(9, 1, 1) }
	two := func(a *alone) wire.SignedHeader { return a.header(9, 1, 2) }
	for name, first := range map[string]func(a *alone){
		"by gossip":  func(a *alone) { a.brought(1, one(a)) },
		"held":       func(a *alone) { a.chain.store(one(a), []byte{1}) },
		"own":        func(a *alone) { a.core.Announce(a.now, one(a), nil) },
		"by another": func(a *alone) { a.brought(2, one(a)) },
		"not there":  func(*alone) {},
	} {
		a := specAlone(1, 2)
		first(a)
		a.core.Effects()
		e := a.brought(1, two(a))
		found := find[EquivocationFound](e)
		if want := name != "not there"; (len(found) == 1) != want || (count[Offer](e) == 0) != want {
			t.Errorf("%s: %v", name, e)
		}
	}
	a := specAlone(1)
	a.brought(1, one(a))
	for name, change := range map[string]func(h *wire.Header){
		"another round": func(h *wire.Header) { h.Round = 2 }, "another fragment": func(h *wire.Header) { h.Fragment = 1 },
		"another author": func(h *wire.Header) { h.Author[0] = 8 },
	} {
		h := two(a)
		change(&h.Header)
		if e := a.brought(1, h); count[EquivocationFound](e) != 0 {
			t.Errorf("%s: equivocation proof", name)
		}
	}
}

func specRevocations(t *testing.T, _ *spectest.Spec) {
	word := func(a *alone, name byte, reason string) wire.SignedHeader {
		return wire.SignHeader(testKey(9), a.run, wire.NewRevocation(0, 1, wire.Digest{name}, []byte(reason)))
	}
	for name, second := range map[string]func(a *alone) wire.SignedHeader{
		"of two names":    func(a *alone) wire.SignedHeader { return word(a, 2, "gone") },
		"for two reasons": func(a *alone) wire.SignedHeader { return word(a, 1, "left") },
		"and a delta":     func(a *alone) wire.SignedHeader { return a.header(9, 1, 1) },
	} {
		for _, held := range []bool{false, true} {
			a := specAlone(1, 2)
			first := word(a, 1, "gone")
			if held {
				a.chain.store(first, []byte("gone"))
			} else {
				a.brought(1, first)
			}
			a.core.Effects()
			if e := a.brought(1, second(a)); count[EquivocationFound](e) != 0 || count[Offer](e) != 1 {
				t.Errorf("%s, the first held %v: %v", name, held, e)
			}
		}
	}
}

func specEquivocationPublished(t *testing.T, _ *spectest.Spec) {
	a := newAlone()
	a.connect(1)
	h, other := a.signed(9, 1), wire.SignHeader(testKey(9), a.run, wire.Header{Round: 1, Steps: 1, Tokens: 2, Size: 1})
	a.brought(1, h)
	p := find[Publish](a.brought(1, other))
	if len(p) != 1 {
		t.Fatalf("publishes %v", p)
	}
	m, err := wire.Open(a.run, p[0].Bytes)
	if err != nil || m.Equivocation == nil || m.Equivocation.A.Header.Author != wire.PeerIDOf(testKey(9)) {
		t.Errorf("publishes %+v, %v", m, err)
	}
}

func TestHeaderThatIsOld(t *testing.T) {
	for round, want := range map[uint32]int{4: 1, 3: 0} {
		a := specAlone(1)
		a.chain.closed[0] = 20
		if e := a.brought(1, a.header(9, round, 0)); count[Offer](e) != want || len(questions(t, e)) != want {
			t.Errorf("round %d of 20 with a window of 16: %v", round, e)
		}
	}
}

func TestHeaderIsOfferedToRounds(t *testing.T) {
	a := specAlone(1)
	for round := uint32(1); round < 40; round++ {
		if e := find[Offer](a.brought(1, a.header(9, round, 0))); len(e) != 1 || e[0].From != (wire.PeerID{1}) || e[0].Repair {
			t.Errorf("round %d: %v", round, e)
		}
	}
	a = specAlone(1)
	h := a.header(8, 1, 0)
	e := a.brought(1, h)
	a.core.Complete(a.now, h.Header.ID(a.run), ErrUnwanted)
	if len(questions(t, e)) != 1 || a.core.fetch.Wants(h.Header.ID(a.run)) {
		t.Error("what the rounds do not want is fetched on")
	}
}

func TestHeaderFarAheadIsNotFetched(t *testing.T) {
	for round, want := range map[uint32]int{26: 1, 27: 0} {
		a := specAlone(1)
		a.chain.closed[0] = 10
		if e := a.brought(1, a.header(9, round, 0)); count[Offer](e) != 1 || len(questions(t, e, wire.GetPayload)) != want {
			t.Errorf("round %d with a window of 16 above 10: %v", round, e)
		}
	}
}

func TestHeaderAheadBeginsRepair(t *testing.T) {
	for round, want := range map[uint32]int{12: 0, 13: 1} {
		a := specAlone(1, 2)
		a.chain.closed[0] = 10
		q := questions(t, a.brought(1, a.header(9, round, 0)), wire.GetRounds)
		if len(q) != want || want > 0 && q[0].to != 1 {
			t.Errorf("round %d above 10: asks %+v", round, q)
		}
	}
}

func TestHeaderWithItsPayload(t *testing.T) {
	a := specAlone(1)
	h := a.header(9, 1, 0)
	a.core.Step(a.now, Received{From: wire.PeerID{1}, Message: wire.Message{Header: &h, Inline: []byte{1, 2}}})
	e := a.core.Effects()
	if f := find[Fetched](e); len(f) != 1 || string(f[0].Payload) != "\x01\x02" || len(questions(t, e)) != 0 {
		t.Errorf("a payload that came along: %v", e)
	}
}

// proves has equivocation proof arrive by gossip.
func (a *alone) proves(author byte, fragment uint16, round uint32) []Effect {
	e := wire.Equivocation{A: a.header(author, round, 1), B: a.header(author, round, 2)}
	e.A.Header.Fragment, e.B.Header.Fragment = fragment, fragment
	a.core.Step(a.now, Received{From: wire.PeerID{1}, Message: wire.Message{Equivocation: &e}})
	return a.core.Effects()
}

func TestHeaderEquivocationOnce(t *testing.T) {
	a := newAlone()
	for _, c := range []struct {
		author   byte
		fragment uint16
		round    uint32
		want     int
	}{{9, 0, 1, 1}, {9, 0, 1, 0}, {9, 0, 2, 1}, {9, 1, 1, 1}, {8, 0, 1, 1}, {9, 0, 2, 0}} {
		if got := count[EquivocationFound](a.proves(c.author, c.fragment, c.round)); got != c.want {
			t.Errorf("%+v: taken %d times", c, got)
		}
	}
}

func TestHeaderEquivocationFar(t *testing.T) {
	for _, c := range []struct {
		fragment uint16
		round    uint32
		want     int
	}{{0, 10 + 256, 1}, {0, 10 + 257, 0}, {2, 1, 0}} {
		a := newAlone()
		a.chain.closed[0] = 10
		if got := count[EquivocationFound](a.proves(9, c.fragment, c.round)); got != c.want {
			t.Errorf("%+v: taken %d times", c, got)
		}
	}
}

func TestHeaderEquivocationMany(t *testing.T) {
	a := newAlone()
	most, got := int(limit.MaxEquivocationPerAuthor), 0
	for round := range uint32(most + 20) {
		got += count[EquivocationFound](a.proves(9, 0, round+1))
	}
	if got != most {
		t.Errorf("%d pieces taken, want %d", got, most)
	}
	if count[EquivocationFound](a.proves(8, 0, 1)) != 1 {
		t.Error("nothing is taken against another author")
	}
}

func TestHeaderEquivocationNotRepeated(t *testing.T) {
	a := newAlone()
	if e := a.proves(9, 0, 1); count[EquivocationFound](e) != 1 || count[Publish](e) != 0 {
		t.Errorf("equivocation proof by gossip: %v", e)
	}
}

func specEquivocationInRepair(t *testing.T, _ *spectest.Spec) {
	one := func(a *alone) wire.SignedHeader { return a.signed(9, 1) }
	two := func(a *alone) wire.SignedHeader {
		return wire.SignHeader(testKey(9), a.run, wire.Header{Round: 1, Steps: 1, Tokens: 2, Size: 1})
	}
	a := newAlone()
	q := a.lists(t, 1)
	if e := a.answer(q, wire.EncodeHeaders([]wire.SignedHeader{one(a), two(a)})); count[EquivocationFound](e) != 1 || count[Publish](e) != 1 {
		t.Errorf("both in one answer: %v", e)
	}
	a = newAlone()
	a.chain.store(one(a), []byte{1})
	q = a.lists(t, 1)
	if e := a.answer(q, wire.EncodeHeaders([]wire.SignedHeader{two(a)})); count[EquivocationFound](e) != 1 {
		t.Errorf("one held: %v", e)
	}
}
