package tensor

// plainRows is how many rows of C one task of the plain kernel computes.
const plainRows = 16

// gemmPlain is the judge of the fast kernels, and the kernel where there is none. It
// runs at the speed of scalar multiplications, about one per cycle.
func gemmPlain(p product) {
	if p.m <= plainRows {
		gemmGo(&p, 0, p.m)
		return
	}
	shared := p // only this copy moves to the heap
	Parallel(ceilDiv(p.m, plainRows), func(i int) {
		gemmGo(&shared, i*plainRows, min((i+1)*plainRows, shared.m))
	})
}

// gemmGo computes rows m0 to m1 of C.
func gemmGo(g *product, m0, m1 int) {
	for i := m0; i < m1; i++ {
		row := g.c[i*g.ldc:][:g.n]
		if !g.acc {
			clear(row)
		}
		first, step := i*g.lda, 1
		if g.transA {
			first, step = i, g.lda
		}
		if g.transB {
			g.dotRows(row, first, step)
		} else {
			g.addRows(row, first, step)
		}
	}
}

// addRows adds sum_p a[first+p*step] * (row p of b) to row.
func (g *product) addRows(row []float32, first, step int) {
	for p := range g.k {
		x := g.a[first+p*step]
		for j, y := range g.b[p*g.ldb:][:len(row)] {
			row[j] += float32(x * y)
		}
	}
}

// dotRows adds the dot product of a[first+p*step] with row j of b to row[j].
func (g *product) dotRows(row []float32, first, step int) {
	for j := range row {
		sum := float32(0)
		for p, y := range g.b[j*g.ldb:][:g.k] {
			sum += float32(g.a[first+p*step] * y)
		}
		row[j] += sum
	}
}

// ceilDiv is a / b, rounded up.
func ceilDiv(a, b int) int { return (a + b - 1) / b }
