package sim

import (
	"context"
	"fmt"

	"atoll/node/trace"
	"atoll/testnet/fault"
)

// Counts are totals over a world.
type Counts struct {
	Events             int                `json:"events"`
	Messages           int                `json:"messages"`          // hops of gossip messages
	MessagesLost       int                `json:"messages_lost"`     // hops that did not arrive
	Deltas             int                `json:"deltas"`            // published
	Folds              int                `json:"folds"`             // computed, not remembered
	FoldedForOthers    int                `json:"folded_for_others"` // rounds that snapshot sources folded again
	FilesDamaged       int                `json:"files_damaged"`
	LedgersUnchecked   int                `json:"ledgers_unchecked"`          // no node had the whole chain
	DiscardedAndFolded uint64             `json:"discarded_and_folded"`       // tokens: discarded where a snapshot was taken, and folded by others
	FoldedUnseen       uint64             `json:"folded_unseen"`              // tokens: taken for folded where a snapshot was taken whose history is too short to tell, and not folded
	PayloadsDropped    int                `json:"payloads_dropped,omitempty"` // by retention
	LeftBehind         int                `json:"left_behind,omitempty"`      // leavers that went before others took what they made
	Revocations        int                `json:"revocations,omitempty"`      // in the ledger, of all fragments
	Faults             map[fault.Verb]int `json:"faults"`
}

// Result is what became of a scenario. It is a function of the scenario.
type Result struct {
	Seed      uint64  `json:"seed"`
	Nodes     int     `json:"nodes"`      // that ever were
	VirtualMs Time    `json:"virtual_ms"` // from start to end
	Rounds    uint32  `json:"rounds"`     // closed, of the fragment that has the fewest
	Tokens    uint64  `json:"tokens"`     // folded
	Trained   uint64  `json:"trained"`    // tokens stepped by all learners
	Loss      float64 `json:"loss"`       // of the global parameters, at the start it is LossStart
	LossStart float64 `json:"loss_start"`
	AgreedMs  Time    `json:"agreed_ms,omitempty"`     // from the end of the faults to one chain
	AgreedIn  uint32  `json:"agreed_rounds,omitempty"` // and the rounds closed meanwhile
	BytesIn   int64   `json:"bytes_in"`                // by all nodes
	Counts    Counts  `json:"counts"`
	Did       tally   `json:"did"` // by all nodes
	Fit       Fit     `json:"fit"` // how the run fitted its links
	Chain     string  `json:"chain_digest"`
	State     string  `json:"state_digest"`
	Longer    int     `json:"longer,omitempty"` // how often it was run again with a larger budget, see Scenario.AtLeast
	History   string  `json:"history_digest"`   // equal for equal histories
	Check     string  `json:"check,omitempty"`  // the checker that found a broken promise
	Error     string  `json:"error,omitempty"`
	Err       error   `json:"-"`

	Trace trace.Trace `json:"-"` // of a scenario that asks for it
}

// Run plays a scenario to its end. The error of the result is a broken promise;
// the error returned is a scenario that cannot be.
func Run(s Scenario) (Result, error) { return RunContext(context.Background(), s) }

// RunContext is Run that ends early, with the context's error, when ctx is done.
func RunContext(ctx context.Context, s Scenario) (Result, error) {
	for longer := 0; ; longer++ {
		r, err := runOnce(ctx, s)
		r.Longer = longer
		switch {
		case err != nil || r.Err == nil && r.Rounds >= s.AtLeast:
			return r, err
		case r.Err != nil && (r.Check != "learns" || r.Rounds >= exploreLeast): // fewer rounds may teach too little
			return r, nil
		case longer == longerRuns && r.Err != nil:
			return r, nil
		case longer == longerRuns:
			r.fail(&Broken{Check: "rounds", Seed: s.Seed, At: r.VirtualMs, Text: fmt.Sprintf("only %d of %d rounds", r.Rounds, s.AtLeast)})
			return r, nil
		}
		s.Params.Budget *= longerBudget
		s.LimitMs *= longerBudget
	}
}

// A run in which fewer rounds close than it asks for is run again with so many times
// the budget, at most so often. Learners that step while links hold up their deltas, or
// while they may not sign, make much of a budget in few rounds.
const (
	longerBudget = 4
	longerRuns   = 3
)

func runOnce(ctx context.Context, s Scenario) (Result, error) {
	w, err := New(s)
	if err != nil {
		return Result{}, err
	}
	w.ctx = ctx
	if s.Rounds > 0 {
		w.runRounds(s.Rounds)
	} else {
		w.Finish()
	}
	if err := ctx.Err(); err != nil {
		return Result{}, err
	}
	return w.Result(), nil
}

// runRounds runs until every node has closed so many rounds of each fragment.
func (w *World) runRounds(rounds uint32) {
	done := w.RunUntil(Start+w.s.LimitMs, func() bool { return w.leastClosed() >= rounds })
	if w.err == nil && !done {
		w.broken("converges", "only %d of %d rounds", w.leastClosed(), rounds)
	}
}

func (w *World) leastClosed() uint32 {
	least := ^uint32(0)
	for _, n := range w.alive() {
		for p := range w.plan {
			least = min(least, n.machine.Rounds().Fragment(p).Closed())
		}
	}
	return least
}

// Result is what the world came to so far.
func (w *World) Result() Result {
	r := Result{
		Seed: w.s.Seed, Nodes: len(w.nodes), VirtualMs: w.now - Start, Rounds: w.leastClosed(),
		Loss: w.s.Task.Loss(w.Globals()), LossStart: w.s.Task.Loss(w.s.Task.Initial()), Counts: w.counts, Err: w.err,
	}
	if w.checks.agreed != 0 {
		r.AgreedMs, r.AgreedIn = w.checks.agreed-w.checks.calmed, w.checks.took
	}
	for _, n := range w.nodes {
		r.Trained += n.book.trained
		r.Did.add(n.tally)
	}
	r.BytesIn, r.Fit = r.Did.BytesIn, w.Fit()
	first := w.first().machine.View()
	chain, state := first.Digests()
	r.Tokens = first.FoldedTokens()
	r.Chain, r.State = chain.String(), state.String()
	w.history.bytes(chain[:])
	w.history.bytes(state[:])
	r.History = fmt.Sprintf("%016x", w.history.sum)
	if w.s.Trace {
		r.Trace = w.Trace()
	}
	if w.err != nil {
		r.fail(w.err)
	}
	return r
}

func (r *Result) fail(err error) {
	r.Err, r.Error = err, err.Error()
	if b, ok := err.(*Broken); ok {
		r.Check = b.Check
	}
}

func (t *tally) add(o tally) {
	t.Steps += o.Steps
	t.Installs += o.Installs
	t.Refolds += o.Refolds
	t.Unfolds += o.Unfolds
	t.Returns += o.Returns
	t.Discards += o.Discards
	t.Unwritten += o.Unwritten
	t.BytesOut += o.BytesOut
	t.BytesIn += o.BytesIn
	t.PayloadIn += o.PayloadIn
}
