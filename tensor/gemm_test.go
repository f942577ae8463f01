package tensor

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// matrix is a random matrix as stored, with room between its rows and behind it.
type matrix struct {
	data []float32
	ld   int
}

func newMatrix(rng *rand.Rand, rows, cols, gap int) matrix {
	m := matrix{data: make([]float32, rows*(cols+gap)+gap), ld: cols + gap}
	for i := range m.data {
		m.data[i] = rng.Float32()*2 - 1
	}
	return m
}

// operand is newMatrix for op(X) of rows x cols.
func operand(rng *rand.Rand, trans bool, rows, cols, gap int) matrix {
	if trans {
		rows, cols = cols, rows
	}
	return newMatrix(rng, rows, cols, gap)
}

// gemmCase is one product: shapes, flags and the gaps between rows.
type gemmCase struct {
	transA, transB, acc bool
	m, n, k             int
	gapA, gapB, gapC    int
}

func drawCase(t *rapid.T) gemmCase {
	// Sizes near the edges of tiles and blocks are likelier than others.
	size := func(name string, near ...int) int {
		if rapid.Bool().Draw(t, name+" near an edge") {
			return max(1, rapid.SampledFrom(near).Draw(t, name+" edge")+rapid.IntRange(-2, 2).Draw(t, name+" off"))
		}
		return rapid.IntRange(1, 90).Draw(t, name)
	}
	gap := rapid.IntRange(0, 9)
	return gemmCase{
		transA: rapid.Bool().Draw(t, "transA"), transB: rapid.Bool().Draw(t, "transB"), acc: rapid.Bool().Draw(t, "acc"),
		m: size("m", 1, 6, 14, 28, 336, 400), n: size("n", 1, 16, 32, 64, 256, 1024), k: size("k", 1, 8, 64, 256, 512),
		gapA: gap.Draw(t, "gapA"), gapB: gap.Draw(t, "gapB"), gapC: gap.Draw(t, "gapC"),
	}
}

// operands draws A, B and C of a case.
func (g gemmCase) operands(seed uint64) (a, b, c matrix) {
	rng := rand.New(rand.NewPCG(seed, 1))
	return operand(rng, g.transA, g.m, g.k, g.gapA), operand(rng, g.transB, g.k, g.n, g.gapB), newMatrix(rng, g.m, g.n, g.gapC)
}

// with runs Gemm with kernel k and returns what C's memory holds afterwards.
func (g gemmCase) with(k kernel, a, b, c matrix) []float32 {
	defer swap(k)()
	out := slices.Clone(c.data)
	Gemm(g.transA, g.transB, g.m, g.n, g.k, a.data, a.ld, b.data, b.ld, out, c.ld, g.acc)
	return out
}

// swap puts kernel k in use until the function it returns is called.
func swap(k kernel) (back func()) {
	before := use
	use = k
	return func() { use = before }
}

// threads sets the number of threads until the function it returns is called.
func threads(n int) (back func()) {
	before := Threads()
	SetThreads(n)
	return func() { SetThreads(before) }
}

// exact is the product in float64: the judge of the plain kernel. The memory between
// the rows of C stays as it is.
func (g gemmCase) exact(a, b, c matrix) []float64 {
	out := make([]float64, len(c.data))
	for i, v := range c.data {
		out[i] = float64(v)
	}
	at := func(m matrix, trans bool, i, j int) float64 {
		if trans {
			i, j = j, i
		}
		return float64(m.data[i*m.ld+j])
	}
	for i := range g.m {
		for j := range g.n {
			sum := 0.0
			for p := range g.k {
				sum += at(a, g.transA, i, p) * at(b, g.transB, p, j)
			}
			if !g.acc {
				out[i*c.ld+j] = 0
			}
			out[i*c.ld+j] += sum
		}
	}
	return out
}

// TestGemmIsTheProduct compares every kernel with the exact product, for any shape,
// transposition, leading dimension and number of threads.
func TestGemmIsTheProduct(t *testing.T) {
	eachKernel(t, available(), func(t *rapid.T, k kernel) {
		g := drawCase(t)
		defer threads(rapid.IntRange(1, 4).Draw(t, "threads"))()
		a, b, c := g.operands(rapid.Uint64().Draw(t, "seed"))
		g.near(t, g.with(k, a, b, c), g.exact(a, b, c))
	})
}

// TestGemmBitsDoNotDependOnThreadsOrVectors compares the fast kernels with each other.
func TestGemmBitsDoNotDependOnThreadsOrVectors(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := drawCase(t)
		a, b, c := g.operands(rapid.Uint64().Draw(t, "seed"))
		g.sameBits(t, []int{1, 3}, a, b, c)
	})
}

// TestDeepGemm has products so deep that threads pack op(B) more than once, with layers that are not full: the fast kernels
// give the same bits on any number of threads, near the exact product.
func TestDeepGemm(t *testing.T) {
	for _, g := range []gemmCase{
		{m: 45, n: 1100, k: 1700},
		{transA: true, m: 45, n: 1024, k: 1025},
		{transB: true, acc: true, m: 371, n: 1030, k: 1541, gapA: 3, gapC: 1},
		{transA: true, transB: true, acc: true, m: 20, n: 1000, k: 769},
	} {
		a, b, c := g.operands(5)
		if got := g.sameBits(t, []int{1, 2, 3}, a, b, c); got != nil {
			g.near(t, got, g.exact(a, b, c))
		}
	}
}

// sameBits fails unless all fast kernels give the same bits with each number of threads, and returns these; nil where
// there is no fast kernel.
func (g gemmCase) sameBits(t fataler, counts []int, a, b, c matrix) (want []float32) {
	fast := fastKernels()
	for _, k := range fast {
		for _, n := range counts {
			back := threads(n)
			got := g.with(k, a, b, c)
			back()
			if want == nil {
				want = got
			}
			if !slices.Equal(got, want) {
				t.Fatalf("%+v: %s with %d threads gives other bits than %s with %d", g, k.name, n, fast[0].name, counts[0])
			}
		}
	}
	return want
}

// near fails unless got is the exact product up to rounding.
func (g gemmCase) near(t fataler, got []float32, exact []float64) {
	tolerance := 2.5e-7 * float64(g.k+4) // a few roundings of a sum of k values below 1
	for i := range got {
		if math.Abs(float64(got[i])-exact[i]) > tolerance {
			t.Fatalf("%+v: C's value %d is %v, want %v", g, i, got[i], exact[i])
		}
	}
}

// TestGemmOfNothing covers dimensions of 0, where operands may be empty.
func TestGemmOfNothing(t *testing.T) {
	c := []float32{1, 2, 3, 4}
	Gemm(false, false, 0, 2, 3, nil, 3, make([]float32, 6), 2, c, 2, false)
	Gemm(false, false, 2, 0, 3, make([]float32, 6), 3, nil, 0, c, 2, false)
	Gemm(false, false, 2, 2, 0, nil, 0, nil, 2, c, 2, true)
	if want := []float32{1, 2, 3, 4}; !slices.Equal(c, want) {
		t.Errorf("empty products changed C to %v", c)
	}
	Gemm(false, false, 2, 1, 0, nil, 0, nil, 1, c, 2, false)
	if want := []float32{0, 2, 0, 4}; !slices.Equal(c, want) {
		t.Errorf("overwriting with an empty sum gave %v, want %v", c, want)
	}
}

func TestGemmChecksItsOperands(t *testing.T) {
	four := make([]float32, 4)
	for name, call := range map[string]func(){
		"short A":        func() { Gemm(false, false, 2, 2, 2, four[:3], 2, four, 2, four, 2, false) },
		"short B":        func() { Gemm(false, true, 2, 2, 2, four, 2, four[:3], 2, four, 2, false) },
		"short C":        func() { Gemm(true, false, 2, 2, 2, four, 2, four, 2, four[:3], 2, false) },
		"narrow rows":    func() { Gemm(false, false, 2, 2, 2, four, 1, four, 2, four, 2, false) },
		"negative depth": func() { Gemm(false, false, 2, 2, -1, four, 2, four, 2, four, 2, false) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("Gemm accepted operands that do not fit")
				}
			}()
			call()
		})
	}
}
