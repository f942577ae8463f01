//go:build amd64 && !purego

package tensor

import "sync"

// Products in bfloat16 on tile registers: TDPBF16PS multiplies 16 rows of 32 values with 32 rows of 16. A block of C of
// 32 x 32 values stays in four tiles while it walks along k in steps of 32. Operands are packed into strips of 32
// rows of op(A), or 32 columns of op(B), step by step in the order in which they are loaded.
//
// Go knows nothing of tiles. multiplyAMX sets them up and gives them up again, and between two calls none are in use.
// While it runs, the scheduler takes no goroutine from its thread: in assembly a goroutine cannot be
// preempted, and the signal that asks for it (SIGURG) only makes a note. The system saves tiles with
// the other registers of a thread, also when a signal is handled, on whose stack there is room: see permitTiles.
const (
	amxSide = 32                   // rows and columns of a block of C
	amxUnit = amxSide * pairsDepth // values of a strip in a step

	// amxLayer is for how many steps a block of C is multiplied at a time: a strip of op(B) then takes 32 KiB and
	// stays in the first cache, while strips of op(A) come from the second.
	amxLayer = 16

	// amxSteps bounds the steps that are packed at a time. With amxRows it keeps the packed op(A) of a task within
	// 1 MiB, half of the second cache.
	amxSteps = 128
	amxRows  = 512 << 10 // values

	// amxColumns bounds the packed op(B), in values: 8 MiB, which the last cache holds.
	amxColumns = 4 << 20

	// amxSerial is where threads begin to pay: see serialFlops.
	amxSerial = 32 << 20
)

// amxTiler is the state of one product under way, which later products use again.
type amxTiler struct {
	product
	packed            []uint16 // strips of op(B)
	col, width        int      // columns of the block
	depth, inner      int      // rows of op(B) in the block: the first, and how many
	steps             int      // of inner
	rowTasks, panels  int      // tasks that share the rows; strips of op(B) of one task
	serial            bool
	packTask, runTask func(i int)
}

// amxPack is what a task works in: strips of op(A), an operand with zeros around it, and a block of C.
type amxPack struct {
	rows         [amxRows]uint16
	ragged, side [amxUnit]float32
}

var (
	amxTilers = sync.Pool{New: func() any { return newAMXTiler() }}
	amxPacks  = sync.Pool{New: func() any { return new(amxPack) }}
)

func newAMXTiler() *amxTiler {
	t := &amxTiler{packed: make([]uint16, amxColumns)}
	t.packTask, t.runTask = t.packColumns, t.run
	return t
}

// gemmAMX computes a product block by block.
func gemmAMX(p product) {
	t := amxTilers.Get().(*amxTiler)
	t.product = p
	t.serial = 2*p.m*p.n*p.k < amxSerial || Threads() == 1
	for t.depth = 0; t.depth < p.k; t.depth += amxSteps * pairsDepth {
		t.inner = min(amxSteps*pairsDepth, p.k-t.depth)
		t.steps = ceilDiv(t.inner, pairsDepth)
		most := amxColumns / (t.steps * amxUnit) * amxSide
		for t.col = 0; t.col < p.n; t.col += most {
			t.width = min(most, p.n-t.col)
			t.plan()
			t.each(t.packTasks(), t.packTask)
			t.each(t.tasks(), t.runTask)
		}
	}
	t.product = product{} // holds no caller's memory
	amxTilers.Put(t)
}

// each runs a task for i in [0, n), on the pool unless the product is small.
func (t *amxTiler) each(n int, task func(i int)) {
	if !t.serial {
		Parallel(n, task)
		return
	}
	for i := range n {
		task(i)
	}
}

// strips is how many strips of op(B) the block has.
func (t *amxTiler) strips() int { return ceilDiv(t.width, amxSide) }

// plan divides a block into tasks, each a range of strips of rows times a range of strips of columns.
func (t *amxTiler) plan() {
	strips := ceilDiv(t.m, amxSide)
	tasks := ceilDiv(strips, amxRows/(t.steps*amxUnit))
	if !t.serial {
		tasks = max(2, ceilDiv(tasks, Threads())) * Threads()
	}
	t.rowTasks = min(tasks, strips)
	t.panels = ceilDiv(t.strips(), ceilDiv(tasks, t.rowTasks))
}

func (t *amxTiler) tasks() int { return t.rowTasks * ceilDiv(t.strips(), t.panels) }

// packTasks is how many tasks pack op(B): each a strip if it is transposed, or else a step, so that
// they read along the rows of B.
func (t *amxTiler) packTasks() int {
	if t.transB {
		return t.strips()
	}
	return t.steps
}

// packColumns packs a part of op(B).
func (t *amxTiler) packColumns(i int) {
	pack := amxPacks.Get().(*amxPack)
	from := matrixBF16{t.b, t.ldb, !t.transB, t.col, t.width, t.depth, t.inner}
	if t.transB {
		from.packStrips(t.packed, &pack.ragged, i, i+1, packTileRowsTurnedAMX)
	} else {
		from.packStep(t.packed, &pack.ragged, i, packTilePairsAMX)
	}
	amxPacks.Put(pack)
}

// run computes task i of the block.
func (t *amxTiler) run(i int) {
	all := ceilDiv(t.m, amxSide)
	part := i % t.rowTasks
	first, last := part*all/t.rowTasks, (part+1)*all/t.rowTasks
	row := first * amxSide
	rows := min(last*amxSide, t.m) - row
	pack := amxPacks.Get().(*amxPack)
	from := matrixBF16{t.a, t.lda, t.transA, row, rows, t.depth, t.inner}
	if t.transA {
		for step := range t.steps {
			from.packStep(pack.rows[:], &pack.ragged, step, packTilePairsTurnedAMX)
		}
	} else {
		from.packStrips(pack.rows[:], &pack.ragged, 0, last-first, packTileRowsAMX)
	}
	panel := i / t.rowTasks * t.panels
	for end := min(panel+t.panels, t.strips()); panel < end; panel++ {
		t.multiplyPanel(pack, row, rows, panel)
	}
	amxPacks.Put(pack)
}

// multiplyPanel multiplies the packed rows with a strip of op(B). Whole blocks of C are computed where they are.
func (t *amxTiler) multiplyPanel(pack *amxPack, row, rows, panel int) {
	cols := min(amxSide, t.width-panel*amxSide)
	b := t.packed[panel*t.steps*amxUnit:]
	c := t.c[row*t.ldc+t.col+panel*amxSide:]
	whole := rows / amxSide
	if cols < amxSide {
		whole = 0
	}
	acc := t.acc || t.depth > 0
	if whole > 0 {
		t.multiply(whole, pack.rows[:], b, c, t.ldc, acc)
	}
	for i := whole; i*amxSide < rows; i++ {
		t.raggedBlock(pack, pack.rows[i*t.steps*amxUnit:], b, c[i*amxSide*t.ldc:], min(amxSide, rows-i*amxSide), cols, acc)
	}
}

// multiply computes whole blocks of C, one below the other, layer by layer.
func (t *amxTiler) multiply(strips int, a, b []uint16, c []float32, ldc int, acc bool) {
	for step := 0; step < t.steps; step += amxLayer {
		at := step * amxUnit
		multiplyAMX(strips, min(amxLayer, t.steps-step), &a[at], t.steps*amxUnit, &b[at], &c[0], ldc, acc || step > 0)
	}
}

// raggedBlock computes a block of C that is not whole, in memory of its own.
func (t *amxTiler) raggedBlock(pack *amxPack, a, b []uint16, c []float32, rows, cols int, acc bool) {
	if acc {
		for i := range rows {
			copy(pack.side[i*amxSide:], c[i*t.ldc:][:cols])
		}
	}
	t.multiply(1, a, b, pack.side[:], amxSide, acc)
	for i := range rows {
		copy(c[i*t.ldc:][:cols], pack.side[i*amxSide:])
	}
}

// matrixBF16 is a part of an operand as the strips see it: rows of op(A), or columns of op(B), and their values
// along k. As stored each of them is a row, or a column.
type matrixBF16 struct {
	from        []float32
	ld          int
	columns     bool
	first, rows int // rows of the strips
	depth, k    int // of their values
}

// packAMX packs blocks of 32 x 32 values: see the generated functions.
type packAMX func(dst *uint16, dstStep int, src *float32, srcRow, srcStep, steps int)

// packStrips packs strips of a matrix whose values along k lie side by side.
func (m matrixBF16) packStrips(dst []uint16, ragged *[amxUnit]float32, first, last int, pack packAMX) {
	steps := ceilDiv(m.k, pairsDepth)
	for strip := first; strip < last; strip++ {
		row, step := strip*amxSide, 0
		if row+amxSide <= m.rows && m.k >= pairsDepth {
			step = m.k / pairsDepth
			pack(&dst[strip*steps*amxUnit], amxUnit, &m.from[(m.first+row)*m.ld+m.depth], m.ld, pairsDepth, step)
		}
		for ; step < steps; step++ {
			at := m.from[(m.first+row)*m.ld+m.depth+step*pairsDepth:]
			fillUp(ragged, at, m.ld, min(amxSide, m.rows-row), min(pairsDepth, m.k-step*pairsDepth))
			pack(&dst[(strip*steps+step)*amxUnit], amxUnit, &ragged[0], pairsDepth, 0, 1)
		}
	}
}

// packStep packs a step of all strips of a matrix whose values along k lie below each other.
func (m matrixBF16) packStep(dst []uint16, ragged *[amxUnit]float32, step int, pack packAMX) {
	steps := ceilDiv(m.k, pairsDepth)
	from := m.from[(m.depth+step*pairsDepth)*m.ld+m.first:]
	deep, strip := min(pairsDepth, m.k-step*pairsDepth), 0
	if deep == pairsDepth && m.rows >= amxSide {
		strip = m.rows / amxSide
		pack(&dst[step*amxUnit], steps*amxUnit, &from[0], m.ld, amxSide, strip)
	}
	for ; strip*amxSide < m.rows; strip++ {
		fillUp(ragged, from[strip*amxSide:], m.ld, deep, min(amxSide, m.rows-strip*amxSide))
		pack(&dst[(strip*steps+step)*amxUnit], amxUnit, &ragged[0], amxSide, 0, 1)
	}
}

// fillUp copies rows x cols values and fills them up with zeros to 32 x 32.
func fillUp(dst *[amxUnit]float32, src []float32, ld, rows, cols int) {
	clear(dst[:])
	for i := range rows {
		copy(dst[i*amxSide:], src[i*ld:][:cols])
	}
}
