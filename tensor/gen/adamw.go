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

// places is where values lie that a kernel changes.
type places struct {
	load func(base reg.GPVirtual, part int, mask reg.Register) reg.VecVirtual
	save func(v reg.VecVirtual, base reg.GPVirtual, part int, mask reg.Register)
}

func (s isa) emitAdamW() {
	s.vectorFunction("adamw", "func(p, g, m, v []float32, coef *[7]float32)")
	n, at := s.slices("p", "g", "m", "v")
	s.adamW(places{s.load, s.save}, n, at, at, nil)
}

// emitAdamWBF16 has moments in bfloat16, for AVX-512 alone.
func (s isa) emitAdamWBF16() {
	s.vectorFunction("adamwBF16", "func(p, g []float32, m, v []uint16, coef *[7]float32)")
	n, at := s.slices("p", "g", "m", "v")
	s.adamW(places{s.loadBF16, s.saveBF16}, n, at, at[:2], at[2:])
}

// loadBF16 reads 16 values of bfloat16; masked-out ones are 0.
func (s isa) loadBF16(base reg.GPVirtual, _ int, mask reg.Register) reg.VecVirtual {
	v := s.vec()
	if mask == nil {
		s.VPMOVZXWD(operand.Mem{Base: base}, v)
	} else {
		s.VPMOVZXWD_Z(operand.Mem{Base: base}, mask, v)
	}
	s.VPSLLD(operand.U8(16), v, v)
	return v
}

// saveBF16 rounds 16 values to the nearest of bfloat16, of two to the even one: it adds half of the last place, less one bit unless
// that place is odd, and drops what is behind it.
func (s isa) saveBF16(v reg.VecVirtual, base reg.GPVirtual, _ int, mask reg.Register) {
	odd := s.vec()
	s.VPSRLD(operand.U8(16), v, odd)
	s.VPANDD(s.words(1), odd, odd)
	s.VPADDD(s.words(0x7fff), odd, odd)
	s.VPADDD(v, odd, odd)
	s.VPSRLD(operand.U8(16), odd, odd)
	if mask == nil {
		s.VPMOVDW(odd, operand.Mem{Base: base})
		return
	}
	s.VPMOVDW(odd, mask, operand.Mem{Base: base})
}

// adamW keeps all coefficients in registers: with them the AVX2 version uses nearly
// all that there are. Pointers in bases move along as those to float32, those in halves as to 16 bits.
func (s isa) adamW(moments places, n reg.GPVirtual, at, bases, halves []reg.GPVirtual) {
	from := s.arg("coef")
	coef := make([]reg.VecVirtual, coefs)
	for i := range coef {
		coef[i] = s.vec()
		s.VBROADCASTSS(operand.Mem{Base: from, Disp: 4 * i}, coef[i])
	}
	rest1, rest2 := s.rest(coef[coefBeta1]), s.rest(coef[coefBeta2])
	s.eachWith("", n, bases, halves, func(part int, mask reg.Register) {
		g := s.load(at[1], part, mask)
		s.VMULPS(coef[coefGrad], g, g)
		m := s.moment(moments, at[2], part, mask, coef[coefBeta1], rest1, g)
		s.VMULPS(g, g, g)
		v := s.moment(moments, at[3], part, mask, coef[coefBeta2], rest2, g)
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

// moment updates a moment in memory and returns it, not rounded: beta m + rest x, or 0 where
// that is tiny.
func (s isa) moment(at places, base reg.GPVirtual, part int, mask reg.Register, beta, rest, x reg.VecVirtual) reg.VecVirtual {
	m, change := at.load(base, part, mask), s.vec()
	s.VMULPS(beta, m, m)
	s.VMULPS(rest, x, change)
	s.VADDPS(change, m, m)
	size := s.vec()
	s.VANDPS(s.words(1<<31-1), m, size)
	s.replace(m, s.constant(0), size, lessThan, s.constant(0x1p-100))
	at.save(m, base, part, mask)
	return m
}
