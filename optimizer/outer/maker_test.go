package outer

import (
	"cmp"
	"math"
	"testing"

	"pgregory.net/rapid"

	"atoll/tensor/codec"
)

// drawnSpec is what people may choose of a run.
func drawnSpec(t *rapid.T) Spec {
	return Spec{
		Fragments: rapid.IntRange(1, 64).Draw(t, "P"), Codec: rapid.SampledFrom([]codec.Kind{0, codec.F32, codec.Int4, codec.Sparse8, codec.Sparse}).Draw(t, "codec"),
		H: rapid.IntRange(0, MaxH).Draw(t, "H"), NoMomentum: rapid.Bool().Draw(t, "no momentum"),
		LearnersPerRound: rapid.SampledFrom([]int{0, 3, 16, MaxLearnersPerRound}).Draw(t, "C"), Learners: rapid.SampledFrom([]int{0, 1, 2, 3, 17, MaxLearners}).Draw(t, "learners"),
		StepTokens: rapid.Uint64Range(1, 1<<26).Draw(t, "tokens"), Budget: rapid.Uint64Range(1, maxBudget).Draw(t, "budget"), CreatedMs: rapid.Int64Range(0, 1<<50).Draw(t, "created"),
		SweepMs: rapid.Int64Range(0, MaxSweepMs).Draw(t, "sweep"), Window: rapid.SampledFrom([]uint32{0, LeastWindow, 50, MaxWindow}).Draw(t, "window"), OwnText: rapid.Bool().Draw(t, "own"),
	}
}

// Whatever people choose, the choices and the parameters are valid, and the same again from what genesis has. Rounds stay open
// as long as links may need.
func TestMakerMakesValidParameters(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawnSpec(t)
		p := s.Params()
		made := s.Resolved()
		if err := cmp.Or(made.Validate(), p.Validate()); err != nil {
			t.Fatal(err)
		}
		if p != made.Params() || made != made.Resolved() {
			t.Fatal("two calls differ")
		}
		if p.GraceMaxMs < GraceSweeps*s.SweepMs {
			t.Fatalf("rounds are open for %d ms, and links need %d", p.GraceMaxMs, s.SweepMs)
		}
	})
}

// H decides room and outer step.
func TestMakerFollowsH(t *testing.T) {
	for _, c := range []struct {
		k        codec.Kind
		h, hmin  int
		maxSteps uint32
		eta, mu  float64
	}{
		{0, 1, 1, 1024, 1, 0}, {0, 8, 2, 1024, 1, 0}, {0, 9, 2, 1024, 0.8, 0.6}, {0, 24, 6, 1024, 0.8, 0.6},
		{0, 25, 6, 1050, 0.8, 0.6}, {0, 5000, 1250, 210_000, 0.8, 0.6}, {0, MaxH, MaxH / 4, MaxStepsLimit, 0.8, 0.6},
		{codec.Sparse, 4, 1, 1024, 1, 0}, {codec.Sparse, 24, 6, 1024, 1, 0}, {codec.Sparse8, 8, 2, 1024, 1, 0}, {codec.Sparse8, 9, 2, 1024, 0.8, 0.6},
	} {
		p := Spec{Fragments: 4, Codec: c.k, H: c.h, StepTokens: 1, Budget: 1}.Params()
		if p.HMin != c.hmin || p.MaxSteps != c.maxSteps || p.Eta != c.eta || p.Mu != c.mu {
			t.Errorf("%+v: %+v", c, p)
		}
	}
	if p := (Spec{Fragments: 4, StepTokens: 1, Budget: 1, NoMomentum: true}).Params(); p.Eta != 1 || p.Mu != 0 {
		t.Errorf("without momentum: %+v", p)
	}
	if p := (Spec{Fragments: 4, StepTokens: 1, Budget: 1}).Params(); p.H != 24 || p.Codec != codec.Int4 || p.LearnersPerRound != UsualLearnersPerRound {
		t.Errorf("%+v", p)
	}
}

// Where learners publish in rotation a round is a step for the share of them that publishes, and a delta has room for the steps
// of a rotation. Where all publish it is a whole one.
func TestMakerFollowsTurns(t *testing.T) {
	for _, c := range []struct {
		h, learnersPerRound, learners int
		room                          uint32
		share                         float64
	}{
		{24, 16, 1, 1024, 1}, {24, 16, 16, 1024, 1}, {24, 16, 32, 1024, 0.5}, {24, 16, 1000, 4 * 63 * 24, 0.016},
		{4, 16, 1000, 1024, 0.016}, {100, 16, 1000, 4 * 63 * 100, 0.016}, {24, 64, 1000, 4 * 16 * 24, 0.064}, {24, 16, 1 << 60, MaxStepsLimit, 16.0 / (1 << 60)},
	} {
		p := Spec{Fragments: 4, H: c.h, LearnersPerRound: c.learnersPerRound, Learners: c.learners, StepTokens: 1, Budget: 1, NoMomentum: true}.Params()
		if p.MaxSteps != c.room || math.Abs(p.Eta-c.share) > 1e-12 {
			t.Errorf("%+v: room for %d steps, eta %v", c, p.MaxSteps, p.Eta)
		}
	}
}

// A bound that no honest learner comes to: two rounds of the longest plan for each round, and a rotation where learners publish in
// rotation.
func TestMakerBoundsThePace(t *testing.T) {
	for h, want := range map[int]int{1: 128, 4: 32, 24: 6, 64: 2, 100: 2} {
		pace := func(learners int) int {
			return Spec{Fragments: 1, H: h, Learners: learners, StepTokens: 1, Budget: 1}.Params().MaxPace
		}
		if pace(1) != want || pace(UsualLearnersPerRound) != want || pace(UsualLearnersPerRound+1) != max(want, longestRotation) {
			t.Errorf("H %d: a pace of %d, %d and %d, want %d", h, pace(1), pace(UsualLearnersPerRound), pace(UsualLearnersPerRound+1), want)
		}
	}
}

// A window takes a budget of bytes, within bounds.
func TestMakerFollowsTheWindow(t *testing.T) {
	for rounds, want := range map[float64]uint32{1e-9: 32, 50.7: 50, 256: 256, 1e18: 256} {
		if got := WindowOf(rounds); got != want {
			t.Errorf("%v rounds: %d", rounds, got)
		}
	}
	for window, want := range map[uint32][2]uint32{0: {256, 16}, 2: {2, 1}, 31: {31, 15}, 50: {50, 16}} {
		if p := (Spec{Window: window}).Params(); p.WindowUnion != want[0] || p.WindowAccept != want[1] {
			t.Errorf("%d rounds: %d and %d", window, p.WindowUnion, p.WindowAccept)
		}
	}
	for sweep, want := range map[int64]int64{0: LongGraceMs, 60_000: LongGraceMs, 61_000: 122_000, 293_000: 586_000} {
		if p := (Spec{SweepMs: sweep}).Params(); p.GraceMaxMs != want {
			t.Errorf("%d ms: %d ms, want %d", sweep, p.GraceMaxMs, want)
		}
	}
}
