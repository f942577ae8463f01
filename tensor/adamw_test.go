package tensor

import (
	"math"
	"math/rand/v2"
	"testing"
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
