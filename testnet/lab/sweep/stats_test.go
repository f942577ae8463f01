package sweep

import (
	"math"
	"testing"
)

func near(t *testing.T, what string, got, want, slack float64) {
	t.Helper()
	if !(math.Abs(got-want) <= slack) {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

// By hand: of 2, 4, 4, 6 the mean is 4 and the variance (4+0+0+4)/3; half of the
// interval is 3.1824 sqrt(8/3)/2.
func TestDescribeByHand(t *testing.T) {
	s := Describe([]float64{2, 4, 4, 6})
	near(t, "mean", s.Mean, 4, 1e-12)
	near(t, "sd", s.SD, 1.632993, 1e-6)
	near(t, "half width", s.HalfWidth(), 2.598419, 1e-5)
	if one := Describe([]float64{7}); one.Mean != 7 || one.SD != 0 || !math.IsNaN(one.HalfWidth()) {
		t.Errorf("of one: %+v", one)
	}
	if none := Describe(nil); none != (Stat{}) {
		t.Errorf("of none: %+v", none)
	}
}

// Quantiles as tables have them.
func TestQuantile(t *testing.T) {
	for df, want := range map[int]float64{1: 12.7062, 2: 4.3027, 20: 2.0860, 21: 2.0796, 60: 2.0003, 1000: 1.9623} {
		near(t, "quantile", quantile(df), want, 5e-4)
	}
}

// By hand: +1 % and +3 % on the two seeds in common, mean 2, sd sqrt 2.
func TestPairedByHand(t *testing.T) {
	d := Paired(map[uint64]float64{1: 2.02, 2: 4.12, 9: 1}, map[uint64]float64{1: 2, 2: 4, 8: 1})
	if d.N != 2 {
		t.Fatalf("%d pairs, want 2", d.N)
	}
	near(t, "mean", d.Mean, 2, 1e-9)
	near(t, "sd", d.SD, math.Sqrt2, 1e-9)
}
