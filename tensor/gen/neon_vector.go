package main

// emitNEONVector emits the element-wise kernels and reductions. Each follows its plain Go
// version operation by operation, so that both give the same bits. There are no masks for
// the end of a vector, so Go code handles that: element-wise kernels stop behind the last
// full register, reductions behind the last full block, with the lanes not yet joined.
func emitNEONVector(s *neon) {
	s.emitDot()
	s.emitMax()
	s.emitAxpy()
	s.emitScale()
	s.emitMul()
	s.emitAddMul()
	s.emitSoftmaxGrad()
	s.emitRotate()
	s.table(expTable, expConstants...)
	s.emitExp()
	s.emitExpSum()
	s.emitSwiGLU()
	s.emitSwiGLUGrad()
	s.table(adamTable, adamConstants...)
	s.emitAdamW()
}

// quadFunction starts the fast version of the plain Go function name+"Go".
func (s *neon) quadFunction(name, signature string) {
	s.function(name+"Quads", signature, 0, "is "+name+"Go for the full groups of 4 values.")
}

// blockFunction starts a reduction.
func (s *neon) blockFunction(name, signature string) {
	s.function(name+"Blocks", signature, 0, "is "+name+"Go for the full blocks of 16 values, one lane each.")
}

// saveLanes writes the lanes of a reduction.
func (s *neon) saveLanes(v []vector, base general) {
	for i := range v {
		s.save(v[i], base, 16*i)
	}
}

func (s *neon) emitDot() {
	s.blockFunction("dot", "func(sum *[16]float64, x, y []float32)")
	n, at := s.slices("x", "y")
	sum, sums := s.arg("sum"), s.vecs(8)
	for _, v := range sums {
		s.zero(v)
	}
	s.blocks(n, at, func(part, offset int) {
		x, y := s.load(at[0], offset), s.load(at[1], offset)
		u, v := s.vec(), s.vec()
		for i, convert := range []string{"fcvtl", "fcvtl2"} {
			s.do(convert, u, x)
			s.do(convert, v, y)
			s.op("VFMLA", "%s, %s, %s", u.pair(), v.pair(), sums[2*part+i].pair())
		}
	})
	s.saveLanes(sums, sum)
	s.finish()
}

// emitMax passes NaN over: it does not compare.
func (s *neon) emitMax() {
	s.blockFunction("max", "func(largest *[16]float32, x []float32)")
	n, at := s.slices("x")
	lanes, largest, lowest := s.arg("largest"), s.vecs(4), s.reg()
	s.op("MOVD", "$0xff800000, %s", lowest) // -Inf
	for _, v := range largest {
		s.op("VDUP", "%s, %s", lowest, v.quad())
	}
	s.blocks(n, at, func(part, offset int) {
		x, higher := s.load(at[0], offset), s.vec()
		s.do("fcmgt", higher, x, largest[part])
		s.replace(largest[part], x, higher)
	})
	s.saveLanes(largest, lanes)
	s.finish()
}

func (s *neon) emitAxpy() {
	s.quadFunction("axpy", "func(alpha float32, x, y []float32)")
	n, at := s.slices("x", "y")
	alpha := s.scalar("alpha")
	s.quads(n, at, func(offset int) {
		x, y := s.load(at[0], offset), s.load(at[1], offset)
		s.do("fmul", x, x, alpha)
		s.do("fadd", y, y, x)
		s.save(y, at[1], offset)
	})
	s.finish()
}

func (s *neon) emitScale() {
	s.quadFunction("scale", "func(alpha float32, x []float32)")
	n, at := s.slices("x")
	alpha := s.scalar("alpha")
	s.quads(n, at, func(offset int) {
		x := s.load(at[0], offset)
		s.do("fmul", x, x, alpha)
		s.save(x, at[0], offset)
	})
	s.finish()
}

func (s *neon) emitMul() { s.emitProduct("mul", false) }

func (s *neon) emitAddMul() { s.emitProduct("addMul", true) }

func (s *neon) emitProduct(name string, add bool) {
	s.quadFunction(name, "func(dst []float32, alpha float32, x, y []float32)")
	n, at := s.slices("dst", "x", "y")
	alpha := s.scalar("alpha")
	s.quads(n, at, func(offset int) {
		x, y := s.load(at[1], offset), s.load(at[2], offset)
		s.do("fmul", x, x, alpha)
		s.do("fmul", x, x, y)
		if add {
			sum := s.load(at[0], offset)
			s.do("fadd", sum, sum, x)
			x = sum
		}
		s.save(x, at[0], offset)
	})
	s.finish()
}

func (s *neon) emitSoftmaxGrad() {
	s.quadFunction("softmaxGrad", "func(d, p []float32, delta, alpha float32)")
	n, at := s.slices("d", "p")
	delta, alpha := s.scalar("delta"), s.scalar("alpha")
	s.quads(n, at, func(offset int) {
		d, p := s.load(at[0], offset), s.load(at[1], offset)
		s.do("fsub", d, d, delta)
		s.do("fmul", d, d, p)
		s.do("fmul", d, d, alpha)
		s.save(d, at[0], offset)
	})
	s.finish()
}

// emitRotate has an outer loop over pairs of halves, each as long as cos, and an inner
// one over the registers of a half.
func (s *neon) emitRotate() {
	s.function("rotateQuads", "func(x, cos, sin []float32)", 0, "is rotateGo where 4 divides the length of cos.")
	left, bases := s.slices("x", "cos", "sin")
	half, n, first, second, cos, sin := s.reg(), s.reg(), s.reg(), s.reg(), s.reg(), s.reg()
	s.op("MOVD", "%s, %s", place(s.signature.Params().Lookup("cos").Len()), half)
	s.label("pairs")
	s.op("CBZ", "%s, end", left)
	s.op("MOVD", "%s, %s", half, n)
	s.op("MOVD", "%s, %s", bases[0], first)
	s.op("ADD", "%s<<2, %s, %s", half, first, second)
	s.op("ADD", "%s<<3, %s", half, bases[0])
	s.op("MOVD", "%s, %s", bases[1], cos)
	s.op("MOVD", "%s, %s", bases[2], sin)
	s.op("SUB", "%s<<1, %s", half, left)
	s.quads(n, []general{first, second, cos, sin}, func(offset int) {
		a, b := s.load(first, offset), s.load(second, offset)
		c, d := s.load(cos, offset), s.load(sin, offset)
		x, y := s.vec(), s.vec()
		s.do("fmul", x, a, c)
		s.do("fmul", y, b, d)
		s.do("fsub", x, x, y)
		s.save(x, first, offset)
		s.do("fmul", b, b, c)
		s.do("fmul", a, a, d)
		s.do("fadd", b, b, a)
		s.save(b, second, offset)
	})
	s.op("JMP", "pairs")
	s.label("end")
	s.finish()
}
