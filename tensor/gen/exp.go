package main

import (
	"math"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// expTerms are the coefficients of P in exp, highest power first; the constants are
// explained beside the plain version.
var expTerms = []float64{1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1}

// exp emits e^x for a register, changing x, as the plain exp does.
func (s isa) exp(x reg.VecVirtual) reg.VecVirtual {
	t, n, r, p, product := s.vec(), s.vec(), s.vec(), s.vec(), s.vec()
	magic := s.constant(12582912)
	s.VMULPS(s.constant(1.44269504088896341), x, t)
	s.VADDPS(magic, t, t)
	s.VSUBPS(magic, t, n)
	s.VMULPS(s.constant(0.693359375), n, product)
	s.VSUBPS(product, x, r)
	s.VMULPS(s.constant(-2.12194440e-4), n, product)
	s.VSUBPS(product, r, r)
	s.VMOVUPS(s.constant(expTerms[0]), p)
	for _, term := range expTerms[1:] {
		s.VMULPS(r, p, p)
		s.VADDPS(s.constant(term), p, p)
	}
	s.VMULPS(r, r, product)
	s.VMULPS(product, p, p)
	s.VADDPS(r, p, p)
	s.VADDPS(s.constant(1), p, p)
	s.VPSLLD(operand.U8(23), t, t)
	s.VPADDD(t, p, p)
	s.replace(p, s.constant(0), x, lessThan, s.constant(-64))
	s.replace(p, s.constant(math.Inf(1)), x, greaterThan, s.constant(88))
	return p
}

// sigmoid emits 1 / (1 + e^-x).
func (s isa) sigmoid(x reg.VecVirtual) reg.VecVirtual {
	negative, result := s.vec(), s.vec()
	s.VXORPS(s.words(1<<31), x, negative)
	e := s.exp(negative)
	s.VADDPS(s.constant(1), e, e)
	s.VMOVUPS(s.constant(1), result)
	s.VDIVPS(e, result, result)
	return result
}

func (s isa) emitExp() {
	s.vectorFunction("exp", "func(dst, x []float32)")
	n, at := s.slices("dst", "x")
	s.each("", n, at, func(part int, mask reg.Register) {
		s.save(s.exp(s.load(at[1], part, mask)), at[0], part, mask)
	})
	s.finish()
}

func (s isa) emitExpSum() {
	s.vectorFunction("expSum", "func(dst, x []float32, shift float32) float32")
	n, at := s.slices("dst", "x")
	shift := s.scalar("shift")
	sums := s.vecs()
	for _, v := range sums {
		s.zero(v)
	}
	s.each("", n, at, func(part int, mask reg.Register) {
		x := s.load(at[1], part, mask)
		s.VSUBPS(shift, x, x)
		e := s.exp(x)
		s.save(e, at[0], part, mask)
		s.keep(e, mask)
		s.VADDPS(e, sums[part], sums[part])
	})
	result := s.fold(sums, 4, func(x, y, sum reg.Register) { s.VADDPS(x, y, sum) })
	s.Store(result, s.ReturnIndex(0))
	s.finish()
}

func (s isa) emitSwiGLU() {
	s.vectorFunction("swiglu", "func(dst, gate, up []float32)")
	n, at := s.slices("dst", "gate", "up")
	s.each("", n, at, func(part int, mask reg.Register) {
		s.ask(at, part, mask)
		g, u := s.load(at[1], part, mask), s.load(at[2], part, mask)
		y := s.sigmoid(g)
		s.VMULPS(y, g, y)
		s.VMULPS(u, y, y)
		s.save(y, at[0], part, mask)
	})
	s.finish()
}

func (s isa) emitSwiGLUGrad() {
	s.vectorFunction("swigluGrad", "func(dGate, dUp, act, dOut, gate, up []float32)")
	n, at := s.slices("dGate", "dUp", "act", "dOut", "gate", "up")
	s.each("", n, at, func(part int, mask reg.Register) {
		s.ask(at, part, mask)
		g := s.load(at[4], part, mask)
		sigmoid := s.sigmoid(g)
		silu, slope := s.vec(), s.vec()
		s.VMULPS(sigmoid, g, silu)
		s.VMOVUPS(s.constant(1), slope)
		s.VSUBPS(sigmoid, slope, slope)
		s.VMULPS(slope, silu, slope)
		s.VADDPS(slope, sigmoid, slope)
		d, u, act := s.load(at[3], part, mask), s.load(at[5], part, mask), s.vec()
		s.VMULPS(u, silu, act)
		s.save(act, at[2], part, mask)
		s.VMULPS(d, u, u)
		s.VMULPS(slope, u, u)
		s.VMULPS(silu, d, d)
		s.save(u, at[0], part, mask)
		s.save(d, at[1], part, mask)
	})
	s.finish()
}

// unitAhead is how many bytes before its use memory is asked for: rows of a gated unit are so short that the processor has hardly
// begun to follow them when they end.
const unitAhead = 2048

// ask asks for what full blocks need soon, or what lies there if that is beyond their end.
func (s isa) ask(bases []reg.GPVirtual, part int, mask reg.Register) {
	if mask != nil || 4*s.width*part%64 != 0 {
		return
	}
	for _, base := range bases {
		m := s.at(base, part)
		m.Disp += unitAhead
		s.PREFETCHT0(m)
	}
}
