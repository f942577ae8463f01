package tensor

import "math"

// adamTiny is where a decaying moment counts as 0. A moment without gradients
// shrinks by a constant factor each step and would otherwise end as a denormal
// number, on which arithmetic is many times slower.
const adamTiny = 0x1p-100

// AdamWCoef holds what one AdamW step shares between all parameters, bias
// corrections included (I. Loshchilov and F. Hutter, Decoupled weight decay
// regularization, 2019).
type AdamWCoef struct {
	Beta1, Beta2 float32 // decay rates of the two moments
	Grad         float32 // the gradient is multiplied by this first: clipping, averaging
	Step         float32 // lr / (1 - Beta1^t)
	Root         float32 // 1 / sqrt(1 - Beta2^t)
	Eps          float32 // added to the corrected root of the second moment
	Keep         float32 // 1 - lr * weight decay
}

// AdamWUpdate applies one step to parameters p with gradients g and moments m, v:
//
//	m = Beta1 m + (1-Beta1) Grad g
//	v = Beta2 v + (1-Beta2) (Grad g)^2
//	p = Keep p - Step m / (Root sqrt(v) + Eps)
//
// Moments below 2^-100 become 0. It is bound by the division and the square root.
func AdamWUpdate(p, g, m, v []float32, c AdamWCoef) {
	checkLength("AdamWUpdate", len(p), len(g), len(m), len(v))
	use.adamw(p, g, m, v, &[...]float32{c.Beta1, c.Beta2, c.Grad, c.Step, c.Root, c.Eps, c.Keep})
}

// AdamWUpdateBF16 is AdamWUpdate with moments that are kept in bfloat16, in half of the memory. They are rounded to the
// nearest, of two the even one, after the parameters have moved by them. All values must be numbers.
func AdamWUpdateBF16(p, g []float32, m, v []uint16, c AdamWCoef) {
	checkLength("AdamWUpdateBF16", len(p), len(g), len(m), len(v))
	use.adamwBF16(p, g, m, v, &[...]float32{c.Beta1, c.Beta2, c.Grad, c.Step, c.Root, c.Eps, c.Keep})
}

// adamwBF16Go widens moments piece by piece. Its pieces stay in the first cache.
func adamwBF16Go(p, g []float32, m, v []uint16, coef *[7]float32) {
	var wideM, wideV [256]float32
	for len(p) > 0 {
		n := min(len(p), len(wideM))
		WidenBF16(wideM[:n], m[:n])
		WidenBF16(wideV[:n], v[:n])
		adamwGo(p[:n], g[:n], wideM[:n], wideV[:n], coef)
		NarrowBF16(m[:n], wideM[:n])
		NarrowBF16(v[:n], wideV[:n])
		p, g, m, v = p[n:], g[n:], m[n:], v[n:]
	}
}

// adamwGo takes the coefficients in the order of AdamWCoef.
func adamwGo(p, g, m, v []float32, coef *[7]float32) {
	beta1, beta2, scale, step, root, eps, keep := coef[0], coef[1], coef[2], coef[3], coef[4], coef[5], coef[6]
	rest1, rest2 := 1-beta1, 1-beta2
	for i := range p {
		grad := float32(scale * g[i])
		m[i] = flush(float32(beta1*m[i]) + float32(rest1*grad))
		v[i] = flush(float32(beta2*v[i]) + float32(rest2*float32(grad*grad)))
		size := float32(math.Sqrt(float64(v[i])))
		change := m[i] / (float32(root*size) + eps)
		p[i] = float32(keep*p[i]) - float32(step*change)
	}
}

// flush returns 0 for a value below adamTiny in size.
func flush(x float32) float32 {
	if x > -adamTiny && x < adamTiny {
		return 0
	}
	return x
}
