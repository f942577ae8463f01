package tensor

import "math"

// What a fold computes in float64, from float32 values. Each product is rounded before it is
// added to anything, so that every kernel and architecture gives the same bits; only sums of
// squares of float32, which are exact, are fused here.

// Lanes are the partial sums of a reduction in float64: value i of a vector belongs to lane
// i mod 16. A vector may be added in pieces, in order; the result has the same bits as if it
// was added at once. The zero value is an empty sum.
type Lanes [lanes]float64

// Sum adds the lanes pairwise, halves onto each other, and leaves the lanes undefined.
func (l *Lanes) Sum() float64 { return sumLanes((*[lanes]float64)(l)) }

// AddSquares adds x[i]*x[i], where x[0] is value number at of the vector.
func (l *Lanes) AddSquares(at int, x []float32) {
	l.pieces(at, len(x), func(first int, sum *[lanes]float64, from, to int) {
		if first == 0 && to-from >= lanes {
			use.squares(sum, x[from:to])
			return
		}
		for i, v := range x[from:to] {
			sum[first+i] += float64(v) * float64(v)
		}
	})
}

// AddDistances adds the squares of alpha*x[i] - y[i], where x[0] and y[0] are value number at
// of their vectors.
func (l *Lanes) AddDistances(at int, alpha float64, x []float32, y []float64) {
	checkLength("AddDistances", len(x), len(y))
	l.pieces(at, len(x), func(first int, sum *[lanes]float64, from, to int) {
		if first == 0 && to-from >= lanes {
			use.distances(sum, alpha, x[from:to], y[from:to])
			return
		}
		for i, v := range x[from:to] {
			d := float64(alpha*float64(v)) - y[from+i]
			sum[first+i] += float64(d * d)
		}
	})
}

// pieces cuts n values, the first of which is number at, into those up to a full set of lanes,
// full sets, and the rest: add is told the lane of a piece's first value, and where it lies.
func (l *Lanes) pieces(at, n int, add func(first int, sum *[lanes]float64, from, to int)) {
	sum, first := (*[lanes]float64)(l), at%lanes
	head := 0
	if first > 0 {
		head = min(lanes-first, n)
		add(first, sum, 0, head)
	}
	full := head + (n-head)&^(lanes-1)
	if full > head {
		add(0, sum, head, full)
	}
	if full < n {
		add(0, sum, full, n)
	}
}

// AxpyWide adds alpha*x to sum: sum[i] += alpha*x[i].
func AxpyWide(alpha float64, x []float32, sum []float64) {
	checkLength("AxpyWide", len(x), len(sum))
	n := len(x) &^ (lanes - 1)
	if n > 0 {
		use.axpyWide(alpha, x[:n], sum[:n])
	}
	axpyWideGo(alpha, x[n:], sum[n:])
}

// ScaleWide multiplies x by alpha in place.
func ScaleWide(alpha float64, x []float64) {
	n := len(x) &^ (lanes - 1)
	if n > 0 {
		use.scaleWide(alpha, x[:n])
	}
	scaleWideGo(alpha, x[n:])
}

// Difference sets dst[i] = x[i] - y[i], computed in float64.
func Difference(dst []float64, x, y []float32) {
	checkLength("Difference", len(dst), len(x), len(y))
	n := len(dst) &^ (lanes - 1)
	if n > 0 {
		use.difference(dst[:n], x[:n], y[:n])
	}
	differenceGo(dst[n:], x[n:], y[n:])
}

// MoveNarrow sets dst[i] = x[i] + eta*u[i], rounded to float32; what does not fit saturates at
// the largest finite values. dst may be x.
func MoveNarrow(dst, x []float32, eta float64, u []float64) {
	checkLength("MoveNarrow", len(dst), len(x), len(u))
	n := len(dst) &^ (lanes - 1)
	if n > 0 {
		use.moveNarrow(dst[:n], x[:n], eta, u[:n])
	}
	moveNarrowGo(dst[n:], x[n:], eta, u[n:])
}

// DecayNarrow sets dst[i] = mu*x[i] + u[i], rounded to float32; what does not fit saturates at
// the largest finite values. dst may be x.
func DecayNarrow(dst []float32, mu float64, x []float32, u []float64) {
	checkLength("DecayNarrow", len(dst), len(x), len(u))
	n := len(dst) &^ (lanes - 1)
	if n > 0 {
		use.decayNarrow(dst[:n], mu, x[:n], u[:n])
	}
	decayNarrowGo(dst[n:], mu, x[n:], u[n:])
}

// Narrow sets dst[i] to x[i], rounded to float32; what does not fit saturates at the largest
// finite values.
func Narrow(dst []float32, x []float64) {
	checkLength("Narrow", len(dst), len(x))
	n := len(dst) &^ (lanes - 1)
	if n > 0 {
		use.narrow(dst[:n], x[:n])
	}
	narrowGo(dst[n:], x[n:])
}

// The plain versions. Lengths agree and those of kernels are positive multiples of lanes.

func squaresGo(sum *[lanes]float64, x []float32) {
	for i, v := range x {
		sum[i%lanes] += float64(v) * float64(v)
	}
}

func distancesGo(sum *[lanes]float64, alpha float64, x []float32, y []float64) {
	for i, v := range x {
		d := float64(alpha*float64(v)) - y[i]
		sum[i%lanes] += float64(d * d)
	}
}

func axpyWideGo(alpha float64, x []float32, sum []float64) {
	for i, v := range x {
		sum[i] += float64(alpha * float64(v))
	}
}

func scaleWideGo(alpha float64, x []float64) {
	for i := range x {
		x[i] *= alpha
	}
}

func differenceGo(dst []float64, x, y []float32) {
	for i, v := range x {
		dst[i] = float64(v) - float64(y[i])
	}
}

func moveNarrowGo(dst, x []float32, eta float64, u []float64) {
	for i, v := range u {
		dst[i] = Saturate(float64(x[i]) + float64(eta*v))
	}
}

func decayNarrowGo(dst []float32, mu float64, x []float32, u []float64) {
	for i, v := range u {
		dst[i] = Saturate(float64(mu*float64(x[i])) + v)
	}
}

func narrowGo(dst []float32, x []float64) {
	for i, v := range x {
		dst[i] = Saturate(v)
	}
}

// Saturate returns x rounded to float32; what does not fit is the largest finite value
// of its sign. An infinity would make a NaN sooner or later, whose bits differ
// between architectures.
func Saturate(x float64) float32 {
	return float32(max(-math.MaxFloat32, min(x, math.MaxFloat32)))
}
