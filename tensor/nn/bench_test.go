package nn

import (
	"math/rand/v2"
	"testing"

	"atoll/tensor"
)

// BenchmarkRows times, on one thread, what surrounds the matrix products, in
// the shape of the tiny model at 4 windows.
func BenchmarkRows(b *testing.B) {
	const rows, context, dim, vocab = 512, 128, 128, 256
	rng := rand.New(rand.NewPCG(1, 1))
	values := func(n int) []float32 { return narrow(random(rng, n)) }
	x, y, z, weight, rstd := values(rows*dim), values(rows*dim), values(rows*dim), values(dim), values(rows)
	qkv, logits := values(rows*3*dim), values(rows*vocab)
	rope, targets, losses := NewRope(context, 32, 10000), make([]int32, rows), make([]float64, rows)
	scores, dscores := values(rows*context), values(rows*context)
	defer tensor.SetThreads(0)
	tensor.SetThreads(1)
	for _, op := range []struct {
		name string
		f    func()
	}{
		{"rmsnorm", func() { RMSNorm(y, rstd, x, weight, rows, dim, 1e-5) }},
		{"rmsnorm-backward", func() { RMSNormBackward(y, weight, z, x, weight, rstd, rows, dim) }},
		{"rope", func() { rope.Apply(qkv, rows, context, 8, 3*dim) }},
		{"cross-entropy", func() { CrossEntropy(losses, logits, targets, rows, vocab, 1) }},
		{"embedding-backward", func() { EmbeddingBackward(logits, x, targets, dim) }},
		{"softmax-backward", func() {
			for r := range rows {
				tensor.SoftmaxGrad(dscores[r*context:(r+1)*context], scores[r*context:(r+1)*context], 0.1, 0.5)
			}
		}},
	} {
		b.Run(op.name, func(b *testing.B) {
			for b.Loop() {
				op.f()
			}
		})
	}
}
