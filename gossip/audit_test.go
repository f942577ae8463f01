package gossip

import (
	"slices"
	"testing"

	"atoll/gossip/effect"
	"atoll/gossip/wire"
)

// audits are those that the outer side of a node was asked for.
func (n *node) audits() (all []Audit) {
	for _, e := range n.effects {
		if e, ok := e.(Audit); ok {
			all = append(all, e)
		}
	}
	return all
}

// auditWorld trains some rounds among nodes that keep the given bases of each
// fragment; node 1 miscalculates fragment 1 from round 6 on.
func auditWorld(t *testing.T, bases ...uint32) *world {
	w := newWorld(t, 5, 3, options{})
	for _, n := range w.nodes {
		n.chain.bases = [][]uint32{bases, bases, bases}
	}
	w.nodes[1].chain.wrong = map[int]uint32{1: 6}
	w.train(10, fixed(100))
	return w
}

// Both sides of a difference fold again from the newest base up to which they
// agree, in the fragment that differs and in no other. Peers that agree with
// each other are left alone.
func TestAuditFindsCommonGround(t *testing.T) {
	w := auditWorld(t, 0, 2, 5, 7, 8)
	w.runUntil(w.now + 20_000)
	for i, n := range w.nodes {
		others := []wire.PeerID{w.nodes[1].id}
		if i == 1 {
			others = []wire.PeerID{w.nodes[0].id, w.nodes[2].id}
		}
		got := n.audits()
		if len(got) != 1 || got[0].Fragment != 1 || got[0].Shared != 5 || !slices.Contains(others, got[0].Peer) {
			t.Errorf("node %d was asked for %+v", i, got)
		}
	}
}

// What peers answer to an audit need not make sense.
func TestAuditOfALiar(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]func([]byte) []byte{
		"nothing": func([]byte) []byte { return nil },
		"cut":     func(b []byte) []byte { return b[:len(b)/2] },
		"noise":   func(b []byte) []byte { return slices.Repeat([]byte{0xff}, len(b)) },
	} {
		w := auditWorld(t, 0, 5)
		w.nodes[1].lie = func(kind wire.RequestKind, b []byte) []byte {
			if kind == wire.GetRounds {
				return body(b)
			}
			return b
		}
		w.runUntil(w.now + 200_000)
		if n := w.nodes[0]; len(n.audits()) != 0 || n.core.audit.busy {
			t.Errorf("%s: %d audits, busy %t", name, len(n.audits()), n.core.audit.busy)
		}
	}
}

// suspects has a peer show another state, and returns what the core asks.
func (a *alone) suspects(t testing.TB, id byte) []question {
	t.Helper()
	return questions(t, a.told(id, func(b *wire.Heartbeat) { b.StateDigest[0] ^= 1 }), wire.GetRounds)
}

func TestAuditBegins(t *testing.T) {
	a := specAlone(1, 2)
	if q := a.suspects(t, 3); len(q) != 0 {
		t.Errorf("one that is not connected: asks %+v", q)
	}
	if q := a.suspects(t, 1); len(q) != 1 || q[0].to != 1 {
		t.Errorf("asks %+v", q)
	}
	a.core.env.Queue = &effect.Queue{Now: a.core.env.Now} // the answer never comes
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
	a.core.env.Config.Trusted = []wire.PeerID{{1}, {2}, {3}}
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
	a.core.env.Config.Trusted = []wire.PeerID{{1}, {2}, {3}}
	if at := a.auditTimes(t, 3*pause, 1, 2, 3); len(at) != 3 || at[1]-at[0] != pause || at[2]-at[1] != pause {
		t.Errorf("with three peers at %v", at)
	}
}

func TestAuditStrangers(t *testing.T) {
	pause := Time(auditPauseMs)
	a := specAlone(1, 2, 3, 4)
	a.core.env.Config.Trusted = []wire.PeerID{{4}}
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
