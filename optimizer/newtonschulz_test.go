package optimizer

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"atoll/tensor"

	"pgregory.net/rapid"
)

// dense is a matrix in float64, a slice of rows.
type dense [][]float64

func newDense(rows, cols int) dense {
	m := make(dense, rows)
	for i := range m {
		m[i] = make([]float64, cols)
	}
	return m
}

func denseOf(x []float32, rows int) dense {
	m := newDense(rows, len(x)/rows)
	for i := range x {
		m[i/len(m[0])][i%len(m[0])] = float64(x[i])
	}
	return m
}

func (m dense) transposed() dense {
	t := newDense(len(m[0]), len(m))
	for i, row := range m {
		for j, x := range row {
			t[j][i] = x
		}
	}
	return t
}

func (m dense) times(o dense) dense {
	p := newDense(len(m), len(o[0]))
	for i := range m {
		for k, x := range m[i] {
			for j := range o[k] {
				p[i][j] += x * o[k][j]
			}
		}
	}
	return p
}

// plus returns m + factor o.
func (m dense) plus(factor float64, o dense) dense {
	p := newDense(len(m), len(m[0]))
	for i := range m {
		for j := range m[i] {
			p[i][j] = m[i][j] + factor*o[i][j]
		}
	}
	return p
}

func (m dense) scaled(factor float64) dense { return newDense(len(m), len(m[0])).plus(factor, m) }

func (m dense) norm() float64 {
	sum := 0.0
	for _, row := range m {
		for _, x := range row {
			sum += x * x
		}
	}
	return math.Sqrt(sum)
}

// schulz is the judge: the iteration as it is published.
func (m dense) schulz() dense {
	if len(m) > len(m[0]) {
		return m.transposed().schulz().transposed()
	}
	x := m.scaled(1 / (m.norm() + schulzEps))
	for range schulzSteps {
		a := x.times(x.transposed())
		b := a.scaled(schulzB).plus(schulzC, a.times(a))
		x = x.scaled(schulzA).plus(1, b.times(x))
	}
	return x
}

// singular returns the squares of the singular values: the eigenvalues of the
// product with the transpose over the shorter side, by Jacobi's rotations.
func (m dense) singular() []float64 {
	if len(m) > len(m[0]) {
		m = m.transposed()
	}
	g := m.times(m.transposed())
	for range 12 { // sweeps; convergence is quadratic
		for p := range g {
			for q := range p {
				g.rotate(p, q)
			}
		}
	}
	values := make([]float64, len(g))
	for i := range g {
		values[i] = g[i][i]
	}
	return values
}

// rotate makes the symmetric matrix 0 at (p, q).
func (m dense) rotate(p, q int) {
	if m[p][q] == 0 {
		return
	}
	half := (m[q][q] - m[p][p]) / (2 * m[p][q])
	tan := math.Copysign(1, half) / (math.Abs(half) + math.Hypot(half, 1))
	cos := 1 / math.Hypot(tan, 1)
	sin := tan * cos
	for k := range m {
		m[k][p], m[k][q] = cos*m[k][p]-sin*m[k][q], sin*m[k][p]+cos*m[k][q]
	}
	for k := range m {
		m[p][k], m[q][k] = cos*m[p][k]-sin*m[q][k], sin*m[p][k]+cos*m[q][k]
	}
}

// onlyMatrix is the block of a model that is one matrix.
func onlyMatrix(rows, cols int) []Block {
	return []Block{{Span: Span{0, rows * cols}, Rows: rows}}
}

// orthogonal runs the code under test on a copy of x.
func orthogonal(x []float32, rows int) []float32 {
	w := NewWorkspace(onlyMatrix(rows, len(x)/rows))
	copy(w.x, x)
	return w.orthogonal(w.x, math.Sqrt(tensor.SumSquares(x)), rows, len(x)/rows)
}

func normals(rng *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(rng.NormFloat64())
	}
	return x
}

// product returns a rows x cols matrix of the given rank.
func product(rng *rand.Rand, rows, rank, cols int) []float32 {
	x := make([]float32, rows*cols)
	tensor.Gemm(false, false, rows, cols, rank, normals(rng, rows*rank), rank, normals(rng, rank*cols), cols, x, cols, false)
	return x
}

// keepFromZero adds to the diagonal of a square matrix: the least singular value
// of a random one is next to nothing.
func keepFromZero(x []float32, n int) {
	for i := range n {
		x[i*n+i] += 4 * float32(n)
	}
}

// Squares of the least and the largest singular value that count as 1.
const (
	leastOne = 0.6 * 0.6
	mostOne  = 1.3 * 1.3
)

func TestOrthogonal(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	for _, c := range []struct {
		name             string
		rows, rank, cols int
	}{
		{"square", 12, 12, 12}, {"another square", 16, 16, 16}, {"wide", 16, 16, 43}, {"tall", 43, 16, 16}, {"a row", 1, 1, 50}, {"a column", 50, 1, 1},
		{"a number", 1, 1, 1}, {"rank 3 of 20", 20, 3, 31}, {"tall of rank 3", 31, 3, 20}, {"rank 1", 24, 1, 24},
	} {
		x := product(rng, c.rows, c.rank, c.cols)
		if c.rank == c.rows && c.rank == c.cols {
			keepFromZero(x, c.rows)
		}
		one := 0
		for _, s := range denseOf(orthogonal(x, c.rows), c.rows).singular() {
			switch {
			case s >= leastOne && s <= mostOne:
				one++
			case s > 1e-6:
				t.Errorf("%s: a singular value is %v, want 0 or about 1", c.name, math.Sqrt(s))
			}
		}
		if one != c.rank {
			t.Errorf("%s: %d singular values are about 1, want %d", c.name, one, c.rank)
		}
	}
}

// TestOrthogonalOfNothing: a gradient that is absent, or as good as, moves nothing.
func TestOrthogonalOfNothing(t *testing.T) {
	for _, x := range []float32{0, 1e-38, 1e-20, 1e-12} {
		got := orthogonal(slices.Repeat([]float32{x, -x}, 12), 4)
		for _, y := range got {
			if !(math.Abs(float64(y)) < 0.01) {
				t.Errorf("%v becomes %v", x, y)
			}
		}
	}
}

// TestOrthogonalIsScaleFree: gradients of any usual size give the same step.
func TestOrthogonalIsScaleFree(t *testing.T) {
	x := normals(rand.New(rand.NewPCG(6, 6)), 8*12)
	want := orthogonal(x, 8)
	for _, factor := range []float32{0x1p-10, 0x1p10, 0x1p60} {
		scaled := slices.Clone(x)
		tensor.Scale(factor, scaled)
		for i, got := range orthogonal(scaled, 8) {
			if math.Abs(float64(got-want[i])) > 1e-4 {
				t.Fatalf("times %v: value %d is %v, want %v", factor, i, got, want[i])
			}
		}
	}
}

// TestOrthogonalAgainstJudge draws shapes, ranks and sizes.
func TestOrthogonalAgainstJudge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows, cols := rapid.IntRange(1, 40).Draw(t, "rows"), rapid.IntRange(1, 40).Draw(t, "cols")
		rank := rapid.IntRange(1, 40).Draw(t, "rank")
		x := product(rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0)), rows, rank, cols)
		tensor.Scale(rapid.Float32Range(1e-4, 1e4).Draw(t, "scale"), x)
		want := denseOf(x, rows).schulz()
		for i, got := range orthogonal(x, rows) {
			if d := math.Abs(float64(got) - want[i/cols][i%cols]); !(d < 2e-3) {
				t.Fatalf("value %d is %v, want %v", i, got, want[i/cols][i%cols])
			}
		}
	})
}

// TestSchulzBounds holds the comment on the coefficients to the polynomial.
func TestSchulzBounds(t *testing.T) {
	low, high := math.Inf(1), 0.0
	for x := 0.0016; x <= 1; x += 1e-5 {
		y := x
		for range schulzSteps {
			y = schulzA*y + schulzB*y*y*y + schulzC*y*y*y*y*y
		}
		low, high = min(low, y), max(high, y)
	}
	if low < 0.68 || high > 1.21 || math.Pow(schulzA, schulzSteps) < 484 {
		t.Errorf("values end between %v and %v", low, high)
	}
}
