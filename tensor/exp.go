package tensor

import "math"

// The range of [Exp]. Below ExpMin the result is 0: e^-64 is 1.6e-28, nothing
// beside the 1 that a softmax or a logistic function adds it to, and it still
// leaves ten decimal orders above the smallest normal number, so that products
// with it do not become denormal (arithmetic on denormals made a training step 1.7
// times slower). Above ExpMax the result is +Inf.
const (
	ExpMin = -64
	ExpMax = 88
)

// Constants of the exponential: x = n ln 2 + r with |r| <= ln 2 / 2, and e^r = 1 + r
// + r^2 P(r), where P is the minimax polynomial of the Cephes library (S. L.
// Moshier, expf). ln 2 is split so that n*ln2High is exact. Adding roundMagic, 1.5 *
// 2^23, rounds to an integer and leaves it in the low bits.
const (
	log2E      = 1.44269504088896341
	ln2High    = 0.693359375
	ln2Low     = -2.12194440e-4
	roundMagic = 12582912
	expP0      = 1.9875691500e-4
	expP1      = 1.3981999507e-3
	expP2      = 8.3334519073e-3
	expP3      = 4.1665795894e-2
	expP4      = 1.6666665459e-1
	expP5      = 5.0000001201e-1
)

// Exp sets dst[i] to e^x[i], within 2e-7 of the true value in relative terms
// between ExpMin and ExpMax. dst may be x.
func Exp(dst, x []float32) {
	checkLength("Exp", len(dst), len(x))
	use.exp(dst, x)
}

// ExpSum sets dst[i] to e^(x[i]-shift) and returns their sum. If shift is the
// largest x, this is a softmax without the division. dst may be x.
func ExpSum(dst, x []float32, shift float32) float32 {
	checkLength("ExpSum", len(dst), len(x))
	return use.expSum(dst, x, shift)
}

// SwiGLU sets dst[i] to gate[i] * sigmoid(gate[i]) * up[i] (N. Shazeer, GLU variants
// improve transformer, 2020). dst may be gate or up.
func SwiGLU(dst, gate, up []float32) {
	checkLength("SwiGLU", len(dst), len(gate), len(up))
	use.swiglu(dst, gate, up)
}

// SwiGLUGrad overwrites dGate and dUp with the gradients of [SwiGLU] for the
// gradient dOut of its result, and act with the result, which takes the same exponentials. dGate may be gate, and dUp up or dOut.
func SwiGLUGrad(dGate, dUp, act, dOut, gate, up []float32) {
	checkLength("SwiGLUGrad", len(dGate), len(dUp), len(act), len(dOut), len(gate), len(up))
	use.swigluGrad(dGate, dUp, act, dOut, gate, up)
}

// exp is e^x for one value: the judge of the vector kernels, which follow it
// operation by operation.
func exp(x float32) float32 {
	switch {
	case x < ExpMin:
		return 0
	case x > ExpMax:
		return float32(math.Inf(1))
	}
	t := float32(x*log2E) + roundMagic
	n := t - roundMagic
	r := x - float32(n*ln2High)
	r -= float32(n * ln2Low)
	p := float32(expP0*r) + expP1
	p = float32(p*r) + expP2
	p = float32(p*r) + expP3
	p = float32(p*r) + expP4
	p = float32(p*r) + expP5
	p = float32(p*float32(r*r)) + r
	p++
	return math.Float32frombits(math.Float32bits(p) + math.Float32bits(t)<<23) // p * 2^n
}

func expGo(dst, x []float32) {
	for i, v := range x {
		dst[i] = exp(v)
	}
}

func expSumGo(dst, x []float32, shift float32) float32 {
	var sum [lanes]float32
	for i, v := range x {
		dst[i] = exp(v - shift)
		sum[i%lanes] += dst[i]
	}
	return sumLanes(&sum)
}

func swigluGo(dst, gate, up []float32) {
	for i, g := range gate {
		dst[i] = float32(g*sigmoid(g)) * up[i]
	}
}

func swigluGradGo(dGate, dUp, act, dOut, gate, up []float32) {
	for i, g := range gate {
		s, u, d := sigmoid(g), up[i], dOut[i]
		silu := float32(g * s)
		slope := s + float32(silu*(1-s)) // of g * sigmoid(g)
		act[i] = silu * u
		dGate[i] = float32(d*u) * slope
		dUp[i] = d * silu
	}
}

// sigmoid is 1 / (1 + e^-x).
func sigmoid(x float32) float32 { return 1 / (1 + exp(-x)) }
