package outer

import (
	"errors"
	"fmt"
	"slices"

	"atoll/tensor"
	"atoll/tensor/codec"
)

// Learner keeps the local parameters theta, which a trainer steps, in step with the tips of all
// fragments. The unpublished progress U is defined, not stored:
//
//	U = theta - A - sum(s_k q_k : own k not folded) + held
//
// with q_k the decoded progress of own delta k and s_k, its share, 1, or less if folds came late when it left
// (see lateShare). So whatever a lossy codec or rounding loses stays in the local parameters and is published with the next
// U. A part of what a sparse codec does not send is held outside of them until then (see withhold). The methods must not
// run while the trainer steps, unless it steps the values of a Device, which says when it is paused. A Learner is not for
// concurrent use, with one exception: Stepped may run beside a method while the device is not paused.
type Learner struct {
	p       Params
	local   []float32 // the trainer's slab, changed in place
	payload func(seq uint64) ([]byte, error)
	device  Device // nil: the trainer steps the local parameters themselves
	frags   []learning
	next    uint64    // Seq of the next draft
	steps   uint64    // taken
	values  []float32 // what is unpublished, as long as the largest fragment
	sum     []float64 // what is added to the local parameters or taken off, likewise
}

// learning is the state of one fragment.
type learning struct {
	Fragment
	tip     *Tip // what a learner takes of one, see Tip.anchored
	pending Work
	base    uint32 // closed rounds when the oldest pending step was taken
	own     []ownDelta
	held    []float32 // of U, outside the local parameters [Len]; nil without a sparse codec
	lag     uint64    // steps from the draft of the last own delta that was folded until then
}

// Draft is unpublished progress on its way to become a delta.
type Draft struct {
	Seq      uint64 // names it to its Learner, within the Learner's life
	Fragment int
	Base     uint32
	Steps    uint32
	Tokens   uint64
	Payload  []byte
}

// NewLearner returns a learner at the tips of all fragments and writes their global parameters to local.
// payload reads back the payload of an own delta that was made durable; it must keep those that
// are not final.
func NewLearner(p Params, plan Plan, local []float32, tips []*Tip, payload func(seq uint64) ([]byte, error)) *Learner {
	l := &Learner{p: p, local: local, payload: payload, frags: make([]learning, len(plan))}
	longest := 0
	for i, f := range plan {
		l.frags[i] = learning{Fragment: f, tip: tips[i].anchored()}
		if p.Codec.Partial() {
			l.frags[i].held = make([]float32, f.Len)
		}
		f.Scatter(tips[i].Global, local)
		longest = max(longest, f.Len)
	}
	l.values = make([]float32, longest)
	l.sum = make([]float64, longest)
	return l
}

// Restore takes the own deltas of fragment p after a restart, with those that the tip of NewLearner folded among
// them: theta = A + sum(q_k : own k not folded), with shares of 1. It follows NewLearner, before the first step.
// What was unpublished at the crash is lost.
func (l *Learner) Restore(p int, own, folded []uint64) error {
	f := &l.frags[p]
	for _, seq := range own {
		f.own = append(f.own, ownDelta{seq: seq, share: 1, in: !slices.Contains(folded, seq)})
		l.next = max(l.next, seq+1)
	}
	return l.rebuild(f)
}

// rebuild sets the local parameters of the fragment to A + sum(s_k q_k : own k not folded), so U to zero, but for what no
// delta had room for.
func (l *Learner) rebuild(f *learning) error {
	sum := l.sum[:f.Len]
	for i, a := range f.tip.Global {
		sum[i] = float64(a)
	}
	f.addKept(sum)
	if err := l.addUnfolded(f, 1); err != nil {
		return err
	}
	f.eachRun(l.local, func(local []float32, at int) {
		tensor.Narrow(local, sum[at:at+len(local)])
	})
	return nil
}

// Stepped counts one inner step of so many tokens for every fragment. closed is the last closed
// round of each, from which the base of a delta follows.
func (l *Learner) Stepped(tokens int, closed []uint32) {
	l.steps++
	for i := range l.frags {
		f := &l.frags[i]
		if f.pending.Steps == 0 {
			f.base = closed[i]
		}
		f.pending.Add(Work{Steps: 1, Tokens: uint64(tokens)})
	}
}

// Pending is what fragment p has not published yet.
func (l *Learner) Pending(p int) (steps uint32, tokens uint64) {
	w := l.frags[p].pending
	return uint32(w.Steps), w.Tokens
}

// ErrDamaged says that the global parameters, on which the local ones stand, are not what they were: memory is corrupt.
// The U that would come of them must not be published: the Damaged event of the round machine brings sound ones.
var ErrDamaged = errors.New("the global parameters in memory do not match their checksum")

// ErrNothing says that no steps are pending: their learner was lost meanwhile.
var ErrNothing = errors.New("there is nothing to publish")

// Draft encodes U of fragment p as a delta that is in flight from now on, and takes the steps and tokens it
// declares off the counters; the local parameters change only with a sparse codec, and where folds come late. Steps beyond
// Params.MaxSteps stay pending with their share of the tokens. If the draft cannot be published, use Return. The error
// is ErrDamaged if the global parameters are damaged, ErrUnread if an own delta in flight cannot be read.
func (l *Learner) Draft(p int) (Draft, error) {
	f := &l.frags[p]
	if !f.tip.GlobalSound() {
		return Draft{}, fmt.Errorf("draft fragment %d round %d: %w", p, f.tip.Round, ErrDamaged)
	}
	l.pause()
	work := f.pending.declare(l.p.MaxSteps, l.p.MaxTokensPerStep)
	if work.Steps == 0 || work.Tokens == 0 {
		return Draft{}, fmt.Errorf("draft fragment %d: %d steps and %d tokens are pending; %w", p, work.Steps, work.Tokens, ErrNothing)
	}
	if err := l.flush(f); err != nil {
		return Draft{}, fmt.Errorf("draft fragment %d: %w", p, err)
	}
	f.pending.Sub(work)
	own := ownDelta{seq: l.next, in: true, share: l.share(f), left: l.steps}
	declared := Own{Seq: own.seq, Base: f.base, Steps: uint32(work.Steps), Tokens: work.Tokens}
	l.resume()
	if err := l.encode(f, &own); err != nil {
		l.pause()
		f.putBack([]Own{declared})
		return Draft{}, fmt.Errorf("draft fragment %d: %w", p, err)
	}
	l.next++
	f.own = append(f.own, own)
	return Draft{Seq: own.seq, Fragment: p, Base: declared.Base, Steps: declared.Steps, Tokens: declared.Tokens, Payload: own.payload}, nil
}

// encode makes the payload of an own delta from U. Then it lowers the local parameters by what they lack while the delta
// is in flight: what a sparse delta had no room for and is held, and 1-share of what was sent.
func (l *Learner) encode(f *learning, own *ownDelta) error {
	u, err := l.unpublished(f)
	if err != nil {
		return err
	}
	if own.payload, err = codec.Encode(l.p.Codec, u); err != nil {
		return err
	}
	if f.held == nil && own.share == 1 {
		return nil
	}
	_ = l.flush(f) // the payload is whole: where the device is gone now, Lost takes off what was stepped since
	if f.held != nil {
		if err := l.withhold(f, own.payload); err != nil {
			return err
		}
	}
	if err := l.addToLocal(f, own, own.share-1); err != nil { // not of a payload that was encoded just now
		return err
	}
	l.load(f)
	return nil
}

// unpublished computes U into l.sum, and rounded into l.values.
func (l *Learner) unpublished(f *learning) ([]float32, error) {
	sum := l.sum[:f.Len]
	f.eachRun(l.local, func(local []float32, at int) {
		tensor.Difference(sum[at:at+len(local)], local, f.tip.Global[at:at+len(local)])
	})
	if err := l.addUnfolded(f, -1); err != nil {
		return nil, err
	}
	if f.held != nil {
		tensor.AxpyWide(1, f.held, sum)
	}
	u := l.values[:f.Len]
	tensor.Narrow(u, sum)
	return u, nil
}

// addUnfolded adds sign times s q of every own delta that is in flight to l.sum.
func (l *Learner) addUnfolded(f *learning, sign float64) error {
	for i := range f.own {
		if f.own[i].in {
			if err := l.addOwn(f, &f.own[i], sign*f.own[i].share); err != nil {
				return err
			}
		}
	}
	return nil
}

// addOwn adds so many times q of one own delta to l.sum.
func (l *Learner) addOwn(f *learning, o *ownDelta, times float64) error {
	b := o.payload
	if b == nil {
		var err error
		if b, err = l.payload(o.seq); err != nil {
			return &unread{o.seq, err}
		}
	}
	if err := codec.Add(b, f.Len, times, l.sum[:f.Len]); err != nil {
		return fmt.Errorf("own delta %d: %w", o.seq, err)
	}
	return nil
}

// Adopt moves a fragment to a tip: theta += (A' - A) + sum(n_k q_k : change k), with -s_k times q of what
// was folded or dropped, s_k of what was unfolded, and 1-s_k of what is returned, which is pending again.
// An error leaves the local parameters and the tip unchanged.
func (l *Learner) Adopt(a Adopt) error {
	f := &l.frags[a.Fragment]
	next, err := f.after(a)
	if err == nil {
		err = l.adopt(f, a.Tip, next)
	}
	if err != nil {
		return adoptError(a, err)
	}
	l.load(f)
	return nil
}

func adoptError(a Adopt, err error) error {
	return fmt.Errorf("adopt fragment %d round %d: %w", a.Fragment, a.Tip.Round, err)
}

// adopt moves the local parameters and leaves the device paused.
func (l *Learner) adopt(f *learning, tip *Tip, next adoption) error {
	if err := l.change(f, tip, next.adds); err != nil {
		return err
	}
	if err := l.flush(f); err != nil {
		return err
	}
	l.addSum(f)
	l.recordLag(f, next.adds)
	f.complete(tip, next)
	return nil
}

// complete records where an adoption leads, when the local parameters are there or are about to be.
func (f *learning) complete(tip *Tip, next adoption) {
	f.tip, f.own = tip.anchored(), next.own
	f.putBack(next.back)
}

// change computes what a change of tip adds to the local parameters, into l.sum.
func (l *Learner) change(f *learning, tip *Tip, adds []addend) error {
	tensor.Difference(l.sum[:f.Len], tip.Global, f.tip.Global)
	for i := range adds {
		if err := l.addOwn(f, &adds[i].ownDelta, adds[i].times); err != nil {
			return err
		}
	}
	return nil
}

// Return undoes the draft of an own delta, which could not be made durable: its steps and tokens are
// pending again, and its progress is part of U.
func (l *Learner) Return(p int, o Own) error {
	f := &l.frags[p]
	i := indexOf(f.own, o.Seq)
	if i < 0 || !f.own[i].in {
		return fmt.Errorf("return own delta %d of fragment %d: it is not in flight", o.Seq, p)
	}
	l.pause()
	if share := f.own[i].share; share != 1 {
		_ = l.flush(f) // where the device is gone, Lost takes off what it had stepped
		if err := l.addToLocal(f, &f.own[i], 1-share); err != nil {
			return fmt.Errorf("fragment %d: %w", p, err)
		}
		l.load(f)
	}
	f.own = slices.Delete(f.own, i, i+1)
	f.putBack([]Own{o})
	return nil
}
