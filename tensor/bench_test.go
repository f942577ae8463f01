package tensor

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// gflops reports a rate over the whole benchmark.
func gflops(b *testing.B, flops float64) {
	b.ReportMetric(flops*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
}

// BenchmarkMultiplyAdds is the yardstick of the laboratory's bench.
func BenchmarkMultiplyAdds(b *testing.B) {
	for _, k := range available() {
		b.Run(k.name, func(b *testing.B) {
			defer swap(k)()
			gflops(b, MultiplyAdds(b.N)/float64(b.N))
		})
	}
}

// BenchmarkPeak runs one tile over operands that stay in the first cache: the most
// that the multipliers of one core give, to read BenchmarkGemm beside.
func BenchmarkPeak(b *testing.B) {
	for _, k := range fastKernels() {
		b.Run(k.name, func(b *testing.B) { benchmarkTile(b, k.name) })
	}
}

func BenchmarkGemm(b *testing.B) {
	shapes := []struct {
		name           string
		transA, transB bool
		m, n, k        int
	}{
		{"tiny-forward", false, true, 512, 128, 128},
		{"tiny-gate", false, true, 512, 344, 128},
		{"tiny-back", false, false, 512, 128, 344},
		{"tiny-weight", true, false, 344, 128, 512},
		{"head-score", false, true, 128, 128, 32},
		{"head-value", false, false, 128, 32, 128},
		{"head-back", true, false, 128, 32, 128},
		{"square-512", false, false, 512, 512, 512},
		{"square-512-NT", false, true, 512, 512, 512},
		{"square-512-TN", true, false, 512, 512, 512},
		{"square-1024", false, false, 1024, 1024, 1024},
		{"square-2048", false, false, 2048, 2048, 2048},
		{"square-2048-TT", true, true, 2048, 2048, 2048},
	}
	for _, kern := range fastKernels() {
		for _, n := range []int{1, 2} {
			for _, s := range shapes {
				b.Run(fmt.Sprintf("%s/threads-%d/%s", kern.name, n, s.name), func(b *testing.B) {
					defer swap(kern)()
					defer threads(n)()
					rng := rand.New(rand.NewPCG(1, 1))
					x, y, z := operand(rng, s.transA, s.m, s.k, 0), operand(rng, s.transB, s.k, s.n, 0), newMatrix(rng, s.m, s.n, 0)
					b.ResetTimer()
					for range b.N {
						Gemm(s.transA, s.transB, s.m, s.n, s.k, x.data, x.ld, y.data, y.ld, z.data, z.ld, false)
					}
					gflops(b, 2*float64(s.m)*float64(s.n)*float64(s.k))
				})
			}
		}
	}
}

// BenchmarkVector measures the element-wise kernels on vectors that stay in the
// second cache, in values per nanosecond.
func BenchmarkVector(b *testing.B) {
	const n = 16 << 10
	rng := rand.New(rand.NewPCG(1, 1))
	v := make([][]float32, 5)
	for i := range v {
		v[i] = newMatrix(rng, 1, n, 0).data
	}
	turn := [2][]float32{make([]float32, 16), make([]float32, 16)} // of unit length, lest values decay
	for i := range turn[0] {
		turn[0][i], turn[1][i] = 0.6, 0.8
	}
	report := func(b *testing.B, _ benchOp) {
		b.ReportMetric(n*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "values/ns")
	}
	eachOp(b, report, []benchOp{
		{"dot", 0, func() { Dot(v[0], v[1]) }},
		{"axpy", 0, func() { Axpy(1e-9, v[0], v[1]) }},
		{"exp", 0, func() { Exp(v[0], v[1]) }},
		{"expsum", 0, func() { ExpSum(v[0], v[1], 1) }},
		{"swiglu", 0, func() { SwiGLU(v[0], v[1], v[2]) }},
		{"swiglugrad", 0, func() { SwiGLUGrad(v[0], v[1], v[2], v[2], v[3], v[4]) }},
		{"rotate", 0, func() { Rotate(v[0], turn[0], turn[1]) }},
		{"adamw", 0, func() {
			AdamWUpdate(v[0], v[1], v[2], v[3], AdamWCoef{0.9, 0.999, 1, 1e-9, 1, 1e-8, 1})
		}},
	})
}

// benchOp is an operation to measure.
type benchOp struct {
	name string
	size int // bytes, of whatever report counts
	run  func()
}

// eachOp measures operations with each kernel.
func eachOp(b *testing.B, report func(b *testing.B, op benchOp), ops []benchOp) {
	for _, k := range available() {
		for _, op := range ops {
			b.Run(k.name+"/"+op.name, func(b *testing.B) {
				defer swap(k)()
				for b.Loop() {
					op.run()
				}
				report(b, op)
			})
		}
	}
}
