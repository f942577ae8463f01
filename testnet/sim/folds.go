package sim

import (
	"atoll/gossip/wire"
	"atoll/optimizer/outer"
)

// folder runs outer.Fold and Params.CheckPayload. In a lean world it remembers
// what they came to: both are pure functions, and a thousand nodes call them with
// the same arguments. Arguments are the same if tip and deltas are, by identity
// of the tip and by the ids, which are hashes over header and payload. In small
// worlds nothing is remembered, so that nodes agree by computing, not by sharing.
type folder struct {
	lean    bool
	made    map[foldKey]folded
	order   []foldKey // of made, oldest at next once it is full
	next    int
	checked map[wire.Digest]error
	tips    map[outer.Digest]*outer.Tip // by state: what was decoded from a snapshot
	hits    int
}

// foldKey names a fold. Two sets never have one chain: it is a hash over the ids.
type foldKey struct {
	prev  *outer.Tip
	chain outer.Digest
}

type folded struct {
	tip *outer.Tip
	ids []outer.ID
}

const (
	maxFolds   = 1 << 14 // remembered: some rounds of each fragment of a large world
	maxChecked = 1 << 17
	// recomputeEvery hits one is computed anyway and compared.
	recomputeEvery = 64
)

func newFolder(lean bool) folder {
	return folder{
		lean: lean, made: map[foldKey]folded{}, checked: map[wire.Digest]error{}, tips: map[outer.Digest]*outer.Tip{},
	}
}

// fold returns the tip after prev and the ids folded.
func (f *folder) fold(w *World, p int, prev *outer.Tip, set []outer.Contribution) (*outer.Tip, []outer.ID, error) {
	key := foldKey{prev: prev}
	if f.lean {
		key.chain = setKey(prev.Chain, set)
		if old, ok := f.made[key]; ok {
			f.hits++
			if f.hits%recomputeEvery != 0 {
				return old.tip, old.ids, nil
			}
			tip, _, err := outer.Fold(w.s.Params, w.plan[p], prev, prev.Round+1, set)
			if err == nil && tip.State != old.tip.State {
				w.broken("equal sets, equal bits", "two folds of one set differ in round %d of fragment %d", tip.Round, p)
			}
			return old.tip, old.ids, err
		}
	}
	tip, result, err := outer.Fold(w.s.Params, w.plan[p], prev, prev.Round+1, set)
	w.counts.Folds++
	w.checkShares(p, prev.Round+1, result.Weights)
	if f.lean && err == nil {
		f.remember(key, folded{tip, result.Folded})
	}
	return tip, result.Folded, err
}

// setKey is a digest of a set on a chain. A set comes sorted from the rounds.
func setKey(prev outer.Digest, set []outer.Contribution) outer.Digest {
	ids := make([]outer.ID, len(set))
	for i := range set {
		ids[i] = set[i].Delta.ID
	}
	return outer.ChainDigest(prev, ids)
}

func (f *folder) remember(key foldKey, x folded) {
	if len(f.order) < maxFolds {
		f.order = append(f.order, key)
	} else {
		delete(f.made, f.order[f.next])
		f.order[f.next] = key
		f.next = (f.next + 1) % maxFolds
	}
	f.made[key] = x
}

// check is Params.CheckPayload.
func (f *folder) check(w *World, d outer.Delta, payload []byte) error {
	if f.lean {
		if err, known := f.checked[wire.Digest(d.ID)]; known {
			return err
		}
	}
	err := w.s.Params.CheckPayload(w.plan[d.Fragment], d, payload)
	if f.lean && len(f.checked) < maxChecked {
		f.checked[wire.Digest(d.ID)] = err
	}
	return err
}

// intern returns one tip for all that were decoded from the same bytes, so that
// folds on top of it are found again.
func (f *folder) intern(tip *outer.Tip) *outer.Tip {
	if !f.lean {
		return tip
	}
	if old, ok := f.tips[tip.State]; ok {
		return old
	}
	f.tips[tip.State] = tip
	return tip
}
