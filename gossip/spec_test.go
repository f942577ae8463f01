package gossip

import (
	"bytes"
	"slices"
	"testing"

	"atoll/gossip/hello"
	"atoll/gossip/peers"
	"atoll/gossip/wire"
	"atoll/gossip/wire/spectest"
)

// The clauses of gossip/SPEC.md that bind the core of spreading, and what it
// does besides. These tests drive one core whose peers the test plays: inputs go in,
// and what it then asks, says and answers is compared with the text.

// told has a peer's heartbeat arrive: an ordinary one, changed by change.
func (a *alone) told(id byte, change func(b *wire.Heartbeat)) []Effect {
	return a.toldBy(id, id, change)
}

// toldBy is told where another peer brings the heartbeat.
func (a *alone) toldBy(from, id byte, change func(b *wire.Heartbeat)) []Effect {
	closed := a.core.peers.Heartbeats.Closed()
	b := wire.Heartbeat{Author: wire.PeerID{id}, Seq: 1, State: wire.Training, Closed: closed, Unpublished: make([]uint64, len(closed)), Lag: 2}
	b.Chain, b.StateDigest, _ = a.core.peers.Heartbeats.DigestsAt(peers.Lagged(closed, 2))
	if p := a.core.env.Find(b.Author); p != nil && p.Heartbeat != nil {
		b.Incarnation, b.Seq = p.Heartbeat.Incarnation, p.Heartbeat.Seq+1
	}
	if change != nil {
		change(&b)
	}
	a.core.Step(a.now, Received{From: wire.PeerID{from}, Message: wire.Message{Heartbeat: &b}})
	return a.core.Effects()
}

// apart makes a heartbeat unequal.
func apart(b *wire.Heartbeat) { b.Chain[0] ^= 1 }

// wait lets time pass, in which some peers give signs of life.
func (a *alone) wait(ms Time, alive ...byte) (all []Effect) {
	for end := a.now + ms; a.now < end; {
		a.now += min(100, end-a.now)
		for _, id := range alive {
			a.core.heardOf(a.now, wire.PeerID{id})
		}
		a.core.Tick(a.now)
		all = append(all, a.core.Effects()...)
	}
	return all
}

// question is a request that the core sent.
type question struct {
	wire.Request
	call Call
	to   byte
}

// questions are the requests of some kinds among effects, of all without kinds.
func questions(t testing.TB, effects []Effect, kinds ...wire.RequestKind) (all []question) {
	t.Helper()
	for _, c := range calls(effects) {
		r, err := wire.DecodeRequest(c.Request)
		if err != nil {
			t.Fatal(err)
		}
		if len(kinds) == 0 || slices.Contains(kinds, r.Kind) {
			all = append(all, question{r, c, c.To[0]})
		}
	}
	return all
}

// answer gives a question an answer.
func (a *alone) answer(q question, body []byte) []Effect {
	a.core.Step(a.now, Answered{Call: q.call.ID, Response: wire.Response{Status: wire.OK, Body: body}.Encode()})
	return a.core.Effects()
}

func (a *alone) fails(q question, s wire.Status) []Effect {
	a.core.Step(a.now, Answered{Call: q.call.ID, Response: wire.Response{Status: s}.Encode()})
	return a.core.Effects()
}

// brought has a peer forward a header.
func (a *alone) brought(from byte, s wire.SignedHeader) []Effect {
	a.core.Step(a.now, Received{From: wire.PeerID{from}, Message: wire.Message{Header: &s}})
	return a.core.Effects()
}

// up begins a session with a peer and returns what that causes.
func (a *alone) up(id byte) []Effect {
	peer := wire.PeerID{id}
	record := hello.Record{Author: peer}
	if of := a.core.env.cfg.Members.Of(peer); len(of) > 0 {
		record.Certificate = of[0].Encode()
	}
	a.core.Step(a.now, PeerUp{Peer: peer, Record: record})
	return a.core.Effects()
}

// at is a core with peers that have all sent a heartbeat.
func specAlone(peers ...byte) *alone {
	a := newAlone()
	for _, id := range peers {
		a.up(id)
		a.told(id, nil)
	}
	return a
}

func find[E Effect](effects []Effect) (all []E) {
	for _, e := range effects {
		if e, ok := e.(E); ok {
			all = append(all, e)
		}
	}
	return all
}

// equals fails unless a number of the code is the number of a table.
func numbers(t *testing.T, s *spectest.Spec, table string, code map[string]int64) {
	t.Helper()
	rows := s.Table(t, table)
	if len(rows) != len(code) {
		t.Errorf("table %q has %d rows, %d are compared", table, len(rows), len(code))
	}
	for name, n := range code {
		if got := s.Number(t, table, name); got != n {
			t.Errorf("table %q says %s is %d, the code %d", table, name, got, n)
		}
	}
}

// recordOf is a signed record of a key.
func recordOf(t testing.TB, key int, run wire.RunID, change func(r *hello.Record)) []byte {
	t.Helper()
	r := hello.Record{
		Protocol: hello.Protocol, Run: run, Seq: 1, Role: hello.Learner, Trainer: hello.Builtin,
		Precision: "f32", Agent: "test", Addrs: []string{"/ip4/10.0.0.1/tcp/1"},
	}
	if change != nil {
		change(&r)
	}
	s, err := hello.Sign(testKey(key), r)
	if err != nil {
		t.Fatal(err)
	}
	return s.Encode()
}

// heartbeatsIn are the own heartbeats among effects.
func (a *alone) heartbeatsIn(t testing.TB, effects []Effect) (all []wire.Heartbeat) {
	t.Helper()
	for _, p := range find[Publish](effects) {
		m, err := wire.Open(a.run, p.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		if m.Heartbeat != nil {
			all = append(all, *m.Heartbeat)
		}
	}
	return all
}

// blamed are those whom effects name for a fault.
func blamed(effects []Effect) (ids []wire.PeerID) {
	for _, m := range find[Misbehaved](effects) {
		ids = append(ids, m.Peer)
	}
	return ids
}

// holds closes a fragment with one delta of a key in each round.
func (a *alone) holds(key byte, f uint16, rounds uint32, tokens uint64) {
	for r := a.chain.closed[f] + 1; r <= rounds; r++ {
		h := wire.Header{Author: wire.PeerID{key}, Fragment: f, Round: r, Base: r - 1, Steps: 1, Tokens: tokens, Size: 1}
		a.chain.store(wire.SignedHeader{Header: h}, []byte{1})
	}
	a.chain.close(int(f), rounds)
}

func sameIDs(t testing.TB, what string, got []wire.PeerID, want ...wire.PeerID) {
	t.Helper()
	if !slices.EqualFunc(got, want, func(a, b wire.PeerID) bool { return bytes.Equal(a[:], b[:]) }) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}
