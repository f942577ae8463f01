package sim

import (
	"fmt"
	"slices"
	"strings"

	"atoll/gossip/wire"
	"atoll/node/core"
	"atoll/optimizer/outer"
)

// Finish runs until every node that is up says that the run is over and holds
// the same bits. (A node that was parted from the others may have finished by
// itself before it met them.) Then it checks what must hold of every run.
func (w *World) Finish() {
	var rest wire.Digest
	since := w.now
	done := w.RunUntil(Start+w.s.LimitMs, func() bool {
		_, state := w.first().machine.View().Digests()
		if state != rest || w.now < Start+w.s.CalmMs || !w.allFinished() || !w.same() {
			rest, since = state, w.now
		}
		return w.now-since >= restMs
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
	chain, state := w.first().machine.View().Digests()
	for _, n := range w.alive() {
		if c, s := n.machine.View().Digests(); c != chain || s != state {
			return false
		}
	}
	return true
}

// agreeRounds is how many rounds may close from the end of the faults until all
// nodes have one chain: they find each other again, take snapshots, and repair. The most that is known are 101, beside a liar that
// gives wrong chunks of snapshots (seed 17272), where it takes 84 without it.
const agreeRounds = 110

// agreeMs is how long that may take however many rounds close: where ten close in
// a second, heartbeats, dialling and requests that nobody answers are still clocked in
// seconds. It is the longest that a request waits for an answer.
const agreeMs = 20_000

func (w *World) checkAtRest() {
	w.checkLoss()
	w.checkBudget()
	w.checkAgreement()
	w.checkLedger()
	w.checkFits()
}

// checkLoss: the run came to a model that is worth something, unless liars outweighed the honest.
func (w *World) checkLoss() {
	if err := w.s.Task.Learned(w.Globals()); err != nil && !w.outweighed() {
		w.broken("learns", "%v", err)
	}
}

// Globals are the global parameters that the run came to.
func (w *World) Globals() []float32 {
	n := w.first()
	params := make([]float32, len(n.trainer.Params()))
	for p, f := range w.plan {
		f.Scatter(n.machine.Rounds().Fragment(p).Tip().Global, params)
	}
	return params
}

// checkBudget: every fragment reached the budget. At most what the last two
// rounds hold goes beyond it: each learner's round, and what it had at hand when
// it was parted, paused, out of disk, or without its disk. What a learner made whose
// first delta was still on its way comes on top: its claims counted for nothing yet.
// What guests make explains nothing: it is no part of the budget.
func (w *World) checkBudget() {
	budget := float64(w.s.Params.Budget)
	last := 2 * len(w.members()) * w.s.Params.H
	most := 1.01*budget + float64((last+w.atHand())*w.s.Task.Tokens())
	for _, n := range w.checks.unsure {
		if !n.spec.Guest {
			most += float64(n.book.trained)
		}
	}
	for p := range w.plan {
		tokens := float64(w.first().machine.Rounds().Fragment(p).Tip().Tokens)
		if tokens < budget || tokens > most+w.claimed(p) {
			w.broken("budget", "fragment %d folded %.0f tokens of a budget of %.0f, at most %.0f are explained", p, tokens, budget, most)
		}
	}
}

// atHand are steps that learners may make while they do not hear of each other: during
// the links' latency, and in a world with faults until silence is noticed. One whose
// disk was lost trains on while it may not sign, and then publishes in each round what
// one delta may carry.
func (w *World) atHand() (steps int) {
	per := w.s.Link.LatencyMs + w.s.Link.JitterMs
	for _, n := range w.nodes {
		own := n.spec.Link.over(w.s.Link)
		per = max(per, own.LatencyMs+own.JitterMs)
	}
	if len(w.s.Faults) > 0 {
		per += noticeMs + w.s.Params.GraceMaxMs
	}
	for _, n := range w.members() {
		steps += int(per/w.s.StepMs + 1)
		if n.wiped {
			steps += 2 * int(w.s.Params.MaxSteps)
		}
	}
	return steps
}

// members are the nodes that are no guests.
func (w *World) members() []*Node {
	return slices.DeleteFunc(slices.Clone(w.nodes), func(n *Node) bool { return n.spec.Guest })
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
		for r := uint32(1); r <= n.machine.Rounds().Fragment(p).Tip().Round; r++ {
			if _, ok := n.disk.Record(p, r); !ok {
				return false
			}
		}
	}
	return true
}

// folds are the deltas in the final chain, by fragment.
func (w *World) folds(from *Node) []map[wire.Digest]bool {
	out := make([]map[wire.Digest]bool, len(w.plan))
	for p := range out {
		out[p] = map[wire.Digest]bool{}
		for r := uint32(1); r <= from.machine.Rounds().Fragment(p).Tip().Round; r++ {
			record, _ := from.disk.Record(p, r)
			for _, id := range record.Folded {
				out[p][wire.Digest(id)] = true
			}
		}
	}
	return out
}

// checkLedger: the tips have the tokens of the deltas in the ledger, and every
// token that a learner made is in exactly one column.
func (w *World) checkLedger() {
	from := w.complete()
	if from == nil {
		w.counts.LedgersUnchecked++
		return
	}
	for p, folds := range w.folds(from) {
		sets, sum := map[uint32][]outer.Delta{}, uint64(0)
		for id := range folds {
			h := *w.checks.ledger[id]
			sets[h.Round] = append(sets[h.Round], core.DeltaOf(id, h, from.members))
		}
		for _, set := range sets {
			sum += w.s.Params.CountedOf(set)
		}
		if want := from.machine.Rounds().Fragment(p).Tip().Tokens; sum != want {
			w.broken("account", "fragment %d: deltas of %d tokens folded, the tip says %d", p, sum, want)
		}
		for _, n := range w.nodes {
			n.checkBook(p, folds)
		}
		w.checkRevoked(p, folds)
		from.replay(p)
	}
	w.checkParted()
}

// replay folds the ledger of a fragment again, from genesis. A power cut may have
// damaged a payload that was not needed since.
func (n *Node) replay(p int) {
	tip, want := n.verifiableFrom(p), n.machine.Rounds().Fragment(p).Tip()
	for tip.Round < want.Round {
		var set []outer.Contribution
		record, _ := n.disk.Record(p, tip.Round+1)
		for _, id := range record.Folded {
			d := core.DeltaOf(wire.Digest(id), *n.w.checks.ledger[wire.Digest(id)], n.members)
			payload, _ := n.disk.Payload(wire.Digest(id)) // one that is damaged shows in the fold
			set = append(set, outer.Contribution{Delta: d, Payload: payload})
		}
		next, _, err := outer.Fold(n.w.s.Params, n.w.plan[p], tip, tip.Round+1, set)
		if err != nil {
			n.broken("replay", "%v", err)
			return
		}
		tip = next
	}
	if tip.State != want.State && !n.disk.Damaged() {
		n.broken("replay", "the ledger of fragment %d comes to state %x, the tip is %x", p, tip.State[:4], want.State[:4])
	}
}

// verifiableFrom is the tip from which the ledger of a fragment can be folded again:
// genesis, or where payloads may go the oldest base.
func (n *Node) verifiableFrom(p int) *outer.Tip {
	kept, _ := n.disk.Bases(p) // which has no errors
	if n.w.s.Policy.KeepBytes == 0 || len(kept) == 0 {
		return n.w.genesis[p]
	}
	tip, _ := n.disk.Base(p, kept[0])
	return tip
}

// String shows a world in a failure.
func (w *World) String() string {
	var b strings.Builder
	for _, n := range w.nodes {
		r := n.machine.Rounds()
		fmt.Fprintf(&b, "node %d up %v gone %v links %d phase %v state %v may %v steps %d finished %v flushed %v settled %v:",
			n.index, n.up, n.gone, len(n.links), n.machine.View().Phase(), n.machine.View().State(), n.may, n.Steps, n.finished, r.Status().Flushed, r.Status().Settled)
		for p := range w.plan {
			steps, _ := r.Fragment(p).Pending()
			t := r.Fragment(p).Tip()
			fmt.Fprintf(&b, " [closed %d base %d tip %d tokens %d end %d chain %x pending %d inflight %d]",
				r.Fragment(p).Closed(), r.Fragment(p).Base(), t.Round, t.Tokens, t.EndRound, t.Chain[:3], steps, n.account(p).InFlight.Tokens)
		}
		b.WriteByte('\n')
	}
	return b.String()
}
