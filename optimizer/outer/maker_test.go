package outer

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"atoll/tensor/codec"
)

// drawnSpec is what people may choose of a run.
func drawnSpec(t *rapid.T) Spec {
	return Spec{
		Fragments: rapid.IntRange(1, 64).Draw(t, "P"), Codec: rapid.SampledFrom([]codec.Kind{0, codec.F32, codec.Int4, codec.Sparse8, codec.Sparse}).Draw(t, "codec"),
		H: rapid.IntRange(0, MaxH).Draw(t, "H"), Merge: rapid.SampledFrom([]string{"", MergeRDA, MergeMean, MergeClip}).Draw(t, "merge"),
		Answerers: rapid.SampledFrom([]int{0, 3, 16, MaxAnswerers}).Draw(t, "C"), Learners: rapid.SampledFrom([]int{0, 1, 2, 3, 17, 1 << 20, math.MaxInt}).Draw(t, "learners"),
		StepTokens: rapid.Uint64Range(1, 1<<26).Draw(t, "tokens"), Budget: rapid.Uint64Range(1, maxBudget).Draw(t, "budget"), CreatedMs: rapid.Int64Range(0, 1<<50).Draw(t, "created"),
		SweepSeconds: rapid.Float64Range(0, 1e18).Draw(t, "sweep"), Window: rapid.Float64Range(0, 1e9).Draw(t, "window"), OwnText: rapid.Bool().Draw(t, "own"),
	}
}

// Whatever people choose, the parameters are valid, and the same again. Rounds stay open as long as links may need.
func TestMakerMakesValidParameters(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawnSpec(t)
		p := s.Params()
		if err := p.Validate(); err != nil {
			t.Fatal(err)
		}
		if p != s.Params() {
			t.Fatal("two calls differ")
		}
		if p.WindowUnion < leastUnion || p.WindowUnion > usualUnion || s.Window >= leastUnion && float64(p.WindowUnion) > s.Window {
			t.Fatalf("%d rounds of a window of %v", p.WindowUnion, s.Window)
		}
		if s.SweepSeconds < MaxMs/(1000*GraceSweeps) && float64(p.GraceMaxMs) < 1000*GraceSweeps*s.SweepSeconds-1 {
			t.Fatalf("rounds are open for %d ms, and links need %v s", p.GraceMaxMs, s.SweepSeconds)
		}
	})
}

// H decides room and merge, and the merge the outer step.
func TestMakerFollowsH(t *testing.T) {
	for _, c := range []struct {
		k        codec.Kind
		h, hmin  int
		asked    string // "" = what suits them
		maxSteps uint32
		merge    string
		eta, mu  float64
	}{
		{0, 1, 1, "", 1024, MergeMean, 1, 0}, {0, 8, 2, "", 1024, MergeMean, 1, 0}, {0, 9, 2, "", 1024, MergeClip, 0.8, 0.6}, {0, 24, 6, "", 1024, MergeClip, 0.8, 0.6},
		{0, 25, 6, "", 1050, MergeClip, 0.8, 0.6}, {0, 5000, 1250, "", 210_000, MergeClip, 0.8, 0.6}, {0, MaxH, MaxH / 4, "", MaxStepsLimit, MergeClip, 0.8, 0.6},
		{codec.Sparse, 4, 1, "", 1024, MergeRDA, 1, 0}, {codec.Sparse, 24, 6, "", 1024, MergeRDA, 1, 0},
		{codec.Sparse8, 8, 2, "", 1024, MergeRDA, 1, 0}, {codec.Sparse8, 9, 2, "", 1024, MergeClip, 0.8, 0.6},
		{codec.Sparse, 24, 6, MergeClip, 1024, MergeClip, 1, 0}, {codec.Sparse8, 24, 6, MergeMean, 1024, MergeMean, 0.8, 0.6},
	} {
		p := Spec{Fragments: 4, Codec: c.k, H: c.h, Merge: c.asked, StepTokens: 1, Budget: 1}.Params()
		if p.HMin != c.hmin || p.MaxSteps != c.maxSteps || p.Merge != c.merge || p.Eta != c.eta || p.Mu != c.mu {
			t.Errorf("%+v: %+v", c, p)
		}
	}
	if p := (Spec{Fragments: 4, StepTokens: 1, Budget: 1}).Params(); p.H != 24 || p.Codec != codec.Int4 || p.Answerers != UsualAnswerers {
		t.Errorf("%+v", p)
	}
}

// Where learners take turns a round is a step for the share of them that answers, and a delta has room for the steps between two
// turns. Where all answer it is a whole one.
func TestMakerFollowsTurns(t *testing.T) {
	for _, c := range []struct {
		h, answerers, learners int
		room                   uint32
		share                  float64
	}{
		{24, 16, 1, 1024, 1}, {24, 16, 16, 1024, 1}, {24, 16, 32, 1024, 0.5}, {24, 16, 1000, 4 * 63 * 24, 0.016},
		{4, 16, 1000, 1024, 0.016}, {100, 16, 1000, 4 * 63 * 100, 0.016}, {24, 64, 1000, 4 * 16 * 24, 0.064}, {24, 16, 1 << 60, MaxStepsLimit, 16.0 / (1 << 60)},
	} {
		p := Spec{Fragments: 4, H: c.h, Answerers: c.answerers, Learners: c.learners, Merge: MergeRDA, StepTokens: 1, Budget: 1}.Params()
		if p.MaxSteps != c.room || math.Abs(p.Eta-c.share) > 1e-12 {
			t.Errorf("%+v: room for %d steps, eta %v", c, p.MaxSteps, p.Eta)
		}
	}
}

// A bound that no honest learner comes to: two rounds of the longest plan for each round, and a turn's worth where learners take
// turns.
func TestMakerBoundsThePace(t *testing.T) {
	for h, want := range map[int]int{1: 128, 4: 32, 24: 6, 64: 2, 100: 2} {
		pace := func(learners int) int {
			return Spec{Fragments: 1, H: h, Learners: learners, StepTokens: 1, Budget: 1}.Params().MaxPace
		}
		if pace(1) != want || pace(UsualAnswerers) != want || pace(UsualAnswerers+1) != max(want, longestTurn) {
			t.Errorf("H %d: a pace of %d, %d and %d, want %d", h, pace(1), pace(UsualAnswerers), pace(UsualAnswerers+1), want)
		}
	}
}

// A window takes a budget of bytes, within bounds.
func TestMakerFollowsTheWindow(t *testing.T) {
	for window, want := range map[float64][2]uint32{0: {256, 16}, 1e-9: {32, 16}, 50.7: {50, 16}, 256: {256, 16}, 20_000: {256, 16}} {
		p := Spec{Fragments: 1, Window: window, StepTokens: 1, Budget: 1}.Params()
		if p.WindowUnion != want[0] || p.WindowAccept != want[1] {
			t.Errorf("%v rounds: %d and %d", window, p.WindowUnion, p.WindowAccept)
		}
	}
	for sweep, want := range map[float64]int64{0: LongGraceMs, 60: LongGraceMs, 61: 122_000, 293: 586_000} {
		if p := (Spec{SweepSeconds: sweep}).Params(); p.GraceMaxMs != want {
			t.Errorf("%v s: %d ms, want %d", sweep, p.GraceMaxMs, want)
		}
	}
}
