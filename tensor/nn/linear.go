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
//	dx [rows, in] = dy w, overwritten
//	dw [out, in] += dy^T x, added to
//	dy [rows, out]
func LinearBackward(dx, dw, dy, x, w []float32, rows, in, out int) {
	tensor.Gemm(false, false, rows, in, out, dy, out, w, in, dx, in, false)
	tensor.Gemm(true, false, out, in, rows, dy, out, x, in, dw, in, true)
}
