package optimizer

import (
	"math"
	"math/rand/v2"
	"testing"

	"atoll/tensor"
)

// TestNarrowStepsFollowWide: steps with moments in bfloat16 lead next to where those with float32 lead, with either optimizer.
func TestNarrowStepsFollowWide(t *testing.T) {
	const steps, lr = 60, 0.01
	blocks := mixed()
	run := func(p tensor.Precision, muon bool) []float32 {
		rng := rand.New(rand.NewPCG(7, 7))
		params, adam, state, work := normals(rng, mixedLen), NewAdamState(mixedLen, p), NewMuonState(blocks, p), NewWorkspace(blocks)
		for range steps {
			grads := normals(rng, mixedLen)
			if muon {
				usualMuon.Step(params, grads, blocks, state, work, lr)
			} else {
				usual.Step(params, grads, []Span{{0, 12}}, adam, lr)
			}
		}
		return params
	}
	for _, muon := range []bool{false, true} {
		wide, narrow := run(tensor.F32, muon), run(tensor.BF16, muon)
		var apart float64
		for i := range wide {
			apart = max(apart, math.Abs(float64(wide[i]-narrow[i])))
		}
		if apart == 0 || apart > steps*lr/20 {
			t.Errorf("muon %v: parameters are up to %v apart after steps of %v", muon, apart, steps*lr)
		}
	}
}

// TestNarrowMomentsFollow: where moments may be narrow, one that follows a constant comes within an eighth of it, from above and from below.
func TestNarrowMomentsFollow(t *testing.T) {
	const keep, to = 1 - leastTake, 1.0
	if !MayBeNarrow(keep) || MayBeNarrow(keep+0.01) {
		t.Error("the bound is elsewhere")
	}
	for _, start := range []float32{0, 8} {
		m := NewMoments(1, tensor.BF16)
		m.set(0, []float32{start})
		work := Workspace{sums: make([]float64, 1)}
		work.followTask = work.followPiece
		for range 2000 {
			work.follow(m, []float32{to}, make([]float32, 1), keep, 1)
		}
		var got [1]float32
		tensor.WidenBF16(got[:], m.narrow)
		if math.Abs(float64(got[0]-to)) > to/8 {
			t.Errorf("a moment from %v comes to %v, want %v", start, got[0], to)
		}
	}
}
