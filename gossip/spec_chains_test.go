package gossip

import (
	"strconv"
	"strings"
	"testing"

	"atoll/gossip/peers"
	"atoll/gossip/wire"
	"atoll/gossip/wire/spectest"
)

// Which of two chains is followed.

// parseChain reads a chain as the text writes it.
func parseChain(t testing.TB, text string) *fakeChain {
	t.Helper()
	base, rounds, ok := strings.Cut(text, ":")
	b, err := strconv.Atoi(base)
	if !ok || err != nil {
		t.Fatalf("chain %q", text)
	}
	var authors []byte
	for _, f := range strings.Fields(rounds) {
		n, err := strconv.Atoi(f)
		if err != nil {
			t.Fatalf("chain %q: %v", text, err)
		}
		authors = append(authors, byte(n))
	}
	return chainOf(uint32(b), authors...)
}

var (
	relationNames = map[relation]string{joined: "joined", behind: "behind", before: "before", newerBase: "newer base", olderBase: "older base", deepFork: "deep"}
	courseNames   = map[course]string{reconcile: "reconcile", takeSnapshot: "take", giveSnapshot: "give", wait: "wait"}
)

func specRelations(t *testing.T, s *spectest.Spec) {
	met := map[string]bool{}
	for _, row := range s.Table(t, "forks") {
		a, b := newSide(t, parseChain(t, row[0])), newSide(t, parseChain(t, row[1]))
		ses := a.compares(b)
		got := relationNames[a.repair.relate(0, &ses.fragments[0])]
		if met[got] = true; got != row[2] {
			t.Errorf("%s with %s: stands %q", row[0], row[1], got)
		}
	}
	for _, row := range s.Table(t, "relations") {
		if !met[row[0]] {
			t.Errorf("no example of %s", row[0])
		}
	}
}

// course of a against b, and why.
func courseOf(a, b side, change func(ses *session)) string {
	ses := a.compares(b)
	if change != nil {
		change(ses)
	}
	return courseNames[a.repair.judge(ses).course]
}

func specCourses(t *testing.T, s *spectest.Spec) {
	for _, row := range s.Table(t, "forks") {
		a, b := newSide(t, parseChain(t, row[0])), newSide(t, parseChain(t, row[1]))
		if got := courseOf(a, b, nil); got != row[3] {
			t.Errorf("%s with %s: course %s", row[0], row[1], got)
		}
	}
	two := func(one, other string) *fakeChain { // a chain of two fragments
		c := newFakeChain(wire.RunID{1}, 2)
		for f, text := range []string{one, other} {
			x := parseChain(t, text)
			for _, h := range x.held {
				h.Header.Fragment = uint16(f)
				c.store(h, []byte{1})
			}
			c.closed[f] = x.closed[0]
			c.baseChain[f], _ = c.ChainDigest(f, x.base[0])
			c.base[f] = x.base[0]
		}
		return c
	}
	one := func(text string) side { return newSide(t, parseChain(t, text)) }
	spent := func(ses *session) { repairOf(ses.peer).spent = spentRepairs }
	cases := map[string]struct {
		a, b   side
		change func(ses *session)
		want   string
	}{
		"crossed":      {one("6: 1 1 1 1 1 1 1 1"), one("0: 2 2 2"), func(ses *session) { ses.peer.Heartbeat.Folded = 50 }, "take"},
		"not believed": {one("0: 1"), one("3: 1 2 2 2"), func(ses *session) { ses.peer.Heartbeat.Closed = []uint32{2} }, "wait"},
		"alone":        {newSide(t, two("2: 1 2 2", "5: 1 2 2 2 2 2")), newSide(t, two("0: 1 3 3", "0: 1")), nil, "take"}, // with more tokens
		"both": {newSide(t, two("2: 1 2 2", "0: 1 3 3")), newSide(t, two("0: 1 3 3", "2: 1 2 2")),
			func(ses *session) { ses.peer.Heartbeat.Folded = 5 }, "wait"}, // it folded 6
		"behind":       {one("0: 1"), one("3: 1 2 2 2"), nil, "take"},
		"outweighed":   {one("2: 1 2 2"), one("0: 1 3 3 3"), nil, "take"},
		"outweighs":    {one("2: 1 2 2 2"), one("0: 1 3 3"), nil, "give"},
		"not followed": {one("5: 1 2 2 2 2 2"), one("0: 1"), nil, "take"},
		"spent":        {one("0: 1 3 3"), one("2: 1 2 2 2"), spent, "take"},
		"give":         {one("0: 1 3 3 3"), one("2: 1 2 2"), spent, "give"},
		"far":          {one("0: 0"), one("0: 0 0 0 0 0 0 0 0 0 0"), nil, "take"},
		"else":         {one("0: 1 2 2"), one("0: 1 3 3"), nil, "reconcile"},
	}
	for _, name := range []string{"not followed", "alone"} {
		lone := cases[name]
		lone.a.env.chain.(*fakeChain).contributed = map[wire.PeerID]bool{{1}: true, {2}: true, {3}: true}
		lone.a.hears(wire.PeerID{2}, 1)
		lone.a.hears(wire.PeerID{3}, 1)
	}
	rows := s.Table(t, "courses")
	for _, row := range rows {
		c, ok := cases[row[0]]
		if !ok {
			t.Errorf("no example of %s", row[0])
			continue
		}
		got := courseOf(c.a, c.b, c.change)
		if got != c.want || row[2] != c.want && row[2] != "by tokens" {
			t.Errorf("%s: course %s, want %s, the text says %s", row[0], got, c.want, row[2])
		}
	}
	// What is crossed comes first, what is not believed before what speaks for taking.
	crossed := cases["crossed"]
	if got := courseOf(crossed.a, crossed.b, func(ses *session) { ses.peer.Heartbeat.Folded = 3 }); got != "give" {
		t.Errorf("not crossed: course %s", got)
	}
	if got := courseOf(cases["both"].a, cases["both"].b, func(ses *session) { ses.peer.Heartbeat.Folded = 7 }); got != "take" {
		t.Errorf("both, fewer tokens here: course %s", got)
	}
}

func TestForkCrossed(t *testing.T) {
	for _, c := range []struct {
		here, there string
		folded      uint64 // that the peer's heartbeat shows
		want        bool
	}{
		{"6: 1 1 1 1 1 1 1 1", "0: 2 2 2", 9, true},
		{"6: 1 1 1 1 1 1 1 1", "0: 2 2 2", 8, false},
		{"0: 2 2 2", "6: 1 1 1 1 1 1 1 1", 2, true},
		{"0: 2 2 2", "6: 1 1 1 1 1 1 1 1", 3, false},
		{"0: 1 1 1 1", "0: 2 2 2", 99, false},
	} {
		a, b := newSide(t, parseChain(t, c.here)), newSide(t, parseChain(t, c.there))
		ses := a.compares(b)
		ses.peer.Heartbeat.Folded = c.folded
		var at [deepFork + 1]int
		at[a.repair.relate(0, &ses.fragments[0])]++
		if got := a.repair.crossed(ses.peer, at[before], at[behind]); got != c.want {
			t.Errorf("%s with %s and %d tokens: crossed %v", c.here, c.there, c.folded, got)
		}
	}
}

func TestForkBelieved(t *testing.T) {
	for _, c := range []struct {
		name    string
		claim   uint32   // that the peer's heartbeat says it closed
		others  []uint32 // that other live peers closed
		trusted bool
		want    string
	}{
		{"one claims it", 4, nil, false, "take"}, {"its heartbeat says less", 2, nil, true, "wait"},
		{"others say less", 4, []uint32{1, 1, 1}, false, "wait"}, {"half say so", 4, []uint32{4, 1, 1}, false, "wait"},
		{"most say so", 4, []uint32{4, 4, 1}, false, "take"}, {"the link says so", 4, []uint32{1, 1, 1}, true, "take"},
	} {
		a, b := newSide(t, parseChain(t, "0: 1")), newSide(t, parseChain(t, "3: 1 2 2 2"))
		contributed := map[wire.PeerID]bool{{1}: true, {2}: true, {3}: true, {4}: true}
		a.env.chain.(*fakeChain).contributed = contributed
		if c.trusted {
			a.env.Config.Trusted = []wire.PeerID{{1}}
		}
		for i, closed := range c.others {
			a.hears(wire.PeerID{byte(i + 2)}, closed)
		}
		if got := courseOf(a, b, func(ses *session) { ses.peer.Heartbeat.Closed = []uint32{c.claim} }); got != c.want {
			t.Errorf("%s: course %s", c.name, got)
		}
	}
}

func specAttested(t *testing.T, s *spectest.Spec) {
	votes := int(s.Number(t, "repair", "votes"))
	for _, c := range []struct {
		peers, contributed, yes int // the first ones have contributed, and the first ones show it
		want                    bool
	}{
		{votes, votes, 1, false}, {votes, votes, 2, true}, {4, 4, 2, false}, {4, 4, 3, true}, {votes - 1, votes - 1, 1, true},
		{votes - 1, votes - 1, 0, false}, {6, 2, 1, true}, {6, 3, 1, false}, {6, 0, 3, false}, {6, 0, 4, true}, {0, 0, 0, false},
	} {
		a := specAlone()
		a.chain.contributed = map[wire.PeerID]bool{}
		for i := range c.peers {
			a.up(byte(i + 1))
			a.told(byte(i+1), nil)
			a.chain.contributed[wire.PeerID{byte(i + 1)}] = i < c.contributed
		}
		a.told(99, nil) // without a session
		got := a.core.repair.attested(func(p *peers.Peer) bool { return int(p.ID[0]) <= c.yes || p.ID[0] == 99 })
		if got != c.want {
			t.Errorf("%+v: attested %v", c, got)
		}
	}
}

func specContributed(t *testing.T, _ *spectest.Spec) {
	a := specAlone(1, 2, 3)
	a.core.env.Config.Trusted = []wire.PeerID{{1}}
	a.holds(2, 0, 1, 1)
	for id, want := range map[byte]bool{1: true, 2: true, 3: false} {
		if got := a.core.env.Contributed(a.core.env.Find(wire.PeerID{id})); got != want {
			t.Errorf("peer %d: contributed %v", id, got)
		}
	}
}

func TestForkOthersBelieve(t *testing.T) {
	s := spectest.Load(t)
	votes := int(s.Number(t, "repair", "votes"))
	for _, c := range []struct {
		there, behind int // live contributors
		want          bool
	}{{0, votes - 1, true}, {0, votes, false}, {1, 2, true}, {1, 3, false}, {2, 3, true}} {
		a := specAlone()
		a.holds(99, 0, 10, 1)
		a.chain.contributed = map[wire.PeerID]bool{}
		a.chain.base[0] = 5
		a.chain.baseChain[0] = wire.Digest{1}
		for i := range c.there + c.behind {
			id := byte(i + 1)
			a.chain.contributed[wire.PeerID{id}] = true
			closed := uint32(4)
			if i < c.there {
				closed = 5
			}
			a.up(id)
			a.told(id, func(b *wire.Heartbeat) { b.Closed[0] = closed })
		}
		if got := a.core.repair.followed(); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

func TestForkFar(t *testing.T) {
	zeros := func(n int) string { return "0:" + strings.Repeat(" 0", n) }
	for name, c := range map[string]struct {
		rounds int // of the peer, to one of the node
		change func(a side, ses *session)
		want   string
	}{
		"far":                  {10, nil, "take"},
		"not far":              {9, nil, "reconcile"},
		"behind":               {10, func(_ side, ses *session) { ses.fragments[0].theirs.Closed = 0 }, "reconcile"},
		"a round differs":      {10, func(_ side, ses *session) { ses.fragments[0].forked = true }, "reconcile"},
		"its heartbeat is not": {10, func(_ side, ses *session) { ses.peer.Heartbeat.Closed = []uint32{9} }, "reconcile"},
		"fresh snapshot":       {10, func(a side, _ *session) { a.env.Now = 5; a.repair.snapshot.took = 5 }, "reconcile"},
		"others are not": {10, func(a side, _ *session) {
			for id := byte(2); id < 5; id++ {
				a.hears(wire.PeerID{id}, 1)
				a.env.chain.(*fakeChain).contributed = map[wire.PeerID]bool{{1}: true, {2}: true, {3}: true, {4}: true}
			}
		}, "reconcile"},
	} {
		a, b := newSide(t, parseChain(t, zeros(1))), newSide(t, parseChain(t, zeros(c.rounds)))
		got := courseOf(a, b, func(ses *session) {
			if c.change != nil {
				c.change(a, ses)
			}
		})
		if got != c.want {
			t.Errorf("%s: course %s", name, got)
		}
	}
}

func TestForkFresh(t *testing.T) {
	took := func() *alone {
		a := specAlone(1)
		a.now = 1
		a.core.at(a.now)
		a.core.snapshot.stage = installing
		a.core.Installed(a.now, []uint32{0, 0, 0, 0}, nil)
		return a
	}
	a := took()
	fresh := Time(repairTtlMs)
	for _, c := range []struct {
		at   Time
		want bool
	}{{fresh, true}, {fresh + 1, false}} {
		if a.core.at(c.at); a.core.snapshot.fresh() != c.want {
			t.Errorf("fresh %v at %d", !c.want, c.at)
		}
	}
	a = took()
	if a.told(1, apart); !a.core.snapshot.fresh() {
		t.Error("not fresh after an unequal heartbeat")
	}
	if a.told(1, nil); a.core.snapshot.fresh() {
		t.Error("fresh after an equal heartbeat")
	}
}

func TestForkByTokens(t *testing.T) {
	for folded, want := range map[uint64]course{4: wait, 6: takeSnapshot} {
		a := newSide(t, parseChain(t, "0: 1"))
		p := a.hears(wire.PeerID{1}, 1)
		a.repair.heartbeats.Said().Folded, p.Heartbeat.Folded = 5, folded
		if got := a.repair.byTokens(p); got.course != want {
			t.Errorf("5 tokens here and %d there: %s", folded, courseNames[got.course])
		}
	}
	a := newSide(t, parseChain(t, "0: 1"))
	p := a.hears(wire.PeerID{1}, 1)
	p.Heartbeat = nil
	if got := a.repair.byTokens(p); got.course != wait {
		t.Errorf("without a heartbeat: %s", courseNames[got.course])
	}
}

func TestForkLoses(t *testing.T) {
	for _, c := range []struct {
		mine, theirs uint64
		chain        int // of the peer's heartbeat, compared with the node's
		want         bool
	}{{5, 6, 1, true}, {6, 5, -1, false}, {5, 5, -1, true}, {5, 5, 1, false}, {5, 5, 0, false}} {
		a := newSide(t, parseChain(t, "0: 1"))
		p := a.hears(wire.PeerID{1}, 1)
		a.repair.heartbeats.Said().Folded, p.Heartbeat.Folded = c.mine, c.theirs
		a.repair.heartbeats.Said().Chain, p.Heartbeat.Chain = wire.Digest{5}, wire.Digest{byte(5 + c.chain)}
		if got := a.repair.loses(p); got != c.want {
			t.Errorf("%+v: loses %v", c, got)
		}
	}
	// A peer with more tokens in its last heartbeat, but not more than this node has by now,
	// nor had at that round.
	for _, lags := range [][2]uint8{{2, 2}, {0, 2}, {2, 0}, {0, 0}} {
		a := newSide(t, parseChain(t, "0: 1 1 1"))
		a.repair.heartbeats.Said().Folded, a.repair.heartbeats.Said().Lag = 1, lags[0]
		p := a.hears(wire.PeerID{1}, 3)
		p.Heartbeat.Folded, p.Heartbeat.Lag = 2, lags[1]
		if got, want := a.repair.loses(p), lags[0] == 0 || lags[1] == 0; got != want {
			t.Errorf("lags %v: loses %v", lags, got)
		}
	}
}

// trains makes a side that trains beside a peer: its last heartbeat is of one round, and
// has the digest 5.
func trains(t *testing.T, chain string) (side, *peers.Peer) {
	a := newSide(t, parseChain(t, chain))
	said := a.repair.heartbeats.Said()
	said.Lag, said.Closed, said.Folded, said.Chain = 2, []uint32{1}, 1, wire.Digest{5}
	p := a.hears(wire.PeerID{1}, 0)
	showsChain(p, false)
	return a, p
}

// heartbeatsAt has the peer show so many tokens at a round.
func heartbeatsAt(p *peers.Peer, closed uint32, folded uint64, chain byte) {
	heartbeat := *p.Heartbeat
	heartbeat.Lag, heartbeat.Closed, heartbeat.Folded, heartbeat.Chain = 2, []uint32{closed}, folded, wire.Digest{chain}
	p.Heartbeat = &heartbeat
}

func TestForkBehindInTokens(t *testing.T) {
	for _, c := range []struct {
		name   string
		here   string
		closed uint32
		folded uint64
		chain  byte
		want   bool
	}{
		{"fewer by more than its last two rounds", "0: 1 1 1", 9, 6, 6, true},
		{"fewer by as much", "0: 1 1 1", 9, 5, 6, false},
		{"as many by now, fewer then", "0: 1 1 1", 2, 3, 6, true},
		{"as many then, the smaller digest", "0: 1 1 1", 3, 3, 6, false},
		{"as many then, the greater digest", "0: 1 1 1", 3, 3, 4, true},
		{"more then", "0: 1 1 1", 3, 2, 4, false},
		{"not known any more", "2: 1 1 1", 1, 3, 6, true},
	} {
		a, p := trains(t, c.here)
		heartbeatsAt(p, c.closed, c.folded, c.chain)
		if got := a.repair.loses(p); got != c.want {
			t.Errorf("%s: loses %v", c.name, got)
		}
	}
}

func TestForkHeartbeatIsRemembered(t *testing.T) {
	for _, c := range []struct {
		name  string
		made  uint64   // by this node in rounds 4 and 5 of fragment 0
		later []uint32 // what the peer says it closed when this node has closed these
		equal bool     // its heartbeats were meanwhile
		want  bool
	}{
		{"fewer then", 0, []uint32{7, 4}, false, true},
		{"more then", 2, []uint32{7, 4}, false, false},
		{"a round is open again", 0, []uint32{4, 6}, false, false},
		{"its heartbeats were equal meanwhile", 0, []uint32{6, 6}, true, false},
	} {
		chain := newFakeChain(wire.RunID{1}, 2)
		close := func(f int, tokens ...uint64) {
			for _, n := range tokens {
				chain.closed[f]++
				h := wire.Header{Author: wire.PeerID{9}, Fragment: uint16(f), Round: chain.closed[f], Tokens: n}
				chain.store(wire.SignedHeader{Header: h}, []byte{1})
			}
		}
		close(0, 1, 1, 1)
		close(1, 1, 1, 1, 1, 9)
		a := newSide(t, chain)
		*a.repair.heartbeats.Said() = wire.Heartbeat{Closed: []uint32{3, 4}, Lag: 2, Folded: 7, Chain: wire.Digest{5}}
		p := a.hears(wire.PeerID{1}, 0)
		showsChain(p, false)
		p.Heartbeat = &wire.Heartbeat{Author: p.ID, State: wire.Training, Closed: []uint32{5, 3}, Lag: 2, Folded: 8, Chain: wire.Digest{6}}
		if a.repair.loses(p) {
			t.Errorf("%s: loses before it closed as much", c.name)
		}
		showsChain(p, c.equal)
		a.repair.tick()
		showsChain(p, false)
		close(0, c.made, c.made)
		p.Heartbeat = &wire.Heartbeat{Author: p.ID, State: wire.Training, Closed: c.later, Lag: 2, Folded: 10, Chain: wire.Digest{6}}
		if got := a.repair.loses(p); got != c.want {
			t.Errorf("%s: loses %v", c.name, got)
		}
	}
}

func TestForkUnheeded(t *testing.T) {
	self := newSide(t, parseChain(t, "0: 1")).env.cfg.Self
	three := []wire.PeerID{{1}, {2}, {3}}
	for name, c := range map[string]struct {
		contributed []wire.PeerID
		left        int // of the three
		want        bool
	}{
		"two of three left": {three, 2, true},
		"one of three left": {three, 1, false},
		"it has folded":     {append([]wire.PeerID{self}, three...), 3, false},
		"strangers left":    {three[2:], 2, false},
		"half of two left":  {three[:2], 1, false},
		"the only one left": {three[:1], 1, false},
	} {
		chain := parseChain(t, "0: 1")
		chain.contributed = map[wire.PeerID]bool{self: false}
		for _, id := range c.contributed {
			chain.contributed[id] = true
		}
		a := newSide(t, chain)
		for i, id := range three {
			p := a.hears(id, 1)
			p.Heartbeat.Folded = 0
			showsChain(p, i >= c.left)
		}
		if got := a.repair.unheeded(); got != c.want {
			t.Errorf("%s: unheeded %v", name, got)
		}
		p := a.env.Find(wire.PeerID{1})
		if got := a.repair.loses(p); got != c.want {
			t.Errorf("%s: loses %v to one with less", name, got)
		}
	}
}

// forks has a peer show another chain than the node's, with more tokens, where the
// node's base is above the fork, and returns what the node does.
func (a *alone) forks(t testing.TB, id byte) []Effect {
	t.Helper()
	a.holds(9, 0, 6, 1)
	a.chain.baseChain[0], _ = a.chain.ChainDigest(0, 4)
	a.chain.base[0] = 4
	a.wait(1000, 1, 2, 3, 4) // it has said what it folded
	q := a.compares(t, id, 6, 0)
	a.core.env.Find(wire.PeerID{id}).Heartbeat.Folded = 1000
	e := a.shown(q, 6, func(i int, r *wire.RangeAnswer) {
		if i == 0 {
			r.Chain = wire.Digest{77}
		}
	})
	if q := questions(t, e, wire.GetRounds); len(q) == 1 { // the chain at its base
		return a.shown(q[0], 6, nil)
	}
	return e
}

func specTrusted(t *testing.T, _ *spectest.Spec) {
	for name, c := range map[string]struct {
		prepare func(a *alone)
		take    bool
	}{
		"a stranger beside contributors": {func(a *alone) { a.chain.contributed = map[wire.PeerID]bool{{2}: true, {3}: true, {4}: true} }, false},
		"a contributor":                  {func(a *alone) { a.chain.contributed = map[wire.PeerID]bool{{1}: true, {2}: true, {3}: true} }, true},
		"most others left": {func(a *alone) {
			a.chain.contributed = map[wire.PeerID]bool{{2}: true, {3}: true, {4}: true}
			for id := byte(2); id < 4; id++ {
				for range 2 {
					a.told(id, func(b *wire.Heartbeat) { apart(b); b.Folded = 1000 })
				}
			}
			a.core.repair.sessions = nil
		}, true},
		"they have fewer tokens": {func(a *alone) {
			a.chain.contributed = map[wire.PeerID]bool{{2}: true, {3}: true, {4}: true}
			for id := byte(2); id < 4; id++ {
				for range 2 {
					a.told(id, apart)
				}
			}
			a.core.repair.sessions = nil
		}, false},
	} {
		a := specAlone(2, 3, 4)
		c.prepare(a)
		m := find[BaseMismatch](a.forks(t, 1))
		if len(m) != 1 || m[0].Take != c.take {
			t.Errorf("%s: %+v", name, m)
		}
	}
}

func TestForkTakes(t *testing.T) {
	a := specAlone(2, 3)
	a.chain.contributed = map[wire.PeerID]bool{{1}: true}
	a.core.env.Config.Trusted = []wire.PeerID{{2}}
	q := questions(t, a.forks(t, 1), wire.GetManifest)
	if len(q) != 1 || q[0].to != 1 {
		t.Fatalf("asks %+v", q)
	}
	if e := append(a.fails(q[0], wire.NotFound), a.wait(20_000, 1, 2, 3)...); len(questions(t, e, wire.GetManifest)) != 0 {
		t.Error("asks another one for another snapshot")
	}
}

func TestForkGives(t *testing.T) {
	a := newAlone()
	a.holds(9, 0, 6, 1)
	q := a.compares(t, 1, 6, 3)
	e := a.shown(q, 6, func(i int, r *wire.RangeAnswer) { // its base is above the fork
		if r.Closed = 3; i == 0 {
			r.Base, r.Closed = 4, 6
			r.Sets = []wire.Digest{{5}}
		}
	})
	e = a.shown(questions(t, e, wire.GetRounds)[0], 6, func(_ int, r *wire.RangeAnswer) { r.Chain = wire.Digest{77} })
	if m := find[BaseMismatch](e); len(m) != 1 || m[0].Take {
		t.Fatalf("%+v", m)
	}
	h := questions(t, e, wire.GetHeaders)
	if len(h) != 1 {
		t.Fatalf("asks %+v", h)
	}
	signed := a.signed(9, 1)
	e = a.answer(h[0], wire.EncodeHeaders([]wire.SignedHeader{signed}))
	a.core.Complete(a.now, signed.Header.ID(a.run), nil)
	if e = append(e, a.core.Effects()...); count[Offer](e) != 1 || count[CatchUp](e) != 0 || len(a.core.repair.sessions) != 0 {
		t.Errorf("%v", e)
	}
}

func TestForkHolds(t *testing.T) {
	a := specAlone(2, 3, 4)
	a.chain.contributed = map[wire.PeerID]bool{{2}: true, {3}: true, {4}: true}
	e := a.forks(t, 1)
	if q := questions(t, e); len(q) != 0 || len(a.core.repair.sessions) != 0 {
		t.Errorf("asks %+v", q)
	}
	if a.repairs(t, 1) {
		t.Error("compares again at once")
	}
	a.wait(Time(a.core.HeartbeatPeriodMs()), 1)
	if !a.repairs(t, 1) {
		t.Error("does not compare again")
	}
}
