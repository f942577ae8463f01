package sim

import (
	"maps"
	"slices"

	"atoll/node/core"
)

// Tokens are where the tokens of a node went: the mean over the fragments by
// their parameters, as Machine.FoldedTokens has it, so that the columns add up.
type Tokens struct {
	Folded    float64 // in the chain of the world
	Pending   float64 // not published
	InFlight  float64 // published, neither folded nor returned
	Discarded float64 // with a chain that was left
	Lost      float64 // unpublished at a crash
}

// Report is what one node came to.
type Report struct {
	Index       int
	Liar        bool
	Observer    bool
	Up          bool
	Gone        bool // for good
	Phase       core.Phase
	Trained     uint64
	Tokens      Tokens
	Idle        Time // stood still though tokens were missing
	Contributed Time // when a delta of this life was first folded here, 0 before
	Late        uint64
	Planned     int // steps that its deltas were to have when it last stepped
	Did         tally
	Marks       []int          // nodes that it says broke the protocol
	Excludes    []int          // nodes that it has a proof against, of two deltas for one round
	Refused     map[int]string // nodes with which it failed to agree on anything, and why
}

// Reports are the reports of all nodes that ever were. WholeChain says whether
// some node has every round on its disk; without one nobody's folded tokens are
// known.
func (w *World) Reports() (reports []Report, wholeChain bool) {
	from := w.complete()
	var folded map[*Node][]uint64
	if from != nil {
		folded = w.foldedTokens(from)
	}
	for _, n := range w.nodes {
		reports = append(reports, n.report(folded[n]))
	}
	return reports, from != nil
}

// foldedTokens are the tokens of each author and fragment in the final chain.
func (w *World) foldedTokens(from *Node) map[*Node][]uint64 {
	out := map[*Node][]uint64{}
	for _, n := range append([]*Node{nil}, w.nodes...) { // nil: keys without a node
		out[n] = make([]uint64, len(w.plan))
	}
	for p, folds := range w.folds(from) {
		for id := range folds {
			h := w.checks.ledger[id]
			out[w.byID[h.Author]][p] += h.Tokens
		}
	}
	return out
}

func (n *Node) report(folded []uint64) Report {
	r := Report{
		Index: n.index, Liar: n.liar != nil, Observer: n.spec.Observer, Up: n.up, Gone: n.gone, Phase: n.machine.View().Phase(),
		Trained: n.book.trained, Tokens: n.tokens(folded), Idle: n.idle, Contributed: n.contributed, Late: n.late, Planned: n.planned,
		Did: n.tally, Refused: map[int]string{},
	}
	if n.up {
		r.Late += n.lateNow()
	}
	for k, why := range n.w.refusals {
		if k.a == n.index {
			r.Refused[k.b] = why
		}
	}
	for _, v := range n.machine.Gossip().Peers().All() {
		if p := n.w.byID[v.ID]; v.Refused != "" && p != nil {
			r.Marks = append(r.Marks, p.index)
		}
	}
	for _, p := range n.w.nodes {
		if n.machine.Rounds().Excluded(p.id) {
			r.Excludes = append(r.Excludes, p.index)
		}
	}
	slices.Sort(r.Marks)
	return r
}

// lateNow is how many deltas came late in this life.
func (n *Node) lateNow() uint64 {
	_, late := n.machine.View().Counts()
	return late
}

// tokens are the node's columns; folded are by fragment, or nil.
func (n *Node) tokens(folded []uint64) (t Tokens) {
	params := 0
	for _, f := range n.w.plan {
		params += f.Len
	}
	for p, f := range n.w.plan {
		share := float64(f.Len) / float64(params)
		if folded != nil {
			t.Folded += share * float64(folded[p])
		}
		t.Lost += share * float64(n.book.lost[p])
		t.Discarded += share * float64(n.book.gone[p])
		if !n.up { // its last account is closed
			continue
		}
		a := n.account(p)
		t.Pending += share * float64(a.Pending.Tokens)
		t.InFlight += share * float64(a.InFlight.Tokens)
		t.Discarded += share * float64(a.Discarded.Tokens)
	}
	return t
}

// Said is what honest nodes said of liars, and how often, with # for numbers.
func (w *World) Said() map[string]int { return maps.Clone(w.checks.caught) }

// Together says that all honest nodes that run and are not paused are in and on one chain, with
// none further behind than what is on its way.
func (w *World) Together() bool {
	var awake []*Node
	for _, n := range w.alive() {
		if n.paused == 0 && !n.machine.View().Paused() {
			awake = append(awake, n)
		}
	}
	for p := range w.plan {
		least, most := ^uint32(0), uint32(0)
		for _, n := range awake {
			closed := n.machine.Rounds().Fragment(p).Closed()
			least, most = min(least, closed), max(most, closed)
		}
		if len(awake) > 0 && most-least > agreeLag {
			return false
		}
	}
	return w.oneChainOf(awake)
}

// Closed is how many rounds of the first fragment the most advanced node closed.
func (w *World) Closed() uint32 { return w.closed() }

// Watch calls look every so often, between two events. Looking changes nothing:
// the history is the same without.
func (w *World) Watch(every Time, look func()) { w.watch = watch{every, w.now + every, look} }

type watch struct {
	every, next Time
	look        func()
}

// lookUpTo looks as often as it was due before t.
func (w *World) lookUpTo(t Time) {
	for w.watch.look != nil && w.watch.next <= t {
		w.now = w.watch.next
		w.watch.next += w.watch.every
		w.watch.look()
	}
}

// Contributed is when a delta that the node made in this life, or since its owner let it go
// on, was first folded here; 0 before.
func (n *Node) Contributed() Time { return n.contributed }

// contributes records the first fold of a delta of this life.
func (n *Node) contributes(folded []uint64) {
	if n.contributed != 0 {
		return
	}
	if slices.ContainsFunc(folded, func(seq uint64) bool { return seq >= n.firstSeq }) {
		n.contributed = n.w.now - Start
	}
}
