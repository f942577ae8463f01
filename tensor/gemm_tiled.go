//go:build (amd64 || arm64) && !purego

package tensor

import "sync"

// The product is cut into blocks (K. Goto and R. van de Geijn, Anatomy of
// high-performance matrix multiplication, 2008): depthBlock rows by columnBlock columns of
// op(B), a layer, are packed and shared by all threads, who take several layers at a time; rowBlock rows of op(A) at a time are
// multiplied with them, tile by tile. A panel of op(B), depthBlock by one tile's
// columns, takes 32 KiB and stays in the first cache while it meets each tile of rows;
// the rows of op(A) take some 350 KiB and stay in the second. depthBlock decides where
// sums are rounded and is therefore the same for all kernels.
const (
	depthBlock  = 256
	columnBlock = 1024
	rowBlock    = 336

	// packedLayers is how many layers of depthBlock rows, of a block of full width, threads pack before they
	// multiply: they wait for one another after each packing. As many layers of a narrow block fit as have that size.
	packedLayers = 3
)

// rowGap is put between packed rows of op(A). Being odd, it lets the rows of a tile
// reach their next cache lines one after the other, and not all at once.
const rowGap = 1

// serialFlops is where threads begin to pay: about 20 us of one core, a few times
// what it takes to wake another.
const serialFlops = 4 << 20

// tile is a kernel for one tile of C. multiply computes rows x cols values (at most
// the tile's), each the sum of k products: value (i, p) of op(A) is at a + i*aRow +
// p*aStep, b is a packed panel of op(B) with the tile's columns in each of k rows, and
// c has the leading dimension ldc. Strides count values; aStep is 1 if byRows.
// If asksAhead, a full tile also asks for linesAhead(k) lines of memory that later tiles need,
// aheadStep bytes apart from ahead on; they may lie anywhere. packColumns copies k rows of some columns and fills each up with zeros to half the tile's
// columns, or to all if wide; if byRows, it is only asked for wide ones.
type tile struct {
	rows, cols  int
	byRows      bool
	asksAhead   bool
	multiply    func(rows, cols, k int, a *float32, aRow, aStep int, b, c *float32, ldc int, acc bool, ahead *float32, aheadStep int)
	packColumns func(dst *float32, dstRow int, wide bool, src *float32, srcRow, cols, k int)
}

// tiler is the state of one product under way: the block that is worked on, and its
// packed op(B). It is used again for later products, with its task functions, so that
// a product allocates nothing.
type tiler struct {
	product
	*tile
	packed            []float32 // panels of op(B)
	col, width        int       // columns of the block
	depth, layers     int       // first row of op(B) in the block, and how many times depthBlock rows
	rowTasks, strips  int       // tasks that share the rows; panels of one task
	packA, serial     bool
	packTask, runTask func(i int)
}

var (
	tilers   = sync.Pool{New: func() any { return newTiler() }}
	rowPacks = sync.Pool{New: func() any { return &rowPack{} }}
)

// rowPack holds the packed op(A) of one task: rows with their gaps, or tiles, the last
// row of which may be filled up with a few values too many.
type rowPack [rowBlock * (depthBlock + rowGap)]float32

func newTiler() *tiler {
	t := &tiler{packed: make([]float32, packedLayers*depthBlock*columnBlock)}
	t.packTask, t.runTask = t.packPanel, t.run
	return t
}

// gemmTiled computes a product block by block.
func gemmTiled(shape *tile, p product) {
	t := tilers.Get().(*tiler)
	t.tile, t.product = shape, p
	t.serial = 2*p.m*p.n*p.k < serialFlops || Threads() == 1
	for t.col = 0; t.col < p.n; t.col += columnBlock {
		t.width = min(columnBlock, p.n-t.col)
		t.plan()
		for t.depth = 0; t.depth < p.k; t.depth += t.layers * depthBlock {
			t.layers = min(t.layers, ceilDiv(p.k-t.depth, depthBlock))
			t.each(t.layers*t.panels(), t.packTask)
			t.each(t.tasks(), t.runTask)
		}
	}
	t.product = product{} // holds no caller's memory
	tilers.Put(t)
}

// each runs a task for i in [0, n), on the pool unless the product is small.
func (t *tiler) each(n int, task func(i int)) {
	if !t.serial {
		Parallel(n, task)
		return
	}
	for i := range n {
		task(i)
	}
}

// layer is depthBlock rows of op(B), or what is left of them: the first one, and their number.
func (t *tiler) layer(l int) (depth, inner int) {
	depth = t.depth + l*depthBlock
	return depth, min(depthBlock, t.k-depth)
}

// panels is how many panels of op(B) a layer has.
func (t *tiler) panels() int { return ceilDiv(t.width, t.cols) }

// panel is where a panel of a layer, of inner rows, is packed.
func (t *tiler) panel(l, panel, inner int) []float32 {
	at := l*t.panels()*t.cols*depthBlock + panel*t.cols*inner
	return t.packed[at:][:t.cols*inner]
}

// tasks is how many tasks the block has.
func (t *tiler) tasks() int { return t.rowTasks * ceilDiv(t.panels(), t.strips) }

// plan divides a block into tasks, each a range of rows times a range of panels. Rows
// are divided first, and evenly, since a task packs its own; two tasks or more per thread
// even out threads of different speed.
func (t *tiler) plan() {
	tiles := ceilDiv(t.m, t.rows)
	tasks := ceilDiv(tiles, rowBlock/t.rows)
	if !t.serial {
		tasks = max(2, ceilDiv(tasks, Threads())) * Threads()
	}
	t.rowTasks = min(tasks, tiles)
	t.strips = ceilDiv(t.panels(), ceilDiv(tasks, t.rowTasks))
	t.packA = t.panels() > directPanels || t.transA && (t.byRows || t.panels() > 1)
	t.layers = 1
	if !t.serial {
		t.layers = max(1, len(t.packed)/(t.panels()*t.cols*depthBlock))
	}
}

// rowsOf is the first row of a task and the number of its rows: tasks differ by at most one.
func (t *tiler) rowsOf(task int) (row, rows int) {
	i := task % t.rowTasks
	row = i * t.m / t.rowTasks
	return row, (i+1)*t.m/t.rowTasks - row
}

// directPanels is up to how many panels rows of A are read where they are: packing
// them costs as much as a few passes over them.
const directPanels = 8

// run computes task i of the block, layer by layer.
func (t *tiler) run(i int) {
	row, rows := t.rowsOf(i)
	if !t.packA {
		step := ceilDiv(rows, ceilDiv(rows, t.rows)) // tiles alike: one of few rows would wait for each sum
		for l := range t.layers {
			a, aRow, aStep := t.rowsOfA(l, row)
			t.tiles(i, l, row, rows, step, a, aRow, aStep, step*aRow)
		}
		return
	}
	pack := rowPacks.Get().(*rowPack)
	for l := range t.layers {
		aRow, aStep, tileStep := t.packRows(pack[:], l, row, rows)
		t.tiles(i, l, row, rows, t.rows, pack[:], aRow, aStep, tileStep)
	}
	rowPacks.Put(pack)
}

// tiles adds a layer to the rows of a task, or begins with it, by tiles of so many rows. a begins with
// the value of the first row; the next tile of rows begins tileStep values later.
func (t *tiler) tiles(task, l, row, rows, step int, a []float32, aRow, aStep, tileStep int) {
	depth, inner := t.layer(l)
	acc := t.acc || depth > 0
	first := task / t.rowTasks * t.strips
	last := min(first+t.strips, t.panels())
	w := t.after(task, l, rows/t.rows*(last-first))
	for panel := first; panel < last; panel++ {
		b := &t.panel(l, panel, inner)[0]
		left := panel * t.cols
		cols := min(t.cols, t.width-left)
		for i := 0; i < rows; i += step {
			c := &t.c[(row+i)*t.ldc+t.col+left]
			ahead, aheadStep := c, 4*t.ldc
			high := min(step, rows-i)
			if high == t.rows {
				ahead, aheadStep = w.next(c, t.ldc)
			}
			t.multiply(high, cols, inner, &a[i/step*tileStep], aRow, aStep, b, c, t.ldc, acc, ahead, aheadStep)
		}
	}
}
