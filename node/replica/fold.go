package replica

import (
	"errors"
	"fmt"

	"atoll/gossip/wire"
	"atoll/node/core"
	"atoll/optimizer/outer"
	"atoll/optimizer/rounds"
)

// FoldResult is what a WantFold came to.
type FoldResult struct {
	Tip    *outer.Tip
	States []outer.Digest
	Links  []outer.Link            // records of the rounds, oldest first
	Shares map[wire.PeerID]float64 // of the last round's weight, by author
}

// errCut ends a fold of a node that stops: the next start folds what the ledger has.
var errCut = errors.New("the node stops")

// fold executes a WantFold that was asked for on the tips of an epoch.
func (r *Replica) fold(w rounds.WantFold, epoch int) {
	res, err := r.foldAndRecord(w, epoch)
	if errors.Is(err, errCut) {
		return
	}
	r.lost(err)
	r.exec.Post(func(now core.Time) {
		if err != nil {
			r.watcher.Saw(FoldFailed{w, err})
		} else {
			r.watcher.Saw(TipFolded{w, res})
		}
		if err := r.machine.FoldDone(now, rounds.FoldResult{Fragment: w.Fragment, Job: w.Job, Tip: res.Tip, States: res.States, Err: err}); err != nil {
			r.watcher.Fail(err)
		}
	})
}

// foldAndRecord folds and writes the rounds to the ledger, if there are any. Rounds
// after them are those that a late delta put past the end of the fragment.
func (r *Replica) foldAndRecord(w rounds.WantFold, epoch int) (FoldResult, error) {
	if epoch != r.bases.epoch {
		return FoldResult{}, fmt.Errorf("fold fragment %d: %w", w.Fragment, core.ErrOvertaken)
	}
	res, err := r.foldSets(w)
	if err == nil && len(res.Links) > 0 {
		r.keepRounds(w.Fragment, res.Links)
	}
	return res, err
}

func (r *Replica) foldSets(w rounds.WantFold) (res FoldResult, err error) {
	tip, err := r.bases.get(w.Fragment, w.Start)
	if err != nil {
		return res, err
	}
	for _, set := range w.Sets {
		if r.exec.Cut() {
			return res, errCut
		}
		var out outer.Result
		if tip, out, err = r.foldSet(w.Fragment, tip, set); err != nil {
			return res, err
		}
		res.States = append(res.States, tip.State)
		res.Links = append(res.Links, core.LinkOf(tip, out.Folded))
		res.Shares = shares(set, out)
		if w.Keeps(tip.Round) {
			r.bases.put(w.Fragment, tip)
		}
	}
	res.Tip = tip
	return res, nil
}

// foldSet folds the round after a tip.
func (r *Replica) foldSet(fragment int, tip *outer.Tip, set []outer.Delta) (*outer.Tip, outer.Result, error) {
	contributions := make([]outer.Contribution, 0, len(set))
	for _, d := range set {
		payload, err := r.ledger.Payload(wire.Digest(d.ID))
		if err != nil {
			return nil, outer.Result{}, &lostPayload{wire.Digest(d.ID), err}
		}
		contributions = append(contributions, outer.Contribution{Delta: d, Payload: payload})
	}
	next, out, err := r.arithmetic.Fold(fragment, tip, contributions)
	if err != nil {
		return nil, out, fmt.Errorf("fold fragment %d round %d: %w", fragment, tip.Round+1, err)
	}
	return next, out, nil
}

// shares are the parts of a round's weight by author.
func shares(set []outer.Delta, out outer.Result) map[wire.PeerID]float64 {
	var sum float64
	for _, w := range out.Weights {
		sum += w
	}
	byAuthor := map[wire.PeerID]float64{}
	for i, id := range out.Folded {
		for _, d := range set {
			if d.ID == id && sum > 0 && i < len(out.Weights) {
				byAuthor[wire.PeerID(d.Author)] = out.Weights[i] / sum
			}
		}
	}
	return byAuthor
}
