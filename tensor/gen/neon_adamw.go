package main

const adamTable = "adamTable"

// adamConstants are 1, and where a moment counts as 0.
var adamConstants = []float64{1, 0x1p-100}

// emitAdamW keeps all coefficients in registers.
func (s *neon) emitAdamW() {
	s.quadFunction("adamw", "func(p, g, m, v []float32, coef *[7]float32)")
	n, at := s.slices("p", "g", "m", "v")
	constants := s.constants(adamTable, adamConstants...)
	one, tiny := constants[0], constants[1]
	coef := s.spread(s.arg("coef"), coefs)
	rest1, rest2 := s.vec(), s.vec()
	s.do("fsub", rest1, one, coef[coefBeta1])
	s.do("fsub", rest2, one, coef[coefBeta2])
	s.quads(n, at, func(offset int) {
		g := s.load(at[1], offset)
		s.do("fmul", g, coef[coefGrad], g)
		m := s.moment(at[2], offset, coef[coefBeta1], rest1, g, tiny)
		s.do("fmul", g, g, g)
		v := s.moment(at[3], offset, coef[coefBeta2], rest2, g, tiny)
		s.do("fsqrt", v, v)
		s.do("fmul", v, coef[coefRoot], v)
		s.do("fadd", v, v, coef[coefEps])
		s.do("fdiv", m, m, v)
		s.do("fmul", m, coef[coefStep], m)
		p := s.load(at[0], offset)
		s.do("fmul", p, coef[coefKeep], p)
		s.do("fsub", p, p, m)
		s.save(p, at[0], offset)
	})
	s.finish()
}

// moment updates a moment in memory and returns it: beta m + rest x, or 0 where that
// is tiny.
func (s *neon) moment(base general, offset int, beta, rest, x, tiny vector) vector {
	m, change := s.load(base, offset), s.vec()
	s.do("fmul", m, beta, m)
	s.do("fmul", change, rest, x)
	s.do("fadd", m, m, change)
	s.do("facgt", change, tiny, m)
	s.do("bic", m, m, change)
	s.save(m, base, offset)
	return m
}
