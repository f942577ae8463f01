package outer

import (
	"errors"
	"fmt"
	"slices"

	"atoll/tensor/codec"
)

// Contribution is a delta and its payload: the progress of a learner on a fragment,
// encoded by codec.
type Contribution struct {
	Delta   Delta
	Payload []byte
	// Values, unless nil, is what Payload decodes to, from a caller that folds it often.
	Values []float32
}

// Refusal says why a delta of the set was left out of a fold.
type Refusal struct {
	ID  ID
	Err error
}

// Result tells what a fold did with its set.
type Result struct {
	Folded  []ID      // by author, then id
	Weights []float64 // of Folded, after the share cap; divide by their sum for shares
	Refused []Refusal // the same for every node that folds this set
}

// ErrEnded is the reason for leaving a delta out that is for a round after the fragment's
// last. It was valid and came too late.
var ErrEnded = errors.New("outer: fragment has ended")

// Fold closes round prev.Round+1 of fragment f: it returns the tip after it, made from prev
// and the deltas of the set, and what became of each delta. It is a pure function of its
// arguments: the order of set does not matter, a delta given twice counts once, and neither
// prev nor set is modified. Evidence must have been removed from set.
//
// A delta that is statically invalid, does not decode or holds a value that is not finite is
// refused, by every node alike. With nothing to fold the next tip has the anchor, momentum and
// reference of prev and a longer chain.
//
// The error is for a caller's mistake: a round that does not follow prev or a tip of another
// fragment.
//
// Memory: float64 sums and one decoded delta, 12 bytes per value of the fragment, and the new
// anchor and momentum. Payloads are decoded twice, or three times where deltas oppose each other.
func Fold(p Params, f Fragment, prev *Tip, round uint32, set []Contribution) (*Tip, Result, error) {
	if err := checkFold(p, f, prev, round); err != nil {
		return nil, Result{}, err
	}
	fold := &folding{p: p, f: f, prev: prev, round: round}
	fold.admit(set)
	fold.measure()
	next := &Tip{
		Round: round, Anchor: prev.Anchor, Momentum: prev.Momentum, Ref: prev.Ref,
		Tokens: prev.Tokens, EndRound: prev.EndRound,
	}
	if len(fold.set) > 0 {
		fold.apply(next)
	}
	next.Chain = ChainDigest(prev.Chain, fold.sortedIDs())
	return next.seal(), fold.result(), nil
}

func checkFold(p Params, f Fragment, prev *Tip, round uint32) error {
	switch {
	case round != prev.Round+1:
		return fmt.Errorf("fold round %d: the tip is of round %d", round, prev.Round)
	case len(prev.Anchor) != f.Len || len(prev.Ref) != len(f.Tensors):
		return fmt.Errorf("fold round %d: a tip of %d values in %d tensors; the fragment has %d in %d",
			round, len(prev.Anchor), len(prev.Ref), f.Len, len(f.Tensors))
	case p.Mu != 0 && len(prev.Momentum) != f.Len:
		return fmt.Errorf("fold round %d: a tip with a momentum of %d values; the fragment has %d", round, len(prev.Momentum), f.Len)
	}
	return nil
}

// folding is one fold under way.
type folding struct {
	p       Params
	f       Fragment
	prev    *Tip
	round   uint32
	set     []Contribution // what is folded, by author
	norms   [][]float64    // [delta][tensor] |v|, from measure on
	weights []float64      // of set, from apply on
	refused []Refusal
	values  []float32 // one decoded delta [Len]
	scratch []float32 // where it is decoded to
}

// admit sorts the set by author and id and keeps what headers allow.
func (fold *folding) admit(set []Contribution) {
	sorted := slices.Clone(set)
	slices.SortFunc(sorted, func(a, b Contribution) int {
		if c := compareAuthors(a.Delta.Author, b.Delta.Author); c != 0 {
			return c
		}
		return compareIDs(a.Delta.ID, b.Delta.ID)
	})
	sorted = slices.CompactFunc(sorted, func(a, b Contribution) bool { return a.Delta.ID == b.Delta.ID })
	fold.keep(sorted, fold.checkHeader)
}

// keep makes fold.set the contributions that pass check, the others are refused.
func (fold *folding) keep(set []Contribution, check func(Contribution) error) {
	fold.set = make([]Contribution, 0, len(set))
	for _, c := range set {
		if err := check(c); err != nil {
			fold.refused = append(fold.refused, Refusal{ID: c.Delta.ID, Err: err})
			continue
		}
		fold.set = append(fold.set, c)
	}
}

func (fold *folding) checkHeader(c Contribution) error {
	switch {
	case !fold.prev.Takes(fold.round):
		return ErrEnded
	case c.Delta.Round != fold.round:
		return fmt.Errorf("outer: delta of round %d in the set of round %d", c.Delta.Round, fold.round)
	}
	if err := fold.p.Check(c.Delta); err != nil {
		return err
	}
	return checkContainer(c.Delta, c.Payload)
}

// measure decodes each delta for its norms; what does not decode is refused.
func (fold *folding) measure() {
	if len(fold.set) == 0 {
		return
	}
	fold.keep(fold.set, func(c Contribution) error {
		if err := fold.decode(c); err != nil {
			return err
		}
		fold.norms = append(fold.norms, fold.tensorNorms())
		return nil
	})
}

// decode leaves the delta's progress in fold.values, which is only read.
func (fold *folding) decode(c Contribution) error {
	if len(c.Values) == fold.f.Len {
		fold.values = c.Values
		return nil
	}
	if fold.scratch == nil {
		fold.scratch = make([]float32, fold.f.Len)
	}
	fold.values = fold.scratch
	return codec.Decode(c.Payload, fold.f.Len, fold.values)
}

func (fold *folding) tensorNorms() []float64 {
	norms := make([]float64, len(fold.f.Tensors))
	fold.f.each(func(i, at, n int) { norms[i] = norm32(fold.values[at : at+n]) })
	return norms
}

// each calls do for tensor i of the fragment, the n values from at on of its vectors.
func (f Fragment) each(do func(i, at, n int)) {
	at := 0
	for i, t := range f.Tensors {
		do(i, at, t.Len)
		at += t.Len
	}
}

// apply folds a set that is not empty into next.
func (fold *folding) apply(next *Tip) {
	deltas := make([]Delta, len(fold.set))
	for i, c := range fold.set {
		deltas[i] = c.Delta
		next.Tokens += c.Delta.Tokens
	}
	fold.weights = Weights(fold.p, deltas, fold.round)
	clips, ref := fold.clip()
	next.Ref = ref
	if fold.p.Merge == MergeClip {
		fold.step(next, fold.centre(clips))
	} else {
		fold.step(next, fold.merge(clips))
	}
	if next.EndRound == 0 && next.Tokens >= fold.p.Budget {
		next.EndRound = fold.round
	}
}

// step is the outer Nesterov step along progress u [Len] from the anchor and momentum of prev.
func (fold *folding) step(next *Tip, u []float64) {
	p, prev := fold.p, fold.prev
	next.Anchor = make([]float32, len(u))
	if p.Mu == 0 {
		for i, x := range u {
			next.Anchor[i] = narrow(float64(prev.Anchor[i]) + float64(p.Eta*x))
		}
		return
	}
	next.Momentum = make([]float32, len(u))
	for i, x := range u {
		m := narrow(float64(p.Mu*float64(prev.Momentum[i])) + x)
		next.Momentum[i] = m
		ahead := x + float64(p.Mu*float64(m))
		next.Anchor[i] = narrow(float64(prev.Anchor[i]) + float64(p.Eta*ahead))
	}
}

func (fold *folding) sortedIDs() []ID {
	ids := fold.ids()
	slices.SortFunc(ids, compareIDs)
	return ids
}

func (fold *folding) ids() []ID {
	ids := make([]ID, len(fold.set))
	for i, c := range fold.set {
		ids[i] = c.Delta.ID
	}
	return ids
}

func (fold *folding) result() Result {
	return Result{Folded: fold.ids(), Weights: fold.weights, Refused: fold.refused}
}
