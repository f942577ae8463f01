package node

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"testing"
	"time"

	"atoll/gossip/p2p"
	"atoll/gossip/wire"
	"atoll/gossip/wire/spectest"
	"atoll/node/core"
	"atoll/node/inspect/ledgertest"
	"atoll/node/ledger"
	"atoll/optimizer/outer"
	"atoll/optimizer/rounds"
)

// One test for each clause of gossip/SPEC.md that is about processes with one key
// and about snapshots that are given away.
func TestSpecProcesses(t *testing.T) {
	spectest.Run(t, "T", map[string]spectest.Clause{
		"T-1": specRecordNumber, "T-2": specListens, "T-3": specDuplicateKeyEnds, "T-4": specDuplicateKeyNamed, "T-5": specGiven,
	})
}

func specRecordNumber(t *testing.T, s *spectest.Spec) {
	for name, n := range map[string]int64{"listen": listenHeartbeats, "longest listen": listenMaxMs} {
		if got := s.Number(t, "processes", name); got != n {
			t.Errorf("%s is %d, the text says %d", name, n, got)
		}
	}
	key := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	n := &node{identity: identity{key: key, self: wire.PeerIDOf(key)}, cfg: Config{Observe: true}}
	r := n.firstRecord()
	r.StartedMs = 1_700_000_000_000
	box := &recordBox{key: key}
	for i := range uint64(3) {
		if err := box.set(r); err != nil {
			t.Fatal(err)
		}
		signed, err := box.latest().Open()
		if err != nil || signed.Seq != uint64(r.StartedMs)+1+i {
			t.Errorf("record %d has number %d, %v", i, signed.Seq, err)
		}
		r = box.get()
		r.Addrs = nil
	}
}

// specPeriod is the heartbeat period of these tests.
const specPeriod = 2000

func specListens(t *testing.T, s *spectest.Spec) {
	listen := core.Time(s.Number(t, "processes", "listen") * specPeriod)
	if w := (keyWatch{}); !w.listen(1, specPeriod) {
		t.Error("listens to nobody")
	}
	w := keyWatch{self: 50_000}
	w.peerUp(1000)
	if w.listen(1000+listen-1, specPeriod) || !w.listen(1000+listen, specPeriod) {
		t.Error("another time since the first session")
	}
	w = keyWatch{self: 50_000}
	w.peerUp(1000)
	w.heartbeat(3000, wire.Heartbeat{Incarnation: 20_000, State: wire.Training})
	if w.listen(3000+listen-1, specPeriod) || !w.listen(3000+listen, specPeriod) {
		t.Error("another time since the last heartbeat")
	}
	w = keyWatch{self: 50_000}
	w.peerUp(1000)
	most, from := core.Time(s.Number(t, "processes", "longest listen")), core.Time(2000)
	for at := from; at < from+most; at += specPeriod / 2 {
		w.heartbeat(at, wire.Heartbeat{Incarnation: 20_000, State: wire.Training})
		if w.listen(at, specPeriod) {
			t.Fatalf("steps after %d", at-from)
		}
	}
	w.heartbeat(from+most, wire.Heartbeat{Incarnation: 20_000, State: wire.Training})
	if !w.listen(from+most, specPeriod) {
		t.Error("listens for ever")
	}
}

func TestDuplicateKeyIsTakenForAlive(t *testing.T) {
	echo := core.Time(echoMs)
	for _, c := range []struct {
		equal  bool // the node shows a peer's digests
		caught core.Time
		folded uint64 // that the heartbeat shows
		want   bool
	}{{true, echo, 701, true}, {true, echo, 700, false}, {true, echo - 1, 701, false}, {false, echo, 701, false}} {
		w := keyWatch{self: 50_000, in: true}
		w.follow(c.caught, 700, c.equal)
		if got := w.heartbeat(c.caught+1, wire.Heartbeat{Incarnation: 20_000, State: wire.Training, Folded: c.folded}); got != c.want {
			t.Errorf("%+v: alive %v", c, got)
		}
	}
}

func TestHeartbeatsThatProveNoDuplicateKey(t *testing.T) {
	for _, c := range []struct {
		state wire.State
		in    bool  // the node is at work
		other int64 // start of the other process, the node's is 50,000
		want  bool
	}{
		{wire.Training, true, 20_000, true}, {wire.Leaving, true, 20_000, false}, {wire.Leaving, false, 20_000, false},
		{wire.Joining, true, 20_000, false}, {wire.Joining, false, 20_000, true}, {wire.Joining, false, 90_000, false},
	} {
		w := keyWatch{self: 50_000, in: c.in}
		w.follow(echoMs, 700, true)
		if got := w.heartbeat(echoMs, wire.Heartbeat{Incarnation: c.other, State: c.state, Folded: 999}); got != c.want {
			t.Errorf("%+v: alive %v", c, got)
		}
	}
}

func specDuplicateKeyEnds(t *testing.T, _ *spectest.Spec) {
	for _, c := range []struct {
		in    bool
		other int64
		want  bool
	}{{false, 90_000, true}, {false, 20_000, true}, {true, 20_000, true}, {true, 90_000, false}} {
		n := &node{}
		n.duplicate.keyWatch = keyWatch{self: 50_000, in: c.in, caught: true, known: 700}
		n.duplicate.said = true
		n.heardDuplicate(1, wire.Heartbeat{Incarnation: c.other, State: wire.Training, Folded: 701})
		if got := n.fatal != nil; got != c.want || got && !errors.Is(n.fatal, ErrDuplicateKey) {
			t.Errorf("%+v: ends with %v", c, n.fatal)
		}
	}
}

func specDuplicateKeyNamed(t *testing.T, _ *spectest.Spec) {
	named, given, met := peerAddr(1, "/ip4/192.0.2.1/tcp/1"), peerAddr(2, "/ip4/192.0.2.2/tcp/1"), peerAddr(3, "/ip4/192.0.2.3/tcp/1")
	refused := fmt.Errorf("dial: %w: %w", p2p.ErrRefusedByPeer, p2p.ErrDuplicateKey)
	for _, c := range []struct {
		addr string
		err  error
		want bool
	}{{named, refused, true}, {given, refused, true}, {met, refused, false}, {named, p2p.ErrRefusedByPeer, false}} {
		n := &node{cfg: Config{Peers: []string{given}}, knownPeers: knownPeers{named: peerIDs([]string{named})}}
		if n.refusedAsDuplicate(peerIDs([]string{c.addr})[0], c.addr, c.err); (n.fatal != nil) != c.want {
			t.Errorf("%s, %v: ends with %v", c.addr, c.err, n.fatal)
		}
	}
}

func TestAloneAfter(t *testing.T) {
	alone := defaultAloneAfter
	for given, want := range map[time.Duration]time.Duration{0: alone, time.Second: time.Second} {
		c, err := Config{Dir: "x", AloneAfter: given}.withDefaults()
		if err != nil || c.AloneAfter != want {
			t.Errorf("with %v given %v, %v", given, c.AloneAfter, err)
		}
	}
}

func specGiven(t *testing.T, _ *spectest.Spec) {
	l := ledgertest.New(t).Rounds(6)
	defer l.Close()
	for _, c := range []struct{ bases, want uint32 }{{4, 4}, {3, 3}, {5, 5}} { // beside the tip of round 6
		if d := core.GiveTip(l.Genesis.OuterParams(), restored(l, c.bases, 6), 0); d.Round != c.want {
			t.Errorf("with tips of rounds %d and 6: gives round %d", c.bases, d.Round)
		}
	}
}

func TestGivesSnapshotsOfChosenRounds(t *testing.T) {
	l := ledgertest.New(t).Rounds(8)
	defer l.Close()
	machine := restored(l, 2, 8)
	for round, want := range map[uint32]bool{1: false, 2: true, 3: true, 6: true, 7: false, 8: true, 9: false} {
		d := core.GiveTipAt(l.Genesis.OuterParams(), machine, 0, round)
		if given := len(d.Links) > 0; given != want || given && d.Round != round {
			t.Errorf("round %d: given %v, %+v", round, given, d.Round)
		}
	}
}

// restored are the rounds of a node that closed so many and keeps two bases.
func restored(l *ledgertest.Writer, base, closed uint32) *rounds.Machine {
	l.T.Helper()
	m := rounds.New(rounds.Config{Params: l.Genesis.OuterParams()}, l.Genesis.Tips())
	for p, tip := range l.Tips {
		s := rounds.Restored{Tip: tip, Bases: []uint32{base, closed}, Closed: closed}
		kept := ledger.New(l.Store, l.Plan, l.Genesis.OuterParams(), nil)
		l.Check(kept.Rounds(p, 1, closed, func(link outer.Link) error {
			s.History = append(s.History, link)
			return nil
		}))
		l.Check(kept.Held(p, base+1, func(id wire.Digest, h wire.SignedHeader) { s.Held = append(s.Held, core.DeltaOf(id, h.Header, nil)) }))
		m.Restore(1, p, s)
	}
	return m
}
