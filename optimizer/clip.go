package optimizer

import (
	"math"

	"atoll/tensor"
)

// ClipNorm scales grads so that their Euclidean norm is at most max and
// returns the norm they had. Gradients whose norm is not finite stay as they
// are: the caller sees it in the result and must not step along them.
func ClipNorm(grads []float32, max float64) float64 {
	norm, scale := ClipScale(grads, max)
	if scale != 1 {
		inPieces(len(grads), func(_, from, to int) { tensor.Scale(scale, grads[from:to]) })
	}
	return norm
}

// ClipScale returns the norm, and what ClipNorm multiplies gradients by. A step that does so on its way, as
// AdamW.StepScaled, saves a pass over them.
func ClipScale(grads []float32, max float64) (norm float64, scale float32) {
	norm = math.Sqrt(sumSquares(grads))
	if norm > max && !math.IsInf(norm, 1) {
		return norm, float32(max / norm)
	}
	return norm, 1
}

// sumSquares adds the sums of the pieces in order, whichever thread made them.
func sumSquares(x []float32) float64 {
	sums := make([]float64, pieces(len(x)))
	inPieces(len(x), func(i, from, to int) { sums[i] = tensor.SumSquares(x[from:to]) })
	total := 0.0
	for _, s := range sums {
		total += s
	}
	return total
}
