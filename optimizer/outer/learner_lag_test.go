package outer

import (
	"math"
	"testing"
)

// lagRig is a learner of one fragment, H = 8, whose own delta of round 1 was folded, to an anchor of ones, after
// so many steps that each added 1 to theta.
type lagRig struct {
	*testing.T
	l     *Learner
	theta []float32
	tip   *Tip
}

func newLagRig(t *testing.T, overwrite bool, lag int) *lagRig {
	p := toyParams()
	p.H, p.Overwrite = 8, overwrite
	r := &lagRig{T: t}
	r.l, r.theta, r.tip, _ = oneFragment(p)
	r.steps(8)
	d := r.draft()
	r.steps(lag)
	r.adopt([]uint64{d.Seq}, nil)
	return r
}

// steps adds 1 to theta with each.
func (r *lagRig) steps(n int) {
	for range n {
		for i := range r.theta {
			r.theta[i]++
		}
		r.l.Stepped(512, []uint32{r.tip.Round})
	}
}

func (r *lagRig) draft() Draft {
	r.Helper()
	d, err := r.l.Draft(0)
	if err != nil {
		r.Fatal(err)
	}
	return d
}

// adopt closes a round, with an anchor of as many ones as rounds.
func (r *lagRig) adopt(fold, returned []uint64) {
	r.Helper()
	next := &Tip{Round: r.tip.Round + 1, Anchor: make([]float32, len(r.theta)), Ref: r.tip.Ref, Tokens: r.tip.Tokens + 1}
	for i := range next.Anchor {
		next.Anchor[i] = float32(next.Round)
	}
	r.tip = next.seal()
	if err := r.l.Adopt(0, r.tip, fold, nil, returned); err != nil {
		r.Fatal(err)
	}
}

func (r *lagRig) thetaIs(when string, want float64) {
	r.Helper()
	for i, x := range r.theta {
		if math.Abs(float64(x)-want) > 1e-4 {
			r.Fatalf("%s: value %d of theta is %v, want %v", when, i, x, want)
		}
	}
}

// Theta has 0.7 of what is in flight where the last fold took an eighth of H, and all of it elsewhere.
func TestLagPullsBack(t *testing.T) {
	for lag, has := range map[int]float64{0: 1, 1: 0.7, 4: 0.7, 16: 0.7} {
		r := newLagRig(t, false, lag)
		r.thetaIs("after the fold", 1+float64(lag))
		r.steps(4)
		r.draft()
		r.thetaIs("drafted", 1+has*float64(lag+4))
	}
}

// A learner that was behind stays with 0.7 of what it has in flight, and gets the rest back with a delta that is not folded.
func TestInFlightIsPulledBack(t *testing.T) {
	const left = 4
	r := newLagRig(t, false, 4)
	r.steps(4)
	d := r.draft()
	const u = left + 4
	r.thetaIs("drafted", 1+0.7*u)
	if err := r.l.TakeBack(0, d.Seq); err != nil {
		t.Fatal(err)
	}
	r.thetaIs("taken back", 1+u)
	d = r.draft()
	r.adopt(nil, []uint64{d.Seq})
	r.thetaIs("returned", 2+u)
	d = r.draft()
	r.adopt([]uint64{d.Seq}, nil)
	r.thetaIs("folded", 3)
	if err := r.l.Adopt(0, r.tip, nil, []uint64{d.Seq}, nil); err == nil {
		t.Error("unfolded a payload that no disk has")
	}
	r.thetaIs("not unfolded", 3)
	r.steps(1)
	r.draft()
	r.thetaIs("drafted after a fold that came at once", 4)
}

// An own delta that is unfolded is in flight as it was before.
func TestUnfoldedIsPulledBackAgain(t *testing.T) {
	r := newLagRig(t, false, 8)
	d := r.draft()
	const u = 8
	r.l.payload = func(uint64) ([]byte, error) { return d.Payload, nil }
	r.adopt([]uint64{d.Seq}, nil)
	r.thetaIs("folded", 2)
	if err := r.l.Adopt(0, r.tip, nil, []uint64{d.Seq}, nil); err != nil {
		t.Fatal(err)
	}
	r.thetaIs("unfolded", 2+0.7*u)
	if err := r.l.Adopt(0, r.tip, nil, nil, []uint64{d.Seq}); err != nil {
		t.Fatal(err)
	}
	r.thetaIs("returned", 2+u)
}

// Who overwrites has nothing to correct.
func TestOverwritingKnowsNoLag(t *testing.T) {
	r := newLagRig(t, true, 8)
	r.thetaIs("overwritten", 1)
	r.steps(2)
	r.draft()
	r.thetaIs("drafted", 3)
}

// A second delta has what was made since the first, whatever of that theta has.
func TestDraftBesideOneInFlight(t *testing.T) {
	r := newLagRig(t, false, 4)
	first := r.draft()
	r.steps(2)
	second := r.draft()
	r.thetaIs("drafted twice", 1+0.7*4+0.7*2)
	if err := r.l.rebuild(&r.l.frags[0]); err != nil {
		t.Fatal(err)
	}
	r.thetaIs("built from its definition", 1+0.7*4+0.7*2)
	r.adopt([]uint64{first.Seq, second.Seq}, nil)
	r.thetaIs("folded", 2)
}
