package outer

import "math"

// lanes is the number of partial sums of a reduction: value j goes to lane j mod lanes. It is
// part of the specification: another number gives other bits. 16 is one AVX-512 register pair.
const lanes = 16

// sumTree adds the lanes pairwise: lane i and i+8, then i+4, i+2, i+1.
func sumTree(s *[lanes]float64) float64 {
	for width := lanes / 2; width > 0; width /= 2 {
		for i := range width {
			s[i] += s[i+width]
		}
	}
	return s[0]
}

// norm32 is the Euclidean norm of v. A square of a float32 is exact in float64.
func norm32(v []float32) float64 {
	var s [lanes]float64
	for len(v) >= lanes {
		for i, x := range v[:lanes] {
			s[i] += float64(float64(x) * float64(x))
		}
		v = v[lanes:]
	}
	for i, x := range v {
		s[i] += float64(float64(x) * float64(x))
	}
	return math.Sqrt(sumTree(&s))
}

// norm64 is the Euclidean norm of v.
func norm64(v []float64) float64 {
	var s [lanes]float64
	for len(v) >= lanes {
		for i, x := range v[:lanes] {
			s[i] += float64(x * x)
		}
		v = v[lanes:]
	}
	for i, x := range v {
		s[i] += float64(x * x)
	}
	return math.Sqrt(sumTree(&s))
}

// distance is the Euclidean norm of a x - v.
func distance(v []float64, a float64, x []float32) float64 {
	var s [lanes]float64
	v = v[:len(x)]
	for j := 0; j < len(x); j++ {
		d := float64(a*float64(x[j])) - v[j]
		s[j%lanes] += float64(d * d)
	}
	return math.Sqrt(sumTree(&s))
}

// addScaled adds a x to sum, element by element.
func addScaled(sum []float64, a float64, x []float32) {
	sum = sum[:len(x)]
	for i, v := range x {
		sum[i] += float64(a * float64(v))
	}
}

// narrow rounds to float32. What does not fit saturates: an infinity would make a NaN
// sooner or later, whose bits differ between architectures.
func narrow(x float64) float32 {
	return float32(max(-math.MaxFloat32, min(x, math.MaxFloat32)))
}
