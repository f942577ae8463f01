//go:build (amd64 || arm64) && !purego

package tensor

import (
	"testing"
	"unsafe"

	"pgregory.net/rapid"
)

// aheadBlock is the first block of a product on n threads, as gemmTiled plans it.
func aheadBlock(g gemmCase, n int) *tiler {
	a, b, c := g.operands(1)
	w := newTiler()
	w.tile, w.serial = &tile{rows: 14, cols: 32, asksAhead: true}, n == 1
	w.product = product{g.transA, g.transB, g.m, g.n, g.k, a.data, a.ld, b.data, b.ld, c.data, c.ld, g.acc}
	w.width = min(columnBlock, g.n)
	w.plan()
	w.layers = min(w.layers, ceilDiv(g.k, depthBlock))
	return w
}

// TestWalkCoversTheNextRows follows what the tiles of a layer of a task ask for: lines of A, and if there are
// enough tiles, each line of the part that comes after it: the next layer of the task, or the first of the next task, or
// of the first task of the next block.
func TestWalkCoversTheNextRows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 3).Draw(t, "threads")
		defer threads(n)()
		g := drawCase(t)
		g.k = max(g.k, stepsPerLine)
		if n > 1 && rapid.Bool().Draw(t, "deep and wide") {
			g.m, g.n, g.k = min(g.m, 100), 1000+g.n%100, 760+g.k
		}
		w := aheadBlock(g, n)
		task := rapid.IntRange(0, w.tasks()-1).Draw(t, "task")
		l := rapid.IntRange(0, w.layers-1).Draw(t, "layer")
		if rapid.Bool().Draw(t, "the last") {
			task, l = w.tasks()-1, w.layers-1
		}
		checkWalk(t, w, n, task, l, rapid.IntRange(0, 1000).Draw(t, "tiles"))
	})
}

// A block of several layers that is not the last: its second layer asks for the third, and its last one, of the last
// task, for the next block.
func TestWalkInDeepBlocks(t *testing.T) {
	for _, transA := range []bool{false, true} {
		for n := 2; n <= 3; n++ {
			back := threads(n)
			w := aheadBlock(gemmCase{transA: transA, m: 90, n: 1050, k: 1700}, n)
			if w.layers != packedLayers || w.layers*depthBlock >= w.k {
				t.Fatalf("the block has %d layers of %d rows in all: it is not what is to be tested", w.layers, w.k)
			}
			checkWalk(t, w, n, 0, 1, 1000)
			checkWalk(t, w, n, w.tasks()-1, w.layers-1, 1000)
			back()
		}
	}
}

// checkWalk fails unless so many tiles of a layer of a task, on n threads, ask for all that comes after it, if they are enough.
func checkWalk(t fataler, w *tiler, n, task, l, tiles int) {
	asked := linesAsked(t, w, task, l, tiles)
	_, own := w.layer(l)
	row, rows := w.rowsOf(task)
	depth := (l + 1) * depthBlock
	if l+1 == w.layers {
		row, rows = w.rowsOf(task + n)
		if depth = 0; task+n >= w.tasks() {
			depth = w.layers * depthBlock
		}
	}
	inner := min(depthBlock, w.k-depth)
	if w.transA {
		row, depth, rows, inner = depth, row, inner, rows
	}
	rows, lines := max(rows, 0), ceilDiv(max(inner, 0), lineValues)
	if linesAhead(own) == 0 || tiles < ceilDiv(rows, linesAhead(own))*lines {
		return
	}
	for r := range rows {
		for v := range lines {
			if !asked[(row+r)*w.lda+depth+v*lineValues] {
				t.Fatalf("%d x %d x %d, task %d of %d, layer %d of %d, %d tiles: line %d of row %d was not asked for", w.m, w.k, w.n, task, w.tasks(), l, w.layers, tiles, v, r)
			}
		}
	}
}

// Each row belongs to one of the tasks that share them, in order, and none of these has more than one
// tile more than another, nor more rows than are packed at a time.
func TestRowsAreDividedEvenly(t *testing.T) {
	for _, shape := range []*tile{{rows: 14, cols: 32}, {rows: 6, cols: 16}, {rows: 12, cols: 8}} {
		for _, n := range []int{1, 2, 3, 16} {
			for m := 1; m < 3000; m += 1 + m/7 {
				back := threads(n)
				w := newTiler()
				w.tile, w.serial, w.product, w.width = shape, n == 1, product{m: m, n: 40, k: 1}, 40
				w.plan()
				next, least, most := 0, m, 0
				for i := range w.rowTasks {
					row, rows := w.rowsOf(i)
					if row != next || rows < 1 || rows > rowBlock {
						t.Fatalf("%d rows, %d threads: task %d of %d has %d rows from %d on, want them from %d on", m, n, i, w.rowTasks, rows, row, next)
					}
					next = row + rows
					least, most = min(least, ceilDiv(rows, shape.rows)), max(most, ceilDiv(rows, shape.rows))
				}
				if next != m || most-least > 1 {
					t.Fatalf("%d rows, %d threads: %d are shared out, %d to %d tiles each", m, n, next, least, most)
				}
				back()
			}
		}
	}
}

// linesAsked returns where in A the lines begin that so many tiles ask for.
func linesAsked(t fataler, w *tiler, task, l, tiles int) map[int]bool {
	asked := make(map[int]bool)
	walk := w.after(task, l, tiles)
	_, inner := w.layer(l)
	for range tiles {
		at, step := walk.next(&w.c[0], w.ldc)
		if at == &w.c[0] {
			continue
		}
		from := int(uintptr(unsafe.Pointer(at))-uintptr(unsafe.Pointer(&w.a[0]))) / 4
		if from < 0 || from >= len(w.a) || step != 4*w.lda {
			t.Fatalf("a tile asks for value %d of %d, in steps of %d bytes", from, len(w.a), step)
		}
		for i := range linesAhead(inner) {
			asked[from+i*w.lda] = true
		}
	}
	return asked
}
