package main

import "math"

const expTable = "expTable"

// expConstants are what exp computes with, in the order in which neonExp names them.
var expConstants = append([]float64{1.44269504088896341, 12582912, 0.693359375, -2.12194440e-4, 1, -64, 88, math.Inf(1)}, expTerms...)

// neonExp holds expConstants, each in all lanes of a register.
type neonExp struct {
	*neon
	log2E, magic, high, low, one, lowest, highest, infinite vector
	terms                                                   []vector
}

func newNEONExp(s *neon) neonExp {
	c := s.constants(expTable, expConstants...)
	return neonExp{s, c[0], c[1], c[2], c[3], c[4], c[5], c[6], c[7], c[8:]}
}

// exp emits e^x for a register, keeping x, as the plain exp does.
func (s neonExp) exp(x vector) vector {
	p := s.vec()
	s.scope(func() {
		t, r, product := s.vec(), s.vec(), s.vec()
		s.do("fmul", t, x, s.log2E)
		s.do("fadd", t, t, s.magic)
		n := p // until p begins
		s.do("fsub", n, t, s.magic)
		s.do("fmul", product, n, s.high)
		s.do("fsub", r, x, product)
		s.do("fmul", product, n, s.low)
		s.do("fsub", r, r, product)
		s.do("fmul", p, s.terms[0], r)
		s.do("fadd", p, p, s.terms[1])
		for _, term := range s.terms[2:] {
			s.do("fmul", p, p, r)
			s.do("fadd", p, p, term)
		}
		s.do("fmul", product, r, r)
		s.do("fmul", p, p, product)
		s.do("fadd", p, p, r)
		s.do("fadd", p, p, s.one)
		s.op("VSHL", "$23, %s, %s", t.quad(), t.quad())
		s.op("VADD", "%s, %s, %s", t.quad(), p.quad(), p.quad())
		where := t
		s.do("fcmgt", where, s.lowest, x)
		s.do("bic", p, p, where)
		s.do("fcmgt", where, x, s.highest)
		s.replace(p, s.infinite, where)
	})
	return p
}

// sigmoid emits 1 / (1 + e^-x).
func (s neonExp) sigmoid(x vector) vector {
	negative := s.vec()
	s.do("fneg", negative, x)
	e := s.exp(negative)
	s.do("fadd", e, e, s.one)
	s.do("fdiv", e, s.one, e)
	return e
}

func (s *neon) emitExp() {
	s.quadFunction("exp", "func(dst, x []float32)")
	n, at := s.slices("dst", "x")
	e := newNEONExp(s)
	s.quads(n, at, func(offset int) {
		s.save(e.exp(s.load(at[1], offset)), at[0], offset)
	})
	s.finish()
}

func (s *neon) emitExpSum() {
	s.blockFunction("expSum", "func(sum *[16]float32, dst, x []float32, shift float32)")
	n, at := s.slices("dst", "x")
	e, shift := newNEONExp(s), s.scalar("shift")
	sum, sums := s.arg("sum"), s.vecs(4)
	for _, v := range sums {
		s.zero(v)
	}
	s.blocks(n, at, func(part, offset int) {
		x := s.load(at[1], offset)
		s.do("fsub", x, x, shift)
		y := e.exp(x)
		s.save(y, at[0], offset)
		s.do("fadd", sums[part], sums[part], y)
	})
	s.saveLanes(sums, sum)
	s.finish()
}

func (s *neon) emitSwiGLU() {
	s.quadFunction("swiglu", "func(dst, gate, up []float32)")
	n, at := s.slices("dst", "gate", "up")
	e := newNEONExp(s)
	s.quads(n, at, func(offset int) {
		g, u := s.load(at[1], offset), s.load(at[2], offset)
		y := e.sigmoid(g)
		s.do("fmul", y, g, y)
		s.do("fmul", y, y, u)
		s.save(y, at[0], offset)
	})
	s.finish()
}

func (s *neon) emitSwiGLUGrad() {
	s.quadFunction("swigluGrad", "func(dGate, dUp, act, dOut, gate, up []float32)")
	n, at := s.slices("dGate", "dUp", "act", "dOut", "gate", "up")
	e := newNEONExp(s)
	s.quads(n, at, func(offset int) {
		g := s.load(at[4], offset)
		sigmoid := e.sigmoid(g)
		silu, slope := s.vec(), s.vec()
		s.do("fmul", silu, g, sigmoid)
		s.do("fsub", slope, e.one, sigmoid)
		s.do("fmul", slope, silu, slope)
		s.do("fadd", slope, sigmoid, slope)
		d, u, act := s.load(at[3], offset), s.load(at[5], offset), s.vec()
		s.do("fmul", act, silu, u)
		s.save(act, at[2], offset)
		s.do("fmul", u, d, u)
		s.do("fmul", u, u, slope)
		s.do("fmul", d, d, silu)
		s.save(u, at[0], offset)
		s.save(d, at[1], offset)
	})
	s.finish()
}
