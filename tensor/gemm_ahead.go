//go:build (amd64 || arm64) && !purego

package tensor

// A task begins with packing its rows of A, which nobody has touched for long: waiting for
// them took 8 to 15 % of a product. So the tiles of the task before ask for them, line by line,
// while they multiply.

// stepsPerLine is in how many steps a tile asks for one line, which leaves the few requests that a
// core can have under way to the tile's own operands. The generator has it too.
const stepsPerLine = 8

// lineValues is how many values a cache line has.
const lineValues = 16

// linesAhead is for how many lines a full tile asks in k steps.
func linesAhead(k int) int { return k / stepsPerLine }

// walk is the order in which tiles ask for a part of a matrix: down its rows, then along them.
type walk struct {
	from        []float32
	ld          int
	rows, lines int // of the part; 0 lines: there is nothing to ask for
	batch       int // rows that one tile asks for
	wait        int // tiles that come before the first that asks
	row, line   int // what is next
}

// after is the walk through the part of A that comes after a layer of a task, whose rows have so many full
// tiles: the next layer, or the next task. It is asked for as late as possible.
func (t *tiler) after(task, l, tiles int) walk {
	if !t.asksAhead {
		return walk{}
	}
	_, inner := t.layer(l)
	if l++; l == t.layers {
		task, l = task+t.stride(), 0
	}
	w := t.walkTo(task, l)
	if w.batch = linesAhead(inner); w.batch == 0 {
		return walk{}
	}
	w.wait = max(0, tiles-ceilDiv(w.rows, w.batch)*w.lines)
	return w
}

// stride is how far the tasks are apart that a thread comes to one after the other, if all
// are equally fast.
func (t *tiler) stride() int {
	if t.serial {
		return 1
	}
	return Threads()
}

// walkTo walks through the part of A that a task packs for a layer. Tasks beyond the last stand for the
// first ones of the next block.
func (t *tiler) walkTo(task, l int) walk {
	if task >= t.tasks() {
		l += t.layers
	}
	depth, inner := t.layer(l)
	if inner <= 0 {
		return walk{}
	}
	row, rows := t.rowsOf(task)
	if t.transA {
		return walk{from: t.a[depth*t.lda+row:], ld: t.lda, rows: inner, lines: ceilDiv(rows, lineValues)}
	}
	return walk{from: t.a[row*t.lda+depth:], ld: t.lda, rows: rows, lines: ceilDiv(inner, lineValues)}
}

// next returns what the next tile is to ask for. Where there is nothing, that is rows of C, for which it asks anyway.
func (w *walk) next(c *float32, ldc int) (ahead *float32, step int) {
	if w.wait > 0 || w.line >= w.lines {
		w.wait--
		return c, 4 * ldc
	}
	ahead = &w.from[w.row*w.ld+w.line*lineValues]
	if w.row += w.batch; w.row >= w.rows {
		w.row = 0
		w.line++
	}
	return ahead, 4 * w.ld
}
