package node

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"atoll/gossip/wire"
	"atoll/node/hardware"
	"atoll/node/store"
	"atoll/optimizer/outer"
	"atoll/optimizer/rounds"
)

// diskSpacing: the tips of rounds divisible by it go to disk, so that a
// restart replays at most that many rounds per fragment.
const diskSpacing = 4

// tips holds kept bases in memory and on disk. A base goes to disk if its round
// is divisible by diskSpacing or a base of that round is there already, which
// it replaces; memory holds the newest ones within a budget.
type tips struct {
	params outer.Params
	plan   outer.Plan
	store  *store.Store
	first  func() []*outer.Tip // makes the tips of genesis
	budget int64               // bytes of memory
	epoch  uint64              // counts installs; belongs to the fold queue

	failed func(error) // told what the disk does not take

	mu       sync.Mutex
	held     map[tipKey]*outer.Tip
	disk     map[tipKey]bool
	outlived map[int]uint32 // by fragment: a base that stays on disk only until a newer one is there
	bytes    int64
}

type tipKey struct {
	fragment int
	round    uint32
}

func newTips(p outer.Params, plan outer.Plan, s *store.Store, genesis func() []*outer.Tip, failed func(error)) (*tips, error) {
	t := &tips{params: p, plan: plan, store: s, first: genesis, budget: hardware.MaxTipBytes, held: map[tipKey]*outer.Tip{}, disk: map[tipKey]bool{}, outlived: map[int]uint32{}, failed: failed}
	for fragment := range plan {
		rounds, err := s.Bases(fragment)
		if err != nil {
			return nil, err
		}
		for _, r := range rounds {
			t.disk[tipKey{fragment, r}] = true
		}
	}
	return t, nil
}

// put keeps a tip as a base: in memory only, if the disk does not take it.
func (t *tips) put(fragment int, tip *outer.Tip) {
	k := tipKey{fragment, tip.Round}
	if k.round%diskSpacing == 0 || t.onDisk(k) {
		if err := t.write(k, tip); err != nil {
			t.failed(err)
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.forget(k)
	t.held[k] = tip
	t.bytes += tipBytes(tip)
	t.shrink(fragment)
}

// write keeps a tip on disk, whatever its round. What was there for that round
// is no longer the tip, so it goes even where the new one is not taken.
func (t *tips) write(k tipKey, tip *outer.Tip) error {
	if err := t.store.PutBase(k.fragment, k.round, tip.Encode()); err != nil {
		return errors.Join(fmt.Errorf("keep base of fragment %d round %d: %w", k.fragment, k.round, err), t.dropWritten(k))
	}
	t.mu.Lock()
	t.disk[k] = true
	t.mu.Unlock()
	return t.dropOutlived(k)
}

// dropOutlived drops what was kept on disk only because there was nothing newer.
func (t *tips) dropOutlived(newer tipKey) error {
	t.mu.Lock()
	old, ok := t.outlived[newer.fragment]
	ok = ok && old < newer.round
	if ok {
		delete(t.outlived, newer.fragment)
	}
	t.mu.Unlock()
	if !ok {
		return nil
	}
	return t.dropWritten(tipKey{newer.fragment, old})
}

func (t *tips) onDisk(k tipKey) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.disk[k]
}

// restart holds the tips that were installed, which the store has as the only
// bases, and forgets every other.
func (t *tips) restart(installed []*outer.Tip) {
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.held)
	clear(t.disk)
	clear(t.outlived)
	t.bytes = 0
	for p, tip := range installed {
		k := tipKey{p, tip.Round}
		t.held[k], t.disk[k] = tip, true
		t.bytes += tipBytes(tip)
		t.shrink(p)
	}
}

func tipBytes(t *outer.Tip) int64 { return int64(4 * (len(t.Anchor) + len(t.Momentum) + len(t.Ref))) }

func (t *tips) forget(k tipKey) {
	if old, ok := t.held[k]; ok {
		t.bytes -= tipBytes(old)
		delete(t.held, k)
	}
}

// shrink drops the oldest on-disk bases of a fragment while over budget.
func (t *tips) shrink(fragment int) {
	for t.bytes > t.budget {
		oldest, found := tipKey{}, false
		for k := range t.held {
			if k.fragment == fragment && t.disk[k] && (!found || k.round < oldest.round) {
				oldest, found = k, true
			}
		}
		if !found {
			return
		}
		t.forget(oldest)
	}
}

// get returns a kept base, from memory or disk. One that is not what its checksum
// says is forgotten in memory and an error: the next call reads it from the disk.
func (t *tips) get(fragment int, round uint32) (*outer.Tip, error) {
	k := tipKey{fragment, round}
	t.mu.Lock()
	tip, ok := t.held[k]
	t.mu.Unlock()
	if ok && tip.Sound() {
		return tip, nil
	}
	if ok {
		t.mu.Lock()
		t.forget(k)
		t.mu.Unlock()
		return nil, &lostBase{fragment, round, outer.ErrDamaged}
	}
	if round == 0 {
		return t.genesis(fragment), nil
	}
	blob, err := t.store.Base(fragment, round)
	if err == nil {
		tip, err = decodeBase(blob, t.plan[fragment], t.params)
	}
	if err != nil {
		return nil, &lostBase{fragment, round, err}
	}
	return tip, nil
}

// genesis makes a tip of round 0 anew, and holds it.
func (t *tips) genesis(fragment int) *outer.Tip {
	tip := t.first()[fragment]
	t.mu.Lock()
	defer t.mu.Unlock()
	t.held[tipKey{fragment, 0}] = tip
	t.bytes += tipBytes(tip)
	return tip
}

func decodeBase(blob []byte, f outer.Fragment, p outer.Params) (*outer.Tip, error) {
	tip, err := outer.DecodeTip(blob, f, p)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", store.ErrCorrupt, err)
	}
	return tip, nil
}

// release forgets a base that is no longer needed. The newest one on disk stays
// there until a newer one is: a disk that takes none must not leave a restart
// without any. One above the tip is of rounds that are no longer closed.
func (t *tips) release(fragment int, round, tip uint32) error {
	k := tipKey{fragment, round}
	t.mu.Lock()
	newest := t.disk[k] && round <= tip
	for other := range t.disk {
		newest = newest && (other.fragment != fragment || other.round <= round || other.round > tip)
	}
	if newest {
		t.forget(k)
		t.outlived[fragment] = round
	}
	t.mu.Unlock()
	if newest {
		return nil
	}
	return t.drop(fragment, round)
}

// drop forgets a base everywhere.
func (t *tips) drop(fragment int, round uint32) error {
	k := tipKey{fragment, round}
	t.mu.Lock()
	t.forget(k)
	t.mu.Unlock()
	return t.dropWritten(k)
}

// dropWritten forgets a base on disk.
func (t *tips) dropWritten(k tipKey) error {
	t.mu.Lock()
	written := t.disk[k]
	delete(t.disk, k)
	t.mu.Unlock()
	if !written {
		return nil
	}
	return t.store.DropBase(k.fragment, k.round)
}

// foldResult is what a WantFold came to.
type foldResult struct {
	tip     *outer.Tip
	states  []outer.Digest
	rounds  []store.Round
	weights map[wire.PeerID]float64 // shares of the last round's weight
}

// fold carries out a WantFold beside training. The end of ctx ends it between
// two rounds.
func (t *tips) fold(ctx context.Context, w rounds.WantFold) (foldResult, error) {
	tip, err := t.get(w.Fragment, w.Start)
	if err != nil {
		return foldResult{}, err
	}
	var res foldResult
	for i, set := range w.Sets {
		if err := ctx.Err(); err != nil {
			return foldResult{}, err
		}
		round := w.Start + uint32(i) + 1
		contributions, err := t.read(set)
		if err != nil {
			return foldResult{}, err
		}
		var out outer.Result
		tip, out, err = outer.Fold(t.params, t.plan[w.Fragment], tip, round, contributions)
		if err != nil {
			return foldResult{}, fmt.Errorf("fold fragment %d round %d: %w", w.Fragment, round, err)
		}
		res.states = append(res.states, tip.State)
		res.rounds = append(res.rounds, roundRecord(tip, out))
		res.weights = shares(set, out)
		if w.Keeps(round) {
			t.put(w.Fragment, tip)
		}
	}
	res.tip = tip
	return res, nil
}

func (t *tips) read(set []outer.Delta) ([]outer.Contribution, error) {
	var out []outer.Contribution
	for _, d := range set {
		payload, err := t.store.Payload(wire.Digest(d.ID))
		if err != nil {
			return nil, &lostPayload{wire.Digest(d.ID), err}
		}
		out = append(out, outer.Contribution{Delta: d, Payload: payload})
	}
	return out, nil
}

func roundRecord(tip *outer.Tip, out outer.Result) store.Round {
	r := store.Round{Chain: wire.Digest(tip.Chain), State: wire.Digest(tip.State), Tokens: tip.Tokens, EndRound: tip.EndRound}
	for _, id := range out.Folded {
		r.Folded = append(r.Folded, wire.Digest(id))
	}
	return r
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
			if d.ID == id && sum > 0 {
				byAuthor[wire.PeerID(d.Author)] = out.Weights[i] / sum
			}
		}
	}
	return byAuthor
}
