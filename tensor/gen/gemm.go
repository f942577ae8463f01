package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// emitGemm emits the tile kernels of the matrix product.
func emitGemm(c *build.Context) {
	table := maskTable(c, "tileMasks")
	for _, s := range []isa{avx512(c), avx2(c)} {
		s.table = table
		newTile(s).emit()
	}
}

// tile emits a kernel that holds rows x nr sums of C in registers while it walks
// along k. It has one loop for each number of rows, so that a ragged edge costs
// only the rows that it has; ragged columns are masked when C is written.
type tile struct {
	isa
	k, a, aRow, aStep, b, c, ldc reg.GPVirtual
}

const (
	// line is how many values a cache line has.
	line = 16
	// stepsAhead is how many steps before its use a row of B is asked for: some 200 cycles.
	stepsAhead = 16
	// stepsPerLine is in how many steps one row of C is asked for, and one line that later tiles need. Package
	// tensor has it too.
	stepsPerLine = 8
)

const tileSignature = "func(rows, cols, k int, a *float32, aRow, aStep int, b, c *float32, ldc int, acc bool, ahead *float32, aheadStep int)"

func newTile(s isa) *tile {
	s.function("gemmTile", tileSignature, fmt.Sprintf("computes rows x cols values of C, at most %d x %d, "+
		"as tile.multiply says.", s.mr, s.nr))
	t := &tile{isa: s}
	t.k, t.a, t.b, t.c = s.arg("k"), s.arg("a"), s.arg("b"), s.arg("c")
	t.aRow, t.aStep, t.ldc = s.arg("aRow"), s.arg("aStep"), s.arg("ldc")
	for _, stride := range []reg.GPVirtual{t.aRow, t.aStep, t.ldc} {
		s.SHLQ(operand.U8(2), stride) // from values to bytes
	}
	return t
}

func (t *tile) emit() {
	rows := t.arg("rows")
	for r := t.mr; r > 1; r-- {
		t.CMPQ(rows, operand.U8(r))
		t.JE(operand.LabelRef(fmt.Sprintf("rows%d", r)))
	}
	for r := 1; r <= t.mr; r++ {
		t.Label(fmt.Sprintf("rows%d", r))
		t.emitRows(r)
	}
}

// emitRows emits the kernel for a number of rows.
func (t *tile) emitRows(rows int) {
	if !t.spread(rows) {
		t.prefetch(rows)
	}
	sums := make([][]reg.VecVirtual, rows)
	for i := range sums {
		for range t.nr / t.width {
			v := t.vec()
			t.zero(v)
			sums[i] = append(sums[i], v)
		}
	}
	t.multiply(sums)
	t.store(sums)
	t.finish()
}

// prefetch asks for the rows of C, which are needed when the products are done.
func (t *tile) prefetch(rows int) {
	c := t.GP64()
	t.MOVQ(t.c, c)
	for i := range rows {
		for j := 0; j < t.nr; j += line {
			t.PREFETCHT0(operand.Mem{Base: c, Disp: 4 * j})
		}
		if i < rows-1 {
			t.ADDQ(t.ldc, c)
		}
	}
}

// multiply adds k products to each sum.
func (t *tile) multiply(sums [][]reg.VecVirtual) {
	rows := len(sums)
	odd := t.oddMultiples(rows)
	done := fmt.Sprintf("done%d", rows)
	t.TESTQ(t.k, t.k)
	t.JE(operand.LabelRef(done))
	loop := fmt.Sprintf("loop%d", rows)
	if t.spread(rows) {
		t.several(sums, odd)
		t.TESTQ(t.k, t.k)
		t.JE(operand.LabelRef(done))
	}
	t.Label(loop)
	t.step(sums, odd)
	t.DECQ(t.k)
	t.JNE(operand.LabelRef(loop))
	t.Label(done)
}

// large tells a tile whose panel of B hardly fits the first cache beside the rows of A that stream through
// it, and whose rows of C are more lines than a core can have on their way at a time. Asking for both ahead of
// their use brings it 2 to 15 %; smaller tiles gain nothing.
func (t *tile) large() bool { return t.width == 16 }

// spread tells whether rows of C are asked for one by one.
func (t *tile) spread(rows int) bool { return t.large() && rows == t.mr }

// several takes stepsPerLine steps at a time, and with them asks for the next row of C, also beyond the tile, where the
// next one may begin, and for the next line of what later tiles need. All at once would keep the operands of this
// tile waiting: a core can have few requests under way.
func (t *tile) several(sums [][]reg.VecVirtual, odd map[int]reg.GPVirtual) {
	c, ahead := t.GP64(), t.arg("ahead")
	t.MOVQ(t.c, c)
	t.SUBQ(operand.U8(stepsPerLine), t.k)
	t.JLT(operand.LabelRef("fewer"))
	t.Label("several")
	t.PREFETCHT1(operand.Mem{Base: ahead})
	t.ADDQ(t.param("aheadStep"), ahead) // from memory: registers are short
	for j := 0; j < t.nr; j += line {
		t.PREFETCHT0(operand.Mem{Base: c, Disp: 4 * j})
	}
	t.ADDQ(t.ldc, c)
	for range stepsPerLine {
		t.step(sums, odd)
	}
	t.SUBQ(operand.U8(stepsPerLine), t.k)
	t.JGE(operand.LabelRef("several"))
	t.Label("fewer")
	t.ADDQ(operand.U8(stepsPerLine), t.k)
}

// step adds one product to each sum. Each value of A is broadcast once and used for all columns.
func (t *tile) step(sums [][]reg.VecVirtual, odd map[int]reg.GPVirtual) {
	columns := make([]reg.VecVirtual, t.nr/t.width)
	for j := range columns {
		columns[j] = t.vec()
		t.VMOVUPS(operand.Mem{Base: t.b, Disp: 4 * t.width * j}, columns[j])
	}
	for j := 0; j < t.nr && t.large(); j += line {
		t.PREFETCHT0(operand.Mem{Base: t.b, Disp: 4 * (t.nr*stepsAhead + j)})
	}
	for i := range sums {
		x := t.vec()
		t.VBROADCASTSS(t.row(i, odd), x)
		for j := range columns {
			t.VFMADD231PS(columns[j], x, sums[i][j])
		}
	}
	t.ADDQ(t.aStep, t.a)
	t.ADDQ(operand.U32(4*t.nr), t.b)
}

// oddMultiples returns the odd multiples of A's row stride below rows: with the
// scales 1, 2, 4 and 8 of an address they reach every row from one pointer.
func (t *tile) oddMultiples(rows int) map[int]reg.GPVirtual {
	odd := map[int]reg.GPVirtual{1: t.aRow}
	for i := 3; i < rows; i += 2 {
		odd[i] = t.GP64()
		t.LEAQ(operand.Mem{Base: odd[i-2], Index: t.aRow, Scale: 2}, odd[i])
	}
	return odd
}

// row is the address of A's current value in row i.
func (t *tile) row(i int, odd map[int]reg.GPVirtual) operand.Mem {
	if i == 0 {
		return operand.Mem{Base: t.a}
	}
	scale := i & -i
	return operand.Mem{Base: t.a, Index: odd[i/scale], Scale: uint8(scale)}
}

// store writes the sums to C, or adds them to it.
func (t *tile) store(sums [][]reg.VecVirtual) {
	cols := t.arg("cols")
	ragged := fmt.Sprintf("ragged%d", len(sums))
	t.CMPQ(cols, operand.U8(t.nr))
	t.JNE(operand.LabelRef(ragged))
	t.storeWith(sums, fmt.Sprintf("full%d", len(sums)), nil)
	t.finish()
	t.Label(ragged)
	masks := t.masks(cols, t.nr/t.width)
	t.storeWith(sums, fmt.Sprintf("part%d", len(sums)), masks)
}

// storeWith is store for full rows, if masks is nil, or for the columns that the
// masks keep.
func (t *tile) storeWith(sums [][]reg.VecVirtual, label string, masks []reg.Register) {
	acc := t.GP8()
	t.Load(t.Param("acc"), acc)
	t.TESTB(acc, acc)
	t.JE(operand.LabelRef(label))
	t.eachRow(sums, masks, t.add)
	t.Label(label)
	t.eachRow(sums, masks, t.write)
}

// eachRow applies f to each sum and its place in C.
func (t *tile) eachRow(sums [][]reg.VecVirtual, masks []reg.Register, f func(reg.VecVirtual, reg.Register, operand.Mem)) {
	c := t.GP64()
	t.MOVQ(t.c, c)
	for i, row := range sums {
		for j, sum := range row {
			var mask reg.Register
			if masks != nil {
				mask = masks[j]
			}
			f(sum, mask, operand.Mem{Base: c, Disp: 4 * t.width * j})
		}
		if i < len(sums)-1 {
			t.ADDQ(t.ldc, c)
		}
	}
}

// add adds the values at m to sum.
func (t *tile) add(sum reg.VecVirtual, mask reg.Register, m operand.Mem) {
	if mask == nil {
		t.VADDPS(m, sum, sum)
		return
	}
	v := t.vec()
	t.loadMasked(m, mask, v)
	t.VADDPS(v, sum, sum)
}

// write writes sum to m.
func (t *tile) write(sum reg.VecVirtual, mask reg.Register, m operand.Mem) {
	if mask == nil {
		t.VMOVUPS(sum, m)
		return
	}
	t.storeMasked(sum, mask, m)
}
