package gossip

import (
	"testing"

	"atoll/gossip/wire"
)

// suspects has a peer show another state, and returns what the core asks.
func (a *alone) suspects(t testing.TB, id byte) []question {
	t.Helper()
	return questions(t, a.told(id, func(b *wire.Beat) { b.StateDigest[0] ^= 1 }), wire.GetRounds)
}

func TestAuditBegins(t *testing.T) {

	a := specAlone(1, 2)
	if q := a.suspects(t, 3); len(q) != 0 {
		t.Errorf("one that is not connected: asks %+v", q)
	}
	if q := a.suspects(t, 1); len(q) != 1 || q[0].to != 1 {
		t.Errorf("asks %+v", q)
	}
	a.core.calls = nil // the answer never comes
	a.wait(2*auditPauseMs, 1, 2)
	if q := a.suspects(t, 2); len(q) != 0 {
		t.Errorf("a second one at a time: asks %+v", q)
	}
}

// auditTimes are when audits with peers begin in some ms, of whom each shows
// another state all the time and answers nothing.
func (a *alone) auditTimes(t testing.TB, ms Time, ids ...byte) (at []Time) {
	t.Helper()
	for end := a.now + ms; a.now < end; a.now += 10_000 { // the pauses are multiples of that
		for _, id := range ids {
			a.core.heardOf(a.now, wire.PeerID{id})
		}
		a.core.Tick(a.now)
		a.core.Effects()
		for _, id := range ids {
			for _, q := range a.suspects(t, id) {
				at = append(at, a.now)
				a.fails(q, wire.Busy)
			}
		}
	}
	return at
}

func TestAuditPause(t *testing.T) {
	pause, longest := Time(auditPauseMs), Time(auditPauseMaxMs)
	a := specAlone(1)
	a.core.cfg.Trusted = []wire.PeerID{{1}, {2}, {3}}
	at := a.auditTimes(t, 5*longest, 1)
	for i, want := 1, pause; i < len(at); i, want = i+1, min(2*want, longest) {
		if got := at[i] - at[i-1]; got != want {
			t.Errorf("pause %d is %d, want %d", i, got, want)
		}
	}
	if len(at) < 9 {
		t.Errorf("%d audits", len(at))
	}
	a = specAlone(1, 2, 3)
	a.core.cfg.Trusted = []wire.PeerID{{1}, {2}, {3}}
	if at := a.auditTimes(t, 3*pause, 1, 2, 3); len(at) != 3 || at[1]-at[0] != pause || at[2]-at[1] != pause {
		t.Errorf("with three peers at %v", at)
	}
}

func TestAuditStrangers(t *testing.T) {
	pause := Time(auditPauseMs)
	a := specAlone(1, 2, 3, 4)
	a.core.cfg.Trusted = []wire.PeerID{{4}}
	at := a.auditTimes(t, 7*pause, 1, 2, 3)
	if len(at) != 3 || at[1]-at[0] != pause || at[2]-at[1] != 2*pause {
		t.Errorf("strangers at %v", at)
	}
	if at := a.auditTimes(t, 1000, 4); len(at) != 1 {
		t.Errorf("a contributor at %v", at)
	}
}

// doubted is a core whose peer 1 shows another state from round 6 of fragment 0
// on, both at round 8 of 10, with the request about that.
func doubted(t testing.TB, bases ...uint32) (*alone, question) {
	t.Helper()
	a := specAlone(1)
	a.holds(9, 0, 10, 1)
	a.chain.bases = [][]uint32{bases, bases}
	q := a.suspects(t, 1)
	if len(q) != 1 {
		t.Fatalf("asks %+v", q)
	}
	return a, q[0]
}

// states answers about rounds as a peer would whose states of fragment 0 differ
// from a round on.
func (a *alone) states(q question, from uint32) []Effect {
	answers := make([]wire.RangeAnswer, len(q.Ranges))
	for i, r := range q.Ranges {
		answers[i].Closed = 10
		answers[i].Chain, _ = a.chain.ChainDigest(int(r.Fragment), r.From-1)
		answers[i].State, _ = a.chain.StateDigest(int(r.Fragment), r.From-1)
		if r.Fragment == 0 && r.From-1 >= from {
			answers[i].State[0] ^= 1
		}
	}
	return a.answer(q, wire.EncodeRounds(answers))
}

func TestAuditAsks(t *testing.T) {
	_, q := doubted(t, 0)
	if len(q.Ranges) != 2 || q.Ranges[0] != (wire.Range{From: 9, To: 9}) || q.Ranges[1] != (wire.Range{Fragment: 1, From: 1, To: 1}) {
		t.Errorf("asks for %v", q.Ranges)
	}
}

func TestAuditTraces(t *testing.T) {
	a, q := doubted(t, 0, 4, 7, 8, 9)
	next := questions(t, a.states(q, 6))
	if len(next) != 1 || len(next[0].Ranges) != 3 {
		t.Fatalf("asks %+v", next)
	}
	for i, base := range []uint32{0, 4, 7} {
		if next[0].Ranges[i] != (wire.Range{From: base + 1, To: base + 1}) {
			t.Errorf("asks for %v", next[0].Ranges)
		}
	}
	a, q = doubted(t, 0, 4)
	if next := questions(t, a.states(q, 9)); len(next) != 0 {
		t.Errorf("nothing differs: asks %+v", next)
	}
}

func TestAuditFolds(t *testing.T) {
	a, q := doubted(t, 0, 4, 5, 7)
	e := a.states(questions(t, a.states(q, 6))[0], 6)
	if got := find[Audit](e); len(got) != 1 || got[0] != (Audit{Peer: wire.PeerID{1}, Fragment: 0, Shared: 5}) {
		t.Errorf("folds %+v", got)
	}
}

func TestAuditNothing(t *testing.T) {
	a, q := doubted(t, 6, 7)
	if e := a.states(questions(t, a.states(q, 6))[0], 6); count[Audit](e) != 0 {
		t.Errorf("folds %v", e)
	}
	a, q = doubted(t, 8)
	if e := a.states(q, 6); count[Audit](e) != 0 || len(questions(t, e)) != 0 {
		t.Errorf("without an older tip: %v", e)
	}
}
