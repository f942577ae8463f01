//go:build (amd64 || arm64) && !purego

package tensor

// rowsOfA returns A from the value of op(A) on that is in this row and the first column of a
// layer, with the strides of op(A).
func (t *tiler) rowsOfA(l, row int) (a []float32, aRow, aStep int) {
	depth, _ := t.layer(l)
	if t.transA {
		return t.a[depth*t.lda+row:], 1, t.lda
	}
	return t.a[row*t.lda+depth:], t.lda, 1
}

// gatherRows is how many rows of a transposed A are gathered at a time: one tile ends amid the
// line that the next one begins with, which is still in the first cache then.
const gatherRows = 32

// packRows copies rows of op(A) in a layer to dst as they are stored: rows stay rows, but columns
// of a transposed A are gathered by tiles, or become rows if the tile wants them. It returns
// the strides, and how far apart tiles begin.
func (t *tiler) packRows(dst []float32, l, row, rows int) (aRow, aStep, tileStep int) {
	a, _, _ := t.rowsOfA(l, row)
	_, inner := t.layer(l)
	aRow = inner + rowGap
	switch {
	case !t.transA:
		for i := range rows {
			copy(dst[i*aRow:][:inner], a[i*t.lda:])
		}
		return aRow, 1, t.rows * aRow
	case t.byRows:
		packTransposed(dst, aRow, a, t.lda, inner, rows)
		return aRow, 1, t.rows * aRow
	}
	tileStep = t.rows * (inner + rowGap) // columns are filled up beyond the last row of a tile
	for k := 0; k < inner; k += gatherRows {
		for i := 0; i < rows; i += t.rows {
			to := i/t.rows*tileStep + k*t.rows
			t.packColumns(&dst[to], t.rows, false, &a[k*t.lda+i], t.lda, min(t.rows, rows-i), min(gatherRows, inner-k))
		}
	}
	return 1, t.rows, tileStep
}

// packPanel packs panel i of the layers of op(B): each row of the panel has the tile's columns,
// those beyond the matrix being 0.
func (t *tiler) packPanel(i int) {
	l, panel := i/t.panels(), i%t.panels()
	depth, inner := t.layer(l)
	dst := t.panel(l, panel, inner)
	left := t.col + panel*t.cols
	cols := min(t.cols, t.n-left)
	if !t.transB {
		t.packColumns(&dst[0], t.cols, true, &t.b[depth*t.ldb+left], t.ldb, cols, inner)
		return
	}
	if cols < t.cols {
		clear(dst)
	}
	packTransposed(dst, t.cols, t.b[left*t.ldb+depth:], t.ldb, cols, inner)
}

// packTransposed writes cols rows of k values, ld values apart, as k rows of width
// values.
func packTransposed(dst []float32, width int, src []float32, ld, cols, k int) {
	blocks := k / 8
	j := 0
	for ; blocks > 0 && j+8 <= cols; j += 8 {
		transpose8(&dst[j], width, &src[j*ld], ld, blocks)
	}
	for i := range cols {
		from := 0
		if i < j {
			from = 8 * blocks
		}
		for p := from; p < k; p++ {
			dst[p*width+i] = src[i*ld+p]
		}
	}
}
