package outer

import (
	"errors"
	"math"
	"slices"
	"testing"
)

// lateRig is a learner of one fragment, H = 8, whose own delta of round 1 was folded so many steps after it was
// drafted. Each step adds 1 to each local parameter, and all global parameters are the number of their round.
type lateRig struct {
	*testing.T
	l     *Learner
	local []float32
	tip   *Tip
	disk  map[uint64][]byte
}

func newLateRig(t *testing.T, lag int) *lateRig {
	p := toyParams()
	p.H = 8
	r := &lateRig{T: t}
	r.l, r.local, r.tip, r.disk = oneFragment(p)
	r.steps(8)
	d := r.draft()
	r.steps(lag)
	r.adopt(changed(Folded, d))
	return r
}

func (r *lateRig) steps(n int) {
	for range n {
		for i := range r.local {
			r.local[i]++
		}
		r.l.Stepped(512, []uint32{r.tip.Round})
	}
}

func (r *lateRig) draft() Draft {
	r.Helper()
	d, err := r.l.Draft(0)
	if err != nil {
		r.Fatal(err)
	}
	r.disk[d.Seq] = d.Payload
	return d
}

// adopt closes a round.
func (r *lateRig) adopt(changes ...[]Change) {
	r.Helper()
	next := &Tip{Round: r.tip.Round + 1, Global: make([]float32, len(r.local)), Ref: r.tip.Ref, Tokens: r.tip.Tokens + 1}
	for i := range next.Global {
		next.Global[i] = float32(next.Round)
	}
	r.move(next.seal(), changes...)
}

func (r *lateRig) move(tip *Tip, changes ...[]Change) {
	r.Helper()
	if err := adopt(r.l, tip, changes...); err != nil {
		r.Fatal(err)
	}
	r.tip = tip
}

func (r *lateRig) localIs(when string, want float64) {
	r.Helper()
	for i, x := range r.local {
		if math.Abs(float64(x)-want) > 1e-4 {
			r.Fatalf("%s: local parameter %d is %v, want %v", when, i, x, want)
		}
	}
}

// The local parameters have 0.7 of what is in flight where the last fold came two steps and an eighth of H late, and
// all of it elsewhere.
func TestLateFoldsLowerTheShare(t *testing.T) {
	for lag, share := range map[int]float64{0: 1, 1: 1, 2: 1, 3: 0.7, 8: 0.7, 16: 0.7} {
		r := newLateRig(t, lag)
		r.localIs("after the fold", 1+float64(lag))
		r.steps(4)
		r.draft()
		r.localIs("drafted", 1+share*float64(lag+4))
	}
}

// Small H does not make every fold late: one step passes until any is adopted.
func TestFoldsInTimeAtSmallH(t *testing.T) {
	for _, h := range []int{1, 2, 4, 8} {
		r := newLateRig(t, 1)
		r.l.p.H = h
		r.steps(1)
		r.draft()
		r.localIs("drafted", 1+2)
	}
}

// All of a delta's progress is part of U again when it is not folded.
func TestShareComesBackWhole(t *testing.T) {
	const u = 4 + 4
	r := newLateRig(t, 4)
	r.steps(4)
	d := r.draft()
	r.localIs("drafted", 1+0.7*u)
	if err := r.l.Return(0, changed(Returned, d)[0].Own); err != nil {
		t.Fatal(err)
	}
	r.localIs("draft returned", 1+u)
	d = r.draft()
	r.adopt(changed(Returned, d))
	r.localIs("returned", 2+u)
	d = r.draft()
	r.adopt(changed(Folded, d))
	r.localIs("folded", 3)
	r.steps(1)
	r.draft()
	r.localIs("drafted after a fold that came at once", 4)
}

// An own delta that is unfolded is in flight as it was before, or returned whole.
func TestUnfoldedHasItsShare(t *testing.T) {
	for _, atOnce := range []bool{true, false} {
		r := newLateRig(t, 8)
		d := r.draft()
		r.adopt(changed(Folded, d))
		r.localIs("folded", 2)
		if atOnce {
			r.adopt(changed(Unfolded, d), changed(Returned, d))
		} else {
			r.adopt(changed(Unfolded, d))
			r.localIs("unfolded", 3+0.7*8)
			r.move(r.tip, changed(Returned, d))
		}
		r.localIs("returned", 3+8)
	}
}

// A second delta has what was made since the first, whatever of that the local parameters have, and how late folds are is shown by the
// newest that is folded.
func TestDraftBesideOneInFlight(t *testing.T) {
	r := newLateRig(t, 4)
	first := r.draft()
	r.steps(2)
	second := r.draft()
	r.localIs("drafted twice", 1+0.7*4+0.7*2)
	if err := r.l.rebuild(&r.l.frags[0]); err != nil {
		t.Fatal(err)
	}
	r.localIs("built from its definition", 1+0.7*4+0.7*2)
	r.adopt(changed(Folded, first, second))
	r.localIs("folded", 2)
	if lag := r.l.frags[0].lag; lag != 0 {
		t.Errorf("the fold came %d steps after the newest delta, want 0", lag)
	}
}

// A first delta's fold is as late as it is though a second was drafted meanwhile.
func TestLagIsCountedFromItsOwnDelta(t *testing.T) {
	r := newLateRig(t, 0)
	first := r.draftAfter(1)
	r.draftAfter(8)
	r.adopt(changed(Folded, first))
	if lag := r.l.frags[0].lag; lag != 8 {
		t.Errorf("the fold came %d steps after the delta, want 8", lag)
	}
}

func (r *lateRig) draftAfter(steps int) Draft {
	r.Helper()
	r.steps(steps)
	return r.draft()
}

// A payload that cannot be read keeps the local parameters, the tip and what is pending or in flight as they were.
func TestUnreadableReturnChangesNothing(t *testing.T) {
	r := newLateRig(t, 4)
	d := r.draft()
	r.l.frags[0].own[1].payload = nil
	delete(r.disk, d.Seq)
	before, state := slices.Clone(r.local), stateOf(r.l)
	if err := adopt(r.l, r.tip, changed(Returned, d)); !errors.Is(err, ErrUnread) {
		t.Errorf("a missing payload: %v", err)
	}
	if !slices.Equal(before, r.local) || state != stateOf(r.l) {
		t.Error("something changed")
	}
}
