package llama

import (
	"bytes"
	_ "embed"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"atoll/tensor"
)

//go:embed testdata/golden.json
var goldenJSON []byte

// golden is what testdata/make_golden.py writes.
type golden struct {
	Config                Config
	Batch                 int
	Tokens                []int32
	Names                 []string
	Loss                  float64
	Params, Grads, Logits []byte // float32, little-endian
}

func floats(t *testing.T, b []byte) []float32 {
	t.Helper()
	x := make([]float32, len(b)/4)
	if err := binary.Read(bytes.NewReader(b), binary.LittleEndian, x); err != nil {
		t.Fatal(err)
	}
	return x
}

func loadGolden(t *testing.T) (golden, *tensor.Slab) {
	t.Helper()
	var g golden
	if err := json.Unmarshal(goldenJSON, &g); err != nil {
		t.Fatal(err)
	}
	p := NewParams(g.Config)
	for i, v := range p.Views {
		if v.Name != g.Names[i] {
			t.Fatalf("tensor %d is %s, in the golden file %s", i, v.Name, g.Names[i])
		}
	}
	if n := copy(p.Data, floats(t, g.Params)); n != len(p.Data) || len(g.Params) != 4*n {
		t.Fatalf("golden file has %d bytes of parameters, want %d", len(g.Params), 4*len(p.Data))
	}
	return g, p
}

// distance is the greatest difference relative to the greatest value.
func distance(got, want []float32) float64 {
	worst, size := 0.0, 0.0
	for i, w := range want {
		worst = max(worst, math.Abs(float64(got[i]-w)))
		size = max(size, math.Abs(float64(w)))
	}
	return worst / size
}

func TestAgreesWithPyTorch(t *testing.T) {
	g, p := loadGolden(t)
	m, grad := NewModel(g.Config, g.Batch), NewParams(g.Config)
	loss := m.LossGrad(p, grad, g.Tokens)
	if math.Abs(loss/g.Loss-1) > 1e-6 {
		t.Errorf("loss is %v, want %v", loss, g.Loss)
	}
	want := p.Like()
	copy(want.Data, floats(t, g.Grads))
	for _, v := range grad.Views {
		if d := distance(grad.Of(v), want.Of(v)); !(d < 1e-5) {
			t.Errorf("gradient of %s is off by %.1e", v.Name, d)
		}
	}
	if d := distance(m.Logits(p, g.Tokens[:g.Config.Context]), floats(t, g.Logits)); !(d < 1e-5) {
		t.Errorf("logits are off by %.1e", d)
	}
}

// TestAgreesInBF16: rounding the factors of products to 8 bits changes loss and gradients by little.
func TestAgreesInBF16(t *testing.T) {
	g, p := loadGolden(t)
	m, grad := NewModel(g.Config, g.Batch), NewParams(g.Config)
	m.Precision = tensor.BF16
	if loss := m.LossGrad(p, grad, g.Tokens); loss == g.Loss || math.Abs(loss/g.Loss-1) > 1e-3 {
		t.Errorf("loss is %v, want nearly %v", loss, g.Loss)
	}
	want := p.Like()
	copy(want.Data, floats(t, g.Grads))
	for _, v := range grad.Views {
		if d := distance(grad.Of(v), want.Of(v)); !(d < 0.1) || d < 1e-5 {
			t.Errorf("gradient of %s is off by %.1e", v.Name, d)
		}
	}
}

// ragged has no size that is a multiple of a SIMD register or of another.
var ragged = Config{
	Vocab: 37, Hidden: 30, Layers: 2, Heads: 5, KVHeads: 1, Intermediate: 23, Context: 13,
	RopeTheta: 100, NormEps: 1e-5,
}

func randomTokens(rng *rand.Rand, c Config, windows int) []int32 {
	tokens := make([]int32, windows*(c.Context+1))
	for i := range tokens {
		tokens[i] = rng.Int32N(int32(c.Vocab))
	}
	return tokens
}

// rough fills parameters with values large enough that every part of the model
// matters.
func rough(rng *rand.Rand, c Config) *tensor.Slab {
	p := NewParams(c)
	Init(c, p, rng.Uint64())
	for i := range p.Data {
		p.Data[i] += 0.3 * float32(rng.NormFloat64())
	}
	return p
}

// TestGradientOfWholeModel compares, per tensor, the slope of the loss along the
// gradient with the gradient's norm. What one window's loss can resolve in
// float32 limits the tolerance.
func TestGradientOfWholeModel(t *testing.T) {
	for _, tied := range []bool{false, true} {
		c := ragged
		c.Tied = tied
		rng := rand.New(rand.NewPCG(1, 2))
		p, tokens := rough(rng, c), randomTokens(rng, c, 2)
		m, grad := NewModel(c, 2), NewParams(c)
		m.LossGrad(p, grad, tokens)
		for _, v := range grad.Views {
			g := grad.Of(v)
			norm := math.Sqrt(tensor.SumSquares(g))
			if slope := slopeAlong(m, p, p.Of(v), g, norm, tokens); math.Abs(slope/norm-1) > 2e-3 {
				t.Errorf("tied %v: %s: slope %v, norm of the gradient %v", tied, v.Name, slope, norm)
			}
		}
	}
}

// slopeAlong moves x along the unit vector of g, either way.
func slopeAlong(m *Model, p *tensor.Slab, x, g []float32, norm float64, tokens []int32) float64 {
	const h = 4e-3
	start := slices.Clone(x)
	at := func(step float64) float64 {
		copy(x, start)
		tensor.Axpy(float32(step/norm), g, x)
		return m.Loss(p, tokens)
	}
	// Richardson's extrapolation removes the cubic term.
	near, far := (at(h)-at(-h))/(2*h), (at(2*h)-at(-2*h))/(4*h)
	copy(x, start)
	return (4*near - far) / 3
}

func TestGradientAccumulates(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	p, tokens := rough(rng, ragged), randomTokens(rng, ragged, 4)
	half := len(tokens) / 2
	whole, parts := NewParams(ragged), NewParams(ragged)
	loss := NewModel(ragged, 4).LossGrad(p, whole, tokens)
	m := NewModel(ragged, 3) // two windows leave a part of the workspace unused
	sum := m.LossGrad(p, parts, tokens[:half]) + m.LossGrad(p, parts, tokens[half:])
	if math.Abs(sum/2-loss) > 1e-6 {
		t.Errorf("loss of halves %v, of the whole %v", sum/2, loss)
	}
	tensor.Scale(0.5, parts.Data)
	if d := distance(parts.Data, whole.Data); d > 1e-5 {
		t.Errorf("the mean of two halves' gradients is off by %.1e", d)
	}
}

// TestFreshGradient: overwriting gives what adding to 0 does.
func TestFreshGradient(t *testing.T) {
	for _, tied := range []bool{false, true} {
		c := ragged
		c.Tied = tied
		rng := rand.New(rand.NewPCG(3, 5))
		p, tokens := rough(rng, c), randomTokens(rng, c, 2)
		m, want, got := NewModel(c, 2), NewParams(c), NewParams(c)
		m.LossGrad(p, want, tokens)
		for i := range got.Data {
			got.Data[i] = float32(math.NaN())
		}
		m.Fresh = true
		m.LossGrad(p, got, tokens)
		if !slices.Equal(got.Data, want.Data) {
			t.Errorf("tied %v: a fresh gradient has other values", tied)
		}
	}
}

// TestThreadsAgree: the number of threads changes no bit.
func TestThreadsAgree(t *testing.T) {
	defer tensor.SetThreads(0)
	c := ragged
	c.Hidden, c.Heads, c.KVHeads, c.Intermediate, c.Context = 96, 6, 3, 130, 75 // several blocks of everything
	rng := rand.New(rand.NewPCG(5, 6))
	p, tokens := rough(rng, c), randomTokens(rng, c, 2)
	var want string
	for threads := 1; threads <= 3; threads++ {
		tensor.SetThreads(threads)
		grad := NewParams(c)
		NewModel(c, 2).LossGrad(p, grad, tokens)
		if got := digest(grad.Data); want == "" {
			want = got
		} else if got != want {
			t.Errorf("%d threads give another gradient than 1", threads)
		}
	}
}

// TestChunksAgree: a vocabulary that needs several chunks of logits.
func TestChunksAgree(t *testing.T) {
	c := ragged
	c.Vocab, c.Hidden, c.Heads, c.Context = chunkFloats/20, 6, 1, 30
	rng := rand.New(rand.NewPCG(7, 8))
	p, tokens := rough(rng, c), randomTokens(rng, c, 1)
	if chunkRows(c, c.Context) != 20 {
		t.Fatalf("chunks of %d rows, want 20", chunkRows(c, c.Context))
	}
	m := NewModel(c, 1)
	var sum float64
	loss := m.Loss(p, tokens)
	for i := range c.Context {
		sum += surprise(m.Logits(p, tokens[:i+1]), tokens[i+1])
	}
	if want := sum / float64(c.Context); math.Abs(loss/want-1) > 1e-5 {
		t.Errorf("loss %v, from single logits %v", loss, want)
	}
}

func surprise(logits []float32, token int32) float64 {
	sum := 0.0
	for _, v := range logits {
		sum += math.Exp(float64(v - logits[token]))
	}
	return math.Log(sum)
}

func TestMisuse(t *testing.T) {
	p, m := NewParams(ragged), NewModel(ragged, 2)
	window := make([]int32, ragged.Context+1)
	for name, f := range map[string]func(){
		"no window":     func() { m.Loss(p, nil) },
		"half a window": func() { m.Loss(p, window[1:]) },
		"three windows": func() { m.Loss(p, slices.Concat(window, window, window)) },
		"large token":   func() { m.Loss(p, slices.Repeat([]int32{37}, 14)) },
		"negative":      func() { m.Logits(p, []int32{-1}) },
		"no prefix":     func() { m.Logits(p, nil) },
		"full decoder":  func() { NewDecoder(ragged, p).read(window) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("did not panic")
				}
			}()
			f()
		})
	}
}

// TestLearns: a few steps of plain descent learn one window.
func TestLearns(t *testing.T) {
	p, grad, m := NewParams(ragged), NewParams(ragged), NewModel(ragged, 1)
	Init(ragged, p, 1)
	tokens := randomTokens(rand.New(rand.NewPCG(10, 11)), ragged, 1)
	first := m.Loss(p, tokens)
	if math.Abs(first-math.Log(37)) > 0.1 {
		t.Errorf("a fresh model's loss is %v, want about ln 37", first)
	}
	for range 60 {
		clear(grad.Data)
		m.LossGrad(p, grad, tokens)
		tensor.Axpy(-0.1, grad.Data, p.Data)
	}
	if last := m.Loss(p, tokens); last > first/4 {
		t.Errorf("loss went from %v to %v", first, last)
	}
}

// BenchmarkStep is one forward and backward pass on one thread.
func BenchmarkStep(b *testing.B) {
	for _, size := range []struct {
		name   string
		config Config
		batch  int
	}{{"tiny", Tiny, 4}, {"tiny", Tiny, 16}, {"small", Small, 8}} {
		b.Run(fmt.Sprintf("%s/batch=%d", size.name, size.batch), func(b *testing.B) {
			defer tensor.SetThreads(0)
			tensor.SetThreads(1)
			c, m := size.config, NewModel(size.config, size.batch)
			p, grad := NewParams(c), NewParams(c)
			Init(c, p, 1)
			tokens := randomTokens(rand.New(rand.NewPCG(1, 1)), c, size.batch)
			for b.Loop() {
				m.LossGrad(p, grad, tokens)
			}
			b.ReportMetric(float64(b.N*size.batch*c.Context)/b.Elapsed().Seconds(), "tokens/s")
		})
	}
}
