package tensor

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// special values that a vector kernel must treat as the plain one does.
var special = []float32{0, float32(math.Copysign(0, -1)), 1, -1, 1e-40, -1e-45, 3e38, -3e38,
	-63.99, -64, -64.01, 87.99, 88, 88.01, 1e-31, 1e-30,
	float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN())}

// drawVectors returns count vectors of one length, with special values here and
// there, at any alignment, and guard values behind them.
func drawVectors(t *rapid.T, count int) [][]float32 {
	n := rapid.IntRange(0, 70).Draw(t, "length")
	rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 2))
	spread := rapid.SampledFrom([]float32{1, 30, 100}).Draw(t, "spread")
	specials := rapid.Bool().Draw(t, "specials")
	vectors := make([][]float32, count)
	for i := range vectors {
		offset := rng.IntN(5)
		memory := make([]float32, offset+n+guards)
		for j := range memory {
			memory[j] = (rng.Float32()*2 - 1) * spread
			if specials && rng.IntN(4) == 0 {
				memory[j] = special[rng.IntN(len(special))]
			}
		}
		vectors[i] = memory[offset : offset+n]
	}
	return vectors
}

// guards is how many values behind each vector must stay as they are.
const guards = 20

// cloneVectors copies vectors, their guards included.
func cloneVectors(vectors [][]float32) [][]float32 {
	out := make([][]float32, len(vectors))
	for i, v := range vectors {
		out[i] = append([]float32(nil), v[:len(v)+guards]...)[:len(v)]
	}
	return out
}

// sameBits reports whether two values have the same bits, all NaNs being one.
func sameBits(a, b float32) bool {
	return math.Float32bits(a) == math.Float32bits(b) || a != a && b != b
}

// vectorOps are the operations by name, each with the number of its vectors. What has no result gives 0.
var vectorOps = map[string]struct {
	vectors int
	run     func(v [][]float32, alpha float32) float64
}{
	"dot":          {2, func(v [][]float32, _ float32) float64 { return Dot(v[0], v[1]) }},
	"sum squares":  {1, func(v [][]float32, _ float32) float64 { return SumSquares(v[0]) }},
	"max":          {1, func(v [][]float32, _ float32) float64 { return float64(Max(v[0])) + 0 }},
	"axpy":         {2, void(func(v [][]float32, alpha float32) { Axpy(alpha, v[0], v[1]) })},
	"add":          {2, void(func(v [][]float32, _ float32) { Add(v[0], v[1]) })},
	"scale":        {1, void(func(v [][]float32, alpha float32) { Scale(alpha, v[0]) })},
	"mul":          {3, void(func(v [][]float32, alpha float32) { Mul(v[0], alpha, v[1], v[2]) })},
	"add mul":      {3, void(func(v [][]float32, alpha float32) { AddMul(v[0], alpha, v[1], v[2]) })},
	"softmax grad": {2, void(func(v [][]float32, alpha float32) { SoftmaxGrad(v[0], v[1], 0.75, alpha) })},
	"rotate": {3, void(func(v [][]float32, _ float32) {
		half := min(len(v[0]), 19) // several pairs of halves, and ragged ones
		if half > 0 {
			pairs := len(v[0]) / (2 * half)
			Rotate(v[0][:pairs*2*half], v[1][:half], v[2][:half])
		}
	})},
	"exp":         {2, void(func(v [][]float32, _ float32) { Exp(v[0], v[1]) })},
	"exp sum":     {2, func(v [][]float32, alpha float32) float64 { return float64(ExpSum(v[0], v[1], alpha)) }},
	"swiglu":      {3, void(func(v [][]float32, _ float32) { SwiGLU(v[0], v[1], v[2]) })},
	"swiglu grad": {6, void(func(v [][]float32, _ float32) { SwiGLUGrad(v[0], v[1], v[5], v[2], v[3], v[4]) })},
	"adamw": {4, void(func(v [][]float32, alpha float32) {
		AdamWUpdate(v[0], v[1], v[2], v[3], AdamWCoef{Beta1: 0.9, Beta2: 0.999, Grad: alpha, Step: 1e-3, Root: 1.5, Eps: 1e-8, Keep: 0.99})
	})},
}

func void(op func(v [][]float32, alpha float32)) func([][]float32, float32) float64 {
	return func(v [][]float32, alpha float32) float64 { op(v, alpha); return 0 }
}

// TestVectorsLikePlain runs each operation with each fast kernel and with the plain one on
// the same random vectors, and compares every value, those behind the vectors included, and
// the result.
func TestVectorsLikePlain(t *testing.T) {
	for name, op := range vectorOps {
		t.Run(name, func(t *testing.T) {
			eachKernel(t, fastKernels(), func(t *rapid.T, k kernel) {
				v := drawVectors(t, op.vectors)
				alpha := rapid.SampledFrom([]float32{0.5, -3.25, 1, 0, 1.0 / 3}).Draw(t, "alpha")
				want, got := cloneVectors(v), cloneVectors(v)
				var wantResult, gotResult float64
				with(plain, func() { wantResult = op.run(want, alpha) })
				with(k, func() { gotResult = op.run(got, alpha) })
				if math.Float64bits(gotResult) != math.Float64bits(wantResult) && (gotResult == gotResult || wantResult == wantResult) {
					t.Fatalf("result %v, want %v", gotResult, wantResult)
				}
				for i := range want {
					w, g := want[i][:len(want[i])+guards], got[i][:len(got[i])+guards]
					for j := range w {
						if !sameBits(g[j], w[j]) {
							t.Fatalf("vector %d value %d of %d was %v and became %v, want %v", i, j, len(v[i]), v[i][:len(w)][j], g[j], w[j])
						}
					}
				}
			})
		})
	}
}
