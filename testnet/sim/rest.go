package sim

import (
	"fmt"
	"strings"

	"atoll/gossip/wire"
	"atoll/node/core"
	"atoll/optimizer/outer"
)

// Finish runs until every node that is up says that the run is over and holds
// the same bits (one that was parted from the others may have finished by itself
// before it met them), and then checks what must hold of every run.
func (w *World) Finish() {
	var rest wire.Digest
	since := w.now
	done := w.RunUntil(Start+w.s.LimitMs, func() bool {
		_, state := w.first().machine.Digests()
		if state != rest || w.now < Start+w.s.CalmMs || !w.allFinished() || !w.same() {
			rest, since = state, w.now
		}
		return w.now-since >= quietMs
	})
	if w.err == nil && !done {
		w.broken("converges", "%s\n%s", w.unfinished(), w)
	}
	if w.err == nil {
		w.checkAtRest()
	}
}

// unfinished says what keeps a run from its end.
func (w *World) unfinished() string {
	if !w.allFinished() {
		return "some nodes do not finish"
	}
	return "all finished, with different bits"
}

func (w *World) allFinished() bool {
	for _, n := range w.alive() {
		if !n.finished {
			return false
		}
	}
	return true
}

func (w *World) same() bool {
	chain, state := w.first().machine.Digests()
	for _, n := range w.alive() {
		if c, s := n.machine.Digests(); c != chain || s != state {
			return false
		}
	}
	return true
}

// agreeRounds is how many rounds may close from the end of the faults until all
// nodes have one chain: they find each other again, take tips, and repair.
const agreeRounds = 100

// agreeMs is how long that may take however many rounds close: where ten close in
// a second, beats, dialling and requests that nobody answers are still clocked in
// seconds. It is the longest that a request waits for an answer.
const agreeMs = 20_000

func (w *World) checkAtRest() {
	w.checkLoss()
	w.checkBudget()
	w.checkAgreement()
	w.checkLedger()
}

// checkLoss: the run came to a model that is worth something.
func (w *World) checkLoss() {
	if err := w.s.Task.Learned(w.Anchors()); err != nil {
		w.broken("learns", "%v", err)
	}
}

// Anchors are the parameters that the run came to.
func (w *World) Anchors() []float32 {
	n := w.first()
	theta := make([]float32, len(n.trainer.Params()))
	for p, f := range w.plan {
		f.Scatter(n.machine.Rounds().Tip(p).Anchor, theta)
	}
	return theta
}

// checkBudget: every fragment reached the budget. Beyond it is at most what the
// last two rounds hold: each learner's round, and what it had at hand when it was
// parted, paused, out of disk, or without its disk.
func (w *World) checkBudget() {
	budget := float64(w.s.Params.Budget)
	last := 2 * len(w.nodes) * w.s.Params.H
	most := 1.01*budget + float64((last+w.atHand())*w.s.Task.Tokens())
	for p := range w.plan {
		tokens := float64(w.first().machine.Rounds().Tip(p).Tokens)
		if tokens < budget || tokens > most+w.claimed(p) {
			w.broken("budget", "fragment %d folded %.0f tokens of a budget of %.0f, at most %.0f are explained", p, tokens, budget, most)
		}
	}
}

// atHand are steps that learners may make while they do not hear of each other:
// those of the links' latency, and in a world with faults those of the time until
// silence is noticed. One whose disk was lost trains on while it may not sign, and then
// publishes what one delta may carry.
func (w *World) atHand() (steps int) {
	per := w.s.Link.LatencyMs + w.s.Link.JitterMs
	if len(w.s.Faults) > 0 {
		per += noticeMs + w.s.Params.GraceMaxMs
	}
	for _, n := range w.nodes {
		steps += int(per/w.s.StepMs + 1)
		if n.wiped {
			steps += int(w.s.Params.MaxSteps)
		}
	}
	return steps
}

// checkAgreement: after the faults one chain came within so many rounds.
func (w *World) checkAgreement() {
	if w.checks.calmed != 0 && w.checks.took > agreeRounds && w.checks.agreed-w.checks.calmed > agreeMs {
		w.broken("converges", "one chain only %d rounds after the faults", w.checks.took)
	}
}

// complete is a node whose disk has every round of the chain, or nil.
func (w *World) complete() *Node {
	for _, n := range w.alive() {
		if n.Installs == 0 && n.wholeChain() {
			return n
		}
	}
	return nil
}

func (n *Node) wholeChain() bool {
	for p := range n.w.plan {
		for r := uint32(1); r <= n.machine.Rounds().Tip(p).Round; r++ {
			if _, ok := n.disk.rounds[p][r]; !ok {
				return false
			}
		}
	}
	return true
}

// foldedTokens are the tokens of each author and fragment in the final chain.
func (w *World) foldedTokens(from *Node) map[*Node][]uint64 {
	out := map[*Node][]uint64{}
	for _, n := range append([]*Node{nil}, w.nodes...) { // nil: keys without a node
		out[n] = make([]uint64, len(w.plan))
	}
	for p := range w.plan {
		for r := uint32(1); r <= from.machine.Rounds().Tip(p).Round; r++ {
			for _, id := range from.disk.rounds[p][r].Folded {
				h := w.checks.ledger[wire.Digest(id)]
				out[w.byID[h.Author]][p] += h.Tokens
			}
		}
	}
	return out
}

// checkLedger: the tokens of the tips are those of the deltas in the ledger, and
// every token that a learner made is in exactly one column.
func (w *World) checkLedger() {
	from := w.complete()
	if from == nil {
		w.counts.LedgersUnchecked++
		return
	}
	folded := w.foldedTokens(from)
	for p := range w.plan {
		sum := folded[nil][p]
		for _, n := range w.nodes {
			sum += folded[n][p]
			n.checkBook(p, folded[n][p])
		}
		if want := from.machine.Rounds().Tip(p).Tokens; sum != want {
			w.broken("account", "fragment %d: deltas of %d tokens folded, the tip says %d", p, sum, want)
		}
		from.replay(p)
	}
}

// replay folds the ledger of a fragment again, from genesis.
func (n *Node) replay(p int) {
	tip, want := n.w.genesis[p], n.machine.Rounds().Tip(p)
	for tip.Round < want.Round {
		var set []outer.Contribution
		for _, id := range n.disk.rounds[p][tip.Round+1].Folded {
			d := core.DeltaOf(wire.Digest(id), *n.w.checks.ledger[wire.Digest(id)])
			set = append(set, outer.Contribution{Delta: d, Payload: n.disk.payload(wire.Digest(id))})
		}
		next, _, err := outer.Fold(n.w.s.Params, n.w.plan[p], tip, tip.Round+1, set)
		if err != nil {
			n.broken("replay", "%v", err)
			return
		}
		tip = next
	}
	if tip.State != want.State && !n.damagedLedger() {
		n.broken("replay", "the ledger of fragment %d comes to state %x, the tip is %x", p, tip.State[:4], want.State[:4])
	}
}

// damagedLedger says that a power cut damaged a payload that was not needed since.
func (n *Node) damagedLedger() bool {
	for _, f := range n.disk.deltas {
		if f.damaged {
			return true
		}
	}
	return false
}

// checkBook holds what a node trained against where it went. A node that is gone or
// down knows no more of its last deltas, and one that left a chain may have had tokens
// there that it had ceased to keep: their columns may add up to less, never to
// more.
func (n *Node) checkBook(p int, folded uint64) {
	b := n.book
	spent := folded + b.lost[p] + b.gone[p]
	if n.up {
		a := n.learner.Account(p)
		spent += a.Pending.Tokens + a.InFlight.Tokens + a.Discarded.Tokens + a.Overwritten.Tokens
		n.checkMachine(p)
	}
	discarded := b.gone[p]
	if n.up {
		discarded += n.learner.Account(p).Discarded.Tokens
	}
	if b.rebased && spent > b.trained && spent <= b.trained+discarded+b.back[p] {
		// It could not know the fate of deltas older than the history that came
		// with the tips, and gave them up; they were folded all the same. Or what was
		// final and unfolded on a chain that it left was folded on the one it took.
		n.w.counts.GivenUpAndFolded += spent - b.trained
	} else if spent > b.trained || spent < b.trained && n.up && !b.rebased {
		n.broken("account", "fragment %d: trained %d tokens, accounted for %d: %d folded, %d lost, %d discarded before, account %+v",
			p, b.trained, spent, folded, b.lost[p], b.gone[p], n.learner.Account(p))
	}
}

// checkMachine: the machine counts as the learner does.
func (n *Node) checkMachine(p int) {
	a, r := n.learner.Account(p), n.machine.Rounds()
	if _, pending := r.Pending(p); pending != a.Pending.Tokens || r.InFlight(p) != a.InFlight.Tokens {
		n.broken("account", "fragment %d: the machine has %d pending and %d in flight, the learner %+v", p, pending, r.InFlight(p), a)
	}
}

// settleBook closes the account of a life that a crash ends: what was not
// published is lost, and so are drafts that were not on disk.
func (n *Node) settleBook() {
	for p := range n.w.plan {
		a := n.learner.Account(p)
		n.book.lost[p] += a.Pending.Tokens
		n.book.gone[p] += a.Discarded.Tokens + a.Overwritten.Tokens
	}
	for _, d := range n.drafts {
		n.book.lost[d.fragment] += d.tokens
	}
}

// openBook begins the account of a life, with what the disk brought back.
func (n *Node) openBook() {
	n.book.before = n.book.trained
	n.book.base = make([]uint64, len(n.w.plan))
	for p := range n.book.base {
		n.book.base[p] = n.learner.Account(p).Total().Tokens
	}
}

// String shows a world in a failure.
func (w *World) String() string {
	var b strings.Builder
	for _, n := range w.nodes {
		r := n.machine.Rounds()
		fmt.Fprintf(&b, "node %d up %v gone %v links %d phase %v state %v may %v steps %d finished %v flushed %v settled %v:",
			n.index, n.up, n.gone, len(n.links), n.machine.Phase(), n.machine.State(), n.may, n.Steps, n.finished, r.Flushed(), r.Settled())
		for p := range w.plan {
			steps, _ := r.Pending(p)
			t := r.Tip(p)
			fmt.Fprintf(&b, " [closed %d base %d tip %d tokens %d end %d chain %x pending %d inflight %d]",
				r.Closed(p), r.Base(p), t.Round, t.Tokens, t.EndRound, t.Chain[:3], steps, r.InFlight(p))
		}
		b.WriteByte('\n')
	}
	return b.String()
}
