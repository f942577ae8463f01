package finality

import (
	"cmp"
	"crypto/ed25519"
	"fmt"
	"slices"
	"testing"

	"atoll/gossip/wire"

	"pgregory.net/rapid"
)

// A network of voters in virtual time. Votes are delayed, lost and partitioned. Nodes tell each other how many
// certificates they have, and fetch what they lack, as nodes of a run do.

const (
	netStepMs  = 100
	netTickMs  = 20
	netBeatMs  = 200
	roundMs    = 150
	netDelayMs = 60 // at most, for a vote that is not lost
)

type netNode struct {
	*Voter
	at    int
	chain *ledger
	side  int // of a partition
	down  bool
	saved *State
	list  []Certificate
	signs map[wire.Vote]bool
}

type netVote struct {
	at   int64
	seq  int
	to   int
	vote wire.SignedVote
}

type network struct {
	keys    []ed25519.PrivateKey
	nodes   []*netNode
	liars   int // the last ones: they vote for everything
	flying  []netVote
	seq     int
	now     int64
	lossPct int
	draw    func(n int) int // below n
	byHigh  map[uint32]wire.Digest
	err     error
}

func newNetwork(n, liars int, draw func(n int) int) *network {
	w := &network{keys: keys(n), liars: liars, draw: draw, byHigh: map[uint32]wire.Digest{}}
	for i := range n {
		node := &netNode{at: i, chain: &ledger{voters: idsOf(w.keys)}, signs: map[wire.Vote]bool{}}
		w.nodes = append(w.nodes, node)
		w.start(node)
	}
	return w
}

func (w *network) start(n *netNode) {
	n.Voter = New(Config{Run: testRun, Key: w.keys[n.at], Every: every, StepMs: netStepMs}, n.chain)
	var last *Certificate
	if len(n.list) > 0 {
		last = &n.list[len(n.list)-1]
	}
	n.Resume(last, n.saved)
	n.down = false
}

func (w *network) honest() []*netNode { return w.nodes[:len(w.nodes)-w.liars] }

// run lets time pass.
func (w *network) run(ms int64) {
	for end := w.now + ms; w.now < end; w.now += netTickMs {
		w.deliver()
		for i, n := range w.nodes {
			if n.down {
				continue
			}
			n.chain.closed = uint32(w.now / roundMs)
			if i < len(w.nodes)-w.liars {
				n.Tick(w.now)
				w.collect(n)
			} else if w.now%netBeatMs == 0 {
				w.lie(i)
			}
		}
		if w.now%netBeatMs == 0 {
			w.beat()
		}
	}
}

func (w *network) deliver() {
	slices.SortFunc(w.flying, func(a, b netVote) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.seq, b.seq)) })
	for len(w.flying) > 0 && w.flying[0].at <= w.now {
		f := w.flying[0]
		w.flying = w.flying[1:]
		if n := w.nodes[f.to]; !n.down && f.to < len(w.nodes)-w.liars {
			n.Receive(w.now, f.vote)
			w.collect(n)
		}
	}
}

func (w *network) send(from int, to int, s wire.SignedVote) {
	if w.nodes[from].side != w.nodes[to].side || w.draw(100) < w.lossPct {
		return
	}
	w.seq++
	w.flying = append(w.flying, netVote{w.now + 1 + int64(w.draw(netDelayMs)), w.seq, to, s})
}

func (w *network) collect(n *netNode) {
	for _, e := range n.Effects() {
		switch e := e.(type) {
		case Save:
			state := e.State
			n.saved = &state
		case Publish:
			w.published(n, e.Vote)
		case Certified:
			w.certified(n, e.Certificate)
		case Doubled:
			if at, _ := slices.BinarySearchFunc(idsOf(w.keys), e.Proof.A.Author, wire.PeerID.Compare); at < len(w.nodes)-w.liars {
				w.err = fmt.Errorf("honest voter %d is told to vote twice: %+v", at, e.Proof)
			}
		}
	}
}

func (w *network) published(n *netNode, s wire.SignedVote) {
	if s.Author == n.self && !n.signs[s.Vote] {
		for v := range n.signs {
			if v.Height == s.Height && v.View == s.View && v.Phase == s.Phase {
				w.err = fmt.Errorf("voter %d signs %+v and %+v", n.at, v, s.Vote)
			}
		}
		n.signs[s.Vote] = true
	}
	for to := range w.nodes {
		if to != n.at {
			w.send(n.at, to, s)
		}
	}
}

// certified keeps a certificate, checks it, and that nobody has another one of its height.
func (w *network) certified(n *netNode, c Certificate) {
	var before *Certificate
	if len(n.list) > 0 {
		before = &n.list[len(n.list)-1]
	}
	if err := c.Verify(testRun, before); err != nil {
		w.err = err
	}
	n.list = append(n.list, c)
	d := c.Value.Digest(testRun)
	if other, has := w.byHigh[c.Height]; has && other != d {
		w.err = fmt.Errorf("two values at height %d", c.Height)
	}
	w.byHigh[c.Height] = d
}

// beat lets each node fetch certificates that a peer has and it lacks.
func (w *network) beat() {
	for _, n := range w.honest() {
		for _, p := range w.honest() {
			if !n.down && !p.down && n.side == p.side && p.Height() > n.Height() && w.draw(100) >= w.lossPct {
				if err := n.Learn(w.now, p.list); err != nil {
					w.err = err
				}
				w.collect(n)
			}
		}
	}
}

// lie has a liar vote for everything there is, and tell each node something else.
func (w *network) lie(i int) {
	for to, n := range w.honest() {
		if n.down {
			continue
		}
		view := n.View() + uint32(w.draw(3))
		var value Value
		if round := n.chain.Newest(); round > 0 && w.draw(3) > 0 {
			value = n.chain.value(round - every*uint32(w.draw(2)))
		}
		for _, phase := range []wire.Phase{wire.Propose, wire.Prevote, wire.Precommit} {
			if phase == wire.Propose && value.Round == 0 {
				continue
			}
			proof := uint32(0)
			if phase == wire.Propose && view > 0 {
				proof = uint32(w.draw(int(view) + 1))
			}
			w.send(i, to, signed(w.keys[i], phase, n.Height(), view, value, proof))
		}
	}
}

// String tells where each honest node stands.
func (w *network) String() (text string) {
	for _, n := range w.honest() {
		text += fmt.Sprintf("\n  %d at height %d, view %d, step %d, lock %+v, valid %+v, %d in the proof, barred %d",
			n.at, n.Height(), n.view, n.step, n.state.Lock, n.state.Valid, len(n.state.Proof), len(n.votes.barred))
	}
	return text
}

// heights are the least and the most certificates of nodes that are up.
func (w *network) heights() (least, most uint32) {
	least = ^uint32(0)
	for _, n := range w.honest() {
		if !n.down {
			least, most = min(least, n.Height()), max(most, n.Height())
		}
	}
	return least, most
}

// enoughMs is time for several heights once nothing is lost any more: views that grew long before must end first.
const enoughMs = 200_000

// runUntil lets time pass until all nodes that are up have so many certificates, for enoughMs at most.
func (w *network) runUntil(height uint32) {
	for end := w.now + enoughMs; w.now < end && w.err == nil; w.run(1000) {
		if least, _ := w.heights(); least >= height {
			return
		}
	}
}

// draws returns a source of numbers from 0 to below k, which a seed decides: Knuth's MMIX generator.
func draws(seed uint64) func(k int) int {
	return func(k int) int {
		seed = seed*6364136223846793005 + 1442695040888963407
		return int((seed >> 33) % uint64(k))
	}
}

// Whatever is delayed, lost or parted, and whatever fewer than a third say: of one height there is one value.
// Once more than two thirds are connected, heights go on.
func TestNetworks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := draws(rapid.Uint64().Draw(t, "seed"))
		n := rapid.IntRange(1, 7).Draw(t, "voters")
		w := newNetwork(n, rapid.IntRange(0, (n-1)/3).Draw(t, "liars"), draw)
		for range rapid.IntRange(1, 4).Draw(t, "phases") {
			w.lossPct = rapid.SampledFrom([]int{0, 5, 30}).Draw(t, "loss")
			for i, node := range w.nodes {
				node.side = rapid.IntRange(0, 1).Draw(t, "side")
				if i < n-w.liars && !node.down && rapid.IntRange(0, 5).Draw(t, "dies") == 0 {
					node.down = true
				} else if node.down && rapid.Bool().Draw(t, "returns") {
					w.start(node)
				}
			}
			w.run(rapid.Int64Range(500, 10_000).Draw(t, "ms"))
			if w.err != nil {
				t.Fatal(w.err)
			}
		}
		w.lossPct = 0
		for _, node := range w.nodes {
			node.side = 0
			if node.down {
				w.start(node)
			}
		}
		_, before := w.heights()
		w.runUntil(before + 2)
		if w.err != nil {
			t.Fatal(w.err)
		}
		if least, _ := w.heights(); least < before+2 {
			t.Fatalf("%d certificates, and there were %d before all was well for %d s: %s", least, before, enoughMs/1000, w)
		}
	})
}

// Without more than two thirds nothing is certified, and with them again it goes on.
func TestNeedsTwoThirds(t *testing.T) {
	for n := 2; n <= 7; n++ {
		w := newNetwork(n, 0, draws(uint64(n)))
		w.run(5_000)
		_, before := w.heights()
		if before == 0 {
			t.Fatalf("%d voters: nothing certified", n)
		}
		table := Table{idsOf(w.keys)}
		up := n
		for table.Enough(up) {
			up--
		}
		for _, node := range w.nodes[up:] {
			node.down = true
		}
		w.run(20_000)
		if _, most := w.heights(); most > before+1 { // one may have been under way
			t.Errorf("%d of %d voters certified %d more", up, n, most-before)
		}
		w.start(w.nodes[up])
		w.runUntil(before + 2)
		if least, most := w.heights(); least < before+2 || w.err != nil {
			t.Errorf("%d of %d voters: from %d to %d certificates, %v", up+1, n, before, most, w.err)
		}
	}
}

// A side with more than two thirds goes on through a partition; the other takes its certificates after it, though
// its own chain is another.
func TestPartition(t *testing.T) {
	w := newNetwork(4, 0, draws(1))
	w.run(5_000)
	w.nodes[3].side = 1
	w.nodes[3].chain.fork, w.nodes[3].chain.name = uint32(w.now/roundMs), 1
	alone := w.nodes[3].Height()
	w.run(20_000)
	if w.nodes[3].Height() > alone+1 || w.nodes[0].Height() < alone+3 {
		t.Fatalf("heights %d and %d after a partition at %d", w.nodes[0].Height(), w.nodes[3].Height(), alone)
	}
	w.nodes[3].side = 0
	w.run(2_000)
	if a, b := w.nodes[0].Height(), w.nodes[3].Height(); a-b > 1 {
		t.Errorf("heights %d and %d", a, b)
	}
	if yes, known := w.nodes[3].chain.Holds(w.nodes[3].Last().Value.Points); yes || !known {
		t.Error("the node does not see that its chain is another than the certified one")
	}
	if w.err != nil {
		t.Error(w.err)
	}
}

// Voters that take tips again and again vote on, as long as a third of all know the chain from before.
func TestVotersTakeTips(t *testing.T) {
	for n := 2; n <= 7; n++ {
		w := newNetwork(n, 0, draws(uint64(n)))
		w.run(5_000)
		knows := (n + 2) / 3
		for range 20 {
			_, before := w.heights()
			for _, node := range w.nodes[knows:] {
				if w.draw(2) == 0 {
					node.chain.least = node.chain.closed + 1
				}
			}
			if w.draw(2) == 0 {
				w.start(w.nodes[w.draw(n)])
			}
			w.run(1 + int64(w.draw(3_000)))
			if w.draw(3) > 0 {
				continue // they take tips again before anything is certified
			}
			w.runUntil(before + 1)
			if least, _ := w.heights(); least < before+1 || w.err != nil {
				t.Fatalf("%d voters, %d of whom know the chain: %d certificates, and there were %d: %v%s", n, knows, least, before, w.err, w)
			}
		}
	}
}
