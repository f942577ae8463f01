package nn

import (
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"atoll/tensor"
)

// attend runs both passes and returns the output and the gradient of qkv.
func attend(s AttentionShape, qkv, dout []float32, lanes int) (out, dqkv []float32) {
	out, dqkv = make([]float32, len(dout)), make([]float32, len(qkv))
	lse, scratch := make([]float32, s.Batch*s.Heads*s.Context), make([]float32, lanes*s.Scratch())
	for i := range dqkv {
		dqkv[i] = 7 // is overwritten
	}
	Attention(out, lse, qkv, scratch, s)
	AttentionBackward(dqkv, dout, out, lse, qkv, scratch, s)
	return out, dqkv
}

func checkAttention(t rapid.TB, rng *rand.Rand, s AttentionShape, lanes int) {
	rows := s.Batch * s.Context
	qkv, dout := random(rng, rows*s.Stride()), random(rng, rows*s.Heads*s.HeadDim)
	out, dqkv := attend(s, narrow(qkv), narrow(dout), lanes)
	same(t, "out", out, refAttention(qkv, s), tolerance)
	f := func() float64 { return dot(refAttention(qkv, s), dout) }
	same(t, "dqkv", dqkv, derivative(qkv, f), tolerance)
}

func TestAttention(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := AttentionShape{Batch: size(t, "batch", 2), Context: size(t, "context", 7)}
		s.KVHeads, s.HeadDim = size(t, "kv", 2), size(t, "head", 5)
		s.Heads = s.KVHeads * size(t, "group", 3)
		checkAttention(t, source(t), s, size(t, "lanes", 3))
	})
}

// TestAttentionBlocks has more rows than a block, not a multiple of it.
func TestAttentionBlocks(t *testing.T) {
	s := AttentionShape{Batch: 1, Context: attentionBlock + 7, Heads: 2, KVHeads: 1, HeadDim: 2}
	checkAttention(t, rand.New(rand.NewPCG(1, 2)), s, 2)
}

// TestAttentionIsCausal: what comes later changes nothing before it.
func TestAttentionIsCausal(t *testing.T) {
	s := AttentionShape{Batch: 1, Context: 2*attentionBlock + 3, Heads: 2, KVHeads: 2, HeadDim: 8}
	rng, width := rand.New(rand.NewPCG(3, 4)), s.Heads*s.HeadDim
	qkv, dout := narrow(random(rng, s.Context*s.Stride())), make([]float32, s.Context*width)
	before, _ := attend(s, qkv, dout, 1)
	for _, from := range []int{1, attentionBlock - 1, attentionBlock, s.Context - 1} {
		changed := slices.Clone(qkv)
		copy(changed[from*s.Stride():], narrow(random(rng, len(qkv)-from*s.Stride())))
		after, _ := attend(s, changed, dout, 1)
		if !slices.Equal(before[:from*width], after[:from*width]) {
			t.Errorf("a change at position %d reaches a position before it", from)
		}
	}
}

// TestThreads: the same bits for every number of threads and lanes.
func TestThreads(t *testing.T) {
	defer tensor.SetThreads(0)
	s := AttentionShape{Batch: 3, Context: 70, Heads: 4, KVHeads: 2, HeadDim: 8}
	rng := rand.New(rand.NewPCG(5, 6))
	qkv, dout := narrow(random(rng, 210*s.Stride())), narrow(random(rng, 210*32))
	tensor.SetThreads(1)
	out, dqkv := attend(s, qkv, dout, 1)
	for threads := 2; threads < 5; threads++ {
		tensor.SetThreads(threads)
		out2, dqkv2 := attend(s, qkv, dout, threads)
		if !slices.Equal(out, out2) || !slices.Equal(dqkv, dqkv2) {
			t.Errorf("%d threads give other bits than 1", threads)
		}
	}
}

// TestAttentionRow: one position at a time gives what all at once give.
func TestAttentionRow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := AttentionShape{Batch: 1, Context: size(t, "context", 9)}
		s.KVHeads, s.HeadDim = size(t, "kv", 3), size(t, "head", 5)
		s.Heads = s.KVHeads * size(t, "group", 3)
		qkv, width := random(source(t), s.Context*s.Stride()), s.KVHeads*s.HeadDim
		want, scores := refAttention(qkv, s), make([]float32, s.Context)
		var keys, values []float32
		for n := range s.Context {
			row := narrow(qkv[n*s.Stride() : (n+1)*s.Stride()])
			query, rest := row[:s.Heads*s.HeadDim], row[s.Heads*s.HeadDim:]
			keys, values = append(keys, rest[:width]...), append(values, rest[width:]...)
			out := make([]float32, len(query))
			AttentionRow(out, query, keys, values, scores, n+1, s)
			same(t, "out", out, want[n*len(out):(n+1)*len(out)], tolerance)
		}
	})
}
