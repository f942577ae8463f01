package nn

import "atoll/tensor"

// Linear multiplies each row by a weight matrix stored as PyTorch stores it:
//
//	y = x w^T
//
//	y [rows, out], overwritten, or added to where add is set (a residual)
//	x [rows, in]
//	w [out, in]
func Linear(y, x, w []float32, rows, in, out int, add bool) {
	tensor.Gemm(false, true, rows, out, in, x, in, w, in, y, out, add)
}

// LinearBackward is the gradient of Linear.
//
//	dx [rows, in], overwritten
//	dw [out, in], added to
//	dy [rows, out]
func LinearBackward(dx, dw, dy, x, w []float32, rows, in, out int) {
	LinearInputGrad(dx, dy, w, rows, in, out)
	LinearWeightGrad(dw, dy, x, rows, in, out)
}

// LinearInputGrad sets dx = dy w, for where x is not at hand yet.
func LinearInputGrad(dx, dy, w []float32, rows, in, out int) {
	tensor.Gemm(false, false, rows, in, out, dy, out, w, in, dx, in, false)
}

// LinearWeightGrad sets dw += dy^T x.
func LinearWeightGrad(dw, dy, x []float32, rows, in, out int) {
	tensor.Gemm(true, false, out, in, rows, dy, out, x, in, dw, in, true)
}
