//go:build !purego

package tensor

// The assembly handles full vector registers, or full blocks of lanes values where a
// reduction has to tell its lanes apart. What is left at the end is done here, by the
// plain version or with its lanes.

// quads is the part of n values that full vector registers hold.
func quads(n int) int { return n &^ 3 }

// blocks is the part of n values that fills all lanes.
func blocks(n int) int { return n &^ (lanes - 1) }

func dotNEON(x, y []float32) float64 {
	var sum [lanes]float64
	dotBlocks(&sum, x, y)
	n := blocks(len(x))
	y = y[n:]
	for i, v := range x[n:] {
		sum[i] += float64(v) * float64(y[i])
	}
	return sumLanes(&sum)
}

func maxNEON(x []float32) float32 {
	var largest [lanes]float32
	maxBlocks(&largest, x)
	return max(maxGo(largest[:]), maxGo(x[blocks(len(x)):]))
}

// expSumNEON computes the exponentials of the rest in a full block and leaves those of no
// value out of the sum.
func expSumNEON(dst, x []float32, shift float32) float32 {
	var sum, rest [lanes]float32
	expSumBlocks(&sum, dst, x, shift)
	n := blocks(len(x))
	for i, v := range x[n:] {
		rest[i] = v - shift
	}
	expQuads(rest[:], rest[:])
	for i, v := range rest[:len(x)-n] {
		dst[n+i] = v
		sum[i] += v
	}
	return sumLanes(&sum)
}

func axpyNEON(alpha float32, x, y []float32) {
	axpyQuads(alpha, x, y)
	n := quads(len(x))
	axpyGo(alpha, x[n:], y[n:])
}

func scaleNEON(alpha float32, x []float32) {
	scaleQuads(alpha, x)
	scaleGo(alpha, x[quads(len(x)):])
}

func mulNEON(dst []float32, alpha float32, x, y []float32) {
	mulQuads(dst, alpha, x, y)
	n := quads(len(x))
	mulGo(dst[n:], alpha, x[n:], y[n:])
}

func addMulNEON(dst []float32, alpha float32, x, y []float32) {
	addMulQuads(dst, alpha, x, y)
	n := quads(len(x))
	addMulGo(dst[n:], alpha, x[n:], y[n:])
}

func softmaxGradNEON(d, p []float32, delta, alpha float32) {
	softmaxGradQuads(d, p, delta, alpha)
	n := quads(len(p))
	softmaxGradGo(d[n:], p[n:], delta, alpha)
}

// rotateNEON leaves halves that end within a register to the plain version: the size of
// a head is a multiple of 8 in all usual models.
func rotateNEON(x, cos, sin []float32) {
	if quads(len(cos)) == len(cos) {
		rotateQuads(x, cos, sin)
	} else {
		rotateGo(x, cos, sin)
	}
}

func expNEON(dst, x []float32) {
	expQuads(dst, x)
	n := quads(len(x))
	expGo(dst[n:], x[n:])
}

func swigluNEON(dst, gate, up []float32) {
	swigluQuads(dst, gate, up)
	n := quads(len(gate))
	swigluGo(dst[n:], gate[n:], up[n:])
}

func swigluGradNEON(dGate, dUp, act, dOut, gate, up []float32) {
	swigluGradQuads(dGate, dUp, act, dOut, gate, up)
	n := quads(len(gate))
	swigluGradGo(dGate[n:], dUp[n:], act[n:], dOut[n:], gate[n:], up[n:])
}

func adamwNEON(p, g, m, v []float32, coef *[7]float32) {
	adamwQuads(p, g, m, v, coef)
	n := quads(len(p))
	adamwGo(p[n:], g[n:], m[n:], v[n:], coef)
}
