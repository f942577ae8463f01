package outer_test

import (
	"math"
	"slices"
	"testing"

	"atoll/gossip/wire/spectest"
	"atoll/optimizer/outer"
	"atoll/tensor/codec"
	"pgregory.net/rapid"
)

// alike are parameters of a run in which copies weigh as one.
func alike() outer.Params {
	p := compared()
	return p
}

// copied gives delta i the values of another, scaled, and noise of so much of their norm.
func copied(t testing.TB, p outer.Params, f outer.Fragment, set []outer.Contribution, i, of int, scale, noise float64) {
	v, z := make([]float32, f.Len), random(uint64(9000+i), f.Len)
	copy(v, valuesOf(t, f, set[of]))
	add := noise * norm(widen(v)) / norm(widen(z))
	for k := range v {
		v[k] = float32(scale * (float64(v[k]) + add*float64(z[k])))
	}
	d := delta(t, p, byte(i+1), set[i].Delta.Round, v...)
	d.Delta.Guest = set[i].Delta.Guest
	set[i] = d
}

func valuesOf(t testing.TB, f outer.Fragment, c outer.Contribution) []float32 {
	v := make([]float32, f.Len)
	if err := codec.Decode(c.Payload, f.Len, v); err != nil {
		t.Fatal(err)
	}
	return v
}

// weightsOf are those of a fold, after the text.
func weightsOf(t testing.TB, p outer.Params, f outer.Fragment, set []outer.Contribution) []float64 {
	_, x := agree(t, p, f, zeroTip(p, f), set...)
	return x.weights
}

// specCopies: a copy, a scaled one and one with noise weigh as one with their original, and no honest delta loses.
func specCopies(t *testing.T, s *spectest.Spec) {
	byText(t, s)
	p, f := alike(), fragment("a", 3000)
	for _, noise := range []float64{0.5, 1, 3} { // of honest deltas
		for _, c := range []struct{ scale, noise float64 }{{1, 0}, {3, 0}, {0.2, 0}, {1, 0.3}, {1, 0.5}} {
			if noise < 1 && c.noise > 0 {
				continue // it adds as much noise as the honest have
			}
			set := crowd(t, p, f, 1, noise, 1, 1, 1, 1, 1, 1, 1, 1)
			honest := weightsOf(t, p, f, set)
			copied(t, p, f, set, 7, 2, c.scale, c.noise)
			w := weightsOf(t, p, f, set)
			if sum := w[2] + w[7]; sum > 1.15*honest[2] || sum < 0.85*honest[2] {
				t.Errorf("noise %g, a copy %+v: together %.2f of the weight of one", noise, c, sum/honest[2])
			}
			for i := range 7 {
				if i != 2 && w[i] != honest[i] {
					t.Errorf("noise %g, a copy %+v: delta %d has the weight %g, not %g", noise, c, i, w[i], honest[i])
				}
			}
		}
	}
}

// mostlyOwn is what honest deltas keep of their weight at least. Where some have little noise and others much, the
// expected cosine has errors.
const mostlyOwn = 0.8

// Honest deltas, some of larger batches and so with less noise, keep their weight. The order of the set changes nothing.
func TestHonestAreNotAlike(t *testing.T) {
	p, f := alike(), fragment("a", 3000)
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(4, 11).Draw(rt, "deltas")
		var set []outer.Contribution
		for i := range n {
			noise := rapid.SampledFrom([]float64{0.5, 1, 2}).Draw(rt, "noise")
			set = append(set, crowd(t, p, f, 1, noise, slices.Repeat([]float64{1}, n)...)[i])
		}
		w := weightsOf(t, p, f, set)
		off := p
		off.OwnText = true
		for i, without := range weightsOf(t, off, f, set) {
			if w[i] < mostlyOwn*without {
				rt.Fatalf("delta %d has the weight %g, %g without the rule", i, w[i], without)
			}
		}
		copied(t, p, f, set, 0, n-1, 1, 0)
		first, _, err := outer.Fold(p, f, zeroTip(p, f), 1, set)
		if err != nil {
			rt.Fatal(err)
		}
		again, _, _ := outer.Fold(p, f, zeroTip(p, f), 1, rapid.Permutation(set).Draw(rt, "order"))
		if first.State != again.State {
			rt.Fatal("another order has other bits")
		}
	})
}

// specLittleNoise: what has next to no noise is alike to nobody, whoever copies it.
func specLittleNoise(t *testing.T, s *spectest.Spec) {
	byText(t, s)
	p, f := alike(), fragment("a", 3000)
	set := crowd(t, p, f, 1, 0.1, 1, 1, 1, 1, 1, 1)
	copied(t, p, f, set, 5, 0, 1, 0)
	if w := weightsOf(t, p, f, set); slices.Min(w) != slices.Max(w) {
		t.Errorf("weights %v", w)
	}
}

// specFarCopies: a copy outside of the references is compared with an original in it, whichever comes first.
func specFarCopies(t *testing.T, s *spectest.Spec) {
	byText(t, s)
	p, f := alike(), fragment("a", 3000)
	seen := 0
	for of := range 11 {
		set := crowd(t, p, f, 1, 1, slices.Repeat([]float64{1}, 12)...)
		copied(t, p, f, set, 11, of, 1, 0)
		w := weightsOf(t, p, f, set)
		if math.Abs(w[of]/slices.Max(w)-0.5) < 1e-9 && w[11] == w[of] {
			seen++
		} else if w[of] != slices.Max(w) || w[11] != w[of] {
			t.Errorf("a copy of %d: weights %v", of, w)
		}
	}
	if seen < 8 { // as many as the references has, or all if the copy sits in it
		t.Errorf("%d of 11 copies are seen", seen)
	}
}

// specGuestCopies: a guest's copy takes no member's weight, and gets no more for it.
func specGuestCopies(t *testing.T, s *spectest.Spec) {
	byText(t, s)
	p, f := alike(), fragment("a", 3000)
	set := crowd(t, p, f, 1, 1, 1, 1, 1, 1, 1, 1)
	set[5].Delta.Guest = true
	copied(t, p, f, set, 5, 0, 1, 0)
	if w := weightsOf(t, p, f, set); w[0] != w[1] || w[5] >= w[0] {
		t.Errorf("weights %v", w)
	}
}

// specLiarsBetween: two liars of a references of eight, whose deltas have something in common with all others but two
// honest ones, take no weight from these two. Where there is little noise, these two have much in common.
func specLiarsBetween(t *testing.T, s *spectest.Spec) {
	byText(t, s)
	p, f := alike(), fragment("a", 3000)
	set := crowd(t, p, f, 1, 0.5, 1, 1, 1, 1, 1, 1, 1, 1)
	signal := random(1, f.Len)
	for liar := 6; liar < 8; liar++ {
		v := crowd(t, p, f, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1)[liar]
		lie := valuesOf(t, f, v)
		for _, victim := range []int{0, 1} {
			for k, h := range valuesOf(t, f, set[victim]) {
				lie[k] -= 4 * (h - signal[k]) // 4 times noise of half the norm of the signal: nothing is left in common
			}
		}
		set[liar] = delta(t, p, byte(liar+1), 1, lie...)
	}
	off := p
	off.OwnText = true
	for i, without := range weightsOf(t, off, f, set)[:6] {
		if w := weightsOf(t, p, f, set); w[i] < mostlyOwn*without {
			t.Errorf("honest delta %d has the weight %g, %g without the rule", i, w[i], without)
		}
	}
}
