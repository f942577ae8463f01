package outer_test

import (
	"encoding/binary"
	"errors"
	"math/big"
	"slices"
	"testing"

	"atoll/gossip/wire/spectest"
	"atoll/optimizer/outer"
	"lukechampine.com/blake3"
)

// One test for each clause of gossip/wire/SPEC.md that is about rounds.
func TestSpecRounds(t *testing.T) {
	spectest.Run(t, "R", map[string]spectest.Clause{
		"R-1": specLate, "R-2": specMinRound, "R-3": specNextCloses, "R-4": specFinal, "R-5": specOpen, "R-6": specParked,
		"R-7": specOnce, "R-8": specBarred, "R-9": specAnswerers, "R-10": specLink, "R-11": specLastRound, "R-12": specSigned,
		"R-13": specCounts, "R-14": specBell, "R-15": specRings, "R-16": func(t *testing.T, s *spectest.Spec) { specStuck(t, s); specStuckAtRest(t, s) },
		"R-17": specFull,
	})
}

// rounds is a machine of one fragment of one value, whose folds are carried
// out by the text.
type rounds struct {
	t        testing.TB
	p        outer.Params
	f        outer.Fragment
	m        *outer.Rounds
	now      outer.Time
	bases    map[uint32]*outer.Tip
	payloads map[outer.ID][]byte
	drafts   int
}

// self is the author of the machine under test.
var self = outer.Author{200}

func newRounds(t testing.TB, change func(p *outer.Params)) *rounds {
	p := plain()
	p.H, p.HMin, p.WindowAccept, p.WindowUnion, p.MinRoundMs, p.GraceMinMs, p.GraceMaxMs = 4, 1, 4, 8, 0, 100, 1000
	if change != nil {
		change(&p)
	}
	r := &rounds{t: t, p: p, f: fragment("w", 1), now: 1_000_000, payloads: map[outer.ID][]byte{}}
	tip := zeroTip(p, r.f)
	r.bases = map[uint32]*outer.Tip{0: tip}
	r.m = outer.NewRounds(p, self, true, []*outer.Tip{tip})
	return r
}

func (r *rounds) delta(author byte, round uint32) outer.Delta {
	c := delta(r.t, r.p, author, round, float32(author)+float32(round)/64)
	r.payloads[c.Delta.ID] = c.Payload
	return c.Delta
}

// give offers a delta and its payload.
func (r *rounds) give(d outer.Delta, repair bool) error {
	err := r.m.Offer(r.now, d, repair)
	if err == nil {
		r.m.Held(r.now, 0, d.Round, d.ID)
	}
	r.carry()
	return err
}

// take is give by gossip, and fails where the delta is not taken.
func (r *rounds) take(author byte, round uint32) {
	r.t.Helper()
	if err := r.give(r.delta(author, round), false); err != nil {
		r.t.Fatalf("round %d of author %d: %v", round, author, err)
	}
}

// closeTo gives one delta of each round up to the last, with nobody to wait for.
func (r *rounds) closeTo(last uint32) {
	r.t.Helper()
	r.m.SetLive(nil)
	for round := r.m.Closed(0) + 1; round <= last; round++ {
		r.take(1, round)
	}
	if r.m.Closed(0) != last {
		r.t.Fatalf("closed %d, want %d", r.m.Closed(0), last)
	}
}

// pass lets time pass.
func (r *rounds) pass(ms outer.Time) {
	r.now += ms
	r.m.Tick(r.now)
	r.carry()
}

// carry carries out what the machine wants.
func (r *rounds) carry() {
	r.t.Helper()
	for effects := r.m.Effects(); len(effects) > 0; effects = r.m.Effects() {
		for _, e := range effects {
			switch e := e.(type) {
			case outer.WantFold:
				r.fold(e)
			case outer.WantDraft:
				r.drafts++
			}
		}
	}
}

func (r *rounds) fold(w outer.WantFold) {
	tip := r.bases[w.Start]
	var states []outer.Digest
	for _, set := range w.Sets {
		var c []outer.Contribution
		for _, d := range set {
			c = append(c, outer.Contribution{Delta: d, Payload: r.payloads[d.ID]})
		}
		tip, _ = foldByText(r.t, r.p, r.f, tip, c)
		r.bases[tip.Round] = tip
		states = append(states, tip.State)
	}
	if err := r.m.Folded(r.now, w.Fragment, w.Job, tip, states); err != nil {
		r.t.Fatal(err)
	}
}

// refusedWith fails unless the delta is not taken, for that reason.
func (r *rounds) refusedWith(want error, d outer.Delta, repair bool) {
	r.t.Helper()
	if err := r.give(d, repair); !errors.Is(err, want) {
		r.t.Errorf("round %d with %d closed: %v, want %v", d.Round, r.m.Closed(0), err, want)
	}
}

func specLate(t *testing.T, _ *spectest.Spec) {
	inTime, late := newRounds(t, nil), newRounds(t, nil)
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
	a, b := inTime.m.Tip(0), late.m.Tip(0)
	if a.Round != 5 || a.State != b.State || a.Tokens != 6*24*512 {
		t.Errorf("in time %d %x, late %d %x", a.Round, a.State[:4], b.Round, b.State[:4])
	}
}

func specMinRound(t *testing.T, _ *spectest.Spec) {
	r := newRounds(t, func(p *outer.Params) { p.CreatedMs, p.MinRoundMs = 1_000_000, 500 })
	r.closeTo(8)
	r.take(1, 9)
	r.pass(499)
	if r.m.Closed(0) != 8 {
		t.Errorf("closed %d after 499 ms", r.m.Closed(0))
	}
	if r.pass(1); r.m.Closed(0) != 9 {
		t.Errorf("closed %d after 500 ms", r.m.Closed(0))
	}

	// Peers that say so make round 10 not too early, and 11 is.
	r.m.SetElsewhere(func(f int, round uint32) bool { return f == 0 && round <= 10 })
	// They do not make two rounds close in less than it takes one.
	r.take(1, 10)
	r.take(1, 11)
	if r.pass(r.p.MinRoundMs - 1); r.m.Closed(0) != 9 {
		t.Errorf("closed %d at once, peers closed 10", r.m.Closed(0))
	}
	if r.pass(1); r.m.Closed(0) != 10 {
		t.Errorf("closed %d, peers closed 10", r.m.Closed(0))
	}
}

func specNextCloses(t *testing.T, _ *spectest.Spec) {
	r := newRounds(t, nil)
	r.m.SetLive([]outer.Author{{1}, {2}, {3}})
	d := r.delta(1, 2)
	if err := r.m.Offer(r.now, d, false); err != nil || r.m.Closed(0) != 0 {
		t.Errorf("a header closes %d (%v)", r.m.Closed(0), err)
	}
	if r.take(2, 3); r.m.Closed(0) != 0 {
		t.Errorf("a delta of closed + 3 closes %d", r.m.Closed(0))
	}
	// Held: round 2 closes 1, and round 3, held already, then closes 2.
	if r.m.Held(r.now, 0, 2, d.ID); r.m.Closed(0) != 2 {
		t.Errorf("a delta of closed + 2 closes %d", r.m.Closed(0))
	}
}

func specFinal(t *testing.T, _ *spectest.Spec) {
	r := newRounds(t, nil)
	r.closeTo(12)
	for round := uint32(1); round <= 12; round++ {
		final := round <= r.m.Base(0) || round+8 <= 12
		want := error(nil)
		if final {
			want = outer.ErrFinal
		}
		r.refusedWith(want, r.delta(2, round), true)
	}
}

func specOpen(t *testing.T, _ *spectest.Spec) {
	r := newRounds(t, nil)
	r.m.SetLive([]outer.Author{{1}, {2}, {3}, {4}})
	for author, round := range map[byte]uint32{2: 1, 3: 2} {
		if err := r.m.Offer(r.now, r.delta(author, round), author == 2); err != nil {
			t.Errorf("round %d: %v", round, err)
		}
	}
}

func specParked(t *testing.T, _ *spectest.Spec) {
	r := newRounds(t, nil)
	if err := r.m.Offer(r.now, r.delta(1, 4), false); err != nil {
		t.Error(err)
	}
	r.refusedWith(outer.ErrParked, r.delta(1, 3), false) // a second one of the author
	r.m.Held(r.now, 0, 4, r.delta(1, 4).ID)
	r.refusedWith(nil, r.delta(1, 3), false)
	r.refusedWith(nil, r.delta(2, 4), false)
	r.refusedWith(outer.ErrParked, r.delta(3, 5), false) // above the accept window
	r.refusedWith(nil, r.delta(3, 8), true)
	r.refusedWith(nil, r.delta(3, 7), true)
	r.refusedWith(outer.ErrParked, r.delta(3, 9), true) // above the union window
	taken := 5
	for author := byte(4); author != 0; author++ {
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

func specOnce(t *testing.T, _ *spectest.Spec) {
	r := newRounds(t, nil)
	r.m.SetLive([]outer.Author{{1}, {2}, {3}})
	r.take(1, 1)
	second := r.delta(1, 1)
	second.ID = outer.ID{1}
	r.refusedWith(outer.ErrTwice, second, false)
	r.refusedWith(outer.ErrTwice, second, true)
}

func specBarred(t *testing.T, _ *spectest.Spec) {
	r := newRounds(t, nil)
	r.m.SetLive([]outer.Author{{1}, {2}, {3}})
	r.take(1, 1)
	r.take(2, 1)
	r.m.Bar(r.now, 0, 1, outer.Author{2})
	r.carry()
	if set := r.m.Set(0, 1); len(set) != 1 || set[0].Author != (outer.Author{1}) {
		t.Errorf("the set is %v", set)
	}
	r.refusedWith(outer.ErrBarred, r.delta(2, 1), true)
	r.refusedWith(outer.ErrBarred, r.delta(2, 2), false)
	r.refusedWith(nil, r.delta(2, 2), true)
}

// specAnswerers has an own learner among nine others and draws who is called by the
// text: who is asked for a draft by the bell of another, and after how many steps one
// rings that is not called.
func specAnswerers(t *testing.T, _ *spectest.Spec) {
	live := []outer.Author{self}
	for i := range byte(9) {
		live = append(live, outer.Author{i + 1})
	}
	var stopped []outer.Author // they are among the others by name
	for i := range byte(30) {
		stopped = append(stopped, outer.Author{1 + i/6, 1 + i})
	}
	byName := slices.Concat(live[1:], live[:1]) // self is the last
	groups := map[int]int{}
	for round := uint32(1); round <= 20; round++ {
		point := new(big.Int).SetUint64(uint64(round) * 0x9E3779B97F4A7C15) // of fragment 0
		place := int(point.Mul(point, big.NewInt(10)).Rsh(point, 64).Int64())
		group := slices.Index(slices.Concat(byName[place:], byName[:place]), self) / 3
		groups[group]++

		r := newRounds(t, func(p *outer.Params) { p.Answerers, p.H, p.WindowUnion = 3, 1000, 64 })
		r.closeTo(round - 1)
		r.m.SetLive(slices.Concat(live, stopped))
		r.m.SetIdle(stopped)
		r.m.Stepped(r.now, 1)
		if r.take(1, round); (r.drafts > 0) != (group == 0) {
			t.Errorf("round %d: %d drafts, of group %d by the text", round, r.drafts, group)
		}

		r = newRounds(t, func(p *outer.Params) { p.Answerers, p.H, p.WindowUnion = 3, 10, 64 })
		r.closeTo(round - 1)
		r.m.SetLive(slices.Concat(live, stopped))
		r.m.SetIdle(stopped)
		for steps := 1; r.drafts == 0; steps++ {
			r.m.Stepped(r.now, 1)
			if r.carry(); (r.drafts > 0) != (steps == 10*(1+group)) {
				t.Fatalf("round %d: %d drafts after %d steps, of group %d by the text", round, r.drafts, steps, group)
			}
		}
	}
	if groups[0] == 0 || groups[1] == 0 || groups[2] == 0 || groups[3] == 0 {
		t.Errorf("groups: %v", groups)
	}
}

// specRings has a round close one step before a learner has made H: with as many live
// as may answer it rings after that step, with more H steps later.
func specRings(t *testing.T, _ *spectest.Spec) {
	for answerers, want := range map[int]int{3: 1, 2: 10} {
		r := newRounds(t, func(p *outer.Params) { p.Answerers, p.H, p.HMin = answerers, 10, 10 })
		r.m.SetLive([]outer.Author{self, {1}, {2}})
		for range 9 {
			r.m.Stepped(r.now, 1)
		}
		r.take(1, 1)
		if r.pass(r.p.GraceMaxMs); r.m.Closed(0) != 1 {
			t.Fatal("round 1 is open")
		}
		steps := 0
		for ; r.drafts == 0 && steps < 100; steps++ {
			r.m.Stepped(r.now, 1)
			r.carry()
		}
		if groups := steps / want; steps%want != 0 || groups < 1 || groups > 2 || answerers == 3 && groups != 1 {
			t.Errorf("with %d that answer it rings after %d more steps", answerers, steps)
		}
	}
}

// specStuck has a learner that took tips of older rounds than it has signed.
func specStuck(t *testing.T, _ *spectest.Spec) {
	for live, groups := range map[int]int{3: 1, 9: 3} {
		r := newRounds(t, func(p *outer.Params) { p.H, p.Answerers, p.WindowAccept, p.WindowUnion = 5, 3, 3, 64 })
		r.closeTo(4)
		r.m.RaiseMark(0, 9)
		learners := []outer.Author{self}
		for i := range byte(live - 1) {
			learners = append(learners, outer.Author{i + 1})
		}
		r.m.SetLive(learners)
		state := r.m.Tip(0).State
		for range 16*5*groups - 1 {
			r.m.Stepped(r.now, 1)
			r.carry()
		}
		if r.m.Closed(0) != 4 || r.drafts != 0 {
			t.Errorf("of %d: closed %d, %d drafts, though others may ring yet", live, r.m.Closed(0), r.drafts)
		}
		r.m.Stepped(r.now, 1)
		if r.carry(); r.m.Closed(0) != 7 {
			t.Errorf("of %d: closed %d, want as many more as gossip brings: 3", live, r.m.Closed(0))
		}
		for range 16 * 5 * groups {
			r.m.Stepped(r.now, 1)
			r.carry()
		}
		if r.m.Closed(0) != 9 || r.m.Tip(0).State != state {
			t.Errorf("of %d: closed %d, signed 9", live, r.m.Closed(0))
		}
		for range 5 * groups {
			r.m.Stepped(r.now, 1)
			r.carry()
		}
		if n := r.m.Drafted(0); r.drafts == 0 || n != 10 {
			t.Errorf("of %d: %d drafts, for round %d", live, r.drafts, n)
		}
	}
}

// specStuckAtRest has such a learner step no more.
func specStuckAtRest(t *testing.T, _ *spectest.Spec) {
	stuck := func() *rounds {
		r := newRounds(t, func(p *outer.Params) { p.H, p.WindowAccept, p.WindowUnion = 5, 3, 64 })
		r.closeTo(4)
		r.m.RaiseMark(0, 9)
		r.m.SetLive([]outer.Author{self, {1}})
		return r
	}
	r := stuck()
	r.m.Stepped(r.now, 1)
	if r.pass(100 * r.p.GraceMaxMs); r.m.Closed(0) != 4 {
		t.Errorf("closed %d while it trains", r.m.Closed(0))
	}
	r.m.SetFlush(r.now, true)
	if r.pass(r.p.GraceMaxMs - 1); r.m.Closed(0) != 4 {
		t.Errorf("closed %d before GraceMaxMs is over", r.m.Closed(0))
	}
	if r.pass(1); r.m.Closed(0) != 7 {
		t.Errorf("closed %d, want as many more as gossip brings: 3", r.m.Closed(0))
	}
	if r.pass(r.p.GraceMaxMs); r.m.Closed(0) != 9 || r.drafts == 0 || r.m.Drafted(0) != 10 {
		t.Errorf("closed %d, signed 9; %d drafts", r.m.Closed(0), r.drafts)
	}
	r = stuck()
	r.m.SetFlush(r.now, true)
	if r.pass(100 * r.p.GraceMaxMs); r.m.Closed(0) != 4 {
		t.Errorf("closed %d, with nothing to publish", r.m.Closed(0))
	}
}

// specFull has a learner that is seldom called make as many steps as a delta may have.
func specFull(t *testing.T, _ *spectest.Spec) {
	drafts := map[int]int{} // by steps
	for round := uint32(1); round <= 20; round++ {
		r := newRounds(t, func(p *outer.Params) { p.Answerers, p.H, p.MaxSteps, p.WindowUnion = 1, 20, 30, 64 })
		r.closeTo(round - 1)
		r.m.SetLive([]outer.Author{self, {1}, {2}, {3}})
		steps := 0
		for ; r.drafts == 0 && steps < 50; steps++ {
			r.m.Stepped(r.now, 1)
			r.carry()
		}
		drafts[steps]++
	}
	if drafts[20] == 0 || drafts[30] < drafts[20] || drafts[20]+drafts[30] != 20 {
		t.Errorf("drafts after so many steps: %v; the learner called first makes 20, others 30", drafts)
	}
}

func specLink(t *testing.T, _ *spectest.Spec) {
	r := newRounds(t, nil)
	r.closeTo(6)
	chain := outer.Digest{}
	for round := uint32(1); round <= 6; round++ {
		id := r.delta(1, round).ID
		chain = blake3.Sum256(append(chain[:], id[:]...))
		if l, ok := r.m.Link(0, round); !ok || l.Chain != chain {
			t.Errorf("chain of round %d is %x, by the text %x", round, l.Chain, chain)
		}
	}
	if r.m.Tip(0).Chain != chain {
		t.Error("the fold has another chain")
	}
}

func specLastRound(t *testing.T, _ *spectest.Spec) {
	r := newRounds(t, func(p *outer.Params) { p.Budget = 3 * 24 * 512 })
	r.closeTo(4)
	_ = r.give(r.delta(1, 5), false)
	_ = r.give(r.delta(1, 6), false)
	if r.pass(10 * r.p.GraceMaxMs); r.m.Closed(0) != 4 {
		t.Errorf("closed %d, the end round is 3", r.m.Closed(0))
	}
	r.take(2, 1)
	if r.pass(10 * r.p.GraceMaxMs); r.m.Closed(0) != 3 || r.m.Tip(0).EndRound != 2 {
		t.Errorf("closed %d, end round %d", r.m.Closed(0), r.m.Tip(0).EndRound)
	}
}

func specSigned(t *testing.T, _ *spectest.Spec) {
	r := newRounds(t, nil)
	r.m.SetLive([]outer.Author{self, {1}, {2}})
	if n := r.m.Drafted(0); n != 1 || !r.m.MayPublish(0) {
		t.Errorf("it publishes for round %d, may publish %v", n, r.m.MayPublish(0))
	}
	own := r.delta(9, 1)
	own.Author = self
	r.m.Published(r.now, own, 1)
	r.carry()
	if r.m.MayPublish(0) || r.m.Closed(0) != 0 {
		t.Errorf("with round 1 signed and %d closed it may publish", r.m.Closed(0))
	}
	for range 2 * r.p.H {
		r.m.Stepped(r.now, 1)
	}
	if r.carry(); r.drafts != 0 {
		t.Error("it drafts for a round that it signed")
	}
	if r.closeTo(5); r.m.Drafted(0) != 6 || !r.m.MayPublish(0) {
		t.Errorf("with 5 closed it publishes for round %d, may publish %v", r.m.Drafted(0), r.m.MayPublish(0))
	}
	own = r.delta(8, 5+r.p.WindowAccept+1)
	own.Author = self
	r.m.Published(r.now, own, 2)
	if _, held := r.m.Known(0, own.Round, own.ID); !held {
		t.Error("it does not hold what it published before older tips came")
	}
}

func specCounts(t *testing.T, _ *spectest.Spec) {
	r := newRounds(t, nil)
	author := func(n int) outer.Delta {
		d := r.delta(1, 1)
		binary.BigEndian.PutUint16(d.Author[1:], uint16(n))
		d.ID = outer.ID(d.Author)
		return d
	}
	n := 0
	for r.m.Offer(r.now, author(n), false) == nil {
		n++
	}
	if n != 512 {
		t.Errorf("%d headers without payloads by gossip", n)
	}
	for r.m.Offer(r.now, author(n), true) == nil {
		n++
	}
	if n != 1024 {
		t.Errorf("%d deltas in one round", n)
	}
	specBarredCount(t, author)
}

// Keys that sign twice leave no room for others.
func specBarredCount(t *testing.T, author func(int) outer.Delta) {
	r, n := newRounds(t, nil), 0
	for ; r.m.Offer(r.now, author(n), false) == nil && n < 2000; n++ {
		r.m.Bar(r.now, 0, 1, author(n).Author)
	}
	if n != 512 {
		t.Errorf("%d headers of keys that signed twice by gossip", n)
	}
	for ; r.m.Offer(r.now, author(n), true) == nil && n < 2000; n++ {
		r.m.Bar(r.now, 0, 1, author(n).Author)
	}
	if n != 1024 {
		t.Errorf("%d deltas of keys that signed twice", n)
	}
}

func specBell(t *testing.T, _ *spectest.Spec) {
	r := newRounds(t, func(p *outer.Params) { p.H = 1000 })
	r.m.SetLive([]outer.Author{self, {1}, {2}})
	r.m.Stepped(r.now, 1)
	first := r.delta(1, 1)
	if err := r.m.Offer(r.now, first, false); err != nil {
		t.Fatal(err)
	}
	if r.carry(); r.drafts != 0 {
		t.Error("the first header of an author rings")
	}
	r.m.Held(r.now, 0, 1, first.ID)
	if r.carry(); r.drafts != 1 {
		t.Errorf("a held delta asks for %d drafts", r.drafts)
	}
	proven := newRounds(t, func(p *outer.Params) { p.H = 1000 })
	proven.closeTo(1)
	proven.m.SetLive([]outer.Author{self, {1}, {2}})
	proven.m.Stepped(proven.now, 1)
	if err := proven.m.Offer(proven.now, proven.delta(1, 2), false); err != nil {
		t.Fatal(err)
	}
	if proven.carry(); proven.drafts != 1 {
		t.Error("the header after a held delta does not ring")
	}
}
