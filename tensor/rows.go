package tensor

// Mul sets dst[i] = alpha*x[i]*y[i], multiplied in this order. dst may be x or y.
func Mul(dst []float32, alpha float32, x, y []float32) {
	checkLength("Mul", len(dst), len(x), len(y))
	use.mul(dst, alpha, x, y)
}

// AddMul adds products to dst: dst[i] += alpha*x[i]*y[i]. dst may be x or y.
func AddMul(dst []float32, alpha float32, x, y []float32) {
	checkLength("AddMul", len(dst), len(x), len(y))
	use.addMul(dst, alpha, x, y)
}

// SoftmaxGrad turns the gradient d of a softmax p into alpha times the gradient of
// its inputs, given delta, the sum of p[i]*d[i]: d[i] = p[i]*(d[i]-delta)*alpha.
func SoftmaxGrad(d, p []float32, delta, alpha float32) {
	checkLength("SoftmaxGrad", len(d), len(p))
	use.softmaxGrad(d, p, delta, alpha)
}

// Rotate turns pairs of values by angles given by their cosines and sines: in each
// consecutive 2*len(cos) values of x, element i of the first half is paired with
// element i of the second, (a, b) becoming (a cos - b sin, b cos + a sin). Negated
// sines turn back.
func Rotate(x, cos, sin []float32) {
	checkLength("Rotate", len(cos), len(sin))
	if len(cos) > 0 {
		checkLength("Rotate", 0, len(x)%(2*len(cos)))
		use.rotate(x, cos, sin)
	}
}

func mulGo(dst []float32, alpha float32, x, y []float32) {
	for i, v := range x {
		dst[i] = float32(alpha*v) * y[i]
	}
}

func addMulGo(dst []float32, alpha float32, x, y []float32) {
	for i, v := range x {
		dst[i] += float32(float32(alpha*v) * y[i])
	}
}

func softmaxGradGo(d, p []float32, delta, alpha float32) {
	for i, v := range p {
		d[i] = float32(v*(d[i]-delta)) * alpha
	}
}

func rotateGo(x, cos, sin []float32) {
	half := len(cos)
	for ; len(x) > 0; x = x[2*half:] {
		first, second := x[:half], x[half:2*half]
		for i, a := range first {
			b := second[i]
			first[i] = float32(a*cos[i]) - float32(b*sin[i])
			second[i] = float32(b*cos[i]) + float32(a*sin[i])
		}
	}
}
