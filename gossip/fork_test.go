package gossip

import (
	"cmp"
	"maps"
	"slices"
	"testing"

	"atoll/gossip/peers"
	"atoll/gossip/serve"
	"atoll/gossip/wire"

	"pgregory.net/rapid"
)

// side is one of two nodes that compare: its history per fragment is a list
// of chain digests from base to closed.
type side struct {
	env    *env
	repair *repair
}

func newSide(t interface{ Fatalf(string, ...any) }, chain *fakeChain) side {
	e, _ := newEnv(Config{Key: testKey(0), WindowUnion: 16}.withDefaults(), chain)
	if _, said := chain.contributed[e.cfg.Self]; !said { // it has folded of its own
		chain.contributed = maps.Clone(chain.contributed)
		if chain.contributed == nil {
			chain.contributed = map[wire.PeerID]bool{}
		}
		chain.contributed[e.cfg.Self] = true
	}
	r := &repair{env: e, snapshot: &snapshot{env: e}, weighed: map[wire.PeerID]*wire.Heartbeat{}}
	e.heartbeats.Set(peers.SelfState{State: wire.Observing})
	e.heartbeats.Send()
	return side{e, r}
}

// answers is what o says to a request for rounds.
func (s side) answers(r wire.Request) []wire.RangeAnswer {
	srv := serve.New(s.env.Table, s.env.heartbeats, serve.Config{WindowAccept: s.env.cfg.WindowAccept, UnionBase: s.env.unionBase}, s.env.chain, nil, nil, nil)
	s.env.Take()
	srv.Request(1, wire.PeerID{1}, r.Encode())
	body, err := wire.OpenResponse(find[Reply](s.env.Take())[0].Response, r.Kind.MaxResponse())
	if err != nil {
		panic(err)
	}
	answers, err := wire.DecodeRounds(body, r.Ranges)
	if err != nil {
		panic(err)
	}
	return answers
}

// compares runs the questions of a repair of s with o, without a network.
func (s side) compares(o side) *session {
	p := s.env.Ensure(wire.PeerID{1}, true)
	p.Connected, p.Heartbeat = true, o.repair.heartbeats.Said()
	showsChain(p, false)
	s.env.Hear(p)
	ses := &session{peer: p, waiting: map[wire.Digest]uint16{}}
	s.repair.plan(ses)
	for i, answer := range o.answers(wire.Request{Kind: wire.GetRounds, Ranges: ses.ranges}) {
		s.repair.compare(ses, ses.ranges[i], answer)
	}
	for f := range ses.fragments {
		base := ses.fragments[f].theirs.Base
		ses.fragments[f].chainTheirs = o.answers(wire.Request{Kind: wire.GetRounds, Ranges: []wire.Range{{Fragment: uint16(f), From: base + 1, To: base + 1}}})[0].Chain
	}
	return ses
}

// drawChains makes chains with a common beginning that go apart somewhere, with
// bases and closed rounds anywhere.
func drawChains(t *rapid.T, n int) []*fakeChain {
	chains := make([]*fakeChain, n)
	for i := range chains {
		chains[i] = newFakeChain(wire.RunID{1}, 2)
	}
	for f := range 2 {
		fork := rapid.Uint32Range(0, 12).Draw(t, "fork")
		for i, c := range chains {
			closed := rapid.Uint32Range(0, 14).Draw(t, "closed")
			base := rapid.Uint32Range(0, closed).Draw(t, "base")
			for r := uint32(1); r <= closed; r++ {
				h := wire.Header{Author: wire.PeerID{9}, Fragment: uint16(f), Round: r, Tokens: 10}
				if r > fork {
					h.Author = wire.PeerID{byte(i + 1)}
					h.Tokens = uint64(rapid.IntRange(1, 3).Draw(t, "tokens"))
				}
				c.store(wire.SignedHeader{Header: h}, []byte{1})
			}
			c.closed[f] = closed
			c.baseChain[f], _ = c.ChainDigest(f, base)
			c.base[f] = base
		}
	}
	return chains
}

// TestBothSidesDecideTheSame checks three things. Two nodes never take a snapshot of
// each other at once. Where they cannot reconcile, one takes a snapshot, at the latest when
// the other has nothing more to give. They reconcile together.
func TestBothSidesDecideTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		chains := drawChains(t, 2)
		ca, cb := chains[0], chains[1]
		a, b := newSide(t, ca), newSide(t, cb)
		sa, sb := a.compares(b), b.compares(a)
		if rapid.Bool().Draw(t, "nothing more to be had") {
			repairOf(sa.peer).spent, repairOf(sb.peer).spent = spentRepairs, spentRepairs
		}
		da, db := a.repair.judge(sa), b.repair.judge(sb)
		if da.course == takeSnapshot && db.course == takeSnapshot {
			t.Fatalf("both take a snapshot: %v and %v", da, db)
		}
		stuck := func(c course) bool { return c == giveSnapshot || c == wait }
		if repairOf(sa.peer).spent > 0 && stuck(da.course) && stuck(db.course) && !sameSnapshot(ca, cb) {
			t.Fatalf("nobody takes a snapshot: %v and %v", da, db)
		}
		if da.course == reconcile && db.course != reconcile && db.course != takeSnapshot {
			t.Fatalf("one reconciles, the other waits: %v and %v", da, db)
		}
	})
}

// race is two nodes that train side by side on chains that no union mends. Each has
// its own pace and its own times of heartbeats.
type race struct {
	t     *rapid.T
	sides [2]side
	known [2]*peers.Peer // of each, the other one as it knows it
	sent  [2]uint32      // heartbeats
}

func newRace(t *rapid.T) *race {
	r := &race{t: t}
	for i := range r.sides {
		c := newFakeChain(wire.RunID{1}, 3)
		r.sides[i] = newSide(t, c)
	}
	for i := range r.sides {
		r.known[i] = r.sides[i].hears(wire.PeerID{byte(2 - i)}, 0)
		showsChain(r.known[i], false)
		r.closes(i, []uint64{1, 1, 1})
		r.heartbeats(i)
	}
	for i := range r.sides {
		r.hears(i)
	}
	return r
}

// closes has a side close a round of each fragment that gets any tokens.
func (r *race) closes(i int, tokens []uint64) {
	c := r.sides[i].env.chain.(*fakeChain)
	for f, n := range tokens {
		if n > 0 {
			c.closed[f]++
			h := wire.Header{Author: wire.PeerID{byte(i + 1)}, Fragment: uint16(f), Round: c.closed[f], Tokens: n}
			c.store(wire.SignedHeader{Header: h}, []byte{1})
		}
	}
}

func (r *race) heartbeats(i int) {
	b := r.sides[i].repair.heartbeats
	r.sent[i]++
	heartbeat := wire.Heartbeat{State: wire.Training, Seq: uint64(r.sent[i]), Lag: 2, Closed: b.Closed()}
	heartbeat.Folded, _ = r.sides[i].env.chain.TokensAt(heartbeat.Closed)
	heartbeat.Chain, _, _ = b.DigestsAt(peers.Lagged(heartbeat.Closed, heartbeat.Lag))
	*b.Said() = heartbeat
}

// hears has a side hear the last heartbeat of the other.
func (r *race) hears(i int) {
	heartbeat := *r.sides[1-i].repair.heartbeats.Said()
	r.known[i].Heartbeat = &heartbeat
}

// TestTwoThatTrainNeverBothLose has two forks go on side by side, that send heartbeats, hear
// each other and compare whenever they like: at no time do both lose.
func TestTwoThatTrainNeverBothLose(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := newRace(t)
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			i := rapid.IntRange(0, 1).Draw(t, "side")
			switch rapid.IntRange(0, 2).Draw(t, "event") {
			case 0:
				r.closes(i, rapid.SliceOfN(rapid.Uint64Range(0, 3), 3, 3).Draw(t, "tokens"))
			case 1:
				r.heartbeats(i)
			case 2:
				r.hears(i)
			}
			a, b := r.sides[0].repair.loses(r.known[0]), r.sides[1].repair.loses(r.known[1])
			if a && b {
				t.Fatalf("both lose: %+v and %+v", r.known[0].Heartbeat, r.known[1].Heartbeat)
			}
		}
	})
}

// pace is how one side of a race trains, in ticks and tokens.
type pace struct {
	every, phase      int    // ticks to a round, and from one fragment's to the next one's
	tokens            uint64 // of a round
	heartbeat, offset int    // ticks to a heartbeat, and to the first
}

func drawPace(t *rapid.T) pace {
	p := pace{every: rapid.IntRange(1, 3).Draw(t, "ticks to a round"), phase: rapid.IntRange(0, 2).Draw(t, "phase")}
	p.tokens = uint64(p.every) * rapid.Uint64Range(20, 24).Draw(t, "tokens of a tick")
	p.heartbeat = rapid.IntRange(1, 6).Draw(t, "ticks to a heartbeat")
	p.offset = rapid.IntRange(0, p.heartbeat-1).Draw(t, "first heartbeat")
	return p
}

// goOn lets a tick pass: a node compares when it has heard the other one. It returns
// who loses.
func (r *race) goOn(now int, paces [2]pace) (losers []int) {
	for i, p := range paces {
		made := make([]uint64, 3)
		for f := range made {
			if (now+f*p.phase)%p.every == 0 {
				made[f] = p.tokens
			}
		}
		r.closes(i, made)
	}
	for i, p := range paces {
		if now%p.heartbeat == p.offset {
			r.heartbeats(i)
		}
	}
	for i := range paces {
		if other := paces[1-i]; now%other.heartbeat == other.offset {
			if r.hears(i); r.sides[i].repair.loses(r.known[i]) {
				losers = append(losers, i)
			}
		}
	}
	return losers
}

// TestOneOfTwoThatTrainLoses has two forks train side by side, at paces and phases
// that may favour either. One of them loses soon, and the other does not lose while
// the first takes a snapshot.
func TestOneOfTwoThatTrainLoses(t *testing.T) {
	const limit, transfer = 300, 100 // ticks
	rapid.Check(t, func(t *rapid.T) {
		paces := [2]pace{drawPace(t), drawPace(t)}
		a, b := paces[0], paces[1]
		byTime := cmp.Compare(a.tokens*uint64(b.every), b.tokens*uint64(a.every))
		if byTime == 0 || byTime != cmp.Compare(a.tokens, b.tokens) {
			t.Skip("neither has more both of a tick and of a round")
		}
		r := newRace(t)
		now, losers := 0, []int(nil)
		for ; now < 9; now++ { // what the last rounds bring is to be known
			r.goOn(now, paces)
		}
		for ; len(losers) == 0 && now < limit; now++ {
			losers = r.goOn(now, paces)
		}
		if len(losers) == 0 {
			t.Fatalf("nobody has lost after %d ticks", limit)
		}
		for until := now + transfer; now < until; now++ {
			losers = append(losers, r.goOn(now, paces)...)
		}
		if slices.Contains(losers, 0) && slices.Contains(losers, 1) {
			t.Fatalf("one loses while the other takes its snapshot: %v", losers)
		}
	})
}

// TestChoicesHaveNoCycle checks that three nodes at rest do not take snapshots
// round in a circle: each would leave the next one's chain for ever.
func TestChoicesHaveNoCycle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		chains := drawChains(t, 3)
		x, y, z := chains[0].FoldedTokens(), chains[1].FoldedTokens(), chains[2].FoldedTokens()
		if x == y || y == z || z == x {
			t.Skip("a tie between chains of unequal length")
		}
		takes := func(i, j int) bool {
			a, b := newSide(t, chains[i]), newSide(t, chains[j])
			s := a.compares(b)
			repairOf(s.peer).spent = spentRepairs
			return a.repair.judge(s).course == takeSnapshot
		}
		if takes(0, 1) && takes(1, 2) && takes(2, 0) || takes(1, 0) && takes(2, 1) && takes(0, 2) {
			t.Fatal("three nodes take a snapshot of each other in a circle")
		}
	})
}

func sameSnapshot(a, b *fakeChain) bool {
	for f := range a.closed {
		x, _ := a.ChainDigest(f, a.closed[f])
		y, _ := b.ChainDigest(f, b.closed[f])
		if x != y {
			return false
		}
	}
	return true
}

// chainOf is a chain of one fragment whose rounds have deltas by the authors
// named.
func chainOf(base uint32, authors ...byte) *fakeChain {
	c := newFakeChain(wire.RunID{1}, 1)
	for i, a := range authors {
		c.store(wire.SignedHeader{Header: wire.Header{Author: wire.PeerID{a}, Round: uint32(i + 1), Tokens: 1}}, []byte{1})
	}
	c.closed[0] = uint32(len(authors))
	c.baseChain[0], _ = c.ChainDigest(0, base)
	c.base[0] = base
	return c
}

// hears adds a live peer whose heartbeat says what it closed.
func (s side) hears(id wire.PeerID, closed uint32) *peers.Peer {
	p := s.env.Ensure(id, true)
	p.Connected = true
	p.Heartbeat = &wire.Heartbeat{Author: id, State: wire.Training, Closed: []uint32{closed}, Folded: uint64(closed)}
	s.env.Hear(p)
	return p
}

// showsChain says whether a peer's last heartbeats are of this node's chain.
func showsChain(p *peers.Peer, same bool) {
	for range peers.HeartbeatsToRepair {
		p.Shows(same)
	}
}
