package core_test

import (
	"atoll/gossip/wire"
	"atoll/node/core"
	"atoll/optimizer/outer"
)

// finish runs until every node that is up says that the run is over and holds
// the same bits (one that was parted from the others may have finished by itself
// before it met them), and checks what must then hold of each run.
func (w *world) finish(limit core.Time) {
	w.t.Helper()
	var rest wire.Digest
	since := w.now
	w.runUntil("all finished and at rest with the same bits", limit, func() bool {
		_, state := w.alive()[0].machine.Digests()
		if state != rest || !w.allFinished() || !w.same() {
			rest, since = state, w.now
		}
		return w.now-since >= quietMs
	})
	w.checkSame()
	w.checkBudget()
	w.checkLedger()
	w.checkAccount()
}

func (w *world) allFinished() bool {
	for _, n := range w.alive() {
		if !n.finished {
			return false
		}
	}
	return true
}

func (w *world) same() bool {
	chain, state := w.alive()[0].machine.Digests()
	for _, n := range w.alive() {
		if c, s := n.machine.Digests(); c != chain || s != state {
			return false
		}
	}
	return true
}

// checkSame: one chain and one state for all.
func (w *world) checkSame() {
	w.t.Helper()
	if !w.same() {
		w.fatalf("the nodes hold different bits\n%s", w)
	}
	for _, n := range w.alive() {
		if l := loss(n.anchors()); l > loss(initial())/5 {
			w.fatalf("node %d: loss %g of %g at the start", n.index, l, loss(initial()))
		}
	}
}

// anchors are the parameters that the run came to.
func (n *node) anchors() []float32 {
	theta := make([]float32, len(n.trainer.theta))
	for p, f := range n.w.plan {
		f.Scatter(n.machine.Rounds().Tip(p).Anchor, theta)
	}
	return theta
}

// checkBudget: the folded tokens are the budget within 1 %, what learners make
// while the news of it travels, and what crashes took from some fragments only.
func (w *world) checkBudget() {
	w.t.Helper()
	budget := float64(w.cfg.params.Budget)
	steps := w.slack + len(w.nodes)*int(w.cfg.latencyMs/w.cfg.stepMs)
	for _, n := range w.nodes {
		steps += (n.life - 1) * w.cfg.params.H
	}
	most := 1.01*budget + float64(steps*tokensPerStep)
	for p := range w.plan {
		tokens := float64(w.alive()[0].machine.Rounds().Tip(p).Tokens)
		if tokens < budget || tokens > most {
			w.fatalf("fragment %d folded %.0f tokens of a budget of %.0f: %+.2f %%", p, tokens, budget, 100*(tokens/budget-1))
		}
	}
}

// complete is a node whose disk has every round of the chain: it never took tips
// whole. nil if there is none.
func (w *world) complete() *node {
	for _, n := range w.alive() {
		if n.installs == 0 {
			return n
		}
	}
	return nil
}

// folded are the tokens of each author and fragment in the final chain.
func (w *world) folded() map[*node][]uint64 {
	out := map[*node][]uint64{}
	for _, n := range w.nodes {
		out[n] = make([]uint64, len(w.plan))
	}
	for p := range w.plan {
		for r := uint32(1); r <= w.complete().machine.Rounds().Tip(p).Round; r++ {
			for _, id := range w.complete().disk.rounds[p][r].Folded {
				h := w.ledger[wire.Digest(id)]
				out[w.node(h.Author)][p] += h.Tokens
			}
		}
	}
	return out
}

// checkLedger: the tokens of the tips are those of the deltas in the ledger, and
// what each learner says is folded of it is in there.
func (w *world) checkLedger() {
	w.t.Helper()
	if w.complete() == nil {
		return
	}
	folded := w.folded()
	for p := range w.plan {
		var sum uint64
		for _, n := range w.nodes {
			sum += folded[n][p]
			if a := n.learner.Account(p); n.life == 1 && n.up && n.installs == 0 && a.Folded.Tokens != folded[n][p] {
				w.fatalf("node %d fragment %d: account says %d folded, the ledger %d", n.index, p, a.Folded.Tokens, folded[n][p])
			}
		}
		if want := w.alive()[0].machine.Rounds().Tip(p).Tokens; sum != want {
			w.fatalf("fragment %d: deltas of %d tokens folded, the tip says %d", p, sum, want)
		}
	}
}

// checkAccount: of each node and fragment, the tokens trained are those folded,
// in flight, unpublished, discarded and lost in a crash; the machine agrees with
// the learner.
func (w *world) checkAccount() {
	w.t.Helper()
	for _, n := range w.nodes {
		if n.cfg.observer {
			continue
		}
		var total uint64
		for p := range w.plan {
			a := n.learner.Account(p)
			total += a.Total().Tokens
			_, pending := n.machine.Rounds().Pending(p)
			if pending != a.Pending.Tokens || n.machine.Rounds().InFlight(p) != a.InFlight.Tokens {
				w.fatalf("node %d fragment %d: machine has %d pending and %d in flight, learner %+v",
					n.index, p, pending, n.machine.Rounds().InFlight(p), a)
			}
		}
		if made := n.trained * uint64(len(w.plan)); made != total+n.lost {
			w.fatalf("node %d trained %d tokens over all fragments, the account has %d and %d lost", n.index, made, total, n.lost)
		}
	}
}

// budgetOf is that of so many steps in all.
func budgetOf(steps uint64) outer.Params { return testParams(steps * tokensPerStep) }
