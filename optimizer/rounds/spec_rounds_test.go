package rounds_test

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"slices"
	"testing"

	"atoll/gossip/wire/spectest"
	"atoll/optimizer/outer"
	"atoll/optimizer/outer/outertest"
	"atoll/optimizer/rounds"
	"atoll/tensor/codec"
)

// One test for each clause of gossip/wire/SPEC.md that is about rounds.
func TestSpecRounds(t *testing.T) {
	spectest.Run(t, "R", map[string]spectest.Clause{
		"R-1": specInTurn, "R-1.2": specLate, "R-1.3": specSetOf, "R-2": specMinRound, "R-3": specCloses, "R-3.2": specClosesAtOnce, "R-3.3": specAwaited,
		"R-4": specFinal, "R-4.2": specFinalRefused, "R-4.3": specInvalidOffered, "R-5": specOpen, "R-6": specParked, "R-6.2": specParkedByRepair, "R-6.3": specParkedMost,
		"R-6.4": specParkedByGossip, "R-6.5": specGuestsInTime, "R-9.3": specGuestPublishes, "R-13.7": specGuestsSought, "R-13.8": specGuestsUnheld, "R-14.3": specGuestsCloseNothing, "R-15.3": specGuestPublishes,
		"R-7": specOnce, "R-7.2": spectest.All(specSecond, specGuestSignsTwice), "R-8": specExcluded, "R-8.2": specExcludedElsewhere, "R-9": specAllPublish, "R-9.2": specLearnersPerRound,
		"R-10": specLink, "R-11": specEarlierEnd, "R-12": specSigned, "R-12.2": specPublishes, "R-12.3": specOwn,
		"R-13": func(t *testing.T, s *spectest.Spec) { specCounts(t, s); specGuestsRoom(t, s) }, "R-13.2": specPlaces, "R-13.3": spectest.All(specBehind, specGuestsRoom),
		"R-13.4": func(t *testing.T, s *spectest.Spec) { specCountsUnheld(t, s); specExcludedCount(t, s) }, "R-13.5": specForgets, "R-13.6": specRevocationsFirst, "R-14": specProposal, "R-14.2": specProposalEarly, "R-15": specProposes, "R-15.2": specProposesInRotation,
		"R-16": func(t *testing.T, s *spectest.Spec) { specStuck(t, s); specStuckAtRest(t, s) },
		"R-20": specKeptOut, "R-20.2": specManyRevocations,
		"R-17": specFull, "R-18": specGivesUp, "R-19": specPlan,
	})
}

// world is a machine of one fragment of one value, whose folds are done at once.
type world struct {
	t         testing.TB
	p         outer.Params
	f         outer.Fragment
	m         *rounds.Machine
	now       rounds.Time
	bases     map[uint32]*outer.Tip
	payloads  map[outer.ID][]byte
	drafts    int
	givenUp   int
	closed    []rounds.Why
	elsewhere func(fragment int, round uint32) bool // what most peers have closed
	spent     func(a outer.Author) bool             // who steps no more
}

// self is the author of the machine under test.
var self = outer.Author{200}

func newWorld(t testing.TB, change func(p *outer.Params)) *world {
	p := outertest.Plain(1, 1<<40, 0)
	p.Codec = codec.F32
	p.H, p.HMin, p.WindowAccept, p.WindowUnion, p.MinRoundMs, p.GraceMinMs, p.GraceMaxMs = 4, 1, 4, 8, 0, 100, 1000
	if change != nil {
		change(&p)
	}
	r := &world{t: t, p: p, f: outer.Fragment{Tensors: []outer.Tensor{{Name: "w", Len: 1}}, Len: 1}, now: 1_000_000, payloads: map[outer.ID][]byte{}}
	tip := outer.Genesis(r.f, []float32{0}, p)
	r.bases = map[uint32]*outer.Tip{0: tip}
	r.m = rounds.New(rounds.Config{
		Params: p, Self: self, Learner: true,
		ClosedByMost: func(f int, round uint32) bool { return r.elsewhere != nil && r.elsewhere(f, round) },
		Spent:        func(_ int, a outer.Author) bool { return r.spent != nil && r.spent(a) },
	}, []*outer.Tip{tip})
	return r
}

func (r *world) delta(author byte, round uint32) outer.Delta {
	c := delta(r.t, r.p, author, round, float32(author)+float32(round)/64)
	r.payloads[c.Delta.ID] = c.Payload
	return c.Delta
}

// delta makes a valid contribution of an author to a round.
func delta(t testing.TB, p outer.Params, author byte, round uint32, v float32) outer.Contribution {
	t.Helper()
	payload, err := codec.Encode(p.Codec, []float32{v})
	if err != nil {
		t.Fatal(err)
	}
	d := outer.Delta{
		Author: outer.Author{author}, Round: round, Base: round - 1, Steps: 24, Tokens: 24 * 512,
		Codec: p.Codec, Size: len(payload),
	}
	d.ID = sha256.Sum256(binary.LittleEndian.AppendUint32([]byte{author}, round))
	return outer.Contribution{Delta: d, Payload: payload}
}

// open is the round that a draft would be published for.
func (r *world) open() uint32 {
	round, _ := r.m.RoundOfDraft(0)
	return round
}

func (r *world) mayPublish() bool {
	_, may := r.m.RoundOfDraft(0)
	return may
}

// give offers a delta and its payload.
func (r *world) give(d outer.Delta, repair bool) error {
	err := r.m.Offer(r.now, d, repair)
	if err == nil {
		r.m.Payload(r.now, 0, d.Round, d.ID, rounds.PayloadHeld)
	}
	r.execute()
	return err
}

// take is give by gossip, and fails where the delta is not taken.
func (r *world) take(author byte, round uint32) {
	r.t.Helper()
	if err := r.give(r.delta(author, round), false); err != nil {
		r.t.Fatalf("round %d of author %d: %v", round, author, err)
	}
}

// closeTo gives one delta of each round up to the last, with nobody to wait for.
func (r *world) closeTo(last uint32) {
	r.t.Helper()
	r.m.SetLive(nil)
	for round := r.m.Fragment(0).Closed() + 1; round <= last; round++ {
		r.take(1, round)
	}
	if r.m.Fragment(0).Closed() != last {
		r.t.Fatalf("closed %d, want %d", r.m.Fragment(0).Closed(), last)
	}
}

// pass lets time pass.
func (r *world) pass(ms rounds.Time) {
	r.now += ms
	r.m.Tick(r.now)
	r.execute()
}

// execute does what the machine wants.
func (r *world) execute() {
	r.t.Helper()
	for effects := r.m.Effects(); len(effects) > 0; effects = r.m.Effects() {
		for _, e := range effects {
			switch e := e.(type) {
			case rounds.WantFold:
				r.fold(e)
			case rounds.WantDraft:
				r.drafts++
			case rounds.Closed:
				r.closed = append(r.closed, e.Why)
			case rounds.Adopt:
				if e.GiveUp {
					r.givenUp++
				}
			}
		}
	}
}

func (r *world) fold(w rounds.WantFold) {
	tip := r.bases[w.Start]
	var states []outer.Digest
	for _, set := range w.Sets {
		var c []outer.Contribution
		for _, d := range set {
			c = append(c, outer.Contribution{Delta: d, Payload: r.payloads[d.ID]})
		}
		next, _, err := outer.Fold(r.p, r.f, tip, tip.Round+1, c)
		if err != nil {
			r.t.Fatal(err)
		}
		tip = next
		r.bases[tip.Round] = tip
		states = append(states, tip.State)
	}
	if err := r.m.TakeFold(r.now, rounds.FoldResult{Fragment: w.Fragment, Job: w.Job, Tip: tip, States: states}); err != nil {
		r.t.Fatal(err)
	}
}

// refusedWith fails unless the delta is not taken, for that reason.
func (r *world) refusedWith(want error, d outer.Delta, repair bool) {
	r.t.Helper()
	if err := r.give(d, repair); !errors.Is(err, want) {
		r.t.Errorf("round %d with %d closed: %v, want %v", d.Round, r.m.Fragment(0).Closed(), err, want)
	}
}

func specInTurn(t *testing.T, _ *spectest.Spec) {
	r := newWorld(t, nil)
	if r.m.Fragment(0).Closed() != 0 || r.open() != 1 {
		t.Errorf("closed %d at genesis, round %d is open", r.m.Fragment(0).Closed(), r.open())
	}
	r.m.SetLive([]outer.Author{{1}, {2}})
	for _, round := range []uint32{3, 2, 1} { // those ahead wait for the one before
		r.take(1, round)
	}
	r.pass(10 * r.p.GraceMaxMs)
	if tip := r.m.Fragment(0).Tip(); tip.Round != 3 || tip.Tokens != 3*24*512 {
		t.Errorf("the tip is of round %d with %d tokens", tip.Round, tip.Tokens)
	}
	for round := uint32(1); round <= 3; round++ {
		if set := r.m.Fragment(0).Set(round); len(set) != 1 || set[0].Round != round {
			t.Errorf("round %d folds %v", round, set)
		}
	}
}

func specLate(t *testing.T, _ *spectest.Spec) {
	inTime, late := newWorld(t, nil), newWorld(t, nil)
	inTime.m.SetLive([]outer.Author{{1}, {2}})
	for round := uint32(1); round <= 5; round++ {
		if inTime.take(1, round); round == 2 {
			inTime.take(2, 2)
		}
		inTime.pass(inTime.p.GraceMaxMs)
	}
	late.closeTo(5)
	late.take(2, 2)
	late.pass(late.p.GraceMaxMs)
	a, b := inTime.m.Fragment(0).Tip(), late.m.Fragment(0).Tip()
	if a.Round != 5 || a.State != b.State || a.Tokens != 6*24*512 {
		t.Errorf("in time %d %x, late %d %x", a.Round, a.State[:4], b.Round, b.State[:4])
	}
}

func specMinRound(t *testing.T, _ *spectest.Spec) {
	r := newWorld(t, func(p *outer.Params) { p.CreatedMs, p.MinRoundMs = 0, 500 })
	closed := func() uint32 { return r.m.Fragment(0).Closed() }
	r.closeTo(8)
	r.take(1, 9)
	r.take(1, 10)
	if r.pass(499); closed() != 8 {
		t.Errorf("closed %d after 499 ms", closed())
	}
	if r.pass(1); closed() != 9 {
		t.Errorf("closed %d after 500 ms", closed())
	}
	if r.pass(500); closed() != 10 {
		t.Errorf("closed %d after 1000 ms", closed())
	}

	// Rounds that peers say they closed count for a quarter.
	r.elsewhere = func(f int, round uint32) bool { return f == 0 && round <= 13 }
	for round := uint32(11); round <= 14; round++ {
		r.take(1, round)
	}
	if r.pass(499); closed() != 10 {
		t.Errorf("closed %d at once, peers closed 13", closed())
	}
	if r.pass(1 + 3*125); closed() != 14 {
		t.Errorf("closed %d after 875 ms, peers closed 13", closed())
	}
}

// specFinal has the last round that is final, and the first that is not, by the window
// and by the base.
func specFinal(t *testing.T, _ *spectest.Spec) {
	r := newWorld(t, nil)
	r.closeTo(12)
	if r.m.Fragment(0).Base() > 4 {
		t.Fatalf("base %d: the window decides nothing", r.m.Fragment(0).Base())
	}
	r.refusedWith(rounds.ErrFinal, r.delta(2, 4), true)
	r.refusedWith(nil, r.delta(2, 5), true)
}

func specFinalRefused(t *testing.T, _ *spectest.Spec) {
	r := newWorld(t, nil)
	r.closeTo(12)
	for round := uint32(1); round <= 12; round++ {
		final := round <= r.m.Fragment(0).Base() || round+8 <= 12
		want := error(nil)
		if final {
			want = rounds.ErrFinal
		}
		r.refusedWith(want, r.delta(2, round), true)
		if want != nil {
			r.refusedWith(want, r.delta(3, round), false)
		}
	}
}

func specOpen(t *testing.T, _ *spectest.Spec) {
	r := newWorld(t, nil)
	r.m.SetLive([]outer.Author{{1}, {2}, {3}, {4}})
	for author, round := range map[byte]uint32{2: 1, 3: 2} {
		if err := r.m.Offer(r.now, r.delta(author, round), author == 2); err != nil {
			t.Errorf("round %d: %v", round, err)
		}
	}
}

func specParked(t *testing.T, _ *spectest.Spec) {
	r := newWorld(t, nil)
	if err := r.m.Offer(r.now, r.delta(1, 4), false); err != nil {
		t.Error(err)
	}
	r.refusedWith(rounds.ErrParked, r.delta(1, 3), false) // a second one of the author
	r.m.Payload(r.now, 0, 4, r.delta(1, 4).ID, rounds.PayloadHeld)
	r.refusedWith(nil, r.delta(1, 3), false)
	r.refusedWith(nil, r.delta(2, 4), false)
	r.refusedWith(rounds.ErrParked, r.delta(3, 5), false) // above the accept window
}

func specParkedByRepair(t *testing.T, _ *spectest.Spec) {
	r := newWorld(t, nil)
	r.refusedWith(nil, r.delta(3, 8), true)
	r.refusedWith(nil, r.delta(3, 7), true)
	r.refusedWith(rounds.ErrParked, r.delta(3, 9), true) // above the union window
	if err := r.m.Offer(r.now, r.delta(4, 4), true); err != nil {
		t.Error(err)
	}
	r.refusedWith(nil, r.delta(4, 3), true) // though the payload of the one before is not held
}

func specParkedMost(t *testing.T, _ *spectest.Spec) {
	r := newWorld(t, nil)
	taken := 0
	for author := byte(1); author != 0; author++ {
		for _, round := range []uint32{5, 6} {
			if r.give(r.delta(author, round), true) == nil {
				taken++
			}
		}
	}
	if taken != 256 {
		t.Errorf("%d deltas are parked", taken)
	}
}

func specParkedByGossip(t *testing.T, _ *spectest.Spec) {
	r := newWorld(t, nil)
	taken := 0
	for author := byte(1); author != 0; author++ {
		if author != self[0] && r.give(r.delta(author, 4), false) == nil {
			taken++
		}
	}
	if taken != 128 {
		t.Errorf("%d deltas are parked by gossip", taken)
	}
	r.refusedWith(nil, r.delta(255, 3), true)
}

func specOnce(t *testing.T, _ *spectest.Spec) {
	r := newWorld(t, nil)
	r.m.SetLive([]outer.Author{{1}, {2}, {3}, {4}})
	for _, author := range []byte{1, 2, 1} { // the last one for the second time
		r.take(author, 1)
	}
	if set := r.m.Fragment(0).Set(1); len(set) != 2 || set[0].Author == set[1].Author {
		t.Errorf("the set is %v", set)
	}
	r.take(1, 2) // of another round
}

func specSecond(t *testing.T, _ *spectest.Spec) {
	r := newWorld(t, nil)
	r.m.SetLive([]outer.Author{{1}, {2}, {3}})
	r.take(1, 1)
	second := r.delta(1, 1)
	second.ID = outer.ID{1}
	r.refusedWith(rounds.ErrTwice, second, false)
	r.refusedWith(rounds.ErrTwice, second, true)
	if set := r.m.Fragment(0).Set(1); len(set) != 1 || set[0].ID == second.ID {
		t.Errorf("the set is %v", set)
	}
}

func specExcluded(t *testing.T, _ *spectest.Spec) {
	r := newWorld(t, nil)
	r.m.SetLive([]outer.Author{{1}, {2}, {3}})
	r.take(1, 1)
	r.take(2, 1)
	r.m.Exclude(r.now, 0, 1, outer.Author{2})
	r.execute()
	if set := r.m.Fragment(0).Set(1); len(set) != 1 || set[0].Author != (outer.Author{1}) {
		t.Errorf("the set is %v", set)
	}
	r.refusedWith(rounds.ErrExcluded, r.delta(2, 1), true)
	r.refusedWith(rounds.ErrExcluded, r.delta(2, 1), false)
}

func specExcludedElsewhere(t *testing.T, _ *spectest.Spec) {
	r := newWorld(t, nil)
	r.m.SetLive([]outer.Author{{1}, {2}, {3}})
	r.m.Exclude(r.now, 0, 1, outer.Author{2})
	r.refusedWith(rounds.ErrExcluded, r.delta(2, 2), false)
	r.refusedWith(nil, r.delta(2, 2), true)
}

func specLink(t *testing.T, _ *spectest.Spec) {
	r := newWorld(t, nil)
	r.closeTo(6)
	chain := outer.Digest{}
	for round := uint32(1); round <= 6; round++ {
		id := r.delta(1, round).ID
		chain = outer.ChainDigest(chain, []outer.ID{id})
		if l, ok := r.m.Fragment(0).Link(round); !ok || l.Chain != chain {
			t.Errorf("chain of round %d is %x, want %x", round, l.Chain, chain)
		}
	}
	if r.m.Fragment(0).Tip().Chain != chain {
		t.Error("the fold has another chain")
	}
}

func specEarlierEnd(t *testing.T, _ *spectest.Spec) {
	r := newWorld(t, func(p *outer.Params) { p.Budget = 3 * 24 * 512 })
	if r.closeTo(4); r.m.Fragment(0).Tip().EndRound != 3 {
		t.Fatalf("end round %d", r.m.Fragment(0).Tip().EndRound)
	}
	r.take(2, 1)
	if r.pass(10 * r.p.GraceMaxMs); r.m.Fragment(0).Closed() != 3 || r.m.Fragment(0).Tip().EndRound != 2 {
		t.Errorf("closed %d, end round %d", r.m.Fragment(0).Closed(), r.m.Fragment(0).Tip().EndRound)
	}
}

// own is a delta of the learner's.
func (r *world) own(value byte, round uint32) outer.Delta {
	d := r.delta(value, round)
	d.Author = self
	return d
}

// specSigned has what a learner signed excluded, which does not let it sign again.
func specSigned(t *testing.T, _ *spectest.Spec) {
	r := newWorld(t, nil)
	r.m.SetLive([]outer.Author{self, {1}, {2}})
	r.m.SettleDraft(r.now, r.own(9, 1).Fragment, rounds.OwnDelta{Seq: 1, Delta: r.own(9, 1)}, nil)
	r.m.Exclude(r.now, 0, 1, self)
	for range 10 * r.p.H {
		r.m.Stepped(r.now, 1)
	}
	if r.execute(); r.drafts != 0 || r.m.Fragment(0).Closed() != 0 || r.mayPublish() {
		t.Errorf("%d drafts of a round that it signed, with %d closed", r.drafts, r.m.Fragment(0).Closed())
	}
	restarted := newWorld(t, nil)
	restarted.m.RaiseMark(0, 1)
	if restarted.m.SetLive([]outer.Author{self, {1}, {2}}); restarted.mayPublish() {
		t.Error("it may publish for a round that it signed before its restart")
	}
}

func specPublishes(t *testing.T, _ *spectest.Spec) {
	r := newWorld(t, nil)
	r.m.SetLive([]outer.Author{self, {1}, {2}})
	if n := r.open(); n != 1 || !r.mayPublish() {
		t.Errorf("it publishes for round %d, may publish %v", n, r.mayPublish())
	}
	r.m.SettleDraft(r.now, r.own(9, 1).Fragment, rounds.OwnDelta{Seq: 1, Delta: r.own(9, 1)}, nil)
	r.execute()
	if r.mayPublish() || r.m.Fragment(0).Closed() != 0 {
		t.Errorf("with round 1 signed and %d closed it may publish", r.m.Fragment(0).Closed())
	}
	for range 2 * r.p.H {
		r.m.Stepped(r.now, 1)
	}
	if r.execute(); r.drafts != 0 {
		t.Error("it drafts for a round that it signed")
	}
	if r.closeTo(5); r.open() != 6 || !r.mayPublish() {
		t.Errorf("with 5 closed it publishes for round %d, may publish %v", r.open(), r.mayPublish())
	}
}

func specOwn(t *testing.T, _ *spectest.Spec) {
	r := newWorld(t, nil)
	r.closeTo(5)
	own := r.own(8, 5+r.p.WindowAccept+1)
	r.refusedWith(rounds.ErrParked, r.delta(3, own.Round), false) // what gossip brings of others
	r.m.SettleDraft(r.now, own.Fragment, rounds.OwnDelta{Seq: 2, Delta: own}, nil)
	if _, held := r.m.Fragment(0).Known(own.Round, own.ID); !held {
		t.Error("it does not hold what it published before older tips came")
	}
}

// manyth is the header of round 1 of one of many authors.
func (r *world) manyth(n int) outer.Delta {
	d := r.delta(1, 1)
	binary.BigEndian.PutUint16(d.Author[1:], uint16(n))
	d.ID = outer.ID(d.Author)
	return d
}

func specCounts(t *testing.T, _ *spectest.Spec) {
	r := newWorld(t, nil)
	r.holdMany(1030)
	if n := len(r.m.Fragment(0).Set(1)); n != 1024 {
		t.Errorf("a set of %d deltas", n)
	}
}

// holdMany gives so many deltas of round 1, except those that a full round refuses.
func (r *world) holdMany(n int) (refused []outer.Delta) {
	r.m.SetLive([]outer.Author{{1}, {2}, {3}}) // it stays open
	for i := range n {
		d := r.manyth(i)
		if r.m.Offer(r.now, d, true) != nil {
			refused = append(refused, d)
			continue
		}
		r.m.Payload(r.now, 0, 1, d.ID, rounds.PayloadHeld)
	}
	return refused
}

func specPlaces(t *testing.T, _ *spectest.Spec) {
	r := newWorld(t, nil)
	refused := r.holdMany(2048)
	set := r.m.Fragment(0).Set(1)
	priorityOf := func(d outer.Delta) outer.Priority { return outer.PriorityOf(outer.Digest{}, d) } // TestPriorityOf has its bytes
	last := slices.MaxFunc(set, func(a, b outer.Delta) int { return priorityOf(a).Compare(priorityOf(b)) })
	for i := range 2048 {
		d := r.manyth(i)
		in := slices.ContainsFunc(set, func(x outer.Delta) bool { return x.ID == d.ID })
		if before := priorityOf(d).Compare(priorityOf(last)) <= 0; in != before {
			t.Errorf("delta %d is in the set: %v, and comes before its last: %v", i, in, before)
		}
	}
	if len(refused) == 0 {
		t.Errorf("no delta is refused, of twice as many as a round takes")
	}
}

func specBehind(t *testing.T, _ *spectest.Spec) {
	r := newWorld(t, nil)
	for _, d := range r.holdMany(2048) {
		r.refusedWith(rounds.ErrFull, d, true)
		r.refusedWith(rounds.ErrFull, d, false)
	}
}

func specCountsUnheld(t *testing.T, _ *spectest.Spec) {
	r := newWorld(t, nil)
	n := 0
	for r.m.Offer(r.now, r.manyth(n), false) == nil && n < 1<<15 {
		n++
	}
	if n != 512 {
		t.Errorf("%d headers without payloads by gossip", n)
	}
}

func specForgets(t *testing.T, _ *spectest.Spec) {
	r := newWorld(t, nil)
	for i := range 1026 {
		if err := r.m.Offer(r.now, r.manyth(i), true); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 1026 {
		if known, _ := r.m.Fragment(0).Known(1, r.manyth(i).ID); known != (i >= 2) {
			t.Errorf("header %d of 1026 is known: %v", i, known)
		}
	}
}

// Keys that sign twice leave no room for others.
func specExcludedCount(t *testing.T, _ *spectest.Spec) {
	r, n := newWorld(t, nil), 0
	for ; r.m.Offer(r.now, r.manyth(n), false) == nil && n < 2000; n++ {
		r.m.Exclude(r.now, 0, 1, r.manyth(n).Author)
	}
	if n != 512 {
		t.Errorf("%d headers of keys that signed twice by gossip", n)
	}
}

func specProposal(t *testing.T, _ *spectest.Spec) {
	r := newWorld(t, func(p *outer.Params) { p.H = 1000 })
	r.m.SetLive([]outer.Author{self, {1}, {2}})
	r.m.Stepped(r.now, 1)
	first := r.delta(1, 1)
	if err := r.m.Offer(r.now, first, false); err != nil {
		t.Fatal(err)
	}
	if r.execute(); r.drafts != 0 {
		t.Error("the first header of an author proposes")
	}
	r.m.Payload(r.now, 0, 1, first.ID, rounds.PayloadHeld)
	if r.execute(); r.drafts != 1 {
		t.Errorf("a held delta asks for %d drafts", r.drafts)
	}
}

func specProposalEarly(t *testing.T, _ *spectest.Spec) {
	proven := newWorld(t, func(p *outer.Params) { p.H = 1000 })
	proven.closeTo(1)
	proven.m.SetLive([]outer.Author{self, {1}, {2}})
	proven.m.Stepped(proven.now, 1)
	if err := proven.m.Offer(proven.now, proven.delta(1, 2), false); err != nil {
		t.Fatal(err)
	}
	if proven.execute(); proven.drafts != 1 {
		t.Error("the header after a held delta does not propose")
	}
}

// invalid are changes that make a header invalid in the run of specInvalidOffered.
var invalid = map[string]func(d *outer.Delta){
	"fragment":         func(d *outer.Delta) { d.Fragment = 1 },
	"base":             func(d *outer.Delta) { d.Base = d.Round },
	"no steps":         func(d *outer.Delta) { d.Steps = 0 },
	"more steps":       func(d *outer.Delta) { d.Steps = 17 },
	"no tokens":        func(d *outer.Delta) { d.Tokens = 0 },
	"more tokens":      func(d *outer.Delta) { d.Tokens = uint64(d.Steps)*100 + 1 },
	"another codec":    func(d *outer.Delta) { d.Codec = codec.Int4 },
	"an empty payload": func(d *outer.Delta) { d.Size = 0 },
}

func specInvalidOffered(t *testing.T, s *spectest.Spec) {
	for name, change := range invalid {
		r := newWorld(t, func(p *outer.Params) { p.MaxSteps = 16; p.H = 16; p.HMin = 1; p.MaxTokensPerStep = 100 })
		d := r.delta(1, 1)
		d.Steps, d.Tokens = 16, 16*100
		if err := r.p.Check(d); err != nil {
			t.Fatal(err)
		}
		if change(&d); r.m.Offer(r.now, d, false) == nil || r.m.Offer(r.now, d, true) == nil {
			t.Errorf("%s: the payload is fetched", name)
		}
	}
}

func specSetOf(t *testing.T, s *spectest.Spec) {
	r := newWorld(t, nil)
	r.m.SetLive([]outer.Author{{1}, {2}, {3}})
	r.take(1, 1)
	r.take(3, 1)
	r.take(1, 2)
	_ = r.m.Offer(r.now, r.delta(1, 1), true) // again
	_ = r.m.Offer(r.now, r.delta(2, 1), true) // its payload never comes
	authors := func() (of []byte) {
		for _, d := range r.m.Fragment(0).Set(1) {
			of = append(of, d.Author[0])
		}
		return of
	}
	if got := authors(); !slices.Equal(got, []byte{1, 3}) {
		t.Errorf("the set has authors %d", got)
	}
	r.m.Exclude(r.now, 0, 1, outer.Author{3})
	r.execute()
	if got := authors(); !slices.Equal(got, []byte{1}) {
		t.Errorf("with an equivocation proof against 3 the set has authors %d", got)
	}
}
