package testnet

import (
	"crypto/ed25519"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"atoll/gossip/wire"
	"atoll/node/genesis"
	"atoll/node/status"
	"atoll/node/store"
	"atoll/optimizer/outer"
	"atoll/optimizer/outer/outertest"
)

// fakeRun is the run of synthetic ledgers: two fragments, and the first has
// three quarters of the parameters, and a union window of two rounds.
var (
	fakeRun  = wire.RunID{1}
	fakePlan = outer.Plan{{Len: 3}, {Len: 1}}
)

var fakeOuter = func() outer.Params {
	p := outertest.Plain(len(fakePlan), 1<<40, 0)
	p.WindowUnion = 2
	return p
}()

// fakeNode is a node's folder in the making.
type fakeNode struct {
	t     *testing.T
	m     *member
	key   ed25519.PrivateKey
	store *store.Store
	seq   uint64
}

func newFakeNode(t *testing.T, index int) *fakeNode {
	t.Helper()
	n := &fakeNode{t: t, m: &member{index: index, dir: filepath.Join(t.TempDir(), nodeName(index)), divisor: 1}}
	s, err := store.Open(n.m.dir, fakeRun)
	n.must(err)
	n.store = s
	n.key, _, err = store.LoadKey(n.m.dir)
	n.must(err)
	n.m.lives = []*life{{seen: true, final: true, last: status.Snapshot{Agreement: status.Agreement{Finished: true}, Fragments: make([]status.Fragment, len(fakePlan))}}}
	return n
}

func (n *fakeNode) must(err error) {
	n.t.Helper()
	if err != nil {
		n.t.Fatal(err)
	}
}

func (n *fakeNode) author() wire.PeerID { return wire.PeerIDOf(n.key) }

// publish puts a delta of the node into its ledger and into ledgers of others.
func (n *fakeNode) publish(fragment int, round uint32, tokens uint64, others ...*fakeNode) wire.Digest {
	n.t.Helper()
	payload := []byte{byte(fragment), byte(round)}
	h := wire.SignHeader(n.key, fakeRun, wire.Header{
		Fragment: uint16(fragment), Round: round, Base: round - 1, Steps: 1, Tokens: tokens, Codec: 4, Size: uint32(len(payload)), Payload: wire.Sum(payload),
	})
	id := h.Header.ID(fakeRun)
	n.must(n.store.PutOwn(id, h, payload, store.OwnMeta{Seq: n.seq}))
	n.seq++
	for _, o := range others {
		n.must(o.store.PutDelta(id, h, payload))
	}
	return id
}

// close closes a round in the node's ledger.
func (n *fakeNode) close(fragment int, round uint32, tokens uint64, folded ...wire.Digest) {
	n.t.Helper()
	n.must(n.store.PutRound(fragment, round, store.Round{Tokens: tokens, Folded: folded}))
	n.m.lives[0].last.Fragments[fragment].Closed = round
}

// stop writes the step log and closes the ledger.
func (n *fakeNode) stop(trained, told uint64, unpublished ...uint64) {
	n.t.Helper()
	l, err := n.store.OpenStepLog()
	n.must(err)
	n.must(l.Append(store.Step{Number: 1, Tokens: trained}))
	n.must(l.Close())
	n.must(n.store.Close())
	last := &n.m.lives[0].last
	last.TokensTrained = told
	for p, u := range unpublished {
		last.Fragments[p].Unpublished = u
	}
}

func fakeWorld(nodes ...*fakeNode) *world {
	w := &world{}
	for _, n := range nodes {
		w.members = append(w.members, n.m)
	}
	return w
}

func (w *world) fakeAccount(t *testing.T) account {
	t.Helper()
	ref := w.members[0]
	s, err := store.OpenReadOnly(ref.dir)
	if err != nil {
		t.Fatal(err)
	}
	c, err := readChain(ledgers{s}, fakePlan, fakeOuter)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	a, err := w.account(ref, c)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// twoNodes is an honest run: a trains 100 tokens, b 60, and each fragment has
// its own story of where they went.
func twoNodes(t *testing.T) (a, b *fakeNode) {
	a, b = newFakeNode(t, 0), newFakeNode(t, 1)
	a1, b1 := a.publish(0, 1, 40, b), b.publish(0, 1, 60, a)
	a.close(0, 1, 100, a1, b1)
	a2 := a.publish(0, 2, 50, b)
	a.close(0, 2, 150, a2)
	a.close(0, 3, 150) // nothing came
	a.publish(1, 1, 70, b)
	a.close(1, 1, 0) // and here the delta was late
	b.publish(1, 2, 55, a)
	return a, b
}

// Where tokens went adds up, and what does not is named.
func TestAccount(t *testing.T) {
	finish := func(a, _ *fakeNode) { // a's delta of round 1 is final without being folded
		a.close(1, 2, 0)
		a.close(1, 3, 0)
	}
	for name, c := range map[string]struct {
		before   func(a, b *fakeNode)
		a, b     []uint64 // trained, told, unpublished of each fragment
		misfits  string   // "" = none
		returned []uint64 // of a, as it says
		lostHere []uint64
		killed   bool // b
		guest    bool // b
		first    func(e entry) bool
		second   func(e entry) bool
		totals   func(s totals) bool
	}{
		"a step ended after the last status": {a: []uint64{100, 100, 10, 30}, b: []uint64{60, 58, 0, 3},
			misfits: "node1 fragment 0: 60 tokens trained, 60 folded, 0 discarded, 0 lost here, 2 unpublished: -2 left over"},
		"honest": {a: []uint64{100, 100, 10, 30}, b: []uint64{60, 60, 0, 5}, // folded 150 and 0, discarded 0 and 125, weighted 3 to 1
			totals: func(s totals) bool { return s == totals{trained: 160, folded: 112, discarded: 32, unpublished: 16} }},
		"a token is nowhere": {a: []uint64{100, 100, 9, 30}, b: []uint64{60, 60, 0, 5},
			misfits: "node0 fragment 0: 100 tokens trained, 90 folded, 0 discarded, 0 lost here, 9 unpublished: 1 left over"},
		"killed": {a: []uint64{100, 100, 10, 30}, b: []uint64{75, 0}, killed: true,
			second: func(e entry) bool { return e.lost(0) == 15 && e.lost(1) == 20 }},
		"a delta returned": {before: finish, a: []uint64{100, 100, 10, 100}, b: []uint64{60, 60, 0, 5}, returned: []uint64{0, 70},
			first: func(e entry) bool { return e.returned[1] == 70 && e.discarded[1] == 0 }},
		// What a lost chain took is final and in no chain, like what was returned; but the node did not count it again.
		"a chain lost": {before: finish, a: []uint64{100, 100, 10, 30}, b: []uint64{60, 60, 0, 5},
			first: func(e entry) bool { return e.returned[1] == 0 && e.discarded[1] == 70 }},
		"a memory damaged": {a: []uint64{100, 100, 6, 30}, b: []uint64{60, 60, 0, 5}, lostHere: []uint64{4, 0},
			totals: func(s totals) bool { return s.lostHere == 3 && s.lost == 0 }}, // three quarters of 4
		"a guest": {a: []uint64{100, 100, 10, 30}, b: []uint64{60, 60, 0, 5}, guest: true,
			second: func(e entry) bool { return e.guest && e.made(0) == 60 && e.made(1) == 55 }},
		"a tampered chain": {before: func(a, _ *fakeNode) { a.close(0, 3, 151) }, a: []uint64{100, 100, 10, 30}, b: []uint64{60, 60, 0, 5},
			misfits: "fragment 0: the folded deltas have 150 tokens that count, the chain says 151"},
	} {
		a, b := twoNodes(t)
		if c.before != nil {
			c.before(a, b)
		}
		a.stop(c.a[0], c.a[1], c.a[2:]...)
		b.stop(c.b[0], c.b[1], c.b[2:]...)
		a.m.lives[0].last.Account.OwnReturned, a.m.lives[0].last.Account.OwnLostHere = c.returned, c.lostHere
		b.m.lives[0].killed, b.m.lives[0].final = c.killed, !c.killed
		nodes := []*fakeNode{a, b}
		if c.guest {
			nodes = nodes[:1]
		}
		acc := fakeWorld(nodes...).fakeAccount(t)
		if got := acc.misfits(); strings.Join(got, "; ") != c.misfits {
			t.Errorf("%s: misfits %q, want %q", name, got, c.misfits)
		}
		if e := acc.entries[0]; c.first != nil && !c.first(e) {
			t.Errorf("%s: %+v", name, e)
		}
		if e := acc.entries[1]; e.author != b.author() || c.second != nil && !c.second(e) {
			t.Errorf("%s: %+v", name, e)
		}
		if sum := acc.totals(); c.totals != nil && !c.totals(sum) {
			t.Errorf("%s: totals %+v", name, sum)
		}
		if r, d := acc.chain.rounds(), acc.chain.deltas; c.before == nil && (r != 4 || d != 3) {
			t.Errorf("%s: %d rounds, %d deltas", name, r, d)
		}
	}
}

func TestChainOfAJoinerIsNoReference(t *testing.T) {
	a := newFakeNode(t, 0)
	a.close(0, 2, 5)
	a.must(a.store.Close())
	w := fakeWorld(a)
	w.genesis = genesis.Genesis{}
	s, err := store.OpenReadOnly(a.m.dir)
	a.must(err)
	if _, err := readChain(ledgers{s}, fakePlan, fakeOuter); err == nil || !strings.Contains(err.Error(), errGap.Error()) {
		t.Errorf("error %v", err)
	}
	a.must(s.Close())
}

// record closes rounds from..to of fragment 0 with the digests of a chain that
// folded one id in each; other is the byte that tells chains apart.
func (n *fakeNode) record(from, to uint32, other byte) {
	n.t.Helper()
	var chain outer.Digest
	for round := uint32(1); round <= to; round++ {
		id := n.publishedAs(round, other)
		chain = outer.ChainDigest(chain, []outer.ID{outer.ID(id)})
		if round >= from {
			n.must(n.store.PutRound(0, round, store.Round{Chain: wire.Digest(chain), Tokens: uint64(round), Folded: []wire.Digest{id}}))
		}
	}
}

// publishedAs puts a delta of a made-up author into the ledger.
func (n *fakeNode) publishedAs(round uint32, other byte) wire.Digest {
	n.t.Helper()
	key := ed25519.NewKeyFromSeed(append(make([]byte, 31), other))
	payload := []byte{byte(round)}
	h := wire.SignHeader(key, fakeRun, wire.Header{Round: round, Steps: 1, Tokens: 1, Codec: 4, Size: 1, Payload: wire.Sum(payload)})
	id := h.Header.ID(fakeRun)
	n.must(n.store.PutDelta(id, h, payload))
	return id
}

// A chain that begins late in one ledger goes on in those that lead to it, and in
// no other.
func TestChainAcrossLedgers(t *testing.T) {
	late, lost, middle, early := newFakeNode(t, 0), newFakeNode(t, 1), newFakeNode(t, 2), newFakeNode(t, 3)
	late.record(7, 9, 1)
	lost.record(1, 9, 2)
	middle.record(4, 8, 1)
	early.record(1, 5, 1)
	defer func() {
		for _, n := range []*fakeNode{late, lost, middle, early} {
			n.must(n.store.Close())
		}
	}()
	plan := outer.Plan{{Len: 1}}
	c, err := readChain(ledgers{late.store, lost.store, middle.store, early.store}, plan, fakeOuter)
	if err != nil {
		t.Fatal(err)
	}
	if c.closed[0] != 9 || c.tokens[0] != 9 || c.deltas != 9 || len(c.sums) != 1 {
		t.Errorf("%d rounds, %d tokens, %d deltas of %d authors", c.closed[0], c.tokens[0], c.deltas, len(c.sums))
	}
	if _, err := readChain(ledgers{late.store, lost.store, early.store}, plan, fakeOuter); err == nil || !strings.Contains(err.Error(), "round 7") {
		t.Errorf("with a gap: %v", err)
	}
}

func TestTotalsAddUpExactly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		params := rapid.SliceOfN(rapid.Uint64Range(1, 1<<40), 1, 6).Draw(t, "params")
		n := len(params)
		a := account{chain: &chain{params: params}}
		for range rapid.IntRange(1, 5).Draw(t, "nodes") {
			e := entry{trained: rapid.Uint64Range(0, 1<<40).Draw(t, "trained"), died: rapid.Bool().Draw(t, "died")}
			for range n {
				f := rapid.Uint64Range(0, e.trained).Draw(t, "folded")
				d := rapid.Uint64Range(0, e.trained-f).Draw(t, "discarded")
				u := e.trained - f - d
				if e.died {
					u = rapid.Uint64Range(0, u).Draw(t, "unpublished")
				}
				e.folded, e.discarded = append(e.folded, f), append(e.discarded, d)
				e.unpublished, e.returned, e.lostHere = append(e.unpublished, u), append(e.returned, 0), append(e.lostHere, 0)
			}
			a.entries = append(a.entries, e)
		}
		got := a.totals()
		if got.trained != got.folded+got.discarded+got.unpublished+got.lost {
			t.Fatalf("%+v does not add up", got)
		}
		exact := a.chain.mean(func(p int) (all uint64) {
			for _, e := range a.entries {
				all += e.unpublished[p]
			}
			return all
		})
		if got.unpublished < exact || got.unpublished > exact+1 {
			t.Fatalf("%d unpublished, by itself the mean is %d", got.unpublished, exact)
		}
	})
}
