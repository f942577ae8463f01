package nn

import "atoll/tensor"

// SwiGLU is the gated unit of the Llama feed-forward layer (Shazeer, arXiv
// 2002.05202):
//
//	act = silu(gate) * up,  silu(x) = x / (1 + exp(-x))
//
//	act    [rows, dim]
//	gateUp [rows, 2*dim]: gate, then up
func SwiGLU(act, gateUp []float32, rows, dim int) {
	overRows(rows, func(lo, hi int) {
		for r := lo; r < hi; r++ {
			gate, up := halves(gateUp, r, dim)
			tensor.SwiGLU(act[r*dim:(r+1)*dim], gate, up)
		}
	})
}

// SwiGLUBackward is the gradient of SwiGLU. It also computes act again, row by
// row while the inputs are in the first cache: cheaper than keeping it for each
// layer of a model.
//
//	dgateUp [rows, 2*dim], overwritten
//	act     [rows, dim], overwritten
//	dact    [rows, dim]
//	gateUp  [rows, 2*dim]
func SwiGLUBackward(dgateUp, act, dact, gateUp []float32, rows, dim int) {
	overRows(rows, func(lo, hi int) {
		for r := lo; r < hi; r++ {
			gate, up := halves(gateUp, r, dim)
			dgate, dup := halves(dgateUp, r, dim)
			tensor.SwiGLUGrad(dgate, dup, act[r*dim:(r+1)*dim], dact[r*dim:(r+1)*dim], gate, up)
		}
	})
}

// halves splits row r of a [rows, 2*dim] matrix in the middle.
func halves(x []float32, r, dim int) (left, right []float32) {
	row := x[2*r*dim : 2*(r+1)*dim]
	return row[:dim], row[dim:]
}
