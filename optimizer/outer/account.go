package outer

import (
	"fmt"
	"math/bits"
	"slices"
)

// Work is an amount of training.
type Work struct {
	Steps, Tokens uint64
}

func (w *Work) add(x Work) {
	w.Steps += x.Steps
	w.Tokens += x.Tokens
}

func (w *Work) sub(x Work) {
	w.Steps -= x.Steps
	w.Tokens -= x.Tokens
}

// declare is the part of pending work that one header may carry: at most maxSteps steps and
// maxTokens tokens a step.
func (w Work) declare(maxSteps uint32, maxTokens uint64) Work {
	steps := min(w.Steps, uint64(maxSteps))
	if steps == 0 {
		return Work{}
	}
	hi, lo := bits.Mul64(w.Tokens, steps)
	tokens, _ := bits.Div64(hi, lo, w.Steps) // fits: steps <= w.Steps
	return Work{Steps: steps, Tokens: min(tokens, steps*maxTokens)}
}

// Account says where the work of a learner on one fragment went. Every step taken, and every own
// delta restored from disk, is in exactly one column.
type Account struct {
	Pending     Work // not published
	InFlight    Work // published, neither folded nor returned
	Folded      Work // in the tip, or final in its chain
	Overwritten Work // discarded by Params.Overwrite
	Discarded   Work // folded on a chain that was lost, or unpublished on a damaged anchor
}

// Total is the sum of all columns.
func (a Account) Total() Work {
	var t Work
	for _, w := range []Work{a.Pending, a.InFlight, a.Folded, a.Overwritten, a.Discarded} {
		t.add(w)
	}
	return t
}

// Account returns the account of fragment p since the learner was made.
func (l *Learner) Account(p int) Account {
	f := &l.frags[p]
	a := f.account
	a.Pending = f.pending
	for _, o := range f.own {
		switch {
		case o.Folded:
			a.Folded.add(o.work())
		case o.gone:
			a.Discarded.add(o.work())
		default:
			a.InFlight.add(o.work())
		}
	}
	return a
}

func (o Own) work() Work { return Work{Steps: uint64(o.Steps), Tokens: o.Tokens} }

// checkMoves tells whether an adoption makes sense: a tip of this fragment, and own deltas that are
// where the moves say.
func (f *learning) checkMoves(tip *Tip, fold, unfold, returned []uint64) error {
	if len(tip.Anchor) != f.Len {
		return fmt.Errorf("the tip has %d values, the fragment %d", len(tip.Anchor), f.Len)
	}
	if err := f.checkMove("fold", fold, false); err != nil {
		return err
	}
	if err := f.checkMove("unfold", unfold, true); err != nil {
		return err
	}
	stay := slices.DeleteFunc(slices.Clone(returned), func(seq uint64) bool { return slices.Contains(unfold, seq) })
	if err := f.checkMove("return", stay, false); err != nil {
		return err
	}
	for i, seq := range returned {
		if slices.Contains(fold, seq) || slices.Contains(returned[:i], seq) {
			return fmt.Errorf("own delta %d is returned twice, or folded too", seq)
		}
	}
	return nil
}

// checkMove tells whether each of seqs is known, once, and folded or in flight as it should be.
func (f *learning) checkMove(what string, seqs []uint64, folded bool) error {
	for i, seq := range seqs {
		o := f.find(seq)
		if o == nil || slices.Contains(seqs[:i], seq) {
			return fmt.Errorf("%s own delta %d: it is unknown or named twice", what, seq)
		}
		if o.Folded != folded || o.inFlight() == folded {
			return fmt.Errorf("%s own delta %d: folded must be %t before", what, seq, folded)
		}
	}
	return nil
}

// mark notes that own deltas are now folded or not. A folded payload is seldom needed again.
func (f *learning) mark(seqs []uint64, folded bool) {
	for _, seq := range seqs {
		o := f.find(seq)
		o.Folded = folded
		if folded {
			o.payload = nil
		}
	}
}

// takeBack makes the work of own deltas pending again and drops them.
func (f *learning) takeBack(seqs []uint64) {
	for _, seq := range seqs {
		o := f.find(seq)
		if f.pending.Steps == 0 || o.Base < f.base {
			f.base = o.Base
		}
		f.pending.add(o.work())
	}
	f.drop(seqs, nil)
}

// drop removes own deltas and adds their work to a column.
func (f *learning) drop(seqs []uint64, column *Work) {
	f.own = slices.DeleteFunc(f.own, func(o ownDelta) bool {
		gone := slices.Contains(seqs, o.Seq)
		if gone && column != nil {
			column.add(o.work())
		}
		return gone
	})
}

// eachRun calls do for the part of the parameter slab that each tensor takes, with the place of its first
// value in the fragment's vectors.
func (f *learning) eachRun(slab []float32, do func(part []float32, at int)) {
	f.each(func(i, at, n int) {
		offset := f.Tensors[i].Offset
		do(slab[offset:offset+n], at)
	})
}
