package llama

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"
	"slices"
	"testing"

	"atoll/tensor"
)

func digest(x []float32) string {
	h := sha256.New()
	binary.Write(h, binary.LittleEndian, x)
	return hex.EncodeToString(h.Sum(nil))
}

// TestInitGolden holds on every architecture: peers must start from one state.
func TestInitGolden(t *testing.T) {
	p := NewParams(Tiny)
	Init(Tiny, p, 1)
	const want = "bb093a75ab354c831a488f16e0955fa70720d7e28da285fff7830730bcf1222f"
	if got := digest(p.Data); got != want {
		t.Errorf("seed 1 gives %s, want %s", got, want)
	}
}

func TestInitDistribution(t *testing.T) {
	p := NewParams(Small)
	Init(Small, p, 7)
	residual := 0.02 / math.Sqrt(2*6)
	std := map[string]float64{
		"self_attn.q_proj": 0.02, "self_attn.k_proj": 0.02, "self_attn.v_proj": 0.02, "self_attn.o_proj": residual,
		"mlp.gate_proj": 0.02, "mlp.up_proj": 0.02, "mlp.down_proj": residual,
	}
	for part, want := range std {
		v, _ := p.View(layerName(5, part))
		checkMoments(t, v.Name, p.Of(v), want)
	}
	checkMoments(t, embedName, embedOf(p), 0.02)
	for _, v := range p.Views {
		if len(v.Shape) == 1 && slices.ContainsFunc(p.Of(v), func(w float32) bool { return w != 1 }) {
			t.Errorf("%s is not all 1", v.Name)
		}
	}
}

// checkMoments allows five standard errors.
func checkMoments(t *testing.T, name string, x []float32, std float64) {
	t.Helper()
	n, sum := float64(len(x)), 0.0
	for _, v := range x {
		sum += float64(v)
	}
	got := math.Sqrt(tensor.SumSquares(x) / n)
	if math.Abs(sum/n) > 5*std/math.Sqrt(n) || math.Abs(got/std-1) > 5/math.Sqrt(2*n) {
		t.Errorf("%s: mean %g, standard deviation %g, want 0 and %g", name, sum/n, got, std)
	}
}

// TestInitByName: a tensor's values depend on no other tensor.
func TestInitByName(t *testing.T) {
	wide := Tiny
	wide.Vocab, wide.Tied = 300, false // the head lies elsewhere
	a, b, c := NewParams(Tiny), NewParams(wide), NewParams(Tiny)
	Init(Tiny, a, 3)
	Init(wide, b, 3)
	Init(Tiny, c, 4)
	for _, v := range a.Views {
		w, _ := b.View(v.Name)
		if !slices.Equal(a.Of(v), b.Of(w)[:v.Len]) {
			t.Errorf("%s changes with the tensors around it", v.Name)
		}
		if len(v.Shape) == 2 && slices.Equal(a.Of(v), c.Of(v)) {
			t.Errorf("%s is the same for two seeds", v.Name)
		}
	}
}
