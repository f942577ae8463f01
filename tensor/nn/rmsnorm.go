package nn

import (
	"math"

	"atoll/tensor"
)

// columnBlock is how many columns one task takes where rows are summed.
const columnBlock = 64

// RMSNorm scales each row to unit root mean square and then by weight:
//
//	out = x * rstd * weight,  rstd = 1 / sqrt(mean(x*x) + eps)
//
// (Zhang and Sennrich, arXiv 1910.07467).
//
//	out    [rows, dim]
//	rstd   [rows], kept for the backward pass
//	x      [rows, dim]
//	weight [dim]
func RMSNorm(out, rstd, x, weight []float32, rows, dim int, eps float64) {
	overRows(rows, func(lo, hi int) {
		for r := lo; r < hi; r++ {
			in := x[r*dim : (r+1)*dim]
			mean := tensor.SumSquares(in) / float64(dim)
			rstd[r] = float32(1 / math.Sqrt(mean+eps))
			tensor.Mul(out[r*dim:(r+1)*dim], rstd[r], in, weight)
		}
	})
}

// RMSNormBackward is the gradient of RMSNorm. With g = rstd * dout * weight:
//
//	dx      += g - x * rstd^2 * mean(g * x)
//	dweight += sum over rows of dout * x * rstd
//
// dx is added to because x is the residual stream, whose gradient also flows
// around the norm.
//
//	dx      [rows, dim], added to
//	dweight [dim], added to
//	dout    [rows, dim], overwritten by g
func RMSNormBackward(dx, dweight, dout, x, weight, rstd []float32, rows, dim int) {
	if tensor.Threads() == 1 { // a row is fetched once for both
		for r := range rows {
			a, b := r*dim, (r+1)*dim
			tensor.AddMul(dweight, rstd[r], dout[a:b], x[a:b])
			normRowBackward(dx[a:b], dout[a:b], x[a:b], weight, rstd[r])
		}
		return
	}
	overBlocks(dim, columnBlock, func(lo, hi int) {
		for r := range rows {
			a, b := r*dim+lo, r*dim+hi
			tensor.AddMul(dweight[lo:hi], rstd[r], dout[a:b], x[a:b])
		}
	})
	overRows(rows, func(lo, hi int) {
		for r := lo; r < hi; r++ {
			a, b := r*dim, (r+1)*dim
			normRowBackward(dx[a:b], dout[a:b], x[a:b], weight, rstd[r])
		}
	})
}

func normRowBackward(dx, dout, x, weight []float32, rstd float32) {
	tensor.Mul(dout, rstd, dout, weight)
	mean := tensor.Dot(dout, x) / float64(len(x))
	tensor.Add(dout, dx)
	tensor.Axpy(-rstd*rstd*float32(mean), x, dx)
}
