package testnet

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"

	"atoll/gossip/p2p"
	"atoll/gossip/wire"
	"atoll/node/store"
	"atoll/tensor"
	"atoll/tensor/llama"
	"atoll/testnet/baseline"
	"atoll/testnet/nodelink"
)

// This file holds what is different in a world of a baseline. The processes are members
// instead of nodes, and this process is their coordinator. The report is made of the
// coordinator's history of views instead of ledgers.

func baselineText(name string) string {
	if name == Atoll || name == "" {
		return ""
	}
	return ", baseline " + name
}

func (w *world) startCoordinator() error {
	p2p.LibraryLog(slog.DiscardHandler) // its connection errors are what chaos is for
	rules := baseline.DefaultRules(w.cfg.Nodes, w.genesis.Outer.Budget)
	var err error
	w.coordinator, err = baseline.NewCoordinator(w.genesis.RunID(), rules, w.shape(w.links.Of(nodelink.NoNode)), w.cfg.Log)
	return err
}

// baselineArguments are the command line of a member of a baseline.
func (w *world) baselineArguments(m *member) []string {
	args := []string{
		"baseline", m.dir, "--kind", w.cfg.Baseline, "--genesis", w.path(genesisFile), "--coordinator", w.coordinator.Addr(),
		"--data", w.cfg.Data, "--threads", strconv.Itoa(threads), "--pace", w.paceOf(m).String(),
		"--log-level", "info",
	}
	if link := w.shape(m.link); link != nil {
		args = append(args, "--shape", link.String())
	}
	if w.cfg.NoOverlap {
		args = append(args, "--no-overlap")
	}
	if isStandIn(w.learners.of(m.index)) {
		args = append(args, "--standin")
	}
	return args
}

// baselineAccount is where the work of the members went.
type baselineAccount struct {
	ids             []wire.PeerID // of the members
	trained, folded []uint64      // by member
	steps           uint64        // of every member, in the model
	tokens          uint64        // in the model
}

func (a baselineAccount) lost(i int) uint64 { return a.trained[i] - min(a.trained[i], a.folded[i]) }

// baselineAccount adds up the history of views. All members of a view contribute equally.
func (w *world) baselineAccount(history []baseline.Span) (baselineAccount, error) {
	n := len(w.members)
	a := baselineAccount{ids: make([]wire.PeerID, n), trained: make([]uint64, n), folded: make([]uint64, n)}
	perStep := w.genesis.StepTokens()
	for i, m := range w.members {
		key, _, err := store.LoadKey(m.dir)
		if err != nil {
			return a, fmt.Errorf("account of %s: %w", m.name(), err)
		}
		sum, err := store.SumSteps(m.dir)
		if err != nil {
			return a, fmt.Errorf("account of %s: %w", m.name(), err)
		}
		a.ids[i], a.trained[i] = wire.PeerIDOf(key), sum.Tokens
		for _, s := range history {
			if slices.Contains(s.Members, a.ids[i]) {
				a.folded[i] += (s.Last.Tokens - s.First.Tokens) / uint64(len(s.Members))
			}
		}
	}
	for _, s := range history {
		tokens := s.Last.Tokens - s.First.Tokens
		a.tokens += tokens
		a.steps += tokens / uint64(len(s.Members)) / perStep
	}
	return a, nil
}

// baselineReport makes the report of a world of a baseline whose members have ended.
func (w *world) baselineReport(ctx context.Context) (Report, error) {
	w.screen.say("the run is over; evaluating")
	survivors := w.survivors()
	if len(survivors) == 0 {
		return Report{}, fmt.Errorf("no member was left at the end of the run (the world is in %s)", w.cfg.Dir)
	}
	a, err := w.baselineAccount(w.coordinator.History())
	if err != nil {
		return Report{}, err
	}
	r := w.describe()
	w.fillBaseline(&r, a)
	w.ended = runEnd(survivors[0])
	w.fillWall(&r, w.ended)
	r.Goodput, r.GoodputUp = w.goodputOf(w.ended, func(i int) float64 {
		return float64(a.folded[i]) / float64(max(a.trained[i], 1))
	})
	w.fillTraffic(&r)
	r.NodesReport = w.baselineRows(a)
	if err := w.fillBaselineModel(ctx, &r, survivors); err != nil {
		return Report{}, err
	}
	r.Checks = w.baselineChecks(r, a)
	r.DirBytes, r.Temporary = folderSize(w.cfg.Dir), w.temporary
	r.Page = w.path(PageFile)
	return r, errors.Join(r.save(w.path(reportFile)), w.savePage(&r))
}

func (w *world) fillBaseline(r *Report, a baselineAccount) {
	views := w.coordinator.Views()
	r.Steps, r.Views, r.TokensFolded = &a.steps, &views, a.tokens
	for i := range w.members {
		r.TokensTrained += a.trained[i]
		r.TokensLost += a.lost(i)
	}
	if w.cfg.Baseline == baseline.DP {
		overlap := !w.cfg.NoOverlap
		r.Overlap = &overlap
	}
}

func (w *world) baselineRows(a baselineAccount) (rows []NodeReport) {
	for i, m := range w.members {
		row := NodeReport{Name: m.name(), ID: hex.EncodeToString(a.ids[i][:]), Role: "learner"}
		row.Tokens, row.TokensFolded, row.TokensLost = a.trained[i], a.folded[i], a.lost(i)
		if a.tokens > 0 {
			row.Share = float64(a.folded[i]) / float64(a.tokens)
		}
		m.describe(&row)
		w.describeLink(m, &row)
		rows = append(rows, row)
	}
	return rows
}

// fillBaselineModel compares the models that the members left, bit by bit, and evaluates the
// first.
func (w *world) fillBaselineModel(ctx context.Context, r *Report, survivors []*member) error {
	var model *tensor.Slab
	r.DigestsEqual = true
	for i, m := range survivors {
		slab := llama.NewParams(w.genesis.Model)
		if err := baseline.ReadModel(m.dir, slab); err != nil {
			return err
		}
		if sum := slabSum(slab); i == 0 {
			model, r.StateDigest = slab, hex.EncodeToString(sum[:])
		} else {
			r.DigestsEqual = r.DigestsEqual && hex.EncodeToString(sum[:]) == r.StateDigest
		}
	}
	r.TrainLoss = meanLoss(survivors)
	return w.fillModel(ctx, r, model)
}

// baselineChecks compares what came of the run with what a baseline promises.
func (w *world) baselineChecks(r Report, a baselineAccount) []Check {
	list := []Check{
		w.checkEqual("one digest", r.DigestsEqual, r.StateDigest),
		w.checkBaselineAccount(r, a),
		w.checkBaselineBudget(r),
		w.checkChaos(),
	}
	for _, c := range []*Check{w.checkRecoveries(), w.checkUsage(), w.checkJoiners(r)} {
		if c != nil {
			list = append(list, *c)
		}
	}
	return list
}

// checkBaselineAccount fails where the model has tokens that no member trained, or where tokens
// are lost although the membership never changed.
func (w *world) checkBaselineAccount(r Report, a baselineAccount) Check {
	var misfits []string
	for i, m := range w.members {
		if a.folded[i] > a.trained[i] {
			misfits = append(misfits, fmt.Sprintf("%s: %d in the model, %d trained", m.name(), a.folded[i], a.trained[i]))
		}
	}
	if *r.Views == 1 && r.TokensLost > 0 {
		misfits = append(misfits, fmt.Sprintf("%d tokens lost in a run of one view", r.TokensLost))
	}
	detail := fmt.Sprintf("%s, %s", r.baselineAccountText(), plural(int(*r.Views), "view"))
	if len(misfits) > 0 {
		detail = strings.Join(misfits, "; ")
	}
	return Check{Name: "account exact", Passed: len(misfits) == 0, Detail: detail}
}

// checkBaselineBudget compares what the model was trained on with the budget: the last step of
// all members may go beyond it.
func (w *world) checkBaselineBudget(r Report) Check {
	slack := w.mayExceed(r, 1)
	ok := r.TokensFolded >= r.TokensBudget && r.TokensFolded-r.TokensBudget <= slack
	return Check{Name: "ended at the budget", Passed: ok, Detail: fmt.Sprintf(
		"%d tokens of %d: %+.2f %%, %d more are allowed", r.TokensFolded, r.TokensBudget,
		100*(float64(r.TokensFolded)/float64(r.TokensBudget)-1), slack)}
}

// baselineAccountText is where all tokens of a baseline went.
func (r Report) baselineAccountText() string {
	return fmt.Sprintf("%d tokens trained = %d in the model + %d lost in rounds that failed", r.TokensTrained, r.TokensFolded, r.TokensLost)
}

// MarshalJSON leaves out what a baseline does not have: rounds of fragments, deltas
// and a chain.
func (r Report) MarshalJSON() ([]byte, error) {
	type plain Report
	if r.Baseline == Atoll || r.Baseline == "" {
		return json.Marshal(plain(r))
	}
	return json.Marshal(struct {
		plain
		TokensReturned    absent        `json:"tokens_returned,omitempty"`
		TokensDiscarded   absent        `json:"tokens_discarded,omitempty"`
		TokensLostHere    absent        `json:"tokens_lost_here,omitempty"`
		TokensUnpublished absent        `json:"tokens_unpublished,omitempty"`
		Rounds            absent        `json:"rounds,omitempty"`
		Deltas            absent        `json:"deltas,omitempty"`
		Late              absent        `json:"late,omitempty"`
		Refused           absent        `json:"refused,omitempty"`
		Corruptions       absent        `json:"corruptions,omitempty"`
		ChainDigest       absent        `json:"chain_digest,omitempty"`
		ChainEqual        absent        `json:"chain_equal,omitempty"`
		NodesReport       []baselineRow `json:"nodes_report"`
	}{plain: plain(r), NodesReport: baselineRowsOf(r.NodesReport)})
}

// absent is nil: it stands for a field of an embedded struct, which is left out then.
type absent *struct{}

// baselineRow is a row of a report without what only deltas have.
type baselineRow struct {
	NodeReport
	TokensReturned  absent `json:"tokens_returned,omitempty"`
	TokensDiscarded absent `json:"tokens_discarded,omitempty"`
}

func baselineRowsOf(rows []NodeReport) (out []baselineRow) {
	for _, row := range rows {
		out = append(out, baselineRow{NodeReport: row})
	}
	return out
}
