package main

import (
	"fmt"
	"math"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// emitWide emits the kernels of the fold, which compute in float64. They take full blocks only:
// Go code does the rest. No product is fused with a sum, except squares of float32, which are
// exact.
func emitWide(c *build.Context) {
	largest := wideConstant(c, "wideLargest", math.MaxFloat32)
	lowest := wideConstant(c, "wideLowest", -math.MaxFloat32)
	for _, s := range []isa{avx512(c), avx2(c)} {
		w := wide{s, largest, lowest}
		w.emitSquares()
		w.emitDistances()
		w.emitAxpyWide()
		w.emitScaleWide()
		w.emitDifference()
		w.emitMoveNarrow()
		w.emitDecayNarrow()
		w.emitNarrow()
	}
}

// wide is an instruction set with registers of half as many float64 values.
type wide struct {
	isa
	largest, lowest operand.Mem // bounds of float32
}

// wideConstant emits a block of copies of x, as much as one register takes.
func wideConstant(c *build.Context, name string, x float64) operand.Mem {
	m := c.StaticGlobal(name)
	c.DataAttributes(attr.RODATA | attr.NOPTR)
	for i := range block / 2 {
		c.AddDatum(8*i, operand.U64(math.Float64bits(x)))
	}
	return m
}

// count is how many registers of float64 a block takes.
func (s wide) count() int { return 2 * block / s.width }

// base loads the base pointer of a slice parameter, size the number of values in one.
func (s wide) base(name string) reg.GPVirtual {
	r := s.GP64()
	s.Load(s.Param(name).Base(), r)
	return r
}

func (s wide) size(name string) reg.GPVirtual {
	r := s.GP64()
	s.Load(s.Param(name).Len(), r)
	return r
}

// scalar64 returns a float64 parameter in each lane of a register.
func (s wide) scalar64(name string) reg.VecVirtual {
	v := s.vec()
	s.VBROADCASTSD(s.param(name), v)
	return v
}

// blocks emits body for each register of float64 in each block of n values, which is a positive
// multiple of block. The pointers move along: narrows point to float32, wides to float64.
func (s wide) blocks(n reg.GPVirtual, narrows, wides []reg.GPVirtual, body func(i int)) {
	s.Label("loop")
	for i := range s.count() {
		body(i)
	}
	for _, p := range narrows {
		s.ADDQ(operand.U32(4*block), p)
	}
	for _, p := range wides {
		s.ADDQ(operand.U32(8*block), p)
	}
	s.SUBQ(operand.U8(block), n)
	s.JNE(operand.LabelRef("loop"))
}

// narrowAt is where the float32 values of register i of a block lie, wideAt where the float64 do.
func (s wide) narrowAt(base reg.GPVirtual, i int) operand.Mem {
	return operand.Mem{Base: base, Disp: 2 * s.width * i}
}

func (s wide) wideAt(base reg.GPVirtual, i int) operand.Mem {
	return operand.Mem{Base: base, Disp: 4 * s.width * i}
}

// widened reads float32 values as float64.
func (s wide) widened(base reg.GPVirtual, i int) reg.VecVirtual {
	v := s.vec()
	s.VCVTPS2PD(s.narrowAt(base, i), v)
	return v
}

func (s wide) loadWide(base reg.GPVirtual, i int) reg.VecVirtual {
	v := s.vec()
	s.VMOVUPD(s.wideAt(base, i), v)
	return v
}

// saveNarrow writes the values of v as float32, those that do not fit as the nearest that does.
// VMINPD and VMAXPD return the first operand written here if the two do not compare: a NaN
// stays one.
func (s wide) saveNarrow(v reg.VecVirtual, base reg.GPVirtual, i int) {
	bound := s.vec()
	s.VMOVUPD(s.largest, bound)
	s.VMINPD(v, bound, v)
	s.VMOVUPD(s.lowest, bound)
	s.VMAXPD(v, bound, v)
	if s.width == 16 {
		s.VCVTPD2PS(v, v.AsY())
		s.VMOVUPS(v.AsY(), s.narrowAt(base, i))
		return
	}
	s.VCVTPD2PSY(v, v.AsX())
	s.VMOVUPS(v.AsX(), s.narrowAt(base, i))
}

// wideFunction starts the fast version of the plain Go function name+"Go".
func (s wide) wideFunction(name, signature string) {
	s.function(name, signature, fmt.Sprintf("is %sGo for a positive number of full blocks of %d values.", name, block))
}

// lanes loads the lanes that parameter sum points to, and returns what writes them back.
func (s wide) lanes() (sums []reg.VecVirtual, save func()) {
	at := s.arg("sum")
	for i := range s.count() {
		sums = append(sums, s.loadWide(at, i))
	}
	return sums, func() {
		for i, v := range sums {
			s.VMOVUPD(v, s.wideAt(at, i))
		}
	}
}

func (s wide) emitSquares() {
	s.wideFunction("squares", "func(sum *[16]float64, x []float32)")
	sums, save := s.lanes()
	x := s.base("x")
	s.blocks(s.size("x"), []reg.GPVirtual{x}, nil, func(i int) {
		v := s.widened(x, i)
		s.VFMADD231PD(v, v, sums[i])
	})
	save()
	s.finish()
}

func (s wide) emitDistances() {
	s.wideFunction("distances", "func(sum *[16]float64, alpha float64, x []float32, y []float64)")
	sums, save := s.lanes()
	alpha, x, y := s.scalar64("alpha"), s.base("x"), s.base("y")
	s.blocks(s.size("x"), []reg.GPVirtual{x}, []reg.GPVirtual{y}, func(i int) {
		v := s.widened(x, i)
		s.VMULPD(alpha, v, v)
		s.VSUBPD(s.wideAt(y, i), v, v)
		s.VMULPD(v, v, v)
		s.VADDPD(v, sums[i], sums[i])
	})
	save()
	s.finish()
}

func (s wide) emitAxpyWide() {
	s.wideFunction("axpyWide", "func(alpha float64, x []float32, sum []float64)")
	alpha, x, sum := s.scalar64("alpha"), s.base("x"), s.base("sum")
	s.blocks(s.size("x"), []reg.GPVirtual{x}, []reg.GPVirtual{sum}, func(i int) {
		v := s.widened(x, i)
		s.VMULPD(alpha, v, v)
		s.VADDPD(s.wideAt(sum, i), v, v)
		s.VMOVUPD(v, s.wideAt(sum, i))
	})
	s.finish()
}

func (s wide) emitScaleWide() {
	s.wideFunction("scaleWide", "func(alpha float64, x []float64)")
	alpha, x := s.scalar64("alpha"), s.base("x")
	s.blocks(s.size("x"), nil, []reg.GPVirtual{x}, func(i int) {
		v := s.vec()
		s.VMULPD(s.wideAt(x, i), alpha, v)
		s.VMOVUPD(v, s.wideAt(x, i))
	})
	s.finish()
}

func (s wide) emitDifference() {
	s.wideFunction("difference", "func(dst []float64, x, y []float32)")
	dst, x, y := s.base("dst"), s.base("x"), s.base("y")
	s.blocks(s.size("dst"), []reg.GPVirtual{x, y}, []reg.GPVirtual{dst}, func(i int) {
		v, u := s.widened(x, i), s.widened(y, i)
		s.VSUBPD(u, v, v)
		s.VMOVUPD(v, s.wideAt(dst, i))
	})
	s.finish()
}

func (s wide) emitMoveNarrow() {
	s.wideFunction("moveNarrow", "func(dst, x []float32, eta float64, u []float64)")
	eta, dst, x, u := s.scalar64("eta"), s.base("dst"), s.base("x"), s.base("u")
	s.blocks(s.size("dst"), []reg.GPVirtual{dst, x}, []reg.GPVirtual{u}, func(i int) {
		v, from := s.vec(), s.widened(x, i)
		s.VMULPD(s.wideAt(u, i), eta, v)
		s.VADDPD(v, from, v)
		s.saveNarrow(v, dst, i)
	})
	s.finish()
}

func (s wide) emitDecayNarrow() {
	s.wideFunction("decayNarrow", "func(dst []float32, mu float64, x []float32, u []float64)")
	mu, dst, x, u := s.scalar64("mu"), s.base("dst"), s.base("x"), s.base("u")
	s.blocks(s.size("dst"), []reg.GPVirtual{dst, x}, []reg.GPVirtual{u}, func(i int) {
		v := s.widened(x, i)
		s.VMULPD(mu, v, v)
		s.VADDPD(s.wideAt(u, i), v, v)
		s.saveNarrow(v, dst, i)
	})
	s.finish()
}

func (s wide) emitNarrow() {
	s.wideFunction("narrow", "func(dst []float32, x []float64)")
	dst, x := s.base("dst"), s.base("x")
	s.blocks(s.size("dst"), []reg.GPVirtual{dst}, []reg.GPVirtual{x}, func(i int) {
		s.saveNarrow(s.loadWide(x, i), dst, i)
	})
	s.finish()
}
