package rounds_test

import (
	"strings"
	"testing"

	"atoll/gossip/wire/spectest"
	"atoll/optimizer/outer"
	"atoll/optimizer/rounds"
)

// row is one row of a table and the test that fails without it.
type row struct {
	word string
	test func(t *testing.T)
}

// closingRows has a world for each row of the table that says when a round closes.
var closingRows = []row{
	{"over", rowOver},
	{"too soon", rowTooSoon},
	{"closed elsewhere", rowClosedElsewhere},
	{"next", rowNext},
	{"left out", rowLeftOut},
	{"no proposal", rowNoProposal},
	{"complete", rowComplete},
	{"grace limit over", rowLimitOver},
	{"leaving", rowLeaving},
	{"too few", rowTooFew},
	{"grace", rowGrace},
	{"grace over", rowGrace},
}

// awaitingRows has one for each row of the table that says whom a round waits for.
var awaitingRows = []row{
	{"muted", rowMuted},
	{"held", rowHeld},
	{"spent", rowSpent},
	{"announced", rowAnnounced},
	{"thin", rowThin},
	{"sampled", rowHeld},
}

func TestClosing(t *testing.T) { runRows(t, closingRows) }

func TestAwaiting(t *testing.T) { runRows(t, awaitingRows) }

func runRows(t *testing.T, rows []row) {
	for _, r := range rows {
		t.Run(r.word, r.test)
	}
}

// specCloses and specAwaited hold the tables of the text to those of the code, in their order, and each row to a test.
func specCloses(t *testing.T, s *spectest.Spec) {
	sameRows(t, s.Table(t, "closes"), rounds.ClosingRows(), closingRows, map[bool]string{true: "closes", false: "waits"})
}

func specAwaited(t *testing.T, s *spectest.Spec) {
	sameRows(t, s.Table(t, "awaited"), rounds.AwaitingRows(), awaitingRows, map[bool]string{true: "yes", false: "no"})
}

func sameRows(t *testing.T, text [][]string, code []rounds.Row, tests []row, says map[bool]string) {
	t.Helper()
	if len(text) != len(code) || len(tests) != len(code) {
		t.Fatalf("the text has %d rows, the code %d, the tests %d", len(text), len(code), len(tests))
	}
	for i, r := range code {
		if text[i][0] != r.Word || text[i][1] != says[r.Says] || tests[i].word != r.Word {
			t.Errorf("row %d is %q %q in the text, %q in the code, and tested as %q", i, text[i][0], text[i][1], r.Word, tests[i].word)
		}
	}
}

// specClosesAtOnce: what a node must follow, others can see.
func specClosesAtOnce(t *testing.T, _ *spectest.Spec) {
	for _, r := range closingRows {
		if r.word == "over" || r.word == "too soon" || r.word == "next" {
			t.Run(r.word, r.test)
		}
	}
}

// wants fails unless the fragment has closed so many rounds, and the open one waits for that reason.
func (r *world) wants(closed uint32, why rounds.Reason) rounds.Why {
	r.t.Helper()
	w := r.m.Fragment(0).Why(r.now)
	if got := r.m.Fragment(0).Closed(); got != closed || w.Reason != why || why.Closes() {
		r.t.Errorf("closed %d and waits for %q, want %d and %q", got, w.Reason, closed, why)
	}
	return w
}

// wantsClosed fails unless that round closed last, for that reason.
func (r *world) wantsClosed(closed uint32, why rounds.Reason) rounds.Why {
	r.t.Helper()
	if got := r.m.Fragment(0).Closed(); got != closed || len(r.closed) == 0 || r.closed[len(r.closed)-1].Reason != why {
		r.t.Errorf("closed %d, why: %v; want %d and %q", got, r.closed, closed, why)
		return rounds.Why{}
	}
	return r.closed[len(r.closed)-1]
}

// measured has the authors publish in two rounds at once: from then on grace is the least.
func measured(t *testing.T, change func(p *outer.Params), authors ...byte) *world {
	r := newWorld(t, change)
	live := []outer.Author{self}
	for _, a := range authors {
		live = append(live, outer.Author{a})
	}
	r.m.SetLive(live)
	r.m.SetIdle([]outer.Author{self})
	for round := uint32(1); round <= 2; round++ {
		for _, a := range authors {
			r.take(a, round)
		}
	}
	r.wantsClosed(2, rounds.Complete)
	return r
}

func rowOver(t *testing.T) {
	r := newWorld(t, func(p *outer.Params) { p.Budget = 3 * 24 * 512 })
	r.closeTo(4)
	_ = r.give(r.delta(1, 5), false)
	_ = r.give(r.delta(1, 6), false)
	r.pass(10 * r.p.GraceMaxMs)
	r.wants(4, rounds.Over)
}

func rowTooSoon(t *testing.T) {
	r := newWorld(t, func(p *outer.Params) { p.MinRoundMs = 500 })
	r.closeTo(8)
	r.take(1, 9)
	r.pass(499)
	r.wants(8, rounds.TooSoon)
	r.pass(1)
	r.wantsClosed(9, rounds.Complete)
}

func rowClosedElsewhere(t *testing.T) {
	r := newWorld(t, nil)
	r.m.SetLive([]outer.Author{{1}, {2}})
	r.take(1, 1)
	r.wants(0, rounds.InGrace)
	r.m.CloseTo(r.now, 0, 2)
	r.execute()
	r.wantsClosed(2, rounds.ClosedElsewhere)
}

func rowNext(t *testing.T) {
	r := newWorld(t, nil)
	r.m.SetLive([]outer.Author{{1}, {2}, {3}})
	d := r.delta(1, 2)
	if err := r.m.Offer(r.now, d, false); err != nil {
		t.Fatal(err)
	}
	r.wants(0, rounds.NoProposal) // a header alone closes nothing
	r.take(2, 3)
	r.wants(0, rounds.NoProposal) // nor does a delta further ahead
	r.m.Payload(r.now, 0, 2, d.ID, rounds.PayloadHeld)
	r.execute()
	r.wantsClosed(2, rounds.NextHeld) // round 2 closes 1, and round 3, held already, then closes 2
	specGuestsCloseNothing(t, nil)
}

func rowLeftOut(t *testing.T) {
	for _, rests := range []bool{false, true} {
		r := newWorld(t, func(p *outer.Params) { p.H, p.WindowUnion = 5, 64 })
		r.closeTo(4)
		r.m.RaiseMark(0, 6)
		r.m.SetLive([]outer.Author{self, {1}})
		for range 16*5 - 1 {
			r.m.Stepped(r.now, 1)
		}
		r.wants(4, rounds.NoProposal)
		if rests {
			r.m.SetStopped(r.now, true, true)
			r.pass(r.p.GraceMaxMs)
		} else {
			r.m.Stepped(r.now, 1)
		}
		r.execute()
		r.wantsClosed(6, rounds.LeftOut)
	}
}

func rowNoProposal(t *testing.T) {
	r := newWorld(t, nil)
	r.m.SetLive([]outer.Author{{1}, {2}})
	r.pass(10 * r.p.GraceMaxMs)
	if w := r.wants(0, rounds.NoProposal); w.Waited != 0 || w.Most != 0 {
		t.Errorf("it waited %d ms of %d for no proposal", w.Waited, w.Most)
	}
}

// rowComplete has a round close once all have published, and not before what is on its way of somebody else is here.
func rowComplete(t *testing.T) {
	r := measured(t, nil, 1, 2)
	r.m.SetLive([]outer.Author{{1}})
	d := r.delta(2, 3)
	if err := r.m.Offer(r.now, d, false); err != nil {
		t.Fatal(err)
	}
	r.wants(2, rounds.TooFew)
	r.take(1, 3)
	if w := r.wants(2, rounds.InGrace); w.For != (outer.Author{2}) {
		t.Errorf("it waits for the delta of %d", w.For[0])
	}
	r.m.Payload(r.now, 0, 3, d.ID, rounds.PayloadHeld)
	r.execute()
	r.wantsClosed(3, rounds.Complete)
}

// rowLimitOver: a proposal whose payload never comes.
func rowLimitOver(t *testing.T) {
	r := measured(t, func(p *outer.Params) { p.Quorum = 2 }, 1, 2)
	r.take(2, 3)
	if err := r.m.Offer(r.now, r.delta(1, 3), false); err != nil {
		t.Fatal(err)
	}
	r.pass(r.p.GraceMaxMs - 1)
	r.wants(2, rounds.TooFew)
	r.pass(1)
	if w := r.wantsClosed(3, rounds.GraceLimitOver); w.Waited != r.p.GraceMaxMs || w.Most != r.p.GraceMaxMs || w.For != (outer.Author{1}) {
		t.Errorf("it waited %d ms of %d for %d", w.Waited, w.Most, w.For[0])
	}
}

func rowLeaving(t *testing.T) {
	for _, leaves := range []bool{false, true} {
		r := measured(t, nil, 1, 2)
		r.m.SetStopped(r.now, leaves, leaves)
		r.take(1, 3)
		r.pass(r.p.GraceMinMs)
		if !leaves {
			r.wantsClosed(3, rounds.GraceOver)
			continue
		}
		r.wants(2, rounds.Leaving)
		r.take(2, 3)
		r.wantsClosed(3, rounds.Complete)
	}
}

func rowTooFew(t *testing.T) {
	r := measured(t, func(p *outer.Params) { p.Quorum = 2 }, 1, 2, 3)
	r.take(1, 3)
	r.pass(r.p.GraceMinMs)
	if w := r.wants(2, rounds.TooFew); w.For[0] < 2 || w.Waited != r.p.GraceMinMs || w.Most != r.p.GraceMaxMs {
		t.Errorf("it waited %d ms of %d for %d", w.Waited, w.Most, w.For[0])
	}
	r.take(2, 3)
	r.pass(0)
	r.wantsClosed(3, rounds.GraceOver)
}

func rowGrace(t *testing.T) {
	r := measured(t, nil, 1, 2)
	r.take(1, 3)
	r.pass(r.p.GraceMinMs - 1)
	w := r.wants(2, rounds.InGrace)
	if w.For != (outer.Author{2}) || w.Waited != r.p.GraceMinMs-1 || w.Most != r.p.GraceMinMs {
		t.Errorf("it waited %d ms of %d for %d", w.Waited, w.Most, w.For[0])
	}
	if got, want := w.Text(), "waits for the delta of 0200000000, 0.1 s of at most 0.1 s"; got != want {
		t.Errorf("it says %q, want %q", got, want)
	}
	r.pass(1)
	w = r.wantsClosed(3, rounds.GraceOver)
	if got, want := w.Text(), "went on without the delta of 0200000000, 0.1 s of at most 0.1 s"; got != want {
		t.Errorf("it says %q, want %q", got, want)
	}
}

// Every row has words for people, and a word that no other row has.
func TestReasonsHaveWords(t *testing.T) {
	seen := map[string]bool{}
	for i, row := range rounds.ClosingRows() {
		w := rounds.Why{Reason: rounds.Reason(i)}
		if w.String() != row.Word || seen[row.Word] || w.Text() == "" || strings.Contains(w.Text(), "%") || w.Closes() != row.Says {
			t.Errorf("row %d: %q says %q", i, w, w.Text())
		}
		seen[row.Word] = true
	}
}

// rowMuted has a round wait for an author until it is revoked, or signed twice.
func rowMuted(t *testing.T) {
	for name, silence := range map[string]func(r *world){
		"revoked":  func(r *world) { r.refusedWith(nil, r.revocation([32]byte{3}, 1), false) },
		"excluded": func(r *world) { r.m.Exclude(r.now, 0, 9, outer.Author{3}) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newWorld(t, nil)
			r.m.SetLive([]outer.Author{{1}, {2}, {3}})
			r.take(1, 1)
			r.take(2, 1)
			r.wants(0, rounds.InGrace)
			silence(r)
			r.execute()
			r.wantsClosed(1, rounds.Complete)
		})
	}
}

// rowHeld has a round wait for each that is sampled until its delta is held.
func rowHeld(t *testing.T) {
	r := newWorld(t, nil)
	r.m.SetLive([]outer.Author{{1}, {2}, {3}})
	r.take(2, 1)
	if w := r.wants(0, rounds.InGrace); w.For != (outer.Author{1}) {
		t.Errorf("it waits for %d", w.For[0])
	}
	r.take(1, 1)
	if w := r.wants(0, rounds.InGrace); w.For != (outer.Author{3}) {
		t.Errorf("it waits for %d", w.For[0])
	}
	r.take(3, 1)
	r.wantsClosed(1, rounds.Complete)
}

// rowSpent has an author step no more, with nothing on its way or with what was announced.
func rowSpent(t *testing.T) {
	for _, announced := range []bool{false, true} {
		r := newWorld(t, nil)
		r.m.SetLive([]outer.Author{{1}, {2}})
		if announced {
			if err := r.m.Offer(r.now, r.delta(2, 1), false); err != nil {
				t.Fatal(err)
			}
		}
		r.spent = func(a outer.Author) bool { return a == outer.Author{2} }
		if r.take(1, 1); announced {
			r.wants(0, rounds.InGrace)
		} else {
			r.wantsClosed(1, rounds.Complete)
		}
	}
}

// rowAnnounced has an author of a thin link announce a delta, in a run of long rounds and in another.
func rowAnnounced(t *testing.T) {
	for most, waits := range map[rounds.Time]bool{outer.LongGraceMs: false, outer.LongGraceMs + 1: true} {
		r := newWorld(t, func(p *outer.Params) { p.GraceMaxMs = most })
		r.m.SetLive([]outer.Author{{1}, {2}})
		r.m.SetPlans(map[outer.Author]uint32{{2}: 1000})
		if err := r.m.Offer(r.now, r.delta(2, 1), false); err != nil {
			t.Fatal(err)
		}
		if r.take(1, 1); waits {
			r.wants(0, rounds.InGrace)
		} else {
			r.wantsClosed(1, rounds.Complete)
		}
	}
}

// rowThin has author 2 plan one and a half times the node's 4 steps, or one less.
func rowThin(t *testing.T) {
	for plan, waits := range map[uint32]uint32{5: 2, 6: 3, 8: 3, 9: 4} {
		r := newWorld(t, nil)
		r.m.SetLive([]outer.Author{self, {1}, {2}})
		r.m.SetIdle([]outer.Author{self})
		r.m.SetPlans(map[outer.Author]uint32{{2}: plan})
		r.take(2, 1)
		for round := uint32(1); round < waits; round++ {
			r.take(1, round)
			r.wantsClosed(round, rounds.Complete)
		}
		r.take(1, waits)
		r.wants(waits-1, rounds.InGrace)
	}
}
