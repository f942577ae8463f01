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

	// amxBlock bounds the strips of op(B) that a task multiplies with each of its strips of op(A), in values: 1 MiB, half of the
	// second cache. Blocks of C are computed row by row, so that memory is written as it lies.
	amxBlock = 512 << 10

	// amxLayer is for how many steps a block of C is multiplied at a time: a strip of op(A) then takes 32 KiB and
	// stays in the first cache, while strips of op(B) come from the second.
	amxLayer = 16

	// amxSteps bounds the steps that are packed at a time, and amxPacked the values of either operand: 8 MiB, which the
	// last cache holds.
	amxSteps  = 128
	amxPacked = 4 << 20

	// amxSerial is where threads begin to pay: see serialFlops.
	amxSerial = 32 << 20
)

// amxTiler is the state of one product under way, which later products use again.
type amxTiler struct {
	product
	a, b              operandBF16
	serial            bool
	panels            int // strips of op(B) that a task multiplies with
	rowTasks          int // tasks that share the strips of op(A)
	packTask, runTask func(i int)
}

// amxScratch is what a task works in: an operand with zeros around it, and a block of C.
type amxScratch struct{ ragged, block [amxUnit]float32 }

var (
	amxTilers    = sync.Pool{New: func() any { return newAMXTiler() }}
	amxScratches = sync.Pool{New: func() any { return new(amxScratch) }}
)

func newAMXTiler() *amxTiler {
	t := &amxTiler{}
	t.a.packed, t.b.packed = make([]uint16, amxPacked), make([]uint16, amxPacked)
	t.packTask, t.runTask = t.pack, t.run
	return t
}

// gemmAMX computes a product part by part.
func gemmAMX(p product) {
	t := amxTilers.Get().(*amxTiler)
	t.product = p
	t.serial = 2*p.m*p.n*p.k < amxSerial || Threads() == 1
	t.a.from, t.a.ld, t.a.columns = p.a, p.lda, p.transA
	t.b.from, t.b.ld, t.b.columns = p.b, p.ldb, !p.transB
	for depth := 0; depth < p.k; depth += amxSteps * pairsDepth {
		k := min(amxSteps*pairsDepth, p.k-depth)
		most := amxPacked / (ceilDiv(k, pairsDepth) * amxUnit) * amxSide
		for col := 0; col < p.n; col += most {
			t.b.part(col, min(most, p.n-col), depth, k)
			for row := 0; row < p.m; row += most {
				t.a.part(row, min(most, p.m-row), depth, k)
				t.plan()
				t.each(t.a.tasks+t.b.tasks, t.packTask)
				t.each(t.rowTasks*ceilDiv(t.b.strips, t.panels), t.runTask)
			}
		}
	}
	t.product, t.a.from, t.b.from = product{}, nil, nil // holds no caller's memory
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

// plan divides the part into tasks, each a range of strips of op(A) times a range of strips of op(B): two or more
// for each thread even out threads of different speed.
func (t *amxTiler) plan() {
	t.panels = min(t.b.strips, max(1, amxBlock/(t.b.steps*amxUnit)))
	t.rowTasks = 1
	if !t.serial {
		t.rowTasks = min(t.a.strips, ceilDiv(2*Threads(), ceilDiv(t.b.strips, t.panels)))
	}
}

// pack packs a part of one operand.
func (t *amxTiler) pack(i int) {
	s := amxScratches.Get().(*amxScratch)
	switch {
	case i >= t.a.tasks && t.transB:
		t.b.packStrip(i-t.a.tasks, packTileRowsTurnedAMX, &s.ragged)
	case i >= t.a.tasks:
		t.b.packStep(i-t.a.tasks, packTilePairsAMX, &s.ragged)
	case t.transA:
		t.a.packStep(i, packTilePairsTurnedAMX, &s.ragged)
	default:
		t.a.packStrip(i, packTileRowsAMX, &s.ragged)
	}
	amxScratches.Put(s)
}

// run computes task i of the part.
func (t *amxTiler) run(i int) {
	s := amxScratches.Get().(*amxScratch)
	part, panel := i%t.rowTasks, i/t.rowTasks*t.panels
	panels := min(t.panels, t.b.strips-panel)
	for strip := part * t.a.strips / t.rowTasks; strip < (part+1)*t.a.strips/t.rowTasks; strip++ {
		t.multiplyStrip(s, strip, panel, panels)
	}
	amxScratches.Put(s)
}

// multiplyStrip multiplies a strip of op(A) with strips of op(B). Whole blocks of C are computed where they are.
func (t *amxTiler) multiplyStrip(s *amxScratch, strip, panel, panels int) {
	rows, acc := min(amxSide, t.a.rows-strip*amxSide), t.acc || t.b.depth > 0
	first, cols := panel*amxSide, min(panels*amxSide, t.b.rows-panel*amxSide)
	a, b := t.a.strip(strip), t.b.packed[panel*t.b.steps*amxUnit:]
	c := t.c[(t.a.first+strip*amxSide)*t.ldc+t.b.first+first:]
	whole := cols / amxSide
	if rows < amxSide {
		whole = 0
	}
	if whole > 0 {
		t.multiply(whole, a, b, c, t.ldc, acc)
	}
	for i := whole; i < panels; i++ {
		t.raggedBlock(&s.block, a, b[i*t.b.steps*amxUnit:], c[i*amxSide:], rows, min(amxSide, cols-i*amxSide), acc)
	}
}

// multiply computes whole blocks of C, side by side, layer by layer.
func (t *amxTiler) multiply(strips int, a, b []uint16, c []float32, ldc int, acc bool) {
	for step := 0; step < t.b.steps; step += amxLayer {
		at := step * amxUnit
		multiplyAMX(strips, min(amxLayer, t.b.steps-step), &a[at], &b[at], t.b.steps*amxUnit, &c[0], ldc, acc || step > 0)
	}
}

// raggedBlock computes a block of C that is not whole, in memory of its own.
func (t *amxTiler) raggedBlock(block *[amxUnit]float32, a, b []uint16, c []float32, rows, cols int, acc bool) {
	if acc {
		for i := range rows {
			copy(block[i*amxSide:], c[i*t.ldc:][:cols])
		}
	}
	t.multiply(1, a, b, block[:], amxSide, acc)
	for i := range rows {
		copy(c[i*t.ldc:][:cols], block[i*amxSide:])
	}
}

// operandBF16 is an operand, of which a part is packed: rows of op(A) or columns of op(B), here both called rows, and some
// of their values along k. As stored each of them is a row, or a column.
type operandBF16 struct {
	from          []float32
	ld            int
	columns       bool
	first, rows   int // rows of the part
	depth, k      int // of their values
	steps, strips int // of 32 values, of 32 rows
	tasks         int // that pack them: each a strip or, where values along k lie below each other, a step
	packed        []uint16
}

func (o *operandBF16) part(first, rows, depth, k int) {
	o.first, o.rows, o.depth, o.k = first, rows, depth, k
	o.steps, o.strips = ceilDiv(k, pairsDepth), ceilDiv(rows, amxSide)
	o.tasks = o.strips
	if o.columns {
		o.tasks = o.steps
	}
}

// strip is where a strip is packed.
func (o *operandBF16) strip(i int) []uint16 { return o.packed[i*o.steps*amxUnit:][:o.steps*amxUnit] }

// packAMX packs blocks of 32 x 32 values: see the generated functions.
type packAMX func(dst *uint16, dstStep int, src *float32, srcRow, srcStep, steps int)

// packStrip packs a strip whose values along k lie side by side.
func (o *operandBF16) packStrip(strip int, pack packAMX, ragged *[amxUnit]float32) {
	dst, row := o.strip(strip), strip*amxSide
	from := o.from[(o.first+row)*o.ld+o.depth:]
	rows, step := min(amxSide, o.rows-row), 0
	if rows == amxSide && o.k >= pairsDepth {
		step = o.k / pairsDepth
		pack(&dst[0], amxUnit, &from[0], o.ld, pairsDepth, step)
	}
	for ; step < o.steps; step++ {
		fillUp(ragged, from[step*pairsDepth:], o.ld, rows, min(pairsDepth, o.k-step*pairsDepth))
		pack(&dst[step*amxUnit], amxUnit, &ragged[0], pairsDepth, 0, 1)
	}
}

// packStep packs a step of all strips, whose values along k lie below each other.
func (o *operandBF16) packStep(step int, pack packAMX, ragged *[amxUnit]float32) {
	dst, stride := o.packed[step*amxUnit:], o.steps*amxUnit
	from := o.from[(o.depth+step*pairsDepth)*o.ld+o.first:]
	deep, strip := min(pairsDepth, o.k-step*pairsDepth), 0
	if deep == pairsDepth && o.rows >= amxSide {
		strip = o.rows / amxSide
		pack(&dst[0], stride, &from[0], o.ld, amxSide, strip)
	}
	for ; strip < o.strips; strip++ {
		fillUp(ragged, from[strip*amxSide:], o.ld, deep, min(amxSide, o.rows-strip*amxSide))
		pack(&dst[strip*stride], amxUnit, &ragged[0], amxSide, 0, 1)
	}
}

// fillUp copies rows x cols values and fills them up with zeros to 32 x 32.
func fillUp(dst *[amxUnit]float32, src []float32, ld, rows, cols int) {
	clear(dst[:])
	for i := range rows {
		copy(dst[i*amxSide:], src[i*ld:][:cols])
	}
}
