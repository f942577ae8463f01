package bench

import (
	"context"
	"fmt"
	"math/rand/v2"

	"atoll/tensor"
	"atoll/tensor/llama"
)

// Gemm is the speed of one matrix product.
type Gemm struct {
	Bench     string           `json:"bench"` // "gemm"
	Form      string           `json:"form"`  // NN, NT or TN: which operand is transposed
	M         int              `json:"m"`     // rows
	K         int              `json:"k"`     // products in each sum
	N         int              `json:"n"`     // columns
	Threads   int              `json:"threads"`
	Precision tensor.Precision `json:"precision"`
	GFLOPPerS float64          `json:"gflop_per_s"`
	OfPeak    float64          `json:"of_peak"`
	Best      float64          `json:"best_gflop_per_s"` // of all parts: what other work on the machine hides
	Spread    float64          `json:"spread"`
}

// Product is one shape of a matrix product: op(A) is M x K, op(B) K x N.
type Product struct {
	Form    string
	M, K, N int
}

// String is the shape.
func (p Product) String() string { return fmt.Sprintf("%dx%dx%d %s", p.M, p.K, p.N, p.Form) }

// FLOPs is the work in one product.
func (p Product) FLOPs() float64 { return 2 * float64(p.M) * float64(p.N) * float64(p.K) }

// Products are the shapes that Gemms measures by default: shapes of models of common
// sizes, then of tiny's training steps of 16 x 128 tokens, whose sizes fill no tile.
var Products = []Product{
	{"NN", 2048, 256, 256}, {"NN", 2048, 256, 768}, {"NN", 2048, 256, 1024},
	{"NN", 2048, 768, 3072}, {"NN", 1024, 1024, 1024},
	{"NT", 2048, 128, 688}, // gate and up, forward
	{"NT", 2048, 344, 128}, // down, forward
	{"NN", 2048, 688, 128}, // gate and up, gradient of the input
	{"NN", 2048, 128, 344}, // down, gradient of the input
	{"TN", 688, 2048, 128}, // gate and up, gradient of the weights
	{"TN", 128, 2048, 344}, // down, gradient of the weights
	{"NT", 64, 32, 128},    // a head's scores
	{"NN", 64, 128, 32},    // a head's values
	{"TN", 128, 64, 32},    // gradient of a head's keys
}

// ModelProducts are the products of a training step with the weights of a model, at the batch of the shared benchmark:
// forward, for the gradient of the input, for the gradient of the weights.
func ModelProducts(models ...llama.Config) (list []Product) {
	for _, c := range models {
		rows := SharedBatch(c) * c.Context
		qkv := c.Hidden + 2*c.KVHeads*c.Hidden/c.Heads
		for _, w := range [][2]int{{c.Hidden, qkv}, {c.Hidden, c.Hidden}, {c.Hidden, 2 * c.Intermediate}, {c.Intermediate, c.Hidden}} {
			in, out := w[0], w[1]
			list = append(list, Product{"NT", rows, in, out}, Product{"NN", rows, out, in}, Product{"TN", out, rows, in})
		}
	}
	return list
}

// Gemms measures products at the threads and in the precision of a peak, which it leaves set.
func Gemms(ctx context.Context, m Meter, peak Peak, products []Product) ([]Gemm, error) {
	tensor.SetThreads(peak.Threads)
	results := make([]Gemm, 0, len(products))
	for _, p := range products {
		m.report(fmt.Sprintf("product %v, %s", p, on(peak.Threads)))
		s, err := m.repeat(ctx, p.multiply(peak.Precision))
		if err != nil {
			return nil, fmt.Errorf("gemm: %w", err)
		}
		rate := p.FLOPs() / s.Median / 1e9
		results = append(results, Gemm{
			Bench: "gemm", Form: p.Form, M: p.M, K: p.K, N: p.N, Threads: peak.Threads, Precision: peak.Precision,
			GFLOPPerS: rate, OfPeak: rate / peak.GFLOPPerS,
			Best: p.FLOPs() / s.Min / 1e9, Spread: s.Spread,
		})
	}
	return results, nil
}

// multiply returns the operation, on random operands.
func (p Product) multiply(precision tensor.Precision) func() error {
	rng := rand.New(rand.NewPCG(1, 1))
	a, b, c := normal(rng, p.M*p.K, 1), normal(rng, p.K*p.N, 1), make([]float32, p.M*p.N)
	transA, transB := p.Form[0] == 'T', p.Form[1] == 'T'
	lda, ldb := p.K, p.N
	if transA {
		lda = p.M
	}
	if transB {
		ldb = p.K
	}
	return func() error {
		precision.Gemm(transA, transB, p.M, p.N, p.K, a, lda, b, ldb, c, p.N, false)
		return nil
	}
}

// normal returns n normal values of a scale.
func normal(rng *rand.Rand, n int, scale float64) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(scale * rng.NormFloat64())
	}
	return v
}
