package outer

import (
	"errors"
	"fmt"
	"slices"

	"atoll/tensor"
	"atoll/tensor/codec"
)

// Learner keeps theta, the parameters that a trainer steps, in step with the tips of all
// fragments. What is unpublished is defined, not stored:
//
//	U = theta - A - sum(s_k q_k : own k not folded) + held
//
// with q_k the decoded progress of own delta k and s_k, its share, 1, or less if folds came late when it left
// (see lateShare). So whatever a lossy codec or rounding loses stays in theta and is published with the next U.
// Of what a sparse codec does not send a part is held outside theta until then (see hold). The methods
// must not run while the trainer steps; a Learner is not for concurrent use.
type Learner struct {
	p       Params
	theta   []float32 // the trainer's slab, changed in place
	payload func(seq uint64) ([]byte, error)
	frags   []learning
	next    uint64    // Seq of the next draft
	steps   uint64    // taken
	values  []float32 // what is unpublished, as long as the largest fragment
	sum     []float64 // what goes to or from theta, likewise
}

// learning is the state of one fragment.
type learning struct {
	Fragment
	tip     *Tip
	pending Work
	base    uint32 // closed rounds when the oldest pending step was taken
	own     []ownDelta
	held    []float32 // of U, that theta does not have [Len]; nil but for the sparse codecs
	lag     uint64    // steps from the draft of the last own delta that was folded until then
	account Account   // but for Pending and InFlight
}

// ownDelta is a delta of this learner that is not final.
type ownDelta struct {
	Own
	gone    bool    // from theta, though it may not be folded; see discard
	share   float64 // of q, that theta has while it is in flight
	left    uint64  // steps that were taken when it was drafted
	payload []byte  // nil once folded: then it is read back where needed
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

// Own is an own delta that a node found on its disk.
type Own struct {
	Seq         uint64 // chosen by the caller, of no other own delta of any fragment
	Base, Steps uint32
	Tokens      uint64
	Folded      bool // in the tip that the learner was made with
}

// NewLearner returns a learner at the tips of all fragments and writes their anchors to theta.
// payload reads back the payload of an own delta that was made durable; it must keep those that
// are not final.
func NewLearner(p Params, plan Plan, theta []float32, tips []*Tip, payload func(seq uint64) ([]byte, error)) *Learner {
	l := &Learner{p: p, theta: theta, payload: payload, frags: make([]learning, len(plan))}
	longest := 0
	for i, f := range plan {
		l.frags[i] = learning{Fragment: f, tip: tips[i]}
		if p.Codec.Partial() {
			l.frags[i].held = make([]float32, f.Len)
		}
		f.Scatter(tips[i].Anchor, theta)
		longest = max(longest, f.Len)
	}
	l.values = make([]float32, longest)
	l.sum = make([]float64, longest)
	return l
}

// Restore takes back the own deltas of fragment p after a restart: theta = A + sum(q_k : own k not
// folded), with shares of 1. It follows NewLearner, before the first step. What was unpublished at the crash is lost.
func (l *Learner) Restore(p int, own []Own) error {
	f := &l.frags[p]
	for _, o := range own {
		f.own = append(f.own, ownDelta{Own: o, share: 1})
		l.next = max(l.next, o.Seq+1)
	}
	return l.rebuild(f)
}

// rebuild sets theta of the fragment to A + sum(s_k q_k : own k not folded), so U to zero, but for what no delta had room
// for.
func (l *Learner) rebuild(f *learning) error {
	sum := l.sum[:f.Len]
	for i, a := range f.tip.Anchor {
		sum[i] = float64(a)
	}
	f.addKept(sum)
	if err := l.addUnfolded(f, 1); err != nil {
		return err
	}
	f.eachRun(l.theta, func(theta []float32, at int) {
		tensor.Narrow(theta, sum[at:at+len(theta)])
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
		f.pending.add(Work{Steps: 1, Tokens: uint64(tokens)})
	}
}

// Pending is what fragment p has not published yet.
func (l *Learner) Pending(p int) (steps uint32, tokens uint64) {
	w := l.frags[p].pending
	return uint32(w.Steps), w.Tokens
}

// ErrDamaged says that the anchor which theta stands on is not what it was: memory is corrupt. What U
// would come out of it must not be published: the Damaged event of the round machine brings a sound one.
var ErrDamaged = errors.New("the anchor in memory does not match its checksum")

// Draft encodes U of fragment p as a delta that is in flight from now on, and takes the steps and tokens it
// declares off the counters; theta moves only with a sparse codec, and where folds come late. Steps beyond
// Params.MaxSteps stay pending with their share of the tokens. If the draft cannot be published, TakeBack its Seq. The error
// is ErrDamaged if the anchor is, ErrUnread if an own delta in flight is.
func (l *Learner) Draft(p int) (Draft, error) {
	f := &l.frags[p]
	if !f.tip.AnchorSound() {
		return Draft{}, fmt.Errorf("draft fragment %d round %d: %w", p, f.tip.Round, ErrDamaged)
	}
	work := f.pending.declare(l.p.MaxSteps, l.p.MaxTokensPerStep)
	if work.Steps == 0 || work.Tokens == 0 {
		return Draft{}, fmt.Errorf("draft fragment %d: %d steps and %d tokens are pending; there is nothing to publish", p, work.Steps, work.Tokens)
	}
	u, err := l.unpublished(f)
	if err != nil {
		return Draft{}, fmt.Errorf("draft fragment %d: %w", p, err)
	}
	payload, err := codec.Encode(l.p.Codec, u)
	if err != nil {
		return Draft{}, fmt.Errorf("draft fragment %d: %w", p, err)
	}
	if f.held != nil {
		if err := l.hold(f, payload); err != nil {
			return Draft{}, fmt.Errorf("draft fragment %d: %w", p, err)
		}
	}
	d := Draft{Seq: l.next, Fragment: p, Base: f.base, Steps: uint32(work.Steps), Tokens: work.Tokens, Payload: payload}
	own := ownDelta{
		payload: payload, share: l.share(f), left: l.steps, Own: Own{Seq: d.Seq, Base: d.Base, Steps: d.Steps, Tokens: d.Tokens},
	}
	if err := l.addToTheta(f, &own, own.share-1); err != nil { // not of a payload that was encoded just now
		return Draft{}, fmt.Errorf("draft fragment %d: %w", p, err)
	}
	l.next++
	f.pending.sub(work)
	f.own = append(f.own, own)
	return d, nil
}

// unpublished computes U into l.sum, and rounded into l.values.
func (l *Learner) unpublished(f *learning) ([]float32, error) {
	sum := l.sum[:f.Len]
	f.eachRun(l.theta, func(theta []float32, at int) {
		tensor.Difference(sum[at:at+len(theta)], theta, f.tip.Anchor[at:at+len(theta)])
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
		if f.own[i].inFlight() {
			if err := l.addOwn(f, &f.own[i], sign*f.own[i].share); err != nil {
				return err
			}
		}
	}
	return nil
}

// addEach adds so many times q of each of some own deltas to l.sum, and reads none of which that is nothing.
func (l *Learner) addEach(f *learning, seqs []uint64, times func(*ownDelta) float64) error {
	for _, seq := range seqs {
		o := f.find(seq)
		n := times(o)
		if n == 0 {
			continue
		}
		if err := l.addOwn(f, o, n); err != nil {
			return err
		}
	}
	return nil
}

// addOwn adds so many times q of one own delta to l.sum.
func (l *Learner) addOwn(f *learning, o *ownDelta, times float64) error {
	b := o.payload
	if b == nil {
		var err error
		if b, err = l.payload(o.Seq); err != nil {
			return &unread{o.Seq, err}
		}
	}
	if err := codec.Add(b, f.Len, times, l.sum[:f.Len]); err != nil {
		return fmt.Errorf("own delta %d: %w", o.Seq, err)
	}
	return nil
}

// Adopt moves fragment p to a tip: theta += (A' - A) - sum(s q of fold) + sum(s q of unfold) + sum((1-s) q of
// returned), where fold names own deltas that the tip contains and the old one did not, unfold those it no
// longer contains. returned names own deltas that became final outside the chain: they leave own, their steps and
// tokens are pending again and all of their progress is part of U.
//
// With Params.Overwrite a close that folded something first discards U, but for what no delta had room for, and what
// is pending, and has done so even if what follows fails. But for that theta and tip have not moved after an error.
func (l *Learner) Adopt(p int, tip *Tip, fold, unfold, returned []uint64) error {
	f := &l.frags[p]
	if err := l.adopt(f, tip, fold, unfold, returned); err != nil {
		return fmt.Errorf("adopt fragment %d round %d: %w", p, tip.Round, err)
	}
	f.tip = tip
	l.noteLag(f, fold)
	f.mark(fold, true)
	f.mark(unfold, false)
	f.takeBack(returned)
	return nil
}

// adopt is the part of Adopt that may fail.
func (l *Learner) adopt(f *learning, tip *Tip, fold, unfold, returned []uint64) error {
	if err := f.checkMoves(tip, fold, unfold, returned); err != nil {
		return err
	}
	closed := tip.Round > f.tip.Round && tip.Tokens != f.tip.Tokens
	if l.p.Overwrite && closed {
		if err := l.overwrite(f); err != nil {
			return err
		}
	}
	return l.move(f, tip, fold, unfold, returned)
}

// move adds to theta what a change of tip asks for.
func (l *Learner) move(f *learning, tip *Tip, fold, unfold, returned []uint64) error {
	sum := l.sum[:f.Len]
	tensor.Difference(sum, tip.Anchor, f.tip.Anchor)
	if err := l.addEach(f, fold, func(o *ownDelta) float64 { return -o.share }); err != nil {
		return err
	}
	if err := l.addEach(f, unfold, func(o *ownDelta) float64 { return o.share }); err != nil {
		return err
	}
	if err := l.addEach(f, returned, func(o *ownDelta) float64 { return 1 - o.share }); err != nil {
		return err
	}
	l.addSum(f)
	return nil
}

// overwrite discards U, but for what no delta had room for, and what is pending.
func (l *Learner) overwrite(f *learning) error {
	if err := l.rebuild(f); err != nil {
		return err
	}
	f.account.Overwritten.add(f.pending)
	f.pending = Work{}
	return nil
}

// TakeBack undoes the draft of that seq, which could not be made durable: its steps and tokens are
// pending again, and its progress is part of U.
func (l *Learner) TakeBack(p int, seq uint64) error {
	f := &l.frags[p]
	if err := f.checkMove("take back", []uint64{seq}, false); err != nil {
		return fmt.Errorf("fragment %d: %w", p, err)
	}
	o := f.find(seq)
	if err := l.addToTheta(f, o, 1-o.share); err != nil {
		return fmt.Errorf("fragment %d: %w", p, err)
	}
	f.takeBack([]uint64{seq})
	return nil
}

// forget drops own deltas of fragment p that are final, and folded or discarded.
func (l *Learner) forget(p int, seqs []uint64) error {
	f := &l.frags[p]
	for _, seq := range seqs {
		o := f.find(seq)
		switch {
		case o == nil || o.inFlight():
			return fmt.Errorf("fragment %d: forget own delta %d: it is unknown or in flight", p, seq)
		case o.Folded:
			f.drop([]uint64{seq}, &f.account.Folded)
		default:
			f.drop([]uint64{seq}, &f.account.Discarded)
		}
	}
	return nil
}

// discard says that own deltas of fragment p were folded on a chain that is left for another, which does
// not fold them. Call it before Adopt takes the tip: their progress left theta when they were folded and
// does not come back.
func (l *Learner) discard(p int, seqs []uint64) error {
	f := &l.frags[p]
	if err := f.checkMove("discard", seqs, true); err != nil {
		return fmt.Errorf("fragment %d: %w", p, err)
	}
	for _, seq := range seqs {
		o := f.find(seq)
		o.Folded, o.gone = false, true
	}
	return nil
}

// regain says that the next tip folds own deltas of fragment p that were discarded. Call it before Adopt.
func (l *Learner) regain(p int, seqs []uint64) error {
	f := &l.frags[p]
	for _, seq := range seqs {
		o := f.find(seq)
		if o == nil || !o.gone || o.Folded {
			return fmt.Errorf("fragment %d: regain own delta %d: it was not discarded", p, seq)
		}
		o.Folded = true
	}
	return nil
}

func (o *ownDelta) inFlight() bool { return !o.Folded && !o.gone }

func (f *learning) find(seq uint64) *ownDelta {
	i := slices.IndexFunc(f.own, func(o ownDelta) bool { return o.Seq == seq })
	if i < 0 {
		return nil
	}
	return &f.own[i]
}
