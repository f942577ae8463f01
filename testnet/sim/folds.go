package sim

import (
	"bytes"

	"atoll/gossip/wire"
	"atoll/optimizer/outer"
	"atoll/tensor/codec"
)

// folder runs outer.Fold and Params.CheckPayload, and remembers what they came to:
// both are pure functions, and all nodes call them with the same arguments.
// Arguments are the same if the tip's state and the ids in their order are. An id
// is a hash over header and payload, and payloads are checked against it before
// they are folded. That the functions are pure is no assumption: every so many
// hits one is computed anyway and compared.
type folder struct {
	lean    bool
	every   int // hits
	made    map[foldKey]folded
	order   []foldKey // of made, oldest at next once it is full
	next    int
	checked map[wire.Digest]checked
	tips    map[outer.Digest]*outer.Tip // by state: what was decoded from a snapshot
	hits    int
	decoded decodedValues
}

// foldKey names a fold. Two sets never have one chain: it is a hash over the ids.
type foldKey struct {
	prev  outer.Digest // state
	chain outer.Digest
}

// checked is what looking at a payload came to: an error, or its values, and itself.
type checked struct {
	err     error
	values  []float32
	payload []byte
}

type folded struct {
	tip *outer.Tip
	ids []outer.ID
}

const (
	maxFolds   = 1 << 14 // remembered: some rounds of each fragment of a large world
	maxChecked = 1 << 17
	maxValues  = 1 << 25 // of decoded payloads: 128 MiB, and likewise of tips
	// In lean worlds one in recomputeEvery hits is computed anyway; in others, in
	// which faults are looked for, one in recomputeOften.
	recomputeEvery = 64
	recomputeOften = 8
)

func newFolder(lean bool) folder {
	f := folder{
		lean: lean, every: recomputeOften,
		made: map[foldKey]folded{}, checked: map[wire.Digest]checked{}, tips: map[outer.Digest]*outer.Tip{},
	}
	if lean {
		f.every = recomputeEvery
	}
	return f
}

// again counts a hit, and says whether to compute it anyway.
func (f *folder) again() bool {
	f.hits++
	return f.hits%f.every == 0
}

// fold returns the tip after prev and the ids folded. A set that comes again is
// folded from its payloads, a new one from what those were found to decode to.
func (f *folder) fold(w *World, p int, prev *outer.Tip, set []outer.Contribution) (*outer.Tip, []outer.ID, error) {
	key := foldKey{prev.State, setKey(prev.Chain, set)}
	old, known := f.made[key]
	switch {
	case !known:
		for i := range set {
			set[i].Values = f.checked[wire.Digest(set[i].Delta.ID)].values
		}
	case !f.again():
		return old.tip, old.ids, nil
	}
	tip, result, err := outer.Fold(w.s.Params, w.plan[p], prev, prev.Round+1, set)
	w.counts.Folds++
	if err == nil {
		w.checkShares(p, prev.Round+1, result)
		w.recordWeights(p, tip, result)
	}
	switch {
	case err != nil:
	case !known:
		f.remember(key, folded{tip, result.Folded})
	case tip.State != old.tip.State:
		w.broken("equal sets, equal bits", "two folds of one set differ in round %d of fragment %d", tip.Round, p)
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
	if len(f.order) < min(maxFolds, max(1, maxValues/len(x.tip.Global))) {
		f.order = append(f.order, key)
	} else {
		f.next %= len(f.order)
		delete(f.made, f.order[f.next])
		f.order[f.next] = key
		f.next++
	}
	f.made[key] = x
}

// decodedValues bounds what is remembered of payloads: the oldest values go
// first, and are decoded again by a fold that needs them.
type decodedValues struct {
	ids   []wire.Digest
	first int // of ids that are remembered
	held  int // values
}

// remember keeps the values of a payload in checked.
func (d *decodedValues) remember(all map[wire.Digest]checked, id wire.Digest, n int) {
	d.ids, d.held = append(d.ids, id), d.held+n
	for d.held > maxValues && d.first < len(d.ids)-1 {
		old := all[d.ids[d.first]]
		d.held -= len(old.values)
		all[d.ids[d.first]] = checked{err: old.err}
		d.first++
	}
}

// check is Params.CheckPayload.
func (f *folder) check(w *World, d outer.Delta, payload []byte) error {
	old, known := f.checked[wire.Digest(d.ID)]
	if known && !f.again() {
		return old.err
	}
	x := checked{err: w.s.Params.CheckPayload(w.plan[d.Fragment], d, payload)}
	if known && (x.err == nil) != (old.err == nil) {
		w.broken("equal sets, equal bits", "two checks of one payload come to %v and %v", old.err, x.err)
	}
	if known || len(f.checked) >= maxChecked {
		return x.err
	}
	if x.err == nil && !d.Revocation() {
		x.values = make([]float32, w.plan[d.Fragment].Len)
		x.err = codec.Decode(payload, len(x.values), x.values)
		x.payload = payload
	}
	f.checked[wire.Digest(d.ID)] = x
	f.decoded.remember(f.checked, wire.Digest(d.ID), len(x.values))
	return x.err
}

// shared returns one copy of a payload for all nodes that receive it at about the same time. Each has its own disk, and
// the payloads on many disks take gigabytes.
func (f *folder) shared(id wire.Digest, payload []byte) []byte {
	if x := f.checked[id]; bytes.Equal(x.payload, payload) {
		return x.payload
	}
	return payload
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
