package tensor

import (
	"encoding/binary"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"testing"
)

// This file pins bits, so that architectures are compared that never run side by side.

// digest is over the bits of a result and of values. NaN has many, so there must be none.
func digest(t *testing.T, result float64, values ...[]float32) uint64 {
	t.Helper()
	h := fnv.New64a()
	_, _ = h.Write(binary.LittleEndian.AppendUint64(nil, math.Float64bits(result)))
	for _, v := range values {
		for i, x := range v {
			if x != x {
				t.Fatalf("value %d is NaN", i)
			}
			_, _ = h.Write(binary.LittleEndian.AppendUint32(nil, math.Float32bits(x)))
		}
	}
	return h.Sum64()
}

// goldenOperations are all operations, each with the digest of what it leaves behind.
var goldenOperations = []struct {
	name string
	run  func(v [][]float32, alpha float32) float64
	want uint64
}{
	{"dot", func(v [][]float32, _ float32) float64 { return Dot(v[0], v[1]) }, 0x1b5866d364a02b97},
	{"max", func(v [][]float32, _ float32) float64 { return float64(Max(v[0])) }, 0x12f907c5d4d23b47},
	{"axpy", void(func(v [][]float32, alpha float32) { Axpy(alpha, v[0], v[1]) }), 0xcf8b14085673fb96},
	{"scale", void(func(v [][]float32, alpha float32) { Scale(alpha, v[0]) }), 0x389db75a2e3d6b12},
	{"mul", void(func(v [][]float32, alpha float32) { Mul(v[0], alpha, v[1], v[2]) }), 0xb51fa714dfa9c178},
	{"addmul", void(func(v [][]float32, alpha float32) { AddMul(v[0], alpha, v[1], v[2]) }), 0xeedfe44bf5f63960},
	{"softmaxgrad", void(func(v [][]float32, alpha float32) { SoftmaxGrad(v[0], v[1], 0.3, alpha) }), 0x2d82a6d47a6f0d24},
	{"rotate", void(func(v [][]float32, _ float32) { Rotate(v[0][:2*28], v[1][:28], v[2][:28]) }), 0x532f344ffdfd9be8},
	{"exp", void(func(v [][]float32, _ float32) { Exp(v[0], v[1]) }), 0x6f94eef67bd49f66},
	{"expsum", func(v [][]float32, alpha float32) float64 { return float64(ExpSum(v[0], v[1], alpha)) }, 0x2fe2ce0385cc6f03},
	{"swiglu", void(func(v [][]float32, _ float32) { SwiGLU(v[0], v[1], v[2]) }), 0x95ab422604555cfd},
	{"swiglugrad", void(func(v [][]float32, _ float32) { SwiGLUGrad(v[0], v[1], make([]float32, len(v[0])), v[2], v[3], v[4]) }), 0x495652eca88135b6},
	{"adamw", void(func(v [][]float32, alpha float32) {
		AdamWUpdate(v[0], v[1], v[2], v[3], AdamWCoef{Beta1: 0.9, Beta2: 0.999, Grad: alpha, Step: 1e-3, Root: 1.5, Eps: 1e-8, Keep: 0.99})
	}), 0xfaad08d162de66e2},
}

// TestGoldenOperations holds for every kernel on every architecture. The vectors are long
// enough for full blocks, full registers and single values.
func TestGoldenOperations(t *testing.T) {
	for _, op := range goldenOperations {
		for _, k := range available() {
			t.Run(op.name+"/"+k.name, func(t *testing.T) {
				v := goldenVectors(5, 3*lanes+2*4+3)
				var result float64
				with(k, func() { result = op.run(v, 1.0/3) })
				if got := digest(t, result, v...); got != op.want {
					t.Errorf("digest %#x, want %#x", got, op.want)
				}
			})
		}
	}
}

// goldenVectors returns vectors of n values between -20 and 20. The fourth is not negative,
// as AdamW's second moment.
func goldenVectors(count, n int) [][]float32 {
	rng := rand.New(rand.NewPCG(7, 7))
	v := make([][]float32, count)
	for i := range v {
		v[i] = newMatrix(rng, 1, n, 0).data
		scaleGo(20, v[i])
	}
	mulGo(v[3], 1, v[3], v[3])
	return v
}

// TestGoldenGemm holds for every kernel that fuses multiply and add. The product has more
// than one block of depth and ragged tiles.
func TestGoldenGemm(t *testing.T) {
	for _, c := range []struct {
		transA, transB bool
		want           uint64
	}{{false, false, 0x2177a813315b444d}, {true, false, 0x71246c63cfd872d}, {false, true, 0x6af5a6dd7a55c85}, {true, true, 0xf0d62c9a5795977a}} {
		g := gemmCase{transA: c.transA, transB: c.transB, acc: true, m: 37, n: 155, k: 301, gapA: 1, gapB: 2, gapC: 3}
		a, b, z := g.operands(7)
		for _, k := range fastKernels() {
			if got := digest(t, 0, g.with(k, a, b, z)); got != c.want {
				t.Errorf("%s, transposed %v and %v: digest %#x, want %#x", k.name, c.transA, c.transB, got, c.want)
			}
		}
	}
}
