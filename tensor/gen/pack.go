package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// emitPack emits the kernels that copy operands of the matrix product into the order
// in which its tiles read them.
func emitPack(c *build.Context) {
	table := maskTable(c, "packMasks")
	for _, s := range []isa{avx512(c), avx2(c)} {
		s.table = table
		s.emitPackColumns()
	}
	emitTranspose(c)
}

func (s isa) emitPackColumns() {
	s.function("packColumns", "func(dst *float32, dstRow int, wide bool, src *float32, srcRow, cols, k int)",
		fmt.Sprintf("copies k rows of cols values, srcRow values apart, to rows dstRow values apart. "+
			"It fills each up to %d values with zeros, or to %d if wide, even where the next row begins earlier. k must be positive.",
			s.width, 2*s.width))
	dst, dstRow, src, srcRow, k := s.arg("dst"), s.arg("dstRow"), s.arg("src"), s.arg("srcRow"), s.arg("k")
	s.SHLQ(operand.U8(2), dstRow)
	s.SHLQ(operand.U8(2), srcRow)
	masks := s.masks(s.arg("cols"), 2)
	wide := s.GP8()
	s.Load(s.Param("wide"), wide)
	s.TESTB(wide, wide)
	s.JNE(operand.LabelRef("wide"))
	for i, label := range []string{"narrow", "wide"} {
		s.Label(label)
		for part, mask := range masks[:i+1] {
			s.save(s.load(src, part, mask), dst, part, nil)
		}
		s.ADDQ(srcRow, src)
		s.ADDQ(dstRow, dst)
		s.DECQ(k)
		s.JNE(operand.LabelRef(label))
		s.finish()
	}
}

// emitTranspose emits the kernel that packs transposed matrices: 8 rows of the
// source become 8 columns of the destination, 8 x 8 values at a time in AVX2
// registers on either instruction set.
func emitTranspose(c *build.Context) {
	s := isa{Context: c, width: 8}
	s.Function("transpose8")
	s.Attributes(attr.NOSPLIT)
	s.SignatureExpr("func(dst *float32, dstRow int, src *float32, srcRow, blocks int)")
	s.Pragma("noescape")
	s.Doc("transpose8 writes 8 rows of 8*blocks values at src, srcRow values apart, as 8*blocks rows",
		"of 8 values at dst, dstRow values apart. blocks must be positive.")
	dst, dstRow, src, srcRow, blocks := s.arg("dst"), s.arg("dstRow"), s.arg("src"), s.arg("srcRow"), s.arg("blocks")
	s.SHLQ(operand.U8(2), dstRow)
	s.SHLQ(operand.U8(2), srcRow)
	s.Label("loop")
	rows := make([]reg.VecVirtual, 8)
	from := s.GP64()
	s.MOVQ(src, from)
	for i := range rows {
		rows[i] = s.vec()
		s.VMOVUPS(operand.Mem{Base: from}, rows[i])
		s.ADDQ(srcRow, from)
	}
	for _, column := range s.transposed(rows) {
		s.VMOVUPS(column, operand.Mem{Base: dst})
		s.ADDQ(dstRow, dst)
	}
	s.ADDQ(operand.U8(32), src)
	s.DECQ(blocks)
	s.JNE(operand.LabelRef("loop"))
	s.finish()
}

// transposed returns the columns of 8 rows: pairs of rows are interleaved, then
// pairs of pairs, then register halves are exchanged.
func (s isa) transposed(rows []reg.VecVirtual) []reg.VecVirtual {
	quads := make([]reg.VecVirtual, 8)
	for i := 0; i < 8; i += 4 {
		var low, high [2]reg.VecVirtual
		for j := range 2 {
			a, b := rows[i+2*j], rows[i+2*j+1]
			low[j], high[j] = s.vec(), s.vec()
			s.VUNPCKLPS(b, a, low[j])
			s.VUNPCKHPS(b, a, high[j])
		}
		for j, pair := range [][2]reg.VecVirtual{low, high} {
			first, second := s.vec(), s.vec()
			s.VSHUFPS(operand.U8(0x44), pair[1], pair[0], first)
			s.VSHUFPS(operand.U8(0xee), pair[1], pair[0], second)
			quads[i+2*j], quads[i+2*j+1] = first, second
		}
	}
	columns := make([]reg.VecVirtual, 8)
	for j := range 4 {
		columns[j], columns[j+4] = s.vec(), s.vec()
		s.VPERM2F128(operand.U8(0x20), quads[j+4], quads[j], columns[j])
		s.VPERM2F128(operand.U8(0x31), quads[j+4], quads[j], columns[j+4])
	}
	return columns
}
