package nn

import (
	"math"

	"atoll/tensor"
)

// attentionBlock is how many query rows are scored at once. Scores are computed
// for keys up to the block's last row only, so a small block skips more of the
// upper triangle and a large one makes better matrix products.
const attentionBlock = 64

// AttentionShape is the shape of causal grouped-query attention (Ainslie et
// al., arXiv 2305.13245): query head h reads key and value head
// h / (Heads/KVHeads).
type AttentionShape struct {
	Batch, Context          int
	Heads, KVHeads, HeadDim int
	Precision               Precision // of the products with keys and values
}

// Stride is the length of a row of qkv: queries, keys, values of all heads.
func (s AttentionShape) Stride() int { return (s.Heads + 2*s.KVHeads) * s.HeadDim }

// Scratch is the number of floats that one lane of Attention or
// AttentionBackward works in. A scratch of n times that runs n lanes at once.
func (s AttentionShape) Scratch() int { return 2 * s.block() * s.Context }

func (s AttentionShape) block() int     { return min(attentionBlock, s.Context) }
func (s AttentionShape) width() int     { return s.Heads * s.HeadDim }
func (s AttentionShape) group() int     { return s.Heads / s.KVHeads }
func (s AttentionShape) scale() float32 { return float32(1 / math.Sqrt(float64(s.HeadDim))) }

// head is one query head of one sequence, with the key and value head it
// reads. Rows are strided as in the buffers they point into.
type head struct {
	q, k, v    []float32 // [Context, Stride]
	dq, dk, dv []float32 // [Context, Stride]
	out, dout  []float32 // [Context, Heads*HeadDim]
	lse        []float32 // [Context]
}

// Attention computes softmax(q k^T / sqrt(HeadDim)) v for each head, position t
// attending to positions up to t. Only the logarithm of each row's sum is
// kept of the softmax; the backward pass computes the rest again (Dao et al.,
// arXiv 2205.14135).
//
//	out     [Batch, Context, Heads*HeadDim]
//	lse     [Batch, Heads, Context], kept for the backward pass
//	qkv     [Batch, Context, Stride], after Rope.Apply
//	scratch a multiple of Scratch
func Attention(out, lse, qkv, scratch []float32, s AttentionShape) {
	s.overLanes(s.Batch*s.Heads, scratch, func(task int, scratch []float32) {
		b, h := task/s.Heads, task%s.Heads
		hd := s.head(qkv, b, h)
		hd.out = out[b*s.Context*s.width()+h*s.HeadDim:]
		hd.lse = lse[task*s.Context : (task+1)*s.Context]
		for lo := 0; lo < s.Context; lo += s.block() {
			s.forwardBlock(hd, scratch, lo, min(lo+s.block(), s.Context))
		}
	})
}

// AttentionBackward is the gradient of Attention.
//
//	dqkv [Batch, Context, Stride], overwritten
//	dout [Batch, Context, Heads*HeadDim]
func AttentionBackward(dqkv, dout, out, lse, qkv, scratch []float32, s AttentionShape) {
	s.overLanes(s.Batch*s.KVHeads, scratch, func(task int, scratch []float32) {
		b, kv := task/s.KVHeads, task%s.KVHeads
		for g := range s.group() {
			h := kv*s.group() + g
			hd := s.head(qkv, b, h)
			dhd := s.head(dqkv, b, h)
			hd.dq, hd.dk, hd.dv = dhd.q, dhd.k, dhd.v
			at := b*s.Context*s.width() + h*s.HeadDim
			hd.out, hd.dout = out[at:], dout[at:]
			hd.lse = lse[(b*s.Heads+h)*s.Context:][:s.Context]
			s.backwardHead(hd, scratch, g > 0)
		}
	})
}

// overLanes shares tasks among as many lanes as scratch has room for; each lane
// runs its tasks one after the other.
func (s AttentionShape) overLanes(tasks int, scratch []float32, f func(task int, scratch []float32)) {
	size := s.Scratch()
	lanes := min(tasks, len(scratch)/size)
	tensor.Parallel(lanes, func(lane int) {
		for task := lane; task < tasks; task += lanes {
			f(task, scratch[lane*size:(lane+1)*size])
		}
	})
}

// head points at query head h of sequence b in a buffer of the shape of qkv.
func (s AttentionShape) head(qkv []float32, b, h int) head {
	row := qkv[b*s.Context*s.Stride():]
	kv := h / s.group()
	return head{
		q: row[h*s.HeadDim:],
		k: row[(s.Heads+kv)*s.HeadDim:],
		v: row[(s.Heads+s.KVHeads+kv)*s.HeadDim:],
	}
}

// forwardBlock computes output rows [lo, hi) of one head. The row sum divides
// the HeadDim outputs rather than the up to Context scores.
func (s AttentionShape) forwardBlock(h head, scratch []float32, lo, hi int) {
	scores, sums := scratch[:s.block()*s.Context], scratch[s.block()*s.Context:]
	s.score(h, scores, lo, hi)
	for t := lo; t < hi; t++ {
		row := scores[(t-lo)*hi:][:hi]
		shift := tensor.Max(row[:t+1])
		sums[t-lo] = tensor.ExpSum(row[:t+1], row[:t+1], shift)
		clear(row[t+1:])
		h.lse[t] = shift + float32(math.Log(float64(sums[t-lo])))
	}
	s.Precision.Gemm(false, false, hi-lo, s.HeadDim, hi, scores, hi, h.v, s.Stride(), h.out[lo*s.width():], s.width(), false)
	for t := lo; t < hi; t++ {
		tensor.Scale(1/sums[t-lo], h.out[t*s.width():][:s.HeadDim])
	}
}

// score sets scores [hi-lo, hi] = q[lo:hi] k[0:hi]^T / sqrt(HeadDim).
func (s AttentionShape) score(h head, scores []float32, lo, hi int) {
	s.Precision.Gemm(false, true, hi-lo, hi, s.HeadDim, h.q[lo*s.Stride():], s.Stride(), h.k, s.Stride(), scores, hi, false)
	tensor.Scale(s.scale(), scores[:(hi-lo)*hi])
}

// backwardHead goes through the row blocks from the last to the first: the last
// one reaches every key, so it overwrites dk and dv (unless another head of the
// group has done so), and the others add.
func (s AttentionShape) backwardHead(h head, scratch []float32, add bool) {
	last := (s.Context - 1) / s.block() * s.block()
	for lo := last; lo >= 0; lo -= s.block() {
		s.backwardBlock(h, scratch, lo, min(lo+s.block(), s.Context), add || lo < last)
	}
}

// backwardBlock adds what query rows [lo, hi) contribute. With p the softmax,
// dp = dout v^T and delta = sum(dout * out) per row:
//
//	dscores = p (dp - delta) / sqrt(HeadDim)
//	dv += p^T dout,  dq = dscores k,  dk += dscores^T q
func (s AttentionShape) backwardBlock(h head, scratch []float32, lo, hi int, add bool) {
	rows, stride, width := hi-lo, s.Stride(), s.width()
	p, dp := scratch[:s.block()*s.Context], scratch[s.block()*s.Context:]
	q, dout := h.q[lo*stride:], h.dout[lo*width:]
	s.score(h, p, lo, hi)
	s.Precision.Gemm(false, true, rows, hi, s.HeadDim, dout, width, h.v, stride, dp, hi, false)
	for t := lo; t < hi; t++ {
		prow, dprow := p[(t-lo)*hi:][:hi], dp[(t-lo)*hi:][:hi]
		tensor.ExpSum(prow[:t+1], prow[:t+1], h.lse[t])
		clear(prow[t+1:])
		delta := tensor.Dot(h.dout[t*width:][:s.HeadDim], h.out[t*width:][:s.HeadDim])
		tensor.SoftmaxGrad(dprow, prow, float32(delta), s.scale())
	}
	s.Precision.Gemm(true, false, hi, s.HeadDim, rows, p, hi, dout, width, h.dv, stride, add)
	s.Precision.Gemm(false, false, rows, s.HeadDim, hi, dp, hi, h.k, stride, h.dq[lo*stride:], stride, false)
	s.Precision.Gemm(true, false, hi, s.HeadDim, rows, dp, hi, q, stride, h.dk, stride, add)
}
