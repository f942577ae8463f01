package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The order of the coefficients, as in the plain adamwGo.
const (
	coefBeta1 = iota
	coefBeta2
	coefGrad
	coefStep
	coefRoot
	coefEps
	coefKeep
	coefs
)

// emitAdamW keeps all coefficients in registers: with them the AVX2 version uses nearly
// all that there are.
func (s isa) emitAdamW() {
	s.vectorFunction("adamw", "func(p, g, m, v []float32, coef *[7]float32)")
	n, at := s.slices("p", "g", "m", "v")
	from := s.arg("coef")
	coef := make([]reg.VecVirtual, coefs)
	for i := range coef {
		coef[i] = s.vec()
		s.VBROADCASTSS(operand.Mem{Base: from, Disp: 4 * i}, coef[i])
	}
	rest1, rest2 := s.rest(coef[coefBeta1]), s.rest(coef[coefBeta2])
	s.each("", n, at, func(part int, mask reg.Register) {
		g := s.load(at[1], part, mask)
		s.VMULPS(coef[coefGrad], g, g)
		m := s.moment(at[2], part, mask, coef[coefBeta1], rest1, g)
		s.VMULPS(g, g, g)
		v := s.moment(at[3], part, mask, coef[coefBeta2], rest2, g)
		s.VSQRTPS(v, v)
		s.VMULPS(coef[coefRoot], v, v)
		s.VADDPS(coef[coefEps], v, v)
		s.VDIVPS(v, m, m)
		s.VMULPS(coef[coefStep], m, m)
		p := s.load(at[0], part, mask)
		s.VMULPS(coef[coefKeep], p, p)
		s.VSUBPS(m, p, p)
		s.save(p, at[0], part, mask)
	})
	s.finish()
}

// rest emits 1 - beta.
func (s isa) rest(beta reg.VecVirtual) reg.VecVirtual {
	v := s.vec()
	s.VMOVUPS(s.constant(1), v)
	s.VSUBPS(beta, v, v)
	return v
}

// moment updates a moment in memory and returns it: beta m + rest x, or 0 where
// that is tiny.
func (s isa) moment(base reg.GPVirtual, part int, mask reg.Register, beta, rest, x reg.VecVirtual) reg.VecVirtual {
	m, change := s.load(base, part, mask), s.vec()
	s.VMULPS(beta, m, m)
	s.VMULPS(rest, x, change)
	s.VADDPS(change, m, m)
	size := s.vec()
	s.VANDPS(s.words(1<<31-1), m, size)
	s.replace(m, s.constant(0), size, lessThan, s.constant(0x1p-100))
	s.save(m, base, part, mask)
	return m
}
