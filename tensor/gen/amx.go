package main

import (
	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Of tiles in bfloat16.
const (
	tileRows  = 16   // rows of a tile, and of a tile of sums its columns
	tileBytes = 1024 // of a tile: 16 rows of 64 bytes
	unitBytes = 2048 // what a block of C takes of either operand for one step: two tiles
)

// emitAMX emits the product of matrices in bfloat16 on tile registers, and what packs its operands.
func emitAMX(c *build.Context) {
	s := avx512(c)
	config := tileConfig(c)
	emitTileProducts(s, config)
	emitTilePeak(s, config)
	for _, p := range []packer{{s, "Rows", false}, {s, "Rows", true}, {s, "Pairs", false}, {s, "Pairs", true}} {
		p.emit()
	}
}

// tileConfig emits the operand of LDTILECFG: all eight tiles have 16 rows of 64 bytes.
func tileConfig(c *build.Context) operand.Mem {
	table := c.StaticGlobal("tileConfig")
	c.DataAttributes(attr.RODATA | attr.NOPTR)
	for i := range 64 {
		value := operand.U8(0)
		switch {
		case i == 0:
			value = 1 // the palette
		case i >= 16 && i < 32 && i%2 == 0:
			value = 64 // bytes in a row; the high byte follows
		case i >= 48 && i < 56:
			value = tileRows
		}
		c.AddDatum(i, value)
	}
	return table
}

// emitTileProducts emits the loop over blocks of 32 x 32 values of C. Four tiles hold the sums, two each what is read of
// A and of B. It leaves no state in tiles behind: see gemm_amx.go.
func emitTileProducts(s isa, config operand.Mem) {
	s.suffix = "AMX"
	s.function("multiply", "func(strips, steps int, a, b *uint16, bStrip int, c *float32, ldc int, acc bool)",
		"adds a strip of A times strips of B to as many blocks of 32 x 32 values of C, side by side, or sets them.",
		"A strip has steps of two tiles each; the next one of B begins bStrip values later.")
	strips, steps, a, b, bStrip := s.arg("strips"), s.arg("steps"), s.arg("a"), s.arg("b"), s.arg("bStrip")
	c, row := s.arg("c"), s.arg("ldc")
	acc := s.GP8()
	s.Load(s.Param("acc"), acc)
	s.SHLQ(operand.U8(1), bStrip)
	s.SHLQ(operand.U8(2), row)
	at, line := s.GP64(), s.GP64()
	s.LEAQ(config, at)
	raw(s.Context, "LDTILECFG", false, operand.Mem{Base: at})
	s.MOVQ(operand.U32(64), line)
	half := s.GP64() // rows 16 to 31 of the block
	s.MOVQ(row, half)
	s.SHLQ(operand.U8(4), half)
	s.ADDQ(c, half)
	s.Label("strip")
	places := []operand.Mem{{Base: c, Index: row, Scale: 1}, {Base: c, Index: row, Scale: 1, Disp: 64}, {Base: half, Index: row, Scale: 1}, {Base: half, Index: row, Scale: 1, Disp: 64}}
	s.TESTB(acc, acc)
	s.JNE(operand.LabelRef("load"))
	for i := range places {
		raw(s.Context, "TILEZERO", false, tmm(i))
	}
	s.JMP(operand.LabelRef("begin"))
	s.Label("load")
	for i, m := range places {
		raw(s.Context, "TILELOADD", false, m, tmm(i))
	}
	s.Label("begin")
	emitSteps(s, a, b, steps, line, c, row)
	for i, m := range places {
		raw(s.Context, "TILESTORED", false, tmm(i), m)
	}
	s.ADDQ(bStrip, b)
	s.SUBQ(operand.I8(-128), c) // 32 values
	s.SUBQ(operand.I8(-128), half)
	s.DECQ(strips)
	s.JNE(operand.LabelRef("strip"))
	raw(s.Context, "TILERELEASE", false)
	s.finish()
}

// rowsPerStep is for how many rows of the next block of C a step asks: 16 steps ask for all.
const rowsPerStep = 2

// emitSteps adds the products of all steps to tiles 0 to 3. Meanwhile it asks for the next block of C, which begins with the
// line after the two of this one: that takes 4 % off a training step.
func emitSteps(s isa, a, b, steps, line, c, row reg.GPVirtual) {
	x, y, n, next := s.GP64(), s.GP64(), s.GP64(), s.GP64()
	s.MOVQ(c, next)
	s.MOVQ(a, x)
	s.MOVQ(b, y)
	s.MOVQ(steps, n)
	s.Label("step")
	raw(s.Context, "TILELOADD", false, operand.Mem{Base: y, Index: line, Scale: 1}, tmm(6))
	raw(s.Context, "TILELOADD", false, operand.Mem{Base: x, Index: line, Scale: 1}, tmm(4))
	raw(s.Context, "TILELOADD", false, operand.Mem{Base: y, Index: line, Scale: 1, Disp: tileBytes}, tmm(7))
	raw(s.Context, "TDPBF16PS", false, tmm(6), tmm(4), tmm(0))
	raw(s.Context, "TILELOADD", false, operand.Mem{Base: x, Index: line, Scale: 1, Disp: tileBytes}, tmm(5))
	raw(s.Context, "TDPBF16PS", false, tmm(7), tmm(4), tmm(1))
	raw(s.Context, "TDPBF16PS", false, tmm(6), tmm(5), tmm(2))
	raw(s.Context, "TDPBF16PS", false, tmm(7), tmm(5), tmm(3))
	for range rowsPerStep {
		s.PREFETCHT0(operand.Mem{Base: next, Disp: 128})
		s.PREFETCHT0(operand.Mem{Base: next, Disp: 192})
		s.ADDQ(row, next)
	}
	s.ADDQ(operand.U32(unitBytes), x)
	s.ADDQ(operand.U32(unitBytes), y)
	s.DECQ(n)
	s.JNE(operand.LabelRef("step"))
}

// tileSums is how many tiles a peak loop adds to: one product takes 52 cycles, and a new one begins every 16.
const tileSums = 4

// emitTilePeak emits a loop that only multiplies and adds: what a core gives at most.
func emitTilePeak(s isa, config operand.Mem) {
	s.suffix = "AMX"
	s.function("peak", "func(rounds int)", "adds products of tiles of zeros to 4 tiles in each round.")
	rounds, at := s.arg("rounds"), s.GP64()
	s.LEAQ(config, at)
	raw(s.Context, "LDTILECFG", false, operand.Mem{Base: at})
	for i := range 2 * tileSums {
		raw(s.Context, "TILEZERO", false, tmm(i))
	}
	s.TESTQ(rounds, rounds)
	s.JLE(operand.LabelRef("done"))
	s.Label("loop")
	for i := range tileSums {
		raw(s.Context, "TDPBF16PS", false, tmm(tileSums+i/2), tmm(tileSums+2+i%2), tmm(i))
	}
	s.DECQ(rounds)
	s.JNE(operand.LabelRef("loop"))
	s.Label("done")
	raw(s.Context, "TILERELEASE", false)
	s.finish()
}

// packAhead is how many bytes before its use a part of a row is asked for: 32 rows are more streams than a processor
// follows by itself.
const packAhead = 512

// packer emits one way to make tiles of 32 x 32 values in float32.
type packer struct {
	isa
	from       string // Rows: 16 rows of 32 values make a tile; Pairs: 32 rows of 16, two of which make a row
	transposed bool   // exchange rows and columns of the tile, whose elements are pairs
}

func (p packer) emit() {
	name, doc := "packTile"+p.from, "Tiles hold two rows of them side by side in each of theirs."
	if p.from == "Rows" {
		doc = "Rows of tiles are 32 values of rows of these."
	}
	if p.transposed {
		name, doc = name+"Turned", doc+" Then pairs of values in rows of tiles become columns."
	}
	p.suffix = "AMX"
	p.function(name, "func(dst *uint16, dstStep int, src *float32, srcRow, srcStep, steps int)",
		"rounds 32 x 32 values at src, srcRow values apart, to two tiles at dst, and so on in steps of dstStep and srcStep values.", doc)
	dst, dstStep, src, row, srcStep, steps := p.arg("dst"), p.arg("dstStep"), p.arg("src"), p.arg("srcRow"), p.arg("srcStep"), p.arg("steps")
	p.SHLQ(operand.U8(1), dstStep)
	p.SHLQ(operand.U8(2), row)
	p.SHLQ(operand.U8(2), srcStep)
	var order reg.VecVirtual
	if p.from == "Pairs" {
		order = p.ZMM()
		p.VMOVDQU64(interleaving(p.Context, name), order)
	}
	p.Label("step")
	from := p.GP64()
	p.MOVQ(src, from)
	for tile := range 2 {
		if tile == 1 && p.from == "Pairs" {
			p.MOVQ(src, from)
			p.ADDQ(operand.U8(64), from)
		}
		rows := p.rounded(from, row, order)
		if p.transposed {
			rows = p.turned(rows)
		}
		for i, r := range rows {
			p.VMOVDQU64(r, operand.Mem{Base: dst, Disp: tile*tileBytes + 64*i})
		}
	}
	p.ADDQ(srcStep, src)
	p.ADDQ(dstStep, dst)
	p.DECQ(steps)
	p.JNE(operand.LabelRef("step"))
	p.finish()
}

// rounded reads what one tile holds and moves from beyond it.
func (p packer) rounded(from, row reg.GPVirtual, order reg.VecVirtual) []reg.VecVirtual {
	rows := make([]reg.VecVirtual, tileRows)
	for i := range rows {
		low, high := p.ZMM(), p.ZMM()
		p.PREFETCHT0(operand.Mem{Base: from, Disp: packAhead})
		rows[i] = p.ZMM()
		p.VMOVUPS(operand.Mem{Base: from}, low)
		if p.from == "Pairs" {
			p.ADDQ(row, from)
			p.PREFETCHT0(operand.Mem{Base: from, Disp: packAhead})
			p.VMOVUPS(operand.Mem{Base: from}, high)
		} else {
			p.PREFETCHT0(operand.Mem{Base: from, Disp: packAhead + 64})
			p.VMOVUPS(operand.Mem{Base: from, Disp: 64}, high)
		}
		p.ADDQ(row, from)
		raw(p.Context, "VCVTNE2PS2BF16", true, low, high, rows[i])
		if p.from == "Pairs" {
			p.VPERMW(rows[i], order, rows[i])
		}
	}
	return rows
}

// interleaving emits the order that takes words in turn from either half of a register.
func interleaving(c *build.Context, name string) operand.Mem {
	table := c.StaticGlobal(name + "Order")
	c.DataAttributes(attr.RODATA | attr.NOPTR)
	for i := range 32 {
		c.AddDatum(2*i, operand.U16(i/2+i%2*16))
	}
	return table
}

// turned returns the columns of 16 rows of 16 double words: two rows are interleaved, then two of these, then lanes
// of 4 are exchanged twice.
func (p packer) turned(rows []reg.VecVirtual) []reg.VecVirtual {
	type op func(ops ...operand.Op)
	pair := func(f op, a, b reg.VecVirtual) reg.VecVirtual {
		dst := p.ZMM()
		f(b, a, dst) // the Go assembler has the second source first
		return dst
	}
	lanes := func(which operand.U8) op {
		return func(ops ...operand.Op) { p.VSHUFI32X4(which, ops[0], ops[1], ops[2]) }
	}
	two := make([]reg.VecVirtual, tileRows)
	for i := 0; i < tileRows; i += 2 {
		two[i], two[i+1] = pair(p.VPUNPCKLDQ, rows[i], rows[i+1]), pair(p.VPUNPCKHDQ, rows[i], rows[i+1])
	}
	four := make([]reg.VecVirtual, tileRows) // lane l of register 4i+j: column 4l+j of rows 4i to 4i+3
	for i := 0; i < tileRows; i += 4 {
		for j := range 2 {
			four[i+2*j], four[i+2*j+1] = pair(p.VPUNPCKLQDQ, two[i+j], two[i+2+j]), pair(p.VPUNPCKHQDQ, two[i+j], two[i+2+j])
		}
	}
	columns := make([]reg.VecVirtual, tileRows)
	const even, odd = operand.U8(0x88), operand.U8(0xdd)
	for j := range 4 {
		for first, which := range []operand.U8{even, odd} { // lanes 0 and 2, then 1 and 3
			upper, lower := pair(lanes(which), four[j], four[4+j]), pair(lanes(which), four[8+j], four[12+j])
			columns[4*first+j], columns[8+4*first+j] = pair(lanes(even), upper, lower), pair(lanes(odd), upper, lower)
		}
	}
	return columns
}
