package main

import "fmt"

// emitNEONPack emits the kernels that copy operands of the matrix product into the order
// in which its tiles read them.
func emitNEONPack(s *neon) {
	s.emitPackColumns()
	s.emitTranspose()
}

// emitPackColumns knows only wide rows: those of op(A) are never packed by columns here.
func (s *neon) emitPackColumns() {
	s.function("packColumnsNEON", "func(dst *float32, dstRow int, wide bool, src *float32, srcRow, cols, k int)", 0,
		fmt.Sprintf("copies k rows of cols values, srcRow values apart, to rows dstRow values apart, "+
			"and fills each up to %d values with zeros. wide is ignored. k must be positive.", neonCols))
	dst, dstRow, src, srcRow, cols, k := s.arg("dst"), s.arg("dstRow"), s.arg("src"), s.arg("srcRow"), s.arg("cols"), s.arg("k")
	s.op("LSL", "$2, %s", dstRow)
	s.op("LSL", "$2, %s", srcRow)
	rows := func(label string, row func()) {
		s.label(label)
		row()
		s.op("ADD", "%s, %s", srcRow, src)
		s.op("ADD", "%s, %s", dstRow, dst)
		s.op("SUBS", "$1, %s", k)
		s.op("BNE", "%s", label)
		s.finish()
	}
	v := s.vecs(4)
	s.op("CMP", "$%d, %s", neonCols, cols)
	s.op("BNE", "narrow")
	rows("full", func() {
		s.op("FLDPQ", "(%s), (%s, %s)", src, v[0], v[1])
		s.op("FLDPQ", "32(%s), (%s, %s)", src, v[2], v[3])
		s.op("FSTPQ", "(%s, %s), (%s)", v[0], v[1], dst)
		s.op("FSTPQ", "(%s, %s), 32(%s)", v[2], v[3], dst)
	})
	s.label("narrow")
	s.zero(v[0])
	from, to, left := s.reg(), s.reg(), s.reg()
	rows("row", func() {
		s.op("FSTPQ", "(%[1]s, %[1]s), (%[2]s)", v[0], dst)
		s.op("FSTPQ", "(%[1]s, %[1]s), 32(%[2]s)", v[0], dst)
		s.op("MOVD", "%s, %s", src, from)
		s.op("MOVD", "%s, %s", dst, to)
		s.op("MOVD", "%s, %s", cols, left)
		s.label("value")
		s.op("FMOVS.P", "4(%s), %s", from, v[1])
		s.op("FMOVS.P", "%s, 4(%s)", v[1], to)
		s.op("SUBS", "$1, %s", left)
		s.op("BNE", "value")
	})
}

// emitTranspose emits the kernel that packs transposed matrices: 8 rows of the
// source become 8 columns of the destination, 8 x 8 values at a time, as four quarters of
// 4 x 4.
func (s *neon) emitTranspose() {
	s.function("transpose8", "func(dst *float32, dstRow int, src *float32, srcRow, blocks int)", 0,
		"writes 8 rows of 8*blocks values at src, srcRow values apart, as 8*blocks rows of 8 values at dst, "+
			"dstRow values apart. blocks must be positive.")
	dst, dstRow, src, srcRow, blocks := s.arg("dst"), s.arg("dstRow"), s.arg("src"), s.arg("srcRow"), s.arg("blocks")
	s.op("LSL", "$2, %s", dstRow)
	s.op("LSL", "$2, %s", srcRow)
	s.label("loop")
	left, right, from := s.vecs(8), s.vecs(8), s.reg()
	s.op("MOVD", "%s, %s", src, from)
	for i := range left {
		s.op("FLDPQ", "(%s), (%s, %s)", from, left[i], right[i])
		s.op("ADD", "%s, %s", srcRow, from)
	}
	for _, half := range [][]vector{left, right} {
		s.scope(func() {
			spare := s.vecs(4)
			s.transpose(half[:4], spare)
			s.transpose(half[4:], spare)
		})
		for i := range quad {
			s.op("FSTPQ", "(%s, %s), (%s)", half[i], half[i+4], dst)
			s.op("ADD", "%s, %s", dstRow, dst)
		}
	}
	s.op("ADD", "$32, %s", src)
	s.op("SUBS", "$1, %s", blocks)
	s.op("BNE", "loop")
	s.finish()
}

// transpose turns 4 rows into their columns: values of pairs of rows are exchanged,
// then pairs of values of pairs of pairs.
func (s *neon) transpose(v, spare []vector) {
	for i := 0; i < quad; i += 2 {
		s.op("VTRN1", "%s, %s, %s", v[i+1].quad(), v[i].quad(), spare[i].quad())
		s.op("VTRN2", "%s, %s, %s", v[i+1].quad(), v[i].quad(), spare[i+1].quad())
	}
	for i := range 2 {
		s.op("VTRN1", "%s, %s, %s", spare[i+2].pair(), spare[i].pair(), v[i].pair())
		s.op("VTRN2", "%s, %s, %s", spare[i+2].pair(), spare[i].pair(), v[i+2].pair())
	}
}
