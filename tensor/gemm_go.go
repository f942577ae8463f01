package tensor

// gemmGo computes rows m0 to m1 of C as [Gemm] does: the judge of the fast
// kernels, and the kernel where there is none. It runs at the speed of scalar
// multiplications, about one per cycle.
func gemmGo(transA, transB bool, m0, m1, n, k int, a []float32, lda int, b []float32, ldb int, c []float32, ldc int, acc bool) {
	for i := m0; i < m1; i++ {
		row := c[i*ldc:][:n]
		if !acc {
			clear(row)
		}
		first, step := i*lda, 1
		if transA {
			first, step = i, lda
		}
		if transB {
			dotRows(row, k, a, first, step, b, ldb)
		} else {
			addRows(row, k, a, first, step, b, ldb)
		}
	}
}

// addRows adds sum_p a[first+p*step] * (row p of b) to row.
func addRows(row []float32, k int, a []float32, first, step int, b []float32, ldb int) {
	for p := range k {
		x := a[first+p*step]
		for j, y := range b[p*ldb:][:len(row)] {
			row[j] += float32(x * y)
		}
	}
}

// dotRows adds the dot product of a[first+p*step] with row j of b to row[j].
func dotRows(row []float32, k int, a []float32, first, step int, b []float32, ldb int) {
	for j := range row {
		sum := float32(0)
		for p, y := range b[j*ldb:][:k] {
			sum += float32(a[first+p*step] * y)
		}
		row[j] += sum
	}
}
