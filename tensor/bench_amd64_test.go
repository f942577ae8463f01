//go:build !purego

package tensor

import "testing"

func benchmarkTile(b *testing.B, name string) {
	shape := &tileAVX2
	if name == "avx512" {
		shape = &tileAVX512
	}
	const k = 256
	x, y, z := make([]float32, 1), make([]float32, k*shape.cols), make([]float32, shape.rows*shape.cols)
	for range b.N {
		shape.multiply(shape.rows, shape.cols, k, &x[0], 0, 0, &y[0], &z[0], shape.cols, false)
	}
	gflops(b, 2*k*float64(shape.rows*shape.cols))
}
