package tensor

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// specialWide are values on which kernels of the fold might part.
var specialWide = []float64{0, math.Copysign(0, -1), 1, -1, 5e-324, -1e-310, 1e-40, 3.4e38, math.MaxFloat32, -math.MaxFloat32,
	3.5e38, -1e300, 1e300, math.Inf(1), math.Inf(-1), math.NaN()}

// wideCase is the operands of one call: three vectors of float32, one of float64, lanes.
type wideCase struct {
	narrow [3][]float32
	wide   []float64
	lanes  Lanes
	at     int
	alpha  float64
}

func drawWide(t *rapid.T) *wideCase {
	v := drawVectors(t, 3)
	rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "wide"), 3))
	specials := rapid.Bool().Draw(t, "special wides")
	c := &wideCase{
		narrow: [3][]float32(v), at: rapid.IntRange(0, 40).Draw(t, "at"),
		alpha: rapid.SampledFrom([]float64{1, -1, 0.7, 1.0 / 3, 1e-300, 0}).Draw(t, "alpha"),
	}
	offset := rng.IntN(3)
	memory := make([]float64, offset+len(v[0])+guards)
	for i := range memory {
		memory[i] = rng.NormFloat64() * math.Exp(40*rng.Float64()-20)
		if specials && rng.IntN(4) == 0 {
			memory[i] = specialWide[rng.IntN(len(specialWide))]
		}
	}
	c.wide = memory[offset : offset+len(v[0])]
	for i := range c.lanes {
		c.lanes[i] = rng.NormFloat64()
	}
	return c
}

func (c *wideCase) clone() *wideCase {
	d := *c
	d.narrow = [3][]float32(cloneVectors(c.narrow[:]))
	n := len(c.wide)
	d.wide = append([]float64(nil), c.wide[:n+guards]...)[:n]
	return &d
}

// bits is everything that an operation may have written, what lies behind the vectors
// included. NaNs are one.
func (c *wideCase) bits() (all []uint64) {
	add := func(x float64) {
		if x != x {
			x = math.NaN()
		}
		all = append(all, math.Float64bits(x))
	}
	for _, v := range c.narrow {
		for _, x := range v[:len(v)+guards] {
			add(float64(x))
		}
	}
	for _, x := range c.wide[:len(c.wide)+guards] {
		add(x)
	}
	for _, x := range c.lanes {
		add(x)
	}
	return all
}

// wideOps are the operations by name.
var wideOps = map[string]func(c *wideCase){
	"squares":    func(c *wideCase) { c.lanes.AddSquares(c.at, c.narrow[0]) },
	"distances":  func(c *wideCase) { c.lanes.AddDistances(c.at, c.alpha, c.narrow[0], c.wide) },
	"axpy":       func(c *wideCase) { AxpyWide(c.alpha, c.narrow[0], c.wide) },
	"scale":      func(c *wideCase) { ScaleWide(c.alpha, c.wide) },
	"difference": func(c *wideCase) { Difference(c.wide, c.narrow[0], c.narrow[1]) },
	"move":       func(c *wideCase) { MoveNarrow(c.narrow[0], c.narrow[1], c.alpha, c.wide) },
	"decay":      func(c *wideCase) { DecayNarrow(c.narrow[0], c.alpha, c.narrow[1], c.wide) },
	"narrow":     func(c *wideCase) { Narrow(c.narrow[0], c.wide) },
	"in place":   func(c *wideCase) { MoveNarrow(c.narrow[0], c.narrow[0], c.alpha, c.wide) },
}

func TestWideLikePlain(t *testing.T) {
	for name, op := range wideOps {
		t.Run(name, func(t *testing.T) {
			eachKernel(t, fastKernels(), func(t *rapid.T, k kernel) {
				c := drawWide(t)
				want, got := c.clone(), c.clone()
				with(plain, func() { op(want) })
				with(k, func() { op(got) })
				for i, w := range want.bits() {
					if g := got.bits()[i]; g != w {
						t.Fatalf("%d values: place %d of all that may be written is %v, want %v", len(c.wide), i, math.Float64frombits(g), math.Float64frombits(w))
					}
				}
			})
		})
	}
}

func with(k kernel, do func()) {
	defer swap(k)()
	do()
}

// What a fold adds in pieces has the bits of what it adds at once, and those of its
// specification: value i in lane i mod 16, pairs of lanes added.
func TestLanesInPieces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawWide(t)
		var one, parts Lanes
		one.AddDistances(0, c.alpha, c.narrow[0], c.wide)
		for at := 0; at < len(c.wide); {
			n := rapid.IntRange(1, len(c.wide)-at).Draw(t, "piece")
			parts.AddDistances(at, c.alpha, c.narrow[0][at:at+n], c.wide[at:at+n])
			at += n
		}
		var naive [16]float64
		for i, x := range c.narrow[0] {
			d := float64(c.alpha*float64(x)) - c.wide[i]
			naive[i%16] += float64(d * d)
		}
		for half := 8; half > 0; half /= 2 {
			for i := range half {
				naive[i] += naive[i+half]
			}
		}
		a, b, want := one.Sum(), parts.Sum(), naive[0]
		if want == want && (a != want || b != want) || want != want && (a == a || b == b) {
			t.Fatalf("at once %v, in pieces %v, want %v", a, b, want)
		}
	})
}

func TestSaturate(t *testing.T) {
	for x, want := range map[float64]float32{1e300: math.MaxFloat32, math.Inf(-1): -math.MaxFloat32, 3.4028235e38: math.MaxFloat32, 0.1: 0.1} {
		got := make([]float32, 17)
		u := make([]float64, len(got))
		for i := range u {
			u[i] = x
		}
		Narrow(got, u)
		for i, g := range got {
			if g != want {
				t.Errorf("value %d: %v became %v, want %v", i, x, g, want)
			}
		}
	}
}

func TestWidePanicsOnLengths(t *testing.T) {
	x, u := make([]float32, 3), make([]float64, 4)
	for name, op := range map[string]func(){
		"distances": func() { new(Lanes).AddDistances(0, 1, x, u) },
		"axpy":      func() { AxpyWide(1, x, u) },
		"move":      func() { MoveNarrow(x, x, 1, u) },
		"decay":     func() { DecayNarrow(x, 1, x, u) },
		"narrow":    func() { Narrow(x, u) },
		"subtract":  func() { Difference(u, x, x) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s took vectors of 3 and 4 values", name)
				}
			}()
			op()
		}()
	}
}
