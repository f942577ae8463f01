package tensor

import "fmt"

// Gemm computes C (+)= op(A) op(B) for row-major matrices: op(A) is m x k, op(B)
// k x n, C m x n, where op transposes if the flag says so. A row of A as stored
// starts lda values after the one before it (A is stored m x k, or k x m if
// transA); likewise ldb (k x n, or n x k if transB) and ldc. acc adds to C,
// otherwise C is overwritten, also if k is 0. C must not overlap A or B. Large
// products use the worker pool.
func Gemm(transA, transB bool, m, n, k int, a []float32, lda int, b []float32, ldb int, c []float32, ldc int, acc bool) {
	F32.Gemm(transA, transB, m, n, k, a, lda, b, ldb, c, ldc, acc)
}

// check panics unless the operands have the values that the dimensions ask for.
func (p *product) check() {
	checkMatrix("C", p.m, p.n, len(p.c), p.ldc)
	if p.transA {
		checkMatrix("A", p.k, p.m, len(p.a), p.lda)
	} else {
		checkMatrix("A", p.m, p.k, len(p.a), p.lda)
	}
	if p.transB {
		checkMatrix("B", p.n, p.k, len(p.b), p.ldb)
	} else {
		checkMatrix("B", p.k, p.n, len(p.b), p.ldb)
	}
}

// product holds the arguments of [Gemm]. Kernels get it once they are checked and none of the
// dimensions is 0.
type product struct {
	transA, transB bool
	m, n, k        int
	a              []float32
	lda            int
	b              []float32
	ldb            int
	c              []float32
	ldc            int
	acc            bool
}

// checkMatrix panics unless a matrix of rows x cols with leading dimension ld fits
// into length values.
func checkMatrix(name string, rows, cols, length, ld int) {
	if rows < 0 || cols < 0 || ld < cols {
		panic(fmt.Sprintf("tensor: Gemm: %s is %d x %d with leading dimension %d: dimensions must not be negative, nor the leading one below the columns", name, rows, cols, ld))
	}
	if rows > 0 && cols > 0 && length < (rows-1)*ld+cols {
		panic(fmt.Sprintf("tensor: Gemm: %s is %d x %d with leading dimension %d and needs %d values, got %d", name, rows, cols, ld, (rows-1)*ld+cols, length))
	}
}
