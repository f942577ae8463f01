package tensor

import (
	"fmt"
	"math"
)

// lanes is how many partial sums a reduction keeps: value i belongs to lane i mod
// lanes, and lanes are added pairwise at the end. It fills one AVX-512 register of
// float32 and is fixed, because it decides the bits of the result.
const lanes = 16

// Dot returns the sum of x[i]*y[i]. Products are exact in float64; the sum has the
// same bits on every kernel.
func Dot(x, y []float32) float64 {
	checkLength("Dot", len(x), len(y))
	return use.dot(x, y)
}

// SumSquares returns the sum of x[i]*x[i], as Dot(x, x).
func SumSquares(x []float32) float64 { return Dot(x, x) }

// Axpy adds alpha*x to y: y[i] += alpha*x[i].
func Axpy(alpha float32, x, y []float32) {
	checkLength("Axpy", len(x), len(y))
	use.axpy(alpha, x, y)
}

// Add adds x to y: y[i] += x[i].
func Add(x, y []float32) {
	checkLength("Add", len(x), len(y))
	use.axpy(1, x, y)
}

// Scale multiplies x by alpha in place.
func Scale(alpha float32, x []float32) { use.scale(alpha, x) }

// Max returns the largest value of x, or -Inf if x is empty. A NaN in x may be
// passed over.
func Max(x []float32) float32 { return use.max(x) }

// checkLength panics unless the lengths of an operation's operands agree.
func checkLength(op string, want int, lengths ...int) {
	for _, n := range lengths {
		if n != want {
			panic(fmt.Sprintf("tensor: %s: operands of %d and %d values: lengths must agree", op, want, n))
		}
	}
}

func dotGo(x, y []float32) float64 {
	var sum [lanes]float64
	for i := range x {
		sum[i%lanes] += float64(x[i]) * float64(y[i])
	}
	return sumLanes(&sum)
}

// sumLanes adds the lanes pairwise: halves onto each other until one is left.
func sumLanes[F float32 | float64](sum *[lanes]F) F {
	for half := lanes / 2; half > 0; half /= 2 {
		for i := range half {
			sum[i] += sum[i+half]
		}
	}
	return sum[0]
}

func axpyGo(alpha float32, x, y []float32) {
	for i, v := range x {
		y[i] += float32(alpha * v)
	}
}

func scaleGo(alpha float32, x []float32) {
	for i := range x {
		x[i] *= alpha
	}
}

func maxGo(x []float32) float32 {
	largest := float32(math.Inf(-1))
	for _, v := range x {
		if v > largest {
			largest = v
		}
	}
	return largest
}
