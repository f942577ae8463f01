package outer

import (
	"fmt"
	"slices"
)

// ownDelta is a delta of this learner that may enter or leave the local parameters.
type ownDelta struct {
	seq     uint64
	in      bool    // the local parameters have share of q: the delta is in flight
	lost    bool    // its payload could not be read: the local parameters have nothing of it, ever again
	share   float64 // of q, that the local parameters have while it is in flight
	left    uint64  // steps that were taken when it was drafted
	payload []byte  // nil once it is not in flight: then it is read back where needed
}

// adoption is what an Adopt comes to.
type adoption struct {
	own  []ownDelta // after it
	adds []addend   // to the local parameters, in order
	back []Own      // pending again
	lost Work       // that would be pending again, if it could be read
}

// addend is so many times q of an own delta.
type addend struct {
	ownDelta
	times float64
}

// after tells what an Adopt comes to, or why it makes no sense: then the tip is of another fragment,
// or an own delta is not where its change says.
func (f *learning) after(a Adopt) (next adoption, err error) {
	if len(a.Tip.Global) != f.Len {
		return next, fmt.Errorf("the tip has %d values, the fragment %d", len(a.Tip.Global), f.Len)
	}
	next.own = slices.Clone(f.own)
	for _, c := range a.Changes {
		if err := next.apply(c); err != nil {
			return next, err
		}
	}
	return next, nil
}

func (n *adoption) apply(c Change) error {
	i := indexOf(n.own, c.Seq)
	if i < 0 {
		return fmt.Errorf("own delta %d is %v: it is unknown", c.Seq, c.Fate)
	}
	o := &n.own[i]
	leaves := c.Fate == Folded || c.Fate == Dropped || c.Fate == Returned
	switch {
	case o.lost && c.Fate == Returned:
		n.lost.Add(c.Work())
	case o.lost:
	case o.in != leaves:
		return fmt.Errorf("own delta %d is %v: in flight must be %t before", c.Seq, c.Fate, leaves)
	default:
		if times := o.times(c.Fate); times != 0 {
			n.adds = append(n.adds, addend{*o, times})
		}
		if c.Fate == Returned {
			n.back = append(n.back, c.Own)
		}
		o.move(c.Fate == Unfolded)
	}
	if c.Fate == Returned || c.Fate == Forgotten {
		n.own = slices.Delete(n.own, i, i+1)
	}
	return nil
}

// times is how often a change adds q to the local parameters.
func (o *ownDelta) times(fate Fate) float64 {
	switch fate {
	case Folded, Dropped:
		return -o.share
	case Unfolded:
		return o.share
	case Returned:
		return 1 - o.share
	default:
		return 0
	}
}

// move records whether the delta is in flight. The payload of one that is not is seldom needed again.
func (o *ownDelta) move(in bool) {
	if o.in = in; !in {
		o.payload = nil
	}
}

// lose takes an own delta whose payload is lost off what the local parameters are made of.
func (o *ownDelta) lose(loss *Loss) {
	o.in, o.lost, o.payload = false, true, nil
	loss.Gone = append(loss.Gone, o.seq)
}

// putBack makes the work of own deltas pending again.
func (f *learning) putBack(back []Own) {
	for _, o := range back {
		if f.pending.Steps == 0 || o.Base < f.base {
			f.base = o.Base
		}
		f.pending.Add(o.Work())
	}
}

// InFlight are the seqs of own deltas of fragment p that the local parameters have beside the global ones.
func (l *Learner) InFlight(p int) (seqs []uint64) {
	for _, o := range l.frags[p].own {
		if o.in {
			seqs = append(seqs, o.seq)
		}
	}
	return seqs
}

func indexOf(own []ownDelta, seq uint64) int {
	return slices.IndexFunc(own, func(o ownDelta) bool { return o.seq == seq })
}

func (f *learning) find(seq uint64) *ownDelta {
	if i := indexOf(f.own, seq); i >= 0 {
		return &f.own[i]
	}
	return nil
}

// eachRun calls do for the part of the parameter slab that each tensor takes, with the place of its first
// value in the fragment's vectors.
func (f *learning) eachRun(slab []float32, do func(part []float32, at int)) {
	f.each(func(i, at, n int) {
		offset := f.Tensors[i].Offset
		do(slab[offset:offset+n], at)
	})
}
