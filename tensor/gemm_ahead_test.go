//go:build (amd64 || arm64) && !purego

package tensor

import (
	"testing"
	"unsafe"

	"pgregory.net/rapid"
)

// TestWalkCoversTheNextRows follows what the tiles of a task ask for: lines of A, and if there are
// enough tiles, each line of the part that the task after it packs.
func TestWalkCoversTheNextRows(t *testing.T) {
	defer threads(1)()
	shape := &tile{rows: 14, cols: 32, asksAhead: true}
	rapid.Check(t, func(t *rapid.T) {
		g := drawCase(t)
		g.k = max(g.k, stepsPerLine)
		a, b, c := g.operands(1)
		w := newTiler()
		w.tile, w.serial = shape, true
		w.product = product{g.transA, g.transB, g.m, g.n, g.k, a.data, a.ld, b.data, b.ld, c.data, c.ld, g.acc}
		w.width = min(columnBlock, g.n)
		w.plan()
		w.inner = min(depthBlock, g.k)
		task := rapid.IntRange(0, w.tasks()-1).Draw(t, "task")
		tiles := rapid.IntRange(0, 1000).Draw(t, "tiles")
		asked := linesAsked(t, w, task, tiles)

		row, depth := (task+1)*w.taskRows, 0
		if task+1 == w.tasks() {
			row, depth = 0, depthBlock
		}
		rows, inner := min(w.taskRows, g.m-row), min(depthBlock, g.k-depth)
		if g.transA {
			row, depth, rows, inner = depth, row, inner, rows
		}
		rows, lines := max(rows, 0), ceilDiv(max(inner, 0), lineValues)
		if tiles < ceilDiv(rows, linesAhead(w.inner))*lines {
			return
		}
		for r := range rows {
			for v := range lines {
				if !asked[(row+r)*a.ld+depth+v*lineValues] {
					t.Fatalf("%+v, task %d of %d, %d tiles: line %d of row %d was not asked for", g, task, w.tasks(), tiles, v, r)
				}
			}
		}
	})
}

// linesAsked returns where in A the lines begin that so many tiles ask for.
func linesAsked(t *rapid.T, w *tiler, task, tiles int) map[int]bool {
	asked := make(map[int]bool)
	walk := w.after(task, tiles)
	for range tiles {
		at, step := walk.next(&w.c[0], w.ldc)
		if at == &w.c[0] {
			continue
		}
		from := int(uintptr(unsafe.Pointer(at))-uintptr(unsafe.Pointer(&w.a[0]))) / 4
		if from < 0 || from >= len(w.a) || step != 4*w.lda {
			t.Fatalf("a tile asks for value %d of %d, in steps of %d bytes", from, len(w.a), step)
		}
		for i := range linesAhead(w.inner) {
			asked[from+i*w.lda] = true
		}
	}
	return asked
}
