package outer

import (
	"errors"
	"fmt"
	"slices"

	"atoll/tensor"
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
	Folded  []ID      // by author, then id; revocations, which have no weight, come after all others
	Weights []float64 // of Folded but revocations, after the share cap; divide by their sum for shares
	Refused []Refusal // the same for every node that folds this set
}

// ErrEnded is the reason for leaving a delta out that is for a round after the fragment's
// last. It was valid and came too late.
var ErrEnded = errors.New("outer: fragment has ended")

// ErrRevoked is the reason for leaving a delta out whose author an owner of the run revoked.
var ErrRevoked = errors.New("outer: an owner of the run revoked the author")

// Fold closes round prev.Round+1 of fragment f: it returns the tip after it, made from prev
// and the deltas of the set, and what became of each delta. It is a pure function of its
// arguments: the order of set does not matter, a delta given twice counts once, and neither
// prev nor set is modified. Equivocation proof must have been removed from set.
//
// A delta that is statically invalid, does not decode or holds a value that is not finite is
// refused, by every node alike. With nothing to fold the next tip has the global parameters, momentum and
// reference of prev and a longer chain.
//
// The error is for a caller's mistake: a round that does not follow prev or a tip of another
// fragment.
//
// It uses as many cores as are free, see tensor.SetThreads.
//
// Memory: the new global parameters and momentum, float64 sums of a part of the fragment for each core, and at most 8 bytes
// per value for payloads without their entropy coding. Those payloads that find room there, 15 of
// int4, go through the entropy coding once, others once more each time they are read.
func Fold(p Params, f Fragment, prev *Tip, round uint32, set []Contribution) (*Tip, Result, error) {
	if err := checkFold(p, f, prev, round); err != nil {
		return nil, Result{}, err
	}
	fold := &folding{p: p, f: f, prev: prev, round: round}
	fold.admit(set)
	if len(fold.set) > 0 {
		fold.borrow()
		defer fold.memory.Return()
		fold.measure()
	}
	next := &Tip{
		Round: round, Global: prev.Global, Momentum: prev.Momentum, Ref: prev.Ref,
		Tokens: prev.Tokens, EndRound: prev.EndRound, Revoked: fold.revoked, Reputations: prev.Reputations,
	}
	next.Chain = ChainDigest(prev.Chain, fold.sortedIDs())
	if len(fold.set) > 0 {
		fold.apply(next)
	}
	return next.seal(), fold.result(), nil
}

func checkFold(p Params, f Fragment, prev *Tip, round uint32) error {
	switch {
	case round != prev.Round+1:
		return fmt.Errorf("fold round %d: the tip is of round %d", round, prev.Round)
	case len(prev.Global) != f.Len || len(prev.Ref) != len(f.Tensors):
		return fmt.Errorf("fold round %d: a tip of %d values in %d tensors; the fragment has %d in %d",
			round, len(prev.Global), len(prev.Ref), f.Len, len(f.Tensors))
	case p.Mu != 0 && len(prev.Momentum) != f.Len:
		return fmt.Errorf("fold round %d: a tip with a momentum of %d values; the fragment has %d", round, len(prev.Momentum), f.Len)
	}
	return nil
}

// folding is one fold under way.
type folding struct {
	p           Params
	f           Fragment
	prev        *Tip
	round       uint32
	set         []Contribution // what has values, by author
	revocations []ID           // revocations, by author
	revoked     []Revoked      // names revoked up to this round
	sources     []source       // the values of set, from measure on
	norms       [][]float64    // [delta][tensor] |v|, from measure on
	speaks      [][]bool       // [delta][tensor] it says something, from listen on
	silent      []bool         // it does nowhere
	weights     []float64      // of set, from apply on
	total       float64        // of weights
	spoken      [][]float64    // [delta][tensor] its weight where it speaks, from apply on
	totals      []float64      // [tensor] of these
	refused     []Refusal

	memory  *tensor.Workspace
	raw     []byte // what is left of the memory for payloads
	crowded bool   // some found no room
}

// admit sorts the set by author and id and keeps what headers allow.
func (fold *folding) admit(set []Contribution) {
	sorted := slices.Clone(set)
	slices.SortFunc(sorted, func(a, b Contribution) int {
		if c := CompareAuthors(a.Delta.Author, b.Delta.Author); c != 0 {
			return c
		}
		return CompareIDs(a.Delta.ID, b.Delta.ID)
	})
	sorted = slices.CompactFunc(sorted, func(a, b Contribution) bool { return a.Delta.ID == b.Delta.ID })
	fold.keep(sorted, fold.checkHeader)
	fold.revoke()
}

// revoke leaves out what revocations of the set or of an earlier round name, and sets these apart
// from what has values.
func (fold *folding) revoke() {
	deltas := make([]Delta, len(fold.set))
	for i, c := range fold.set {
		deltas[i] = c.Delta
	}
	fold.revoked = Revoke(fold.prev.Revoked, deltas)
	if !slices.ContainsFunc(deltas, Delta.Revocation) && len(fold.revoked) == 0 {
		return
	}
	fold.keep(fold.set, func(c Contribution) error {
		if RevokedAt(fold.revoked, c.Delta) != 0 {
			return ErrRevoked
		}
		return nil
	})
	fold.set = slices.DeleteFunc(fold.set, func(c Contribution) bool {
		if c.Delta.Revocation() {
			fold.revocations = append(fold.revocations, c.Delta.ID)
		}
		return c.Delta.Revocation()
	})
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
	}
	next.Tokens += fold.p.CountedOf(deltas)
	fold.listen()
	fold.weights = fold.weigh(deltas, next)
	fold.divide()
	for _, w := range fold.weights {
		fold.total += w
	}
	if fold.total > 0 { // else nobody in it is trusted
		fold.move(next)
	}
	if next.EndRound == 0 && next.Tokens >= fold.p.Budget {
		next.EndRound = fold.round
	}
}

// move is the step that the weighed set takes.
func (fold *folding) move(next *Tip) {
	clips, ref := fold.clip()
	next.Ref = ref
	fold.step(next, fold.centre(clips))
}

// progress writes the merged progress of the values from at on, a part, to sum. It is never kept whole: what
// needs it again computes it again. Several goroutines may call it.
type progress func(at int, sum []float64)

// weigh returns the weights of the set, whose deltas these are.
func (fold *folding) weigh(deltas []Delta, next *Tip) []float64 {
	w := fold.p.claimed(deltas)
	for i := range w {
		if fold.silent[i] {
			w[i] = 0
		}
	}
	guests := guestShare
	if !fold.p.OwnText {
		a := fold.compareSet(next)
		fold.p.bounded(w, deltas, a.trusts, a.claims, trustedRecently(next.Reputations, fold.round))
		a.asOne(w)
		if !a.scored {
			guests = 0
		}
	}
	shareOut(fold.p, w, deltas, guests)
	return w
}

// stepLen is how many values are stepped before the next: few enough to stay in the first cache
// through all of it.
const stepLen = 1 << 11

// step is the outer Nesterov step from the global parameters and momentum of prev along some progress.
func (fold *folding) step(next *Tip, along progress) {
	next.Global = make([]float32, fold.f.Len)
	if fold.p.Mu != 0 {
		next.Momentum = make([]float32, fold.f.Len)
	}
	fold.eachPart(func(at int, u []float64) {
		along(at, u)
		for from := 0; from < len(u); from += stepLen {
			to := min(from+stepLen, len(u))
			fold.stepValues(next, at+from, u[from:to])
		}
	})
}

// stepValues is the step of the values from at on: m = mu m + u, A += eta (u + mu m). It
// overwrites u.
func (fold *folding) stepValues(next *Tip, at int, u []float64) {
	p, end := fold.p, at+len(u)
	if p.Mu != 0 {
		m := next.Momentum[at:end]
		tensor.DecayNarrow(m, p.Mu, fold.prev.Momentum[at:end], u)
		tensor.AxpyWide(p.Mu, m, u)
	}
	tensor.MoveNarrow(next.Global[at:end], fold.prev.Global[at:end], p.Eta, u)
}

func (fold *folding) sortedIDs() []ID {
	ids := append(fold.ids(), fold.revocations...)
	slices.SortFunc(ids, CompareIDs)
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
	return Result{Folded: append(fold.ids(), fold.revocations...), Weights: fold.weights, Refused: fold.refused}
}
