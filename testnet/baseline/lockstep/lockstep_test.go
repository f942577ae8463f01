package lockstep

import (
	"errors"
	"math"
	"testing"

	"atoll/optimizer"
	"atoll/optimizer/trainer"
)

// The last round is as short as it needs to be, and each step has its rate.
func TestRoundsEndAtTheBudget(t *testing.T) {
	r := Run{Budget: 1000, StepTokens: 64, H: 4, Schedule: optimizer.Schedule{Peak: 1, WarmupFraction: 0, FinalFraction: 0}}
	for _, c := range []struct{ from, want uint64 }{{0, 4}, {500, 4}, {512, 4}, {600, 4}, {616, 3}, {999, 1}, {1000, 1}, {5000, 1}} {
		if got := r.Steps(c.from, 2); got != c.want || r.Tokens(c.from, 2) != c.want*128 {
			t.Errorf("%d steps and %d tokens after %d of 1000, want %d steps", got, r.Tokens(c.from, 2), c.from, c.want)
		}
	}
	if got, want := r.Rate(512, 2, 3), r.Schedule.At(0.896); got != want {
		t.Errorf("the last step of the round after 512 tokens has the rate %v, want %v", got, want)
	}
}

// Outer steps follow the formula, written out, on both sides of a part's end.
func TestNesterov(t *testing.T) {
	o := NewOuter(0.7, 0.9, make([]float32, stepLen+3))
	a, m := 0.0, 0.0
	for _, x := range []float64{0.5, -0.25, 1} {
		err := o.Step(func(at int, u []float64) {
			for i := range u {
				u[i] = x * float64(at+i)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		m = 0.9*m + x
		a += 0.7 * (x + 0.9*m)
		for i := range o.Global {
			if n := float64(i); math.Abs(float64(o.Global[i])-n*a) > 1e-6*(1+n) || math.Abs(float64(o.Momentum[i])-n*m) > 1e-6*(1+n) {
				t.Fatalf("value %d: global parameters %v, momentum %v; want %v, %v", i, o.Global[i], o.Momentum[i], n*a, n*m)
			}
		}
	}
}

func TestDivergence(t *testing.T) {
	for _, x := range []float64{math.NaN(), math.Inf(1), -1e300} {
		o := NewOuter(1, 0, make([]float32, 20))
		if err := o.Step(func(_ int, u []float64) { u[18] = x }); !errors.Is(err, trainer.ErrDiverged) {
			t.Errorf("%v: %v", x, err)
		}
	}
}
