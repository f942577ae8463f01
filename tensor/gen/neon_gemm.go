package main

import "fmt"

// The tile fills 24 of 32 vector registers with sums, which leaves 6 for 4 values each
// of op(A)'s rows and 2 for op(B).
const (
	neonRows = 6
	neonCols = 16
)

// neonTile emits a kernel that holds rows x neonCols sums of C in registers while it walks
// along k, 4 steps at a time: that many values of a row are one load, and a product
// takes its value of A from a lane. It has one loop for each number of rows, as on
// amd64. Ragged columns go through the stack.
type neonTile struct {
	*neon
	rows, cols, k, b, c, ldc, acc general
	a                             []general // the rows of A
	sums                          [][]vector
}

// stackBytes holds all sums.
const stackBytes = 4 * neonRows * neonCols

func emitNEONGemm(s *neon) {
	s.function("gemmTileNEON", tileSignature, stackBytes, fmt.Sprintf("computes rows x cols values of C, at most "+
		"%d x %d, as tile.multiply says. aStep must be 1, k positive.", neonRows, neonCols))
	t := &neonTile{neon: s}
	t.rows, t.cols, t.k = t.arg("rows"), t.arg("cols"), t.arg("k")
	t.a = []general{t.arg("a")}
	aRow := t.arg("aRow")
	t.b, t.c, t.ldc, t.acc = t.arg("b"), t.arg("c"), t.arg("ldc"), t.flag("acc")
	t.op("LSL", "$2, %s", aRow) // from values to bytes
	t.op("LSL", "$2, %s", t.ldc)
	for i := 1; i < neonRows; i++ {
		t.a = append(t.a, t.reg())
		t.op("ADD", "%s, %s, %s", aRow, t.a[i-1], t.a[i])
	}
	t.emit()
}

func (t *neonTile) emit() {
	cursor := t.reg()
	for r := neonRows; r > 1; r-- {
		t.op("CMP", "$%d, %s", r, t.rows)
		t.op("BEQ", "rows%d", r)
	}
	for r := 1; r <= neonRows; r++ {
		t.label(fmt.Sprintf("rows%d", r))
		t.scope(func() { t.emitRows(r, cursor) })
	}
	t.emitRagged(cursor)
}

// emitRows emits the kernel for a number of rows.
func (t *neonTile) emitRows(rows int, cursor general) {
	t.prefetch(rows, cursor)
	t.sums = make([][]vector, rows)
	for i := range t.sums {
		t.sums[i] = t.vecs(neonCols / quad)
		for _, v := range t.sums[i] {
			t.zero(v)
		}
	}
	t.scope(t.multiply)
	t.store(cursor)
}

// prefetch asks for the rows of C, which are needed when the products are done.
func (t *neonTile) prefetch(rows int, cursor general) {
	t.op("MOVD", "%s, %s", t.c, cursor)
	for i := range rows {
		t.op("PRFM", "(%s), PLDL1KEEP", cursor)
		if i < rows-1 {
			t.op("ADD", "%s, %s", t.ldc, cursor)
		}
	}
}

// multiply adds k products to each sum: four steps at a time, then the rest one by one.
func (t *neonTile) multiply() {
	rows := len(t.sums)
	four, rest, one, done := fmt.Sprintf("four%d", rows), fmt.Sprintf("rest%d", rows), fmt.Sprintf("one%d", rows), fmt.Sprintf("done%d", rows)
	a, b := t.vecs(rows), t.vecs(2)
	t.op("SUBS", "$4, %s", t.k)
	t.op("BLT", "%s", rest)
	t.label(four)
	for i, v := range a {
		t.op("FMOVQ.P", "16(%s), %s", t.a[i], v)
	}
	for lane := range quad {
		t.step(a, b, lane)
	}
	t.op("ADD", "$%d, %s", 4*quad*neonCols, t.b)
	t.op("SUBS", "$4, %s", t.k)
	t.op("BGE", "%s", four)
	t.label(rest)
	t.op("ADDS", "$4, %s", t.k)
	t.op("BEQ", "%s", done)
	t.label(one)
	for i, v := range a {
		t.op("FMOVS.P", "4(%s), %s", t.a[i], v)
	}
	t.step(a, b, 0)
	t.op("ADD", "$%d, %s", 4*neonCols, t.b)
	t.op("SUBS", "$1, %s", t.k)
	t.op("BNE", "%s", one)
	t.label(done)
}

// step adds the products of one row of op(B) and a lane of each row of op(A). The
// registers b take turns, so that a load does not wait for the products of the one before.
func (t *neonTile) step(a, b []vector, lane int) {
	for j := range neonCols / quad {
		columns := b[j%len(b)]
		t.op("FMOVQ", "%d(%s), %s", 4*(lane*neonCols+quad*j), t.b, columns)
		for i := range t.sums {
			t.multiplyAdd(t.sums[i][j], columns, a[i], lane)
		}
	}
}

// store writes the sums to C, or adds them to it.
func (t *neonTile) store(cursor general) {
	rows := len(t.sums)
	ragged, write := fmt.Sprintf("ragged%d", rows), fmt.Sprintf("write%d", rows)
	t.op("CMP", "$%d, %s", neonCols, t.cols)
	t.op("BNE", "%s", ragged)
	t.op("CBZ", "%s, %s", t.acc, write)
	t.eachPair(cursor, func(x, y vector, at int) {
		t.scope(func() {
			u, v := t.vec(), t.vec()
			t.op("FLDPQ", "%d(%s), (%s, %s)", at, cursor, u, v)
			t.do("fadd", x, u, x)
			t.do("fadd", y, v, y)
		})
	})
	t.label(write)
	t.eachPair(cursor, func(x, y vector, at int) {
		t.op("FSTPQ", "(%s, %s), %d(%s)", x, y, at, cursor)
	})
	t.finish()
	t.label(ragged)
	t.op("MOVD", "$sums-%d(SP), %s", stackBytes, cursor)
	for i, row := range t.sums {
		for j := 0; j < len(row); j += 2 {
			t.op("FSTPQ", "(%s, %s), %d(%s)", row[j], row[j+1], 4*(i*neonCols+quad*j), cursor)
		}
	}
	if rows < neonRows { // the last one ends where that begins
		t.op("JMP", "ragged")
	}
}

// eachPair applies f to pairs of sums and how far behind the cursor, which follows the
// rows of C, they belong.
func (t *neonTile) eachPair(cursor general, f func(x, y vector, at int)) {
	t.op("MOVD", "%s, %s", t.c, cursor)
	for i, row := range t.sums {
		for j := 0; j < len(row); j += 2 {
			f(row[j], row[j+1], 4*quad*j)
		}
		if i < len(t.sums)-1 {
			t.op("ADD", "%s, %s", t.ldc, cursor)
		}
	}
}

// emitRagged emits the end of a tile at C's right edge: the sums on the stack are written
// or added value by value.
func (t *neonTile) emitRagged(sums general) {
	from, to, left := t.reg(), t.reg(), t.reg()
	sum, old := t.vec(), t.vec()
	t.label("ragged")
	t.op("MOVD", "%s, %s", sums, from)
	t.op("MOVD", "%s, %s", t.c, to)
	t.op("MOVD", "%s, %s", t.cols, left)
	t.label("value")
	t.op("FMOVS.P", "4(%s), %s", from, sum)
	t.op("CBZ", "%s, writevalue", t.acc)
	t.op("FMOVS", "(%s), %s", to, old)
	t.op("FADDS", "%s, %s", old, sum)
	t.label("writevalue")
	t.op("FMOVS.P", "%s, 4(%s)", sum, to)
	t.op("SUBS", "$1, %s", left)
	t.op("BNE", "value")
	t.op("ADD", "$%d, %s", 4*neonCols, sums)
	t.op("ADD", "%s, %s", t.ldc, t.c)
	t.op("SUBS", "$1, %s", t.rows)
	t.op("BNE", "ragged")
	t.finish()
}
