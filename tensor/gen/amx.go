package main

import (
	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Sizes of tiles in bfloat16.
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
	s.function("multiply", "func(outer, inner, steps int, a *uint16, aStrip int, b *uint16, bStrip, bBack int, c *float32, cBack, ldc, nearRows, farRows int, ahead *float32, aheadRow, rows, columns, aheadRows int, acc bool)",
		"adds strips of A times strips of B to outer times inner blocks of 32 x 32 values of C, or sets them. A strip has steps of two tiles each.",
		"Strips of A are aStrip values apart, those of B bStrip. Inner blocks lie side by side; after them b and c also move by bBack and cBack values.",
		"Each step asks for two lines of so many rows of the next block of C: near ones for the first cache, far ones for the second. It also asks for two lines of",
		"aheadRows rows at ahead, aheadRow values apart: down so many rows, then those of the next of columns of two lines. These may lie anywhere.")
	tileLoop{isa: s}.emit(config)
	s.finish()
}

// tileLoop is where the loop over blocks keeps what it needs.
type tileLoop struct {
	isa
	c, row, line, ahead, aheadRow, down, next, left, n reg.GPVirtual
}

// memory is where a parameter lies.
func (t tileLoop) memory(name string) operand.Mem {
	p, err := t.Param(name).Resolve()
	if err != nil {
		panic(err) // the signature has no such parameter
	}
	return p.Addr
}

func (t tileLoop) emit(config operand.Mem) {
	for _, name := range []string{"aStrip", "bStrip", "bBack"} {
		t.SHLQ(operand.U8(1), t.memory(name))
	}
	t.SHLQ(operand.U8(2), t.memory("cBack"))
	t.c, t.row, t.ahead, t.aheadRow = t.arg("c"), t.arg("ldc"), t.arg("ahead"), t.arg("aheadRow")
	t.SHLQ(operand.U8(2), t.row)
	t.SHLQ(operand.U8(2), t.aheadRow)
	t.down = t.arg("rows")
	t.line, t.left = t.GP64(), t.GP64()
	t.LEAQ(config, t.line)
	raw(t.Context, "LDTILECFG", false, operand.Mem{Base: t.line})
	t.MOVQ(operand.U32(64), t.line)
	t.Label("outer")
	t.MOVQ(t.memory("inner"), t.left)
	t.Label("block")
	after := t.block()
	t.move("b", "bStrip")
	t.MOVQ(after, t.c)
	t.DECQ(t.left)
	t.JNE(operand.LabelRef("block"))
	t.move("a", "aStrip")
	t.move("b", "bBack")
	t.DECQ(t.memory("outer"))
	t.JNE(operand.LabelRef("outer"))
	raw(t.Context, "TILERELEASE", false)
}

// move adds one parameter to another.
func (t tileLoop) move(to, by string) {
	d := t.GP64()
	t.MOVQ(t.memory(by), d)
	t.ADDQ(d, t.memory(to))
}

// block computes a block of C. It returns where the next one is.
func (t tileLoop) block() (after reg.GPVirtual) {
	half := t.GP64() // rows 16 to 31 of the block
	t.MOVQ(t.row, half)
	t.SHLQ(operand.U8(4), half)
	t.ADDQ(t.c, half)
	after, t.next, t.n = t.GP64(), t.GP64(), t.GP64()
	t.LEAQ(operand.Mem{Base: t.c, Disp: 128}, after)
	t.CMPQ(t.left, operand.U8(1))
	t.JNE(operand.LabelRef("within"))
	t.ADDQ(t.memory("cBack"), after)
	t.Label("within")
	t.MOVQ(after, t.next)
	places := []operand.Mem{{Base: t.c, Index: t.row, Scale: 1}, {Base: t.c, Index: t.row, Scale: 1, Disp: 64}, {Base: half, Index: t.row, Scale: 1}, {Base: half, Index: t.row, Scale: 1, Disp: 64}}
	t.CMPB(t.memory("acc"), operand.U8(0))
	t.JNE(operand.LabelRef("load"))
	for i := range places {
		raw(t.Context, "TILEZERO", false, tmm(i))
	}
	t.JMP(operand.LabelRef("begin"))
	t.Label("load")
	for i, m := range places {
		raw(t.Context, "TILELOADD", false, m, tmm(i))
	}
	t.Label("begin")
	t.steps()
	for i, m := range places {
		raw(t.Context, "TILESTORED", false, tmm(i), m)
	}
	return after
}

// steps adds the products of all steps to tiles 0 to 3. Meanwhile it asks for the next block of C and for what is packed
// next: a core waits for either much longer than it multiplies.
func (t tileLoop) steps() {
	x, y := t.GP64(), t.GP64()
	t.MOVQ(t.memory("a"), x)
	t.MOVQ(t.memory("b"), y)
	t.MOVQ(t.memory("steps"), t.n)
	t.Label("step")
	raw(t.Context, "TILELOADD", false, operand.Mem{Base: y, Index: t.line, Scale: 1}, tmm(6))
	raw(t.Context, "TILELOADD", false, operand.Mem{Base: x, Index: t.line, Scale: 1}, tmm(4))
	raw(t.Context, "TILELOADD", false, operand.Mem{Base: y, Index: t.line, Scale: 1, Disp: tileBytes}, tmm(7))
	raw(t.Context, "TDPBF16PS", false, tmm(6), tmm(4), tmm(0))
	raw(t.Context, "TILELOADD", false, operand.Mem{Base: x, Index: t.line, Scale: 1, Disp: tileBytes}, tmm(5))
	raw(t.Context, "TDPBF16PS", false, tmm(7), tmm(4), tmm(1))
	raw(t.Context, "TDPBF16PS", false, tmm(6), tmm(5), tmm(2))
	raw(t.Context, "TDPBF16PS", false, tmm(7), tmm(5), tmm(3))
	t.ask("near", t.PREFETCHT0, t.next, t.row)
	t.ask("far", t.PREFETCHT1, t.next, t.row)
	t.askAhead()
	t.ADDQ(operand.U32(unitBytes), x)
	t.ADDQ(operand.U32(unitBytes), y)
	t.DECQ(t.n)
	t.JNE(operand.LabelRef("step"))
}

// ask asks for two lines in each of some rows, and moves on by these.
func (t tileLoop) ask(name string, prefetch func(operand.Op), at, row reg.GPVirtual) {
	rows := t.GP64()
	t.MOVQ(t.memory(name+"Rows"), rows)
	t.TESTQ(rows, rows)
	t.JLE(operand.LabelRef(name + "Asked"))
	t.Label(name)
	prefetch(operand.Mem{Base: at})
	prefetch(operand.Mem{Base: at, Disp: 64})
	t.ADDQ(row, at)
	t.DECQ(rows)
	t.JNE(operand.LabelRef(name))
	t.Label(name + "Asked")
}

// askAhead asks for what is packed next. It goes down a column of two lines, and at its end to the top of the next.
func (t tileLoop) askAhead() {
	rows, back := t.GP64(), t.GP64()
	t.MOVQ(t.memory("aheadRows"), rows)
	t.TESTQ(rows, rows)
	t.JLE(operand.LabelRef("aheadAsked"))
	t.Label("ahead")
	t.PREFETCHT1(operand.Mem{Base: t.ahead})
	t.PREFETCHT1(operand.Mem{Base: t.ahead, Disp: 64})
	t.ADDQ(t.aheadRow, t.ahead)
	t.DECQ(t.down)
	t.JNE(operand.LabelRef("goOn"))
	t.MOVQ(t.memory("rows"), t.down)
	t.MOVQ(t.aheadRow, back)
	t.IMULQ(t.down, back)
	t.SUBQ(back, t.ahead)
	t.SUBQ(operand.I8(-128), t.ahead)
	t.DECQ(t.memory("columns"))
	t.JE(operand.LabelRef("allAsked"))
	t.Label("goOn")
	t.DECQ(rows)
	t.JNE(operand.LabelRef("ahead"))
	t.JMP(operand.LabelRef("aheadAsked"))
	t.Label("allAsked")
	t.MOVQ(operand.U32(0), t.memory("aheadRows"))
	t.Label("aheadAsked")
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
	p.function(name, "func(dst *uint16, dstStep int, src *float32, srcRow, srcStep, steps, ahead int)",
		"rounds 32 x 32 values at src, srcRow values apart, to two tiles at dst, and so on in steps of dstStep and srcStep values.", doc,
		"It asks for what lies ahead values behind each that it reads.")
	dst, dstStep, src, row, srcStep, steps := p.arg("dst"), p.arg("dstStep"), p.arg("src"), p.arg("srcRow"), p.arg("srcStep"), p.arg("steps")
	ahead := p.arg("ahead")
	p.SHLQ(operand.U8(2), ahead)
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
		rows := p.rounded(from, row, ahead, order)
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
func (p packer) rounded(from, row, ahead reg.GPVirtual, order reg.VecVirtual) []reg.VecVirtual {
	rows := make([]reg.VecVirtual, tileRows)
	for i := range rows {
		low, high := p.ZMM(), p.ZMM()
		p.PREFETCHT0(operand.Mem{Base: from, Index: ahead, Scale: 1})
		rows[i] = p.ZMM()
		p.VMOVUPS(operand.Mem{Base: from}, low)
		if p.from == "Pairs" {
			p.ADDQ(row, from)
			p.PREFETCHT0(operand.Mem{Base: from, Index: ahead, Scale: 1})
			p.VMOVUPS(operand.Mem{Base: from}, high)
		} else {
			p.PREFETCHT0(operand.Mem{Base: from, Index: ahead, Scale: 1, Disp: 64})
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
