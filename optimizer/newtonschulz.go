package optimizer

import "atoll/tensor"

// Newton-Schulz iteration with a quintic (K. Jordan et al., 2024): each step
// turns every singular value x of a matrix into ax + bx^3 + cx^5. The
// coefficients climb steeply from 0, 485-fold in five steps, and then wander
// between 0.68 and 1.21 instead of converging to 1, which training does not
// mind. Values below 0.0016 of the matrix's norm stay smaller.
const (
	schulzSteps = 5
	schulzA     = 3.4445
	schulzB     = -4.7750
	schulzC     = 2.0315
)

// schulzEps is added to the norm that a matrix is divided by, so that a
// gradient which is all but absent moves nothing.
const schulzEps = 1e-7

// Workspace is the memory of Muon's steps besides the state. It is allocated
// once, for the largest matrix; one goroutine uses it at a time.
type Workspace struct {
	// Precision is the arithmetic of matrix products. The steps bring singular values near 1 as well in BF16, in which
	// Muon is commonly run.
	Precision tensor.Precision

	x, next    []float32 // [rows, cols] the matrix at hand, and the one that comes of it
	gram, poly []float32 // [side, side] of the shorter side
	sums       []float64 // of the pieces of a matrix

	// Loops over pieces take their arguments from here, because a function that
	// is made anew for each loop would be an allocation.
	loop                  loop
	followTask, blendTask func(i int)
}

// loop holds the arguments of a loop: vectors of one length and factors.
type loop struct {
	p, g, u    []float32
	m          Moments
	keep, take float32
	factor     float32 // of g
}

// NewWorkspace allocates what the matrices among the blocks need.
func NewWorkspace(blocks []Block) *Workspace {
	matrix, square := largest(blocks)
	w := &Workspace{
		x: tensor.Floats(matrix), next: tensor.Floats(matrix),
		gram: tensor.Floats(square), poly: tensor.Floats(square),
		sums: make([]float64, pieces(matrix)),
	}
	w.followTask, w.blendTask = w.followPiece, w.blendPiece
	return w
}

// WorkspaceBytes is the memory that NewWorkspace allocates.
func WorkspaceBytes(blocks []Block) int64 {
	matrix, square := largest(blocks)
	return 4*2*int64(matrix+square) + 8*int64(pieces(matrix))
}

// largest returns the most values of a matrix, and of the square over its
// shorter side.
func largest(blocks []Block) (matrix, square int) {
	for _, b := range blocks {
		if b.Rows > 0 {
			side := min(b.Rows, b.Len/b.Rows)
			matrix, square = max(matrix, b.Len), max(square, side*side)
		}
	}
	return matrix, square
}

// piece returns the loop and where its piece i begins and ends.
func (w *Workspace) piece(i int) (l *loop, lo, hi int) {
	return &w.loop, i * pieceLen, min((i+1)*pieceLen, len(w.loop.g))
}

// blend sets p to keep p + take g.
func (w *Workspace) blend(p, g []float32, keep, take float32) {
	w.loop = loop{p: p, g: g, keep: keep, take: take}
	tensor.Parallel(pieces(len(p)), w.blendTask)
}

func (w *Workspace) blendPiece(i int) {
	l, lo, hi := w.piece(i)
	tensor.Scale(l.keep, l.p[lo:hi])
	tensor.Axpy(l.take, l.g[lo:hi], l.p[lo:hi])
}

// orthogonal returns the nearly orthogonal matrix next to x, rows by cols, which
// lies in w.x and has the given norm. The result lies in w as well.
func (w *Workspace) orthogonal(x []float32, norm float64, rows, cols int) []float32 {
	next := w.next[:len(x)]
	tensor.Scale(float32(1/(norm+schulzEps)), x)
	for range schulzSteps {
		w.polynomial(x, rows, cols)
		if rows <= cols {
			w.Precision.Gemm(false, false, rows, cols, rows, w.poly, rows, x, cols, next, cols, false)
		} else {
			w.Precision.Gemm(false, false, rows, cols, cols, x, cols, w.poly, cols, next, cols, false)
		}
		x, next = next, x
	}
	return x
}

// polynomial leaves a + bG + cG^2 in poly, where G is the product of x and its
// transpose over the shorter side. A tall x is multiplied with it from the right.
func (w *Workspace) polynomial(x []float32, rows, cols int) {
	n := min(rows, cols)
	gram, poly := w.gram[:n*n], w.poly[:n*n]
	if rows <= cols {
		w.Precision.Gemm(false, true, n, n, cols, x, cols, x, cols, gram, n, false)
	} else {
		w.Precision.Gemm(true, false, n, n, rows, x, cols, x, cols, gram, n, false)
	}
	w.Precision.Gemm(false, false, n, n, n, gram, n, gram, n, poly, n, false)
	w.blend(poly, gram, schulzC, schulzB)
	for i := range n {
		poly[i*n+i] += schulzA
	}
}
