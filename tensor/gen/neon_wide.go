package main

import (
	"fmt"
	"math"
)

// emitNEONWide emits the kernels of the fold, as emitWide does: for full blocks only, with no
// product fused with a sum but for squares of float32, which are exact.
func emitNEONWide(s *neon) {
	s.emitSquares()
	s.emitDistances()
	s.emitAxpyWide()
	s.emitScaleWide()
	s.emitDifference()
	s.emitMoveNarrow()
	s.emitDecayNarrow()
	s.emitNarrow()
}

// pairs is four float64 values in two registers.
type pairs [2]vector

// wideFunction starts the fast version of the plain Go function name+"Go".
func (s *neon) wideFunction(name, signature string) {
	s.function(name+"NEON", signature, 0, fmt.Sprintf("is %sGo for a positive number of full blocks of %d values.", name, block))
}

// wideBlocks emits body for each four values of each block of n values, which is a positive multiple of
// block. The pointers move along: narrows point to float32, wides to float64.
func (s *neon) wideBlocks(n general, narrows, wides []general, body func(i int)) {
	s.label("blocks")
	for i := range block / quad {
		s.scope(func() { body(i) })
	}
	for _, p := range narrows {
		s.op("ADD", "$%d, %s", 4*block, p)
	}
	for _, p := range wides {
		s.op("ADD", "$%d, %s", 8*block, p)
	}
	s.op("SUB", "$%d, %s", block, n)
	s.op("CBNZ", "%s, blocks", n)
}

// widened reads four float32 values as float64.
func (s *neon) widened(base general, i int) pairs {
	x := s.load(base, 16*i)
	v := pairs{s.vec(), s.vec()}
	s.do("fcvtl", v[0], x)
	s.do("fcvtl2", v[1], x)
	return v
}

func (s *neon) loadWide(base general, i int) pairs {
	return pairs{s.load(base, 32*i), s.load(base, 32*i+16)}
}

func (s *neon) saveWide(v pairs, base general, i int) {
	s.save(v[0], base, 32*i)
	s.save(v[1], base, 32*i+16)
}

// wide emits an instruction on pairs: from n and m into d.
func (s *neon) wide(name string, d, n, m pairs) {
	for i := range d {
		s.do(name+".2d", d[i], n[i], m[i])
	}
}

// spread64 returns bits in each lane of a register.
func (s *neon) spread64(bits uint64) pairs {
	r, v := s.reg(), s.vec()
	s.op("MOVD", "$%#x, %s", bits, r)
	s.op("VDUP", "%s, %s", r, v.pair())
	return pairs{v, v}
}

// scalar64 returns a float64 parameter in each lane of a register.
func (s *neon) scalar64(name string) pairs {
	v := s.vec()
	s.op("FMOVD", "%s, %s", place(s.signature.Params().Lookup(name)), v)
	s.op("VDUP", "V%d.D[0], %s", int(v), v.pair())
	return pairs{v, v}
}

// bounds are the largest and the lowest float32.
func (s *neon) bounds() (largest, lowest pairs) {
	return s.spread64(math.Float64bits(math.MaxFloat32)), s.spread64(math.Float64bits(-math.MaxFloat32))
}

// saveNarrow writes the values of v as float32, those that do not fit as the nearest that does.
func (s *neon) saveNarrow(v, largest, lowest pairs, base general, i int) {
	s.wide("fmin", v, v, largest)
	s.wide("fmax", v, v, lowest)
	x := s.vec()
	s.do("fcvtn", x, v[0])
	s.do("fcvtn2", x, v[1])
	s.save(x, base, 16*i)
}

// lanes loads the lanes that parameter sum points to, and returns what writes them back.
func (s *neon) lanes() (sums []pairs, save func()) {
	at := s.arg("sum")
	for i := range block / quad {
		sums = append(sums, s.loadWide(at, i))
	}
	return sums, func() {
		for i, v := range sums {
			s.saveWide(v, at, i)
		}
	}
}

func (s *neon) emitSquares() {
	s.wideFunction("squares", "func(sum *[16]float64, x []float32)")
	n, at := s.slices("x")
	sums, save := s.lanes()
	s.wideBlocks(n, at, nil, func(i int) {
		for j, v := range s.widened(at[0], i) {
			s.op("VFMLA", "%[1]s, %[1]s, %[2]s", v.pair(), sums[i][j].pair())
		}
	})
	save()
	s.finish()
}

func (s *neon) emitDistances() {
	s.wideFunction("distances", "func(sum *[16]float64, alpha float64, x []float32, y []float64)")
	n, at := s.slices("x", "y")
	sums, save := s.lanes()
	alpha := s.scalar64("alpha")
	s.wideBlocks(n, at[:1], at[1:], func(i int) {
		v, y := s.widened(at[0], i), s.loadWide(at[1], i)
		s.wide("fmul", v, v, alpha)
		s.wide("fsub", v, v, y)
		s.wide("fmul", v, v, v)
		s.wide("fadd", sums[i], sums[i], v)
	})
	save()
	s.finish()
}

func (s *neon) emitAxpyWide() {
	s.wideFunction("axpyWide", "func(alpha float64, x []float32, sum []float64)")
	n, at := s.slices("x", "sum")
	alpha := s.scalar64("alpha")
	s.wideBlocks(n, at[:1], at[1:], func(i int) {
		v, sum := s.widened(at[0], i), s.loadWide(at[1], i)
		s.wide("fmul", v, v, alpha)
		s.wide("fadd", sum, sum, v)
		s.saveWide(sum, at[1], i)
	})
	s.finish()
}

func (s *neon) emitScaleWide() {
	s.wideFunction("scaleWide", "func(alpha float64, x []float64)")
	n, at := s.slices("x")
	alpha := s.scalar64("alpha")
	s.wideBlocks(n, nil, at, func(i int) {
		v := s.loadWide(at[0], i)
		s.wide("fmul", v, v, alpha)
		s.saveWide(v, at[0], i)
	})
	s.finish()
}

func (s *neon) emitDifference() {
	s.wideFunction("difference", "func(dst []float64, x, y []float32)")
	n, at := s.slices("dst", "x", "y")
	s.wideBlocks(n, at[1:], at[:1], func(i int) {
		v, y := s.widened(at[1], i), s.widened(at[2], i)
		s.wide("fsub", v, v, y)
		s.saveWide(v, at[0], i)
	})
	s.finish()
}

func (s *neon) emitMoveNarrow() {
	s.emitSumNarrow("moveNarrow", "func(dst, x []float32, eta float64, u []float64)", "eta", func(_, u pairs) pairs { return u })
}

func (s *neon) emitDecayNarrow() {
	s.emitSumNarrow("decayNarrow", "func(dst []float32, mu float64, x []float32, u []float64)", "mu", func(x, _ pairs) pairs { return x })
}

// emitSumNarrow adds x and u, and takes one of them times a factor.
func (s *neon) emitSumNarrow(name, signature, factor string, scaled func(x, u pairs) pairs) {
	s.wideFunction(name, signature)
	n, at := s.slices("dst", "x", "u")
	by := s.scalar64(factor)
	largest, lowest := s.bounds()
	s.wideBlocks(n, at[:2], at[2:], func(i int) {
		x, u := s.widened(at[1], i), s.loadWide(at[2], i)
		v := scaled(x, u)
		s.wide("fmul", v, v, by)
		s.wide("fadd", u, x, u)
		s.saveNarrow(u, largest, lowest, at[0], i)
	})
	s.finish()
}

func (s *neon) emitNarrow() {
	s.wideFunction("narrow", "func(dst []float32, x []float64)")
	n, at := s.slices("dst", "x")
	largest, lowest := s.bounds()
	s.wideBlocks(n, at[:1], at[1:], func(i int) {
		s.saveNarrow(s.loadWide(at[1], i), largest, lowest, at[0], i)
	})
	s.finish()
}
