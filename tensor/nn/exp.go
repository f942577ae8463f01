package nn

import "math"

// expFloor is where exp is cut to zero. exp(-40) = 4e-18 is far below the
// resolution of a float32 sum that contains a 1, and without the cut tails
// become denormal numbers, on which every later product runs many times slower.
const expFloor = -40

// expRow sets x = exp(scale*x - shift), cut to zero below expFloor, and returns
// the sum.
func expRow(x []float32, scale, shift float32) float32 {
	var sum float32
	for i, v := range x {
		v = v*scale - shift
		if v < expFloor {
			x[i] = 0
			continue
		}
		x[i] = float32(math.Exp(float64(v)))
		sum += x[i]
	}
	return sum
}

// sigmoid sets y = 1 / (1 + exp(-x)).
func sigmoid(y, x []float32) {
	y = y[:len(x)]
	for i, v := range x {
		y[i] = float32(1 / (1 + math.Exp(-float64(v))))
	}
}

func maxOf(x []float32) float32 {
	m := x[0]
	for _, v := range x[1:] {
		m = max(m, v)
	}
	return m
}
