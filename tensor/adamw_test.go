package tensor

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestAdamWFollowsItsFormula runs many steps against the published form in float64,
// bias corrections written out.
func TestAdamWFollowsItsFormula(t *testing.T) {
	const lr, beta1, beta2, eps, decay, clip, n = 1e-2, 0.9, 0.999, 1e-8, 0.1, 0.5, 40
	rng := rand.New(rand.NewPCG(3, 3))
	p, g, m, v := newMatrix(rng, 1, n, 0).data, make([]float32, n), make([]float32, n), make([]float32, n)
	var exactP, exactM, exactV [n]float64
	for i := range p {
		exactP[i] = float64(p[i])
	}
	for step := 1; step <= 50; step++ {
		correct1, correct2 := 1-math.Pow(beta1, float64(step)), 1-math.Pow(beta2, float64(step))
		for i := range g {
			g[i] = rng.Float32() - 0.4
			grad := clip * float64(g[i])
			exactM[i] = beta1*exactM[i] + (1-beta1)*grad
			exactV[i] = beta2*exactV[i] + (1-beta2)*grad*grad
			exactP[i] -= lr * (exactM[i]/correct1/(math.Sqrt(exactV[i]/correct2)+eps) + decay*exactP[i])
		}
		AdamWUpdate(p, g, m, v, AdamWCoef{Beta1: beta1, Beta2: beta2, Grad: clip, Step: float32(lr / correct1),
			Root: float32(1 / math.Sqrt(correct2)), Eps: eps, Keep: 1 - lr*decay})
	}
	for i := range p {
		if math.Abs(float64(p[i])-exactP[i]) > 1e-4 {
			t.Errorf("parameter %d is %v after 50 steps, want %v", i, p[i], exactP[i])
		}
	}
}

// TestAdamWDropsTinyMoments lets moments decay without gradients: they must not end
// as denormal numbers.
func TestAdamWDropsTinyMoments(t *testing.T) {
	p, g := []float32{1}, []float32{0}
	m, v := []float32{-0x1.2p-100}, []float32{0x1.001p-100}
	AdamWUpdate(p, g, m, v, AdamWCoef{Beta1: 0.5, Beta2: 0.5, Grad: 1, Step: 1, Root: 1, Eps: 1, Keep: 1})
	if m[0] != 0 || v[0] != 0 || p[0] != 1 {
		t.Errorf("moments %v and %v, parameter %v, want 0, 0 and 1", m[0], v[0], p[0])
	}
}

// TestNarrowAdamWLikePlain compares the bits of kernels, those behind the vectors included, over any length.
func TestNarrowAdamWLikePlain(t *testing.T) {
	eachKernel(t, fastKernels(), func(t *rapid.T, k kernel) {
		n := rapid.IntRange(0, 600).Draw(t, "length")
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 4))
		p, g := newMatrix(rng, 1, n+guards, 0).data, newMatrix(rng, 1, n+guards, 0).data
		m, v := make([]uint16, n+guards), make([]uint16, n+guards)
		for i := range m {
			if rng.IntN(3) > 0 { // others are 0, as at the start
				m[i], v[i] = bitsBF16(rng.Float32()-0.5), bitsBF16(rng.Float32()*float32(math.Exp(-20*rng.Float64())))
			}
		}
		coef := AdamWCoef{Beta1: 0.9, Beta2: 0.95, Grad: 0.7, Step: 1e-3, Root: 1.5, Eps: 1e-8, Keep: 0.99}
		run := func(k kernel) (p1 []float32, m1, v1 []uint16) {
			p1, m1, v1 = slices.Clone(p), slices.Clone(m), slices.Clone(v)
			with(k, func() { AdamWUpdateBF16(p1[:n], g[:n], m1[:n], v1[:n], coef) })
			return p1, m1, v1
		}
		p1, m1, v1 := run(plain)
		p2, m2, v2 := run(k)
		if !slices.Equal(p1, p2) || !slices.Equal(m1, m2) || !slices.Equal(v1, v2) {
			t.Fatalf("%d values: %v, %v, %v; the plain loop has %v, %v, %v", n, p2, m2, v2, p1, m1, v1)
		}
	})
}

// TestNarrowAdamWFollowsWide: the first step is that with float32, and what moments lose stays within the last place.
func TestNarrowAdamWFollowsWide(t *testing.T) {
	const n, steps = 50, 40
	rng := rand.New(rand.NewPCG(5, 5))
	p, g, m, v := newMatrix(rng, 1, n, 0).data, make([]float32, n), make([]float32, n), make([]float32, n)
	q, narrowM, narrowV := slices.Clone(p), make([]uint16, n), make([]uint16, n)
	for step := 1; step <= steps; step++ {
		for i := range g {
			g[i] = rng.Float32() - 0.3
		}
		c := AdamWCoef{Beta1: 0.9, Beta2: 0.95, Grad: 1, Eps: 1e-8, Keep: 1,
			Step: float32(1e-2 / (1 - math.Pow(0.9, float64(step)))), Root: float32(1 / math.Sqrt(1-math.Pow(0.95, float64(step))))}
		AdamWUpdate(p, g, m, v, c)
		AdamWUpdateBF16(q, g, narrowM, narrowV, c)
		if step == 1 && !slices.Equal(p, q) {
			t.Fatal("the first step differs")
		}
	}
	for i := range p {
		if d := math.Abs(float64(p[i] - q[i])); d > steps*1e-2/256 {
			t.Errorf("parameter %d is %v, and %v with moments in float32", i, q[i], p[i])
		}
	}
}

// TestBF16RoundsToNearest compares with the rounding of products, and checks that widening is exact.
func TestBF16RoundsToNearest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.Float32Range(-1e38, 1e38).Draw(t, "x")
		var bits [1]uint16
		var back, again [1]float32
		NarrowBF16(bits[:], []float32{x})
		WidenBF16(back[:], bits[:])
		if want := roundBF16(x); math.Abs(float64(x)) >= leastNormal && back[0] != want {
			t.Fatalf("%v becomes %v, want %v", x, back[0], want)
		}
		NarrowBF16(bits[:], back[:])
		WidenBF16(again[:], bits[:])
		if again != back {
			t.Fatalf("%v becomes %v the second time", back, again)
		}
	})
}
