package tensor

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// fastBF16 are the kernels that have instructions for bfloat16.
func fastBF16() []kernel {
	return slices.DeleteFunc(available(), func(k kernel) bool { return k.nameBF16 == plainName })
}

// withBF16 is with, in bfloat16.
func (g gemmCase) withBF16(k kernel, a, b, c matrix) []float32 {
	defer swap(k)()
	out := slices.Clone(c.data)
	BF16.Gemm(g.transA, g.transB, g.m, g.n, g.k, a.data, a.ld, b.data, b.ld, out, c.ld, g.acc)
	return out
}

// drawBF16 draws sizes near those of tiles and blocks of them.
func drawBF16(t *rapid.T) gemmCase {
	g := drawCase(t)
	size := func(name string) int {
		return max(1, rapid.SampledFrom([]int{1, 16, 32, 64, 96, 160}).Draw(t, name)+rapid.IntRange(-3, 3).Draw(t, name+" off"))
	}
	g.m, g.n, g.k = size("m"), size("n"), size("k")
	return g
}

// sameNumbers fails unless x and y have the same bits, any NaN being as good as another.
func sameNumbers(t fataler, what any, x, y []float32) {
	for i := range x {
		if math.Float32bits(x[i]) != math.Float32bits(y[i]) && (x[i] == x[i] || y[i] == y[i]) {
			t.Fatalf("%+v: value %d is %v (%#x), want %v (%#x)", what, i, x[i], math.Float32bits(x[i]), y[i], math.Float32bits(y[i]))
		}
	}
}

// TestBF16IsWhatTheJudgeSays compares each kernel with the plain loops, bit by bit.
func TestBF16IsWhatTheJudgeSays(t *testing.T) {
	eachKernel(t, fastBF16(), func(t *rapid.T, k kernel) {
		g := drawBF16(t)
		defer threads(rapid.IntRange(1, 3).Draw(t, "threads"))()
		a, b, c := g.operands(rapid.Uint64().Draw(t, "seed"))
		sameNumbers(t, g, g.withBF16(k, a, b, c), g.withBF16(plain, a, b, c))
	})
}

// oddValues are those at the edges of what float32 and bfloat16 hold.
var oddValues = []float32{
	0, float32(math.Copysign(0, -1)), 1, -1, 1 + 0x1p-8, 1 + 0x1p-9, 1 + 3*0x1p-8,
	0x1p-126, -0x1p-126, 0x1p-127, 0x1p-149, -0x1p-130, 0x1p-126 + 0x1p-149, 0x1.fffffep-127,
	0x1p-63, -0x1p-63, 0x1.8p-64, 0x1p-60, 0x1p-75,
	0x1p127, -0x1p127, math.MaxFloat32, -math.MaxFloat32, 0x1.fep127, 0x1.ffp127,
	float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()),
	math.Float32frombits(0x7f800001), math.Float32frombits(0xff80ffff), math.Float32frombits(0x7fffffff),
}

// TestBF16AtTheEdges has values that overflow, are denormal, infinite or no number, beside usual ones.
func TestBF16AtTheEdges(t *testing.T) {
	eachKernel(t, fastBF16(), func(t *rapid.T, k kernel) {
		g := drawBF16(t)
		g.m, g.n = min(g.m, 70), min(g.n, 70)
		a, b, c := g.operands(rapid.Uint64().Draw(t, "seed"))
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "odd"), 2))
		values := oddValues[:rapid.IntRange(1, len(oddValues)).Draw(t, "kinds")]
		for _, m := range []matrix{a, b, c} {
			exponent := rng.IntN(130) // small products meet small sums then
			for i := range m.data {
				switch m.data[i] = float32(math.Ldexp(float64(m.data[i]), -exponent)); rng.IntN(8) {
				case 0:
					m.data[i] = values[rng.IntN(len(values))]
				case 1:
					m.data[i] = math.Float32frombits(rng.Uint32())
				}
			}
		}
		sameNumbers(t, g, g.withBF16(k, a, b, c), g.withBF16(plain, a, b, c))
	})
}

// TestBF16RoundsBeforeItFlushes has sums of two products next to the least normal number: of what is rounded up to it
// nothing is lost.
func TestBF16RoundsBeforeItFlushes(t *testing.T) {
	for _, c := range []struct{ less, want float32 }{
		{0, 0x1p-126}, {0x1p-76, 0x1p-126}, {0x1.02p-76, 0}, {0x1.8p-76, 0}, {0x1p-75, 0}, {0x1.fep-77, 0x1p-126},
	} {
		a := []float32{0x1p-63, 0, -0x1p-75, 0}
		b := []float32{0x1p-63, 0, c.less, 0}
		for _, k := range available() {
			got := []float32{0}
			with(k, func() { BF16.Gemm(false, true, 1, 1, 4, a, 4, b, 4, got, 1, false) })
			if got[0] != c.want {
				t.Errorf("%s: 2^-126 - 2^-75 x %v is %v, want %v", k.nameBF16, c.less, got[0], c.want)
			}
		}
	}
}

// TestBF16IsNearTheProduct bounds all kernels by the product in float64 of the operands as they are: rounding two factors
// costs 2^-7 of their product at most, with a little that rounding sums adds.
func TestBF16IsNearTheProduct(t *testing.T) {
	eachKernel(t, available(), func(t *rapid.T, k kernel) {
		g := drawBF16(t)
		a, b, c := g.operands(rapid.Uint64().Draw(t, "seed"))
		got, want := g.withBF16(k, a, b, c), g.exact(a, b, c)
		bound := g.exact(a.sizes(), b.sizes(), c.sizes())
		for i := range got {
			if !(math.Abs(float64(got[i])-want[i]) <= 0x1.1p-7*bound[i]) {
				t.Fatalf("%+v: value %d is %v, want %v", g, i, got[i], want[i])
			}
		}
	})
}

// sizes is the matrix of absolute values.
func (m matrix) sizes() matrix {
	data := slices.Clone(m.data)
	for i, x := range data {
		data[i] = float32(math.Abs(float64(x)))
	}
	return matrix{data, m.ld}
}

// TestDeepBF16 has more steps than are packed at a time, and more columns.
func TestDeepBF16(t *testing.T) {
	for _, g := range []gemmCase{
		{m: 45, n: 70, k: 4096 + 75},
		{transB: true, acc: true, m: 33, n: 33, k: 2*4096 + 1, gapC: 1},
		{transA: true, m: 3, n: 1024 + 40, k: 4096, gapA: 2},
	} {
		a, b, c := g.operands(5)
		want := g.withBF16(plain, a, b, c)
		for _, k := range fastBF16() {
			for _, n := range []int{1, 2, 3} {
				back := threads(n)
				sameNumbers(t, g, g.withBF16(k, a, b, c), want)
				back()
			}
		}
	}
}

// TestWideBF16 has more strips than are packed at a time, for each form that an operand is stored in. The judge computes the first
// rows and the last ones.
func TestWideBF16(t *testing.T) {
	const judged = 35
	for _, g := range []gemmCase{
		{transB: true, m: 1100, n: 1063, k: 515, gapB: 3},
		{m: 1063, n: 1100, k: 515, acc: true},
		{transA: true, m: 1100, n: 1063, k: 131, gapA: 1, gapC: 5},
		{transA: true, transB: true, m: 70, n: 2100, k: 300},
	} {
		a, b, c := g.operands(6)
		for _, k := range fastBF16() {
			for _, n := range []int{1, 3} {
				back := threads(n)
				got := g.withBF16(k, a, b, c)
				back()
				for _, row := range []int{0, g.m - judged} {
					part, step := g, a.ld
					part.m = judged
					if g.transA {
						step = 1
					}
					rows := matrix{a.data[row*step:], a.ld}
					want := part.withBF16(plain, rows, b, matrix{c.data[row*c.ld:], c.ld})
					for i := range judged {
						sameNumbers(t, g, got[(row+i)*c.ld:][:g.n], want[i*c.ld:][:g.n])
					}
				}
			}
		}
	}
}
