package sweep

import "math"

// Stat is what can be said of equal measurements.
type Stat struct {
	N    int
	Mean float64
	SD   float64 // of the sample, with n-1; 0 of fewer than two
}

// Describe returns the mean and the standard deviation of a sample.
func Describe(x []float64) Stat {
	s := Stat{N: len(x)}
	if s.N == 0 {
		return s
	}
	for _, v := range x {
		s.Mean += v / float64(s.N)
	}
	if s.N < 2 {
		return s
	}
	for _, v := range x {
		s.SD += (v - s.Mean) * (v - s.Mean) / float64(s.N-1)
	}
	s.SD = math.Sqrt(s.SD)
	return s
}

// HalfWidth is half of the 95 % interval of the mean by Student's t; not a number
// of fewer than two measurements.
func (s Stat) HalfWidth() float64 {
	if s.N < 2 {
		return math.NaN()
	}
	return quantile(s.N-1) * s.SD / math.Sqrt(float64(s.N))
}

// students are the 0.975 quantiles of Student's t with 1, 2, ... degrees of
// freedom.
var students = []float64{
	12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281,
	2.2010, 2.1788, 2.1604, 2.1448, 2.1314, 2.1199, 2.1098, 2.1009, 2.0930, 2.0860,
}

// quantile is the 0.975 quantile with df degrees of freedom: beyond the table the
// expansion about the normal distribution (M. Abramowitz and I. Stegun, Handbook
// of Mathematical Functions, 26.7.5), which is right to three decimals there.
func quantile(df int) float64 {
	if df <= len(students) {
		return students[df-1]
	}
	const z = 1.959964
	n, z3, z5 := float64(df), z*z*z, z*z*z*z*z
	return z + (z3+z)/(4*n) + (5*z5+16*z3+3*z)/(96*n*n)
}

// Paired is the difference of x to ref, in per cent of ref, over the seeds that
// both have.
func Paired(x, ref map[uint64]float64) Stat {
	var d []float64
	for _, seed := range seedsOf(x) {
		if r, ok := ref[seed]; ok {
			d = append(d, 100*(x[seed]/r-1))
		}
	}
	return Describe(d)
}
