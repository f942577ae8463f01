package llama

import (
	"slices"
	"testing"
)

// TestGradedIsFinal looks at the gradients whenever the pass says how far they
// are: what it said is final does not change any more.
func TestGradedIsFinal(t *testing.T) {
	for _, tied := range []bool{true, false} {
		c := Config{Vocab: 17, Hidden: 8, Layers: 3, Heads: 2, KVHeads: 1, Intermediate: 12, Context: 5, RopeTheta: 1e4, NormEps: 1e-5, Tied: tied}
		p := NewParams(c)
		Init(c, p, 1)
		tokens := []int32{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}
		m, grad := NewModel(c, 2), p.Like()
		var los []int
		var seen [][]float32
		m.Graded = func(lo int) {
			los = append(los, lo)
			seen = append(seen, slices.Clone(grad.Data[lo:]))
		}
		m.LossGrad(p, grad, tokens)
		if want := []int{grad.Views[19].Offset, grad.Views[10].Offset, grad.Views[1].Offset, 0}; !slices.Equal(los, want) {
			t.Fatalf("tied %v: told %v, want %v: the layers' offsets and 0", tied, los, want)
		}
		for i, lo := range los {
			if !slices.Equal(seen[i], grad.Data[lo:]) {
				t.Errorf("tied %v: gradients at %d and beyond changed after they were said to be final", tied, lo)
			}
		}
		plain := p.Like()
		m.Graded = nil
		m.LossGrad(p, plain, tokens)
		if !slices.Equal(plain.Data, grad.Data) {
			t.Errorf("tied %v: being told changes the gradients", tied)
		}
	}
}

// TestGradedIsNotToldOfACutPass: what a cut pass leaves is worthless.
func TestGradedIsNotToldOfACutPass(t *testing.T) {
	c := Tiny
	c.Layers, c.Context = 2, 4
	p := NewParams(c)
	m := NewModel(c, 1)
	asked := 0
	m.Cut = func() bool { asked++; return asked > c.Layers+1 } // the forward pass and the last layer's way back
	var los []int
	m.Graded = func(lo int) { los = append(los, lo) }
	m.LossGrad(p, p.Like(), make([]int32, c.Context+1))
	if slices.Contains(los, 0) || len(los) != 1 {
		t.Errorf("told %v, want the last layer's offset only", los)
	}
}
