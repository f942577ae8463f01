package nn

import "atoll/tensor"

// Precision is the arithmetic of the products of Linear and its gradients. Sums are float32 either way.
type Precision = tensor.Precision

// Linear multiplies each row by a weight matrix stored as PyTorch stores it:
//
//	y = x w^T
//
//	y [rows, out], overwritten, or added to where add is set (a residual)
//	x [rows, in]
//	w [out, in]
func Linear(p Precision, y, x, w []float32, rows, in, out int, add bool) {
	p.Gemm(false, true, rows, out, in, x, in, w, in, y, out, add)
}

// LinearBackward is the gradient of Linear.
//
//	dx [rows, in], overwritten
//	dw [out, in], overwritten, or added to where add is set
//	dy [rows, out]
func LinearBackward(p Precision, dx, dw, dy, x, w []float32, rows, in, out int, add bool) {
	LinearInputGrad(p, dx, dy, w, rows, in, out)
	LinearWeightGrad(p, dw, dy, x, rows, in, out, add)
}

// LinearInputGrad sets dx = dy w, for where x is not at hand yet.
func LinearInputGrad(p Precision, dx, dy, w []float32, rows, in, out int) {
	p.Gemm(false, false, rows, in, out, dy, out, w, in, dx, in, false)
}

// LinearWeightGrad sets dw = dy^T x, or adds that to it.
func LinearWeightGrad(p Precision, dw, dy, x []float32, rows, in, out int, add bool) {
	p.Gemm(true, false, out, in, rows, dy, out, x, in, dw, in, add)
}
