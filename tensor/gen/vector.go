package main

import (
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// emitVector emits the element-wise kernels and reductions. Each follows its plain
// Go version operation by operation, so that both give the same bits.
func emitVector(c *build.Context) {
	table := maskTable(c, "vectorMasks")
	known := map[uint32]operand.Mem{}
	for _, s := range []isa{avx512(c), avx2(c)} {
		s.table, s.known = table, known
		s.emitDot()
		s.emitAxpy()
		s.emitScale()
		s.emitMax()
		s.emitMul()
		s.emitAddMul()
		s.emitSoftmaxGrad()
		s.emitRotate()
		s.emitExp()
		s.emitExpSum()
		s.emitSwiGLU()
		s.emitSwiGLUGrad()
		s.emitAdamW()
	}
	s := avx512(c)
	s.table, s.known = table, known
	s.emitAdamWBF16()
}

// vectorFunction starts the fast version of the plain Go function name+"Go".
func (s isa) vectorFunction(name, signature string) {
	s.function(name, signature, "is "+name+"Go.")
}

func (s isa) emitDot() {
	s.vectorFunction("dot", "func(x, y []float32) float64")
	n, at := s.slices("x", "y")
	sums := append(s.vecs(), s.vecs()...)
	for _, v := range sums {
		s.zero(v)
	}
	s.each("", n, at, func(part int, mask reg.Register) {
		x, y := s.doubles(at[0], part, mask), s.doubles(at[1], part, mask)
		for i := range x {
			s.VFMADD231PD(x[i], y[i], sums[2*part+i])
		}
	})
	result := s.fold(sums, 8, func(x, y, sum reg.Register) { s.VADDPD(x, y, sum) })
	s.Store(result, s.ReturnIndex(0))
	s.finish()
}

// doubles reads a part of the current block as two registers of float64.
func (s isa) doubles(base reg.GPVirtual, part int, mask reg.Register) [2]reg.VecVirtual {
	low, high := s.vec(), s.vec()
	if mask == nil {
		m := s.at(base, part)
		s.VCVTPS2PD(m, low)
		m.Disp += 2 * s.width
		s.VCVTPS2PD(m, high)
		return [2]reg.VecVirtual{low, high}
	}
	v := s.load(base, part, mask)
	u := s.upper(v, 4*s.width)
	if s.width == 16 {
		s.VCVTPS2PD(v.AsY(), low)
		s.VCVTPS2PD(u.AsY(), high)
	} else {
		s.VCVTPS2PD(v.AsX(), low)
		s.VCVTPS2PD(u.AsX(), high)
	}
	return [2]reg.VecVirtual{low, high}
}

func (s isa) emitAxpy() {
	s.vectorFunction("axpy", "func(alpha float32, x, y []float32)")
	n, at := s.slices("x", "y")
	alpha := s.scalar("alpha")
	s.each("", n, at, func(part int, mask reg.Register) {
		x, y := s.load(at[0], part, mask), s.load(at[1], part, mask)
		s.VMULPS(alpha, x, x)
		s.VADDPS(x, y, y)
		s.save(y, at[1], part, mask)
	})
	s.finish()
}

func (s isa) emitScale() {
	s.vectorFunction("scale", "func(alpha float32, x []float32)")
	n, at := s.slices("x")
	alpha := s.scalar("alpha")
	s.each("", n, at, func(part int, mask reg.Register) {
		x := s.load(at[0], part, mask)
		s.VMULPS(alpha, x, x)
		s.save(x, at[0], part, mask)
	})
	s.finish()
}

func (s isa) emitMax() {
	s.vectorFunction("max", "func(x []float32) float32")
	n, at := s.slices("x")
	lowest := s.words(0xff800000) // -Inf
	largest := s.vecs()
	for _, v := range largest {
		s.VMOVUPS(lowest, v)
	}
	// VMAXPS returns the first operand written here if the two do not
	// compare: a NaN is passed over.
	higher := func(x, y, sum reg.Register) { s.VMAXPS(y, x, sum) }
	s.each("", n, at, func(part int, mask reg.Register) {
		x := s.load(at[0], part, mask)
		switch {
		case mask == nil:
		case s.width == 16:
			s.VBLENDMPS(x, largest[part], mask, x)
		default:
			s.VBLENDVPS(mask, x, largest[part], x)
		}
		higher(x, largest[part], largest[part])
	})
	result := s.fold(largest, 4, higher)
	s.Store(result, s.ReturnIndex(0))
	s.finish()
}

func (s isa) emitMul() { s.emitProduct("mul", false) }

func (s isa) emitAddMul() { s.emitProduct("addMul", true) }

func (s isa) emitProduct(name string, add bool) {
	s.vectorFunction(name, "func(dst []float32, alpha float32, x, y []float32)")
	n, at := s.slices("dst", "x", "y")
	alpha := s.scalar("alpha")
	s.each("", n, at, func(part int, mask reg.Register) {
		x, y := s.load(at[1], part, mask), s.load(at[2], part, mask)
		s.VMULPS(alpha, x, x)
		s.VMULPS(y, x, x)
		if add {
			sum := s.load(at[0], part, mask)
			s.VADDPS(x, sum, sum)
			x = sum
		}
		s.save(x, at[0], part, mask)
	})
	s.finish()
}

func (s isa) emitSoftmaxGrad() {
	s.vectorFunction("softmaxGrad", "func(d, p []float32, delta, alpha float32)")
	n, at := s.slices("d", "p")
	delta, alpha := s.scalar("delta"), s.scalar("alpha")
	s.each("", n, at, func(part int, mask reg.Register) {
		d, p := s.load(at[0], part, mask), s.load(at[1], part, mask)
		s.VSUBPS(delta, d, d)
		s.VMULPS(p, d, d)
		s.VMULPS(alpha, d, d)
		s.save(d, at[0], part, mask)
	})
	s.finish()
}

// emitRotate has an outer loop over pairs of halves, each as long as cos, and an
// inner one over the blocks of a half. The base pointers end an inner loop somewhere
// in its last block, so they are worked out anew for each.
func (s isa) emitRotate() {
	s.vectorFunction("rotate", "func(x, cos, sin []float32)")
	left, bases := s.slices("x", "cos", "sin")
	half := s.GP64()
	s.Load(s.Param("cos").Len(), half)
	s.Label("pairs")
	s.TESTQ(left, left)
	s.JE(operand.LabelRef("end"))
	n, first, second, cos, sin := s.GP64(), s.GP64(), s.GP64(), s.GP64(), s.GP64()
	s.MOVQ(half, n)
	s.MOVQ(bases[0], first)
	s.LEAQ(operand.Mem{Base: bases[0], Index: half, Scale: 4}, second)
	s.MOVQ(bases[1], cos)
	s.MOVQ(bases[2], sin)
	s.LEAQ(operand.Mem{Base: bases[0], Index: half, Scale: 8}, bases[0])
	s.SUBQ(half, left)
	s.SUBQ(half, left)
	s.each("half", n, []reg.GPVirtual{first, second, cos, sin}, func(part int, mask reg.Register) {
		a, b := s.load(first, part, mask), s.load(second, part, mask)
		c, d := s.load(cos, part, mask), s.load(sin, part, mask)
		x, y := s.vec(), s.vec()
		s.VMULPS(c, a, x)
		s.VMULPS(d, b, y)
		s.VSUBPS(y, x, x)
		s.save(x, first, part, mask)
		s.VMULPS(c, b, b)
		s.VMULPS(d, a, a)
		s.VADDPS(a, b, b)
		s.save(b, second, part, mask)
	})
	s.JMP(operand.LabelRef("pairs"))
	s.Label("end")
	s.finish()
}
