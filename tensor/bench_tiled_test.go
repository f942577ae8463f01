//go:build (amd64 || arm64) && !purego

package tensor

import "testing"

func benchmarkTile(b *testing.B, name string) {
	shape := tileOf[name]
	const k = 256
	x, y, z := make([]float32, k), make([]float32, k*shape.cols), make([]float32, shape.rows*shape.cols)
	for range b.N {
		shape.multiply(shape.rows, shape.cols, k, &x[0], 0, 1, &y[0], &z[0], shape.cols, false, &z[0], 4*shape.cols)
	}
	gflops(b, 2*k*float64(shape.rows*shape.cols))
}
