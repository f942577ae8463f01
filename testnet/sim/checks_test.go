package sim

import (
	"errors"
	"slices"
	"testing"

	"atoll/gossip"
	"atoll/gossip/wire"
	"atoll/node/core"
	"atoll/optimizer/outer"
	"atoll/testnet/fault"
)

// Every checker finds what it is there for: each line plants one broken promise.
func TestChecksCatch(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		check string
		plant func(w *World, n *Node)
	}{
		{"verified", func(w *World, n *Node) {
			w.checkFold(n, 0, w.genesis[0], 0, []outer.ID{{1}})
		}},
		{"verified", func(w *World, n *Node) { // another fragment's
			id, h := w.someDelta()
			w.checkFold(n, int(h.Fragment)+1, w.genesis[0], 1, []outer.ID{outer.ID(id)})
		}},
		{"equal sets, equal bits", func(w *World, n *Node) {
			tip := *n.machine.Rounds().Fragment(0).Tip()
			tip.State[0]++
			w.checkFold(n, 0, &tip, 0, nil)
		}},
		{"equal sets, equal bits", func(w *World, n *Node) {
			w.checkBlame(n, gossip.StateDiffers{Peer: w.nodes[1].id})
		}},
		{"blame", func(w *World, n *Node) {
			w.checkBlame(n, gossip.Misbehaved{Peer: w.nodes[1].id, Reason: "test"})
		}},
		{"blame", func(w *World, n *Node) {
			w.checkBlame(n, core.Refused{Header: wire.Header{Author: n.id}, Reason: errors.New("test")})
		}},
		{"begins", func(w *World, n *Node) {
			w.checkBegins(n)
		}},
		{"signs once", func(w *World, n *Node) {
			_, h := w.someDelta()
			w.checkSigned(n, wire.Digest{1}, wire.SignedHeader{Header: *h})
		}},
		{"whole", func(w *World, n *Node) {
			w.checkWhole(n, w.genesis)
		}},
		{"whole", func(w *World, n *Node) { // work of a chain that lost comes back
			tip := n.machine.Rounds().Fragment(0).Tip()
			own, _ := n.disk.Own() // which has no errors
			a := outer.Adopt{Tip: tip, Changes: []outer.Change{{Own: outer.Own{Seq: own[0].Seq}, Fate: outer.Unfolded}}}
			w.checkTaken(n, a)
			if n.taken = []*outer.Tip{tip}; w.Err() == nil {
				w.checkTaken(n, a)
			}
		}},
		{"leaves", func(w *World, n *Node) { // with a delta that nobody has
			id, h := wire.Digest{1}, wire.Header{Round: n.machine.Rounds().Fragment(0).Closed() + 1, Size: wire.MaxInline + 1}
			w.checks.ledger[id] = &h
			n.book.publishes(id, h, n.clock())
			n.book.hands(id)
			w.checkLeft(n)
			if n.book.own[id].handed = false; w.Err() == nil {
				w.checkLeft(n)
			}
		}},
		{"share", func(w *World, n *Node) {
			w.s.Params.MaxShare = 0.5
			r := outer.Result{Weights: []float64{3, 1, 1}}
			for i := range r.Weights {
				id := wire.Digest{byte(i + 1)}
				w.checks.ledger[id] = &wire.Header{Author: n.id, Steps: 4}
				r.Folded = append(r.Folded, outer.ID(id))
			}
			w.checkShares(0, 1, r)
		}},
		{"local parameters", func(w *World, n *Node) { // a step that nobody took
			for i := range n.trainer.Params() {
				n.trainer.Params()[i] += 0.01
			}
			w.RunFor(3000)
		}},
		{"account", func(w *World, n *Node) {
			n.learner.Stepped(TokensPerStep, []uint32{0, 0, 0})
			w.RunFor(3000)
		}},
		{"account", func(w *World, n *Node) {
			n.book.trained += TokensPerStep
			w.RunFor(3000)
		}},
		{"account", func(w *World, n *Node) { // tokens that vanish where a snapshot was taken
			n.book.rebased = true
			n.checkBook(0, w.folds(n)[0])
			if w.Err() == nil {
				n.book.trained += TokensPerStep
				n.checkBook(0, w.folds(n)[0])
			}
		}},
		{"account", func(w *World, n *Node) { // a delta that vanishes there
			n.book.rebased = true
			n.book.trained += TokensPerStep
			n.book.publishes(wire.Digest{1}, wire.Header{Tokens: TokensPerStep}, w.now)
			n.checkWork(0)
			if w.Err() == nil {
				n.checkBook(0, w.folds(n)[0])
			}
		}},
		{"account", func(w *World, n *Node) { // a delta that came back and is folded
			id, h := w.someDelta()
			author := w.byID[h.Author]
			author.book.own[id].fate = returned
			author.checkFates(0, map[wire.Digest]bool{id: true})
		}},
		{"bounds", func(w *World, n *Node) {
			n.calls = append(n.calls, slices.Repeat([]*exchange{{}}, 1000)...)
			w.RunFor(1000)
		}},
		{"bounds", func(w *World, n *Node) { // of a core, by its own count
			n.machine.Sizes(func(what string, _, most int) { n.checkSize(what, most, most) })
			if w.Err() == nil {
				n.machine.Sizes(func(what string, _, most int) { n.checkSize(what, most+1, most) })
			}
		}},
		{"no wait", func(w *World, n *Node) {
			n.may = false
			w.RunFor(2 * idleMs)
		}},
		{"converges", func(w *World, n *Node) {
			w.s.LimitMs = 100
			w.Finish()
		}},
		{"budget", func(w *World, n *Node) {
			w.s.Params.Budget *= 2
			w.checkBudget()
		}},
		{"learns", func(w *World, n *Node) {
			n.machine.Rounds().Fragment(0).Tip().Global[0] = 1e6
			w.checkLoss()
		}},
		{"replay", func(w *World, n *Node) {
			tip := n.machine.Rounds().Fragment(0).Tip()
			tip.State[0]++
			n.replay(0)
		}},
		{"panic", func(w *World, n *Node) {
			w.after(1, func() { panic("test") })
			w.RunFor(10)
		}},
	} {
		w, err := New(calmScenario(3, 1200))
		if err != nil {
			t.Fatal(err)
		}
		w.RunFor(5000)
		if w.Err() != nil {
			t.Fatal(w.Err())
		}
		c.plant(w, w.nodes[0])
		var b *Broken
		if !errors.As(w.Err(), &b) || b.Check != c.check {
			t.Errorf("want %q, got %v", c.check, w.Err())
		}
	}
}

// A learner stands still for as long as its process runs: what it sleeps does not count, and what it stood still before
// and after it does.
func TestSleepIsNoWait(t *testing.T) {
	t.Parallel()
	w, err := New(calmScenario(3, 10_000))
	if err != nil {
		t.Fatal(err)
	}
	w.RunFor(5000)
	n := w.nodes[0]
	n.may = false
	w.RunFor(idleMs / 2)
	n.pause()
	w.RunFor(2 * idleMs)
	n.resume()
	if w.RunFor(idleMs / 4); w.Err() != nil || n.may {
		t.Fatalf("its sleep counts, or it steps: %v", w.Err())
	}
	w.RunFor(idleMs / 2)
	var b *Broken
	if !errors.As(w.Err(), &b) || b.Check != "no wait" {
		t.Errorf("stood still for half a minute and more before and after a sleep: %v", w.Err())
	}
}

// A lost disk is no reason to lose count. All that the node trained before and since
// is published, pending or lost, and what vanishes is found.
func TestAccountOfLostDisk(t *testing.T) {
	t.Parallel()
	w, err := New(calmScenario(3, 1200))
	if err != nil {
		t.Fatal(err)
	}
	w.RunFor(5000)
	n := w.nodes[1]
	n.disturb(Fault{Kind: fault.Wipe})
	w.RunFor(1000)
	n.disturb(Fault{Kind: fault.Start})
	w.Finish()
	if w.Err() != nil || !n.book.rebased || w.complete() == nil {
		t.Fatal(w.Err(), n.book.rebased)
	}
	n.book.lost[1] -= TokensPerStep
	if w.checkLedger(); w.Err() == nil {
		t.Error("tokens that vanish with the disk are not missed")
	}
}

// someDelta is one that was published for fragment 0.
func (w *World) someDelta() (wire.Digest, *wire.Header) {
	for id, h := range w.checks.ledger {
		if h.Fragment == 0 {
			return id, h
		}
	}
	panic("nothing was published")
}

// A key whose disk was wiped may sign a round again only where nobody is left who
// knows of the first delta: not where somebody is merely down.
func TestWhoMaySignAgain(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		wiped  bool
		others func(*Node)
		may    bool
	}{
		{"others are up", true, func(*Node) {}, false},
		{"others are down", true, func(p *Node) { p.crash() }, false},
		{"others are lost", true, func(p *Node) { p.disturb(Fault{Kind: fault.Lose}) }, true},
		{"others are wiped", true, func(p *Node) { p.disturb(Fault{Kind: fault.Wipe}) }, true},
		{"others are lost and the own disk is not", false, func(p *Node) { p.disturb(Fault{Kind: fault.Lose}) }, false},
	} {
		w, err := New(calmScenario(3, 1200))
		if err != nil {
			t.Fatal(err)
		}
		w.RunFor(5000)
		_, h := w.someDelta()
		author := w.byID[h.Author]
		if author.crash(); c.wiped {
			author.disturb(Fault{Kind: fault.Start})
			author.disturb(Fault{Kind: fault.Wipe})
		}
		for _, p := range w.nodes {
			if p != author {
				c.others(p)
			}
		}
		if w.checkSigned(author, wire.Digest{1}, wire.SignedHeader{Header: *h}); (w.Err() == nil) != c.may {
			t.Errorf("%s: %v", c.name, w.Err())
		}
	}
}
