package outer

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestWeightIsTheFormula(t *testing.T) {
	p := toyParams()
	for _, c := range []struct {
		d    Delta
		want float64
	}{
		{Delta{Base: 9, Steps: 24, Tokens: 24 * 512}, 24 * 512 * 512},
		{Delta{Base: 9, Steps: 48, Tokens: 24 * 512}, 12 * 512 * 512},
	} {
		if got := Weights(p, []Delta{c.d}); got[0] != c.want {
			t.Errorf("%+v: got %v, want %v", c.d, got[0], c.want)
		}
	}
}

// fill is what the share cap means: lower the largest weights step by step until none has
// more than its share.
func fill(w []float64, share float64) []float64 {
	lo, hi := 0.0, slices.Max(w)
	for range 200 {
		x := (lo + hi) / 2
		sum := 0.0
		for _, v := range w {
			sum += min(v, x)
		}
		if min(slices.Max(w), x) <= share*sum {
			lo = x
		} else {
			hi = x
		}
	}
	out := slices.Clone(w)
	for i := range out {
		out[i] = min(out[i], lo)
	}
	return out
}

func TestShareCapIsWaterFilling(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := rapid.SliceOfN(rapid.Float64Range(1, 1e6), 1, 20).Draw(t, "weights")
		maxShare := rapid.Float64Range(0.01, 1).Draw(t, "share")
		share := max(maxShare, 1/float64(len(w)))
		got := slices.Clone(w)
		capShares(got, slices.Repeat([]float64{share}, len(w)))
		sum := 0.0
		for _, v := range got {
			sum += v
		}
		for i, v := range got {
			if v > share*sum*(1+1e-12) || v > w[i] {
				t.Fatalf("weight %v became %v, a share of %v above %v", w[i], v, v/sum, share)
			}
		}
		if share*float64(len(w)) < 1+1e-9 {
			return // all equal: any common value will do
		}
		for i, v := range fill(w, share*(1+1e-13)) {
			if math.Abs(got[i]-v) > 1e-6*v {
				t.Fatalf("share %v: got %v, filling gives %v", share, got, fill(w, share))
			}
		}
	})
}

func TestShareCapMakesSmallRoundsEqual(t *testing.T) {
	for n := 1; n <= 100; n++ {
		w := make([]float64, n)
		for i := range w {
			w[i] = float64(i + 1)
		}
		capShares(w, slices.Repeat([]float64{1 / float64(n)}, n))
		if slices.Max(w) > slices.Min(w)*(1+1e-9) {
			t.Fatalf("%d deltas: %v to %v", n, slices.Min(w), slices.Max(w))
		}
	}
}

func TestNoCapLeavesWeights(t *testing.T) {
	w := []float64{5, 1e30, 3}
	capShares(w, []float64{1, 1, 1})
	if !slices.Equal(w, []float64{5, 1e30, 3}) {
		t.Error(w)
	}
	capShares(nil, nil)
}
