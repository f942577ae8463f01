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
			mean := float64(tensor.SumSquares(in)) / float64(dim)
			rstd[r] = float32(1 / math.Sqrt(mean+eps))
			normRow(out[r*dim:(r+1)*dim], in, weight, rstd[r])
		}
	})
}

func normRow(out, x, weight []float32, rstd float32) {
	out, weight = out[:len(x)], weight[:len(x)]
	for i, v := range x {
		out[i] = v * rstd * weight[i]
	}
}

// RMSNormBackward is the gradient of RMSNorm. With g = dout * weight:
//
//	dx      += rstd * g - x * rstd^3 * mean(g * x)
//	dweight += sum over rows of dout * x * rstd
//
// dx is added to because x is the residual stream, whose gradient also flows
// around the norm.
//
//	dx      [rows, dim], added to
//	dweight [dim], added to
//	dout    [rows, dim]
func RMSNormBackward(dx, dweight, dout, x, weight, rstd []float32, rows, dim int) {
	overRows(rows, func(lo, hi int) {
		for r := lo; r < hi; r++ {
			a, b := r*dim, (r+1)*dim
			normRowBackward(dx[a:b], dout[a:b], x[a:b], weight, rstd[r])
		}
	})
	overBlocks(dim, columnBlock, func(lo, hi int) {
		for r := range rows {
			a, b := r*dim+lo, r*dim+hi
			addScaledProduct(dweight[lo:hi], dout[a:b], x[a:b], rstd[r])
		}
	})
}

func normRowBackward(dx, dout, x, weight []float32, rstd float32) {
	dx, dout, weight = dx[:len(x)], dout[:len(x)], weight[:len(x)]
	var sum float32
	for i, v := range x {
		sum += dout[i] * weight[i] * v
	}
	c := rstd * rstd * rstd * sum / float32(len(x))
	for i, v := range x {
		dx[i] += rstd*dout[i]*weight[i] - c*v
	}
}

// addScaledProduct sets y += s * a * b element by element.
func addScaledProduct(y, a, b []float32, s float32) {
	a, b = a[:len(y)], b[:len(y)]
	for i := range y {
		y[i] += a[i] * b[i] * s
	}
}
