package outer_test

import (
	"slices"
	"testing"

	"atoll/gossip/wire/spectest"
	"atoll/optimizer/outer"
	"atoll/tensor/codec"
)

// Zeros, and what is a thousandth of what is usual, change nothing: neither the model nor the references, nor what the others weigh.
func specSilent(t *testing.T, _ *spectest.Spec) {
	for _, own := range []bool{false, true} {
		for n := 1; n <= 4; n++ {
			p, f := plain(), fragment("a", 300, "b", 17)
			p.OwnText = own
			silentChangesNothing(t, p, f, n)
		}
	}
}

func silentChangesNothing(t *testing.T, p outer.Params, f outer.Fragment, n int) {
	t.Helper()
	tip := zeroTip(p, f)
	tip.Ref = []float32{8, 2}
	set := crowd(t, p, f, 1, 1, slices.Repeat([]float64{1}, n)...)
	want, _ := agree(t, p, f, tip, set...)
	v := random(9, f.Len)
	for i := range v {
		v[i] /= 1000
	}
	for name, values := range map[string][]float32{"zeros": make([]float32, f.Len), "a thousandth": v} {
		got, x := agree(t, p, f, tip, append(slices.Clone(set), delta(t, p, 99, 1, values...))...)
		if w := x.weights; w[n] != 0 || !slices.Equal(got.Global, want.Global) || !slices.Equal(got.Ref, want.Ref) {
			t.Errorf("%s beside %d: weights %v, the model differs: %v", name, n, w, !slices.Equal(got.Global, want.Global))
		}
	}
}

// specTwoDisagree: of two in a first round the longer one is believed up to an eighth of the tensor's own length.
func specTwoDisagree(t *testing.T, _ *spectest.Spec) {
	p, f := centredRun(), fragment("w", 1)
	p.ClipFactor = 3
	for _, c := range []struct{ short, long, want float32 }{
		{0.001, 1, 1},            // a thousandth of it
		{1, 1000, 1},             // a thousand times it
		{0.5, 2, (0.5 + .5) / 2}, // neither
	} {
		tip := zeroTip(p, f)
		tip.Global = []float32{8}
		got, _ := agree(t, p, f, tip, delta(t, p, 1, 1, c.short), delta(t, p, 2, 1, c.long))
		near(t, "two that disagree", got.Global[0]-8, float64(c.want))
	}
}

// specSparseSpeaks: what a sparse delta leaves out of a tensor counts as zeros there, as it comes later.
func specSparseSpeaks(t *testing.T, _ *spectest.Spec) {
	f := fragment("a", 300, "b", 300)
	one, both := make([]float32, 600), random(1, 600)
	copy(one, both[:300])
	for _, c := range []struct {
		codec codec.Kind
		equal bool
	}{{codec.F32, true}, {codec.Sparse8, false}} {
		p := plain()
		p.Codec = c.codec
		alone, _ := agree(t, p, f, zeroTip(p, f), delta(t, p, 1, 1, both...))
		beside, _ := agree(t, p, f, zeroTip(p, f), delta(t, p, 1, 1, both...), delta(t, p, 2, 1, one...))
		if equal := slices.Equal(alone.Global[300:], beside.Global[300:]); equal != c.equal {
			t.Errorf("%v: what one left out counts as nothing: %v", c.codec, equal)
		}
	}
}

// specFrozen: a learner that leaves a tensor as it is leaves it to the others, and counts in the rest.
func specFrozen(t *testing.T, _ *spectest.Spec) {
	p, f := plain(), fragment("a", 300, "b", 300)
	set := crowd(t, p, f, 1, 1, 1, 1)
	frozen := crowd(t, p, f, 1, 1, 1, 1, 1)[2]
	v := make([]float32, f.Len)
	if err := codec.Decode(frozen.Payload, f.Len, v); err != nil {
		t.Fatal(err)
	}
	clear(v[:f.Tensors[0].Len])
	alone, _ := agree(t, p, f, zeroTip(p, f), set...)
	beside, _ := agree(t, p, f, zeroTip(p, f), append(set, delta(t, p, 3, 1, v...))...)
	if n := f.Tensors[0].Len; !slices.Equal(alone.Global[:n], beside.Global[:n]) || slices.Equal(alone.Global[n:], beside.Global[n:]) {
		t.Error("a frozen tensor stops the others, or the whole delta counts for nothing")
	}
}
