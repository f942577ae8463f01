package tensor

import (
	"math/rand/v2"
	"testing"
)

// gigabytes reports the rate at which operands are read and written. BenchmarkCopy is what to read
// it beside.
func gigabytes(b *testing.B, bytes int) {
	b.ReportMetric(float64(bytes)*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "GB/s")
}

// wideLen is the values of a segment: what a fold keeps in the second cache, sums included.
const wideLen = 1 << 17

func BenchmarkCopy(b *testing.B) {
	x, y := make([]float64, wideLen), make([]float64, wideLen)
	for b.Loop() {
		copy(y, x)
	}
	gigabytes(b, 16*wideLen)
}

// BenchmarkWide measures the kernels of the fold on a segment.
func BenchmarkWide(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 1))
	x, y := newMatrix(rng, 1, wideLen, 0).data, newMatrix(rng, 1, wideLen, 0).data
	u := make([]float64, wideLen)
	var l Lanes
	eachOp(b, func(b *testing.B, op benchOp) { gigabytes(b, op.size*wideLen) }, []benchOp{
		{"squares", 4, func() { l.AddSquares(0, x) }},
		{"distances", 12, func() { l.AddDistances(0, 0.5, x, u) }},
		{"axpy", 20, func() { AxpyWide(1e-9, x, u) }},
		{"scale", 16, func() { ScaleWide(0.999, u) }},
		{"difference", 16, func() { Difference(u, x, y) }},
		{"move", 16, func() { MoveNarrow(y, x, 0.7, u) }},
		{"decay", 16, func() { DecayNarrow(y, 0.9, x, u) }},
		{"narrow", 12, func() { Narrow(y, u) }},
	})
}

// BenchmarkQuant measures the loops of the quantised codecs on blocks within the first cache.
func BenchmarkQuant(b *testing.B) {
	var x Block
	sum, scales := make([]float64, BlockLen), []float32{1}
	var codes4 Codes4
	for i := range x {
		x[i] = float32(i%15) - 7
	}
	for i := range codes4 {
		codes4[i] = 0x77
	}
	report := func(b *testing.B, op benchOp) {
		gigabytes(b, op.size)
		b.ReportMetric(BlockLen*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "values/ns")
	}
	eachOp(b, report, []benchOp{
		{"largest", 4 * BlockLen, func() { MaxBits(&x) }},
		{"pack4", 4*BlockLen + len(codes4), func() { Pack4(&codes4, &x, 1) }},
		{"unpack4", 4*BlockLen + len(codes4), func() { Unpack4(&x, &codes4, 1) }},
		{"addCodes4", 16*BlockLen + len(codes4), func() { AddCodes4(sum, 0.5, codes4[:], scales) }},
	})
}
