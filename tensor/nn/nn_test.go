package nn

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"atoll/tensor"
)

// tolerance is what float32 arithmetic leaves, relative to the largest value.
const tolerance = 2e-5

// source draws a generator for values; rapid itself draws only shapes.
func source(t *rapid.T) *rand.Rand {
	return rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
}

func size(t *rapid.T, name string, most int) int {
	return rapid.IntRange(1, most).Draw(t, name)
}

func TestEmbedding(t *testing.T) {
	weight := []float32{1, 2, 3, 4, 5, 6}
	tokens := []int32{2, 0, 2}
	out := make([]float32, 6)
	Embedding(out, weight, tokens, 2)
	same(t, "out", out, []float64{5, 6, 1, 2, 5, 6}, 0)

	dweight := []float32{1, 1, 1, 1, 1, 1}
	EmbeddingBackward(dweight, []float32{1, 2, 3, 4, 5, 6}, tokens, 2)
	same(t, "dweight", dweight, []float64{4, 5, 1, 1, 7, 9}, 0)
}

func TestRMSNorm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng, rows := source(t), size(t, "rows", 40)
		dim := 3 + size(t, "dim", 70) // a row that is all but 0 has no usable numeric slope
		const eps = 1e-5
		x, weight, dout := random(rng, rows*dim), random(rng, dim), random(rng, rows*dim)
		out, rstd := make([]float32, rows*dim), make([]float32, rows)
		RMSNorm(out, rstd, narrow(x), narrow(weight), rows, dim, eps)
		same(t, "out", out, refRMSNorm(x, weight, rows, dim, eps), tolerance)

		start := random(rng, rows*dim) // dx and dweight are added to
		dx, dweight := narrow(start), narrow(start[:dim])
		RMSNormBackward(dx, dweight, narrow(dout), narrow(x), narrow(weight), rstd, rows, dim)
		f := func() float64 { return dot(refRMSNorm(x, weight, rows, dim, eps), dout) }
		tensor.Axpy(-1, narrow(start), dx)
		tensor.Axpy(-1, narrow(start[:dim]), dweight)
		same(t, "dweight", dweight, derivative(weight, f), tolerance)
		same(t, "dx", dx, rowDerivative(x, dout, weight, rows, dim, eps), tolerance)
	})
}

// TestRMSNormBackwardOnOneThread: it goes through memory in another order there, and comes to the same bits.
func TestRMSNormBackwardOnOneThread(t *testing.T) {
	const rows, dim = 70, 2*columnBlock + 5
	rng := rand.New(rand.NewPCG(7, 7))
	x, weight, dout, rstd := random(rng, rows*dim), random(rng, dim), random(rng, rows*dim), random(rng, rows)
	defer tensor.SetThreads(0)
	var want [2][]float32
	for _, threads := range []int{3, 1} {
		tensor.SetThreads(threads)
		got := [2][]float32{narrow(x), narrow(weight)} // dx and dweight, which are added to
		RMSNormBackward(got[0], got[1], narrow(dout), narrow(x), narrow(weight), narrow(rstd), rows, dim)
		if threads == 3 {
			want = got
		} else if !slices.Equal(got[0], want[0]) || !slices.Equal(got[1], want[1]) {
			t.Error("one thread gives other bits than three")
		}
	}
}

// rowDerivative differentiates RMSNorm row by row: rows do not meet.
func rowDerivative(x, dout, weight []float64, rows, dim int, eps float64) []float64 {
	var d []float64
	for r := range rows {
		row, drow := x[r*dim:(r+1)*dim], dout[r*dim:(r+1)*dim]
		d = append(d, derivative(row, func() float64 {
			return dot(refRMSNorm(row, weight, 1, dim, eps), drow)
		})...)
	}
	return d
}

func TestRope(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng, batch, context := source(t), size(t, "batch", 3), size(t, "context", 20)
		heads, headDim := size(t, "heads", 4), 2*size(t, "half", 5)
		rows, stride := batch*context, heads*headDim+rapid.IntRange(0, 5).Draw(t, "rest")
		rope := NewRope(context, headDim, 100)
		x, dout := random(rng, rows*stride), random(rng, rows*stride)
		forward := func() []float64 { return refRope(x, rows, context, heads, headDim, stride, 100) }

		out := narrow(x)
		rope.Apply(out, rows, context, heads, stride)
		same(t, "out", out, forward(), tolerance)
		dx := narrow(dout)
		rope.Backward(dx, rows, context, heads, stride)
		some := x[:min(len(x), 2*stride)] // derivatives of all would be slow
		same(t, "dx", dx[:len(some)], derivative(some, func() float64 { return dot(forward(), dout) }), tolerance)
		rope.Backward(out, rows, context, heads, stride)
		same(t, "there and back", out, x, tolerance)
	})
}

func TestSwiGLU(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng, rows, dim := source(t), size(t, "rows", 5), size(t, "dim", 40)
		gateUp, dact := random(rng, 2*rows*dim), random(rng, rows*dim)
		act, dgateUp := make([]float32, rows*dim), make([]float32, 2*rows*dim)
		SwiGLU(act, narrow(gateUp), rows, dim)
		same(t, "act", act, refSwiGLU(gateUp, rows, dim), tolerance)
		clear(act)
		SwiGLUBackward(dgateUp, act, narrow(dact), narrow(gateUp), rows, dim)
		same(t, "act again", act, refSwiGLU(gateUp, rows, dim), tolerance)
		f := func() float64 { return dot(refSwiGLU(gateUp, rows, dim), dact) }
		same(t, "dgateUp", dgateUp, derivative(gateUp, f), tolerance)
	})
}

func TestLinear(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng, rows, in, out := source(t), size(t, "rows", 9), size(t, "in", 20), size(t, "out", 20)
		x, w, dy := random(rng, rows*in), random(rng, out*in), random(rng, rows*out)
		y := make([]float32, rows*out)
		Linear(tensor.F32, y, narrow(x), narrow(w), rows, in, out, false)
		same(t, "y", y, refLinear(x, w, rows, in, out), tolerance)
		twice := refLinear(x, w, rows, in, out)
		for i := range twice {
			twice[i] *= 2
		}
		Linear(tensor.F32, y, narrow(x), narrow(w), rows, in, out, true)
		same(t, "y added", y, twice, tolerance)

		dx, dw := make([]float32, rows*in), make([]float32, out*in)
		for i := range dw {
			dw[i] = 7 // is overwritten
		}
		LinearBackward(tensor.F32, dx, dw, narrow(dy), narrow(x), narrow(w), rows, in, out, false)
		f := func() float64 { return dot(refLinear(x, w, rows, in, out), dy) }
		same(t, "dx", dx, derivative(x, f), tolerance)
		same(t, "dw", dw, derivative(w, f), tolerance)
		once := slices.Clone(dw)
		LinearBackward(tensor.F32, dx, dw, narrow(dy), narrow(x), narrow(w), rows, in, out, true)
		tensor.Axpy(-1, once, dw)
		same(t, "dw added", dw, derivative(w, f), tolerance)
	})
}

func TestCrossEntropy(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng, rows, vocab := source(t), size(t, "rows", 5), size(t, "vocab", 40)
		logits, targets := random(rng, rows*vocab), make([]int32, rows)
		for i := range targets {
			targets[i] = rng.Int32N(int32(vocab))
		}
		losses, d := make([]float64, rows), narrow(logits)
		CrossEntropy(losses, d, targets, rows, vocab, 0.5)
		same(t, "losses", narrow(losses), refCrossEntropy(logits, targets, rows, vocab), tolerance)
		f := func() float64 {
			sum := 0.0
			for _, loss := range refCrossEntropy(logits, targets, rows, vocab) {
				sum += loss
			}
			return sum / 2
		}
		same(t, "dlogits", d, derivative(logits, f), tolerance)
	})
}

// TestCrossEntropyFarLogits: neither overflow nor denormals where the softmax is
// as sharp as it can be.
func TestCrossEntropyFarLogits(t *testing.T) {
	losses, logits := make([]float64, 1), []float32{1e4, 0, -1e4}
	CrossEntropy(losses, logits, []int32{1}, 1, 3, 1)
	if losses[0] != 1e4 {
		t.Errorf("loss is %v, want 10000", losses[0])
	}
	same(t, "dlogits", logits, []float64{1, -1, 0}, 0)
	if math.Signbit(float64(logits[2])) {
		t.Error("a cut tail has a sign")
	}
}
