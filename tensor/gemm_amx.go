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

	// amxKept bounds how many units of one operand, the kept one, are packed at a time, for all threads: 1 MiB, half of the
	// second cache. They are read there again and again: from the last cache a core gets a unit in the time in which
	// it multiplies two or three.
	amxKept = 512

	// amxLayer is for how many steps a block of C is multiplied at a time: a strip of A then takes 32 KiB and
	// stays in the first cache, while strips of B come from the second.
	amxLayer = 16

	// amxDepth bounds the steps of a part.
	amxDepth = 128

	// amxNarrow is how many units of the other operand, the passing one, are packed at a time if a strip has fewer. They stay in
	// the second cache as well.
	amxNarrow = 32

	// amxWide and amxWideDepth take the place of amxNarrow and amxDepth where values along k lie below each other: many
	// strips and few steps are long pieces of few rows, where memory is faster and few lines fall on the same
	// place of a cache.
	amxWide      = 256
	amxWideDepth = 8

	// amxBatch is how many units multiplyAMX multiplies, if there are as many: to set up tiles takes as long as some units.
	amxBatch = 256

	// amxFar is from how many steps on there is time to fetch the next block of C into the second cache only, which leaves the first one
	// to the operands.
	amxFar = 8

	// keptAhead is how many values before their use the kept operand is asked for when it is packed: 32 rows are more streams
	// than a processor follows by itself. The passing one has been asked for while blocks were multiplied.
	keptAhead = 128

	// amxSerial is where threads begin to pay: see serialFlops.
	amxSerial = 32 << 20
)

// amxTiler is the state of one product under way, which later products use again. One operand is kept: a part of
// it is packed for all tasks. The other one passes: each task packs its strips, some at a time, shortly before it multiplies them.
type amxTiler struct {
	product
	kept, passing     operandBF16
	keepsA            bool
	serial            bool
	tasks             int // that share the passing strips
	packTask, runTask func(i int)
}

// amxScratch is what a task works in: an operand with zeros around it, a block of C, and packed strips.
type amxScratch struct {
	ragged, block [amxUnit]float32
	strips        [2][amxWide * amxUnit]uint16
}

var (
	amxTilers    = sync.Pool{New: func() any { return newAMXTiler() }}
	amxScratches = sync.Pool{New: func() any { return new(amxScratch) }}
)

func newAMXTiler() *amxTiler {
	t := &amxTiler{}
	t.kept.packed = make([]uint16, amxKept*amxUnit)
	t.packTask, t.runTask = t.pack, t.run
	return t
}

// gemmAMX computes a product part by part.
func gemmAMX(p product) {
	t := amxTilers.Get().(*amxTiler)
	t.begin(p)
	steps, strips := t.part()
	for depth := 0; depth < p.k; depth += steps * pairsDepth {
		for first := 0; first < t.kept.all; first += strips * amxSide {
			t.kept.part(first, min(strips*amxSide, t.kept.all-first), depth, min(steps*pairsDepth, p.k-depth))
			t.each(t.kept.tasks, t.packTask)
			t.each(t.tasks, t.runTask)
		}
	}
	t.product, t.kept.from, t.passing.from = product{}, nil, nil // holds no caller's memory
	amxTilers.Put(t)
}

// begin keeps the operand with fewer rows, so that the parts are few.
func (t *amxTiler) begin(p product) {
	t.product, t.keepsA = p, p.m < p.n
	kept, passing := operandB(p), operandA(p)
	if t.keepsA {
		kept, passing = passing, kept
	}
	kept.packed, kept.ahead = t.kept.packed, keptAhead
	t.kept, t.passing = kept, passing
	t.serial = 2*p.m*p.n*p.k < amxSerial || Threads() == 1
	t.tasks = 1
	if !t.serial {
		t.tasks = min(ceilDiv(passing.all, amxSide), 2*Threads()) // two for each even out threads of different speed
	}
}

func operandA(p product) operandBF16 {
	if p.transA {
		return operandBF16{from: p.a, ld: p.lda, all: p.m, columns: true, pack: packTilePairsTurnedAMX}
	}
	return operandBF16{from: p.a, ld: p.lda, all: p.m, pack: packTileRowsAMX}
}

func operandB(p product) operandBF16 {
	if p.transB {
		return operandBF16{from: p.b, ld: p.ldb, all: p.n, pack: packTileRowsTurnedAMX}
	}
	return operandBF16{from: p.b, ld: p.ldb, all: p.n, columns: true, pack: packTilePairsAMX}
}

// part is how many steps and strips of the kept operand make a part. Each division along k reads and writes C once more, each
// other one reads the passing operand once more. A row of that has k values, one of C as many as the kept operand has rows.
func (t *amxTiler) part() (steps, strips int) {
	all, rows, deep := ceilDiv(t.k, pairsDepth), ceilDiv(t.kept.all, amxSide), amxDepth
	if t.passing.columns {
		deep = amxWideDepth
	}
	least := 0
	for depths := ceilDiv(all, deep); ; depths++ {
		s := ceilDiv(all, depths)
		spans := ceilDiv(rows, amxKept/s)
		if cost := 2*depths*t.kept.all + spans*t.k; least == 0 || cost < least {
			least, steps, strips = cost, s, ceilDiv(rows, spans)
		}
		if spans == 1 || s <= amxLayer {
			return steps, strips
		}
	}
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

// pack packs a part of the kept operand.
func (t *amxTiler) pack(i int) {
	s := amxScratches.Get().(*amxScratch)
	t.kept.packTask(i, &s.ragged)
	amxScratches.Put(s)
}

// run multiplies the part with task i's strips of the passing operand, group by group.
func (t *amxTiler) run(i int) {
	s := amxScratches.Get().(*amxScratch)
	strips := ceilDiv(t.passing.all, amxSide)
	row, end := i*strips/t.tasks*amxSide, min((i+1)*strips/t.tasks*amxSide, t.passing.all)
	g := amxGroup{tiler: t, scratch: s, now: t.passing, next: t.passing}
	g.now.packed, g.next.packed = s.strips[0][:], s.strips[1][:]
	size := t.groupRows()
	g.now.part(row, min(size, end-row), t.kept.depth, t.kept.k)
	g.now.packSteps(0, g.now.steps, &s.ragged)
	for row < end {
		row = min(row+size, end)
		g.next.part(row, min(size, end-row), t.kept.depth, t.kept.k)
		g.multiply()
		g.now, g.next = g.next, g.now
	}
	amxScratches.Put(s)
}

// groupRows is how many rows of the passing operand are packed at a time.
func (t *amxTiler) groupRows() int {
	if t.passing.columns {
		return amxWide / t.kept.steps * amxSide
	}
	return max(1, amxNarrow/t.kept.steps) * amxSide
}

// amxGroup is strips of the passing operand, and those that come next, if there are any.
type amxGroup struct {
	tiler     *amxTiler
	scratch   *amxScratch
	now, next operandBF16
}

// multiply multiplies the strips with the kept ones. Meanwhile it packs the next ones piece by piece, and asks for each piece while
// blocks are multiplied: otherwise a core waits for memory as long as it multiplies.
func (g *amxGroup) multiply() {
	a, b := g.sides()
	strips, inner := a.rows/amxSide, b.rows/amxSide
	layers := ceilDiv(a.steps, amxLayer)
	batch := max(1, amxBatch/max(1, inner*ceilDiv(a.steps, layers)))
	pieces, packed := ceilDiv(strips, batch)*layers, 0
	if inner == 0 {
		pieces = 0
	}
	for i := range pieces {
		strip, from, to := i/layers*batch, i%layers*a.steps/layers, (i%layers+1)*a.steps/layers
		end := (i + 1) * g.next.steps / pieces
		g.blocks(strip, min(batch, strips-strip), inner, from, to-from, g.next.walk(packed, end))
		g.next.packSteps(packed, end, &g.scratch.ragged)
		packed = end
	}
	g.next.packSteps(packed, g.next.steps, &g.scratch.ragged)
	for i := range a.strips {
		first := inner
		if i >= strips {
			first = 0
		}
		for j := first; j < b.strips; j++ {
			g.raggedBlock(a, b, i, j)
		}
	}
}

// sides are the operands of which a product is now computed.
func (g *amxGroup) sides() (a, b *operandBF16) {
	if g.tiler.keepsA {
		return &g.tiler.kept, &g.now
	}
	return &g.now, &g.tiler.kept
}

// blocks computes whole blocks of C where they are, row by row as they lie in memory, for some steps of strips of A.
func (g *amxGroup) blocks(first, outer, inner, step, steps int, w amxWalk) {
	t := g.tiler
	a, b := g.sides()
	strip, c := a.steps*amxUnit, t.c[(a.first+first*amxSide)*t.ldc+b.first:]
	near, far := ceilDiv(amxSide, steps), 0
	if steps >= amxFar {
		near, far = far, near
	}
	multiplyAMX(outer, inner, steps, &a.packed[first*strip+step*amxUnit], strip, &b.packed[step*amxUnit], strip, -inner*strip,
		&c[0], amxSide*(t.ldc-inner), t.ldc, near, far,
		w.from, g.next.ld, w.rows, w.columns, ceilDiv(w.rows*w.columns, outer*inner*steps), t.accumulates() || step > 0)
}

// accumulates tells whether the part adds to C.
func (t *amxTiler) accumulates() bool { return t.acc || t.kept.depth > 0 }

// amxWalk is what blocks ask for: so many rows of a matrix, and columns of two lines.
type amxWalk struct {
	from          *float32
	rows, columns int
}

// walk goes through steps of the operand.
func (o *operandBF16) walk(from, to int) amxWalk {
	if o.rows == 0 || to == from {
		return amxWalk{from: &o.from[0]}
	}
	at := o.depth + from*pairsDepth
	if o.columns {
		return amxWalk{&o.from[at*o.ld+o.first], min(to*pairsDepth, o.k) - from*pairsDepth, o.strips}
	}
	return amxWalk{&o.from[o.first*o.ld+at], o.rows, to - from}
}

// raggedBlock computes a block of C that is not whole, in memory of its own.
func (g *amxGroup) raggedBlock(a, b *operandBF16, i, j int) {
	t, block := g.tiler, &g.scratch.block
	c := t.c[(a.first+i*amxSide)*t.ldc+b.first+j*amxSide:]
	rows, cols := min(amxSide, a.rows-i*amxSide), min(amxSide, b.rows-j*amxSide)
	acc := t.accumulates()
	if acc {
		for i := range rows {
			copy(block[i*amxSide:], c[i*t.ldc:][:cols])
		}
	}
	multiplyAMX(1, 1, a.steps, &a.strip(i)[0], 0, &b.strip(j)[0], 0, 0, &block[0], 0, amxSide, 0, 0, &block[0], 0, 0, 0, 0, acc)
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
	pack          packAMX
	ahead         int // values before their use it is asked for
	all           int // rows
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
type packAMX func(dst *uint16, dstStep int, src *float32, srcRow, srcStep, steps, ahead int)

// packTask packs a strip, or a step of all strips.
func (o *operandBF16) packTask(i int, ragged *[amxUnit]float32) {
	if o.columns {
		o.packStep(i, ragged)
		return
	}
	o.packStrip(i, 0, o.steps, ragged)
}

// packSteps packs some steps of all strips.
func (o *operandBF16) packSteps(from, to int, ragged *[amxUnit]float32) {
	if o.rows == 0 {
		return
	}
	if o.columns {
		for step := from; step < to; step++ {
			o.packStep(step, ragged)
		}
		return
	}
	for strip := range o.strips {
		o.packStrip(strip, from, to, ragged)
	}
}

// packStrip packs steps of a strip whose values along k lie side by side.
func (o *operandBF16) packStrip(strip, step, end int, ragged *[amxUnit]float32) {
	dst, row := o.strip(strip), strip*amxSide
	from := o.from[(o.first+row)*o.ld+o.depth:]
	rows, whole := min(amxSide, o.rows-row), min(end, o.k/pairsDepth)
	if rows == amxSide && step < whole {
		o.pack(&dst[step*amxUnit], amxUnit, &from[step*pairsDepth], o.ld, pairsDepth, whole-step, o.ahead)
		step = whole
	}
	for ; step < end; step++ {
		fillUp(ragged, from[step*pairsDepth:], o.ld, rows, min(pairsDepth, o.k-step*pairsDepth))
		o.pack(&dst[step*amxUnit], amxUnit, &ragged[0], pairsDepth, 0, 1, 0)
	}
}

// packStep packs a step of all strips, whose values along k lie below each other.
func (o *operandBF16) packStep(step int, ragged *[amxUnit]float32) {
	dst, stride := o.packed[step*amxUnit:], o.steps*amxUnit
	from := o.from[(o.depth+step*pairsDepth)*o.ld+o.first:]
	deep, strip := min(pairsDepth, o.k-step*pairsDepth), 0
	if deep == pairsDepth && o.rows >= amxSide {
		strip = o.rows / amxSide
		o.pack(&dst[0], stride, &from[0], o.ld, amxSide, strip, o.ahead)
	}
	for ; strip < o.strips; strip++ {
		fillUp(ragged, from[strip*amxSide:], o.ld, deep, min(amxSide, o.rows-strip*amxSide))
		o.pack(&dst[strip*stride], amxUnit, &ragged[0], amxSide, 0, 1, 0)
	}
}

// fillUp copies rows x cols values and fills them up with zeros to 32 x 32.
func fillUp(dst *[amxUnit]float32, src []float32, ld, rows, cols int) {
	clear(dst[:])
	for i := range rows {
		copy(dst[i*amxSide:], src[i*ld:][:cols])
	}
}
