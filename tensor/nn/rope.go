package nn

import (
	"math"

	"atoll/tensor"
)

// Rope holds the rotation angles of rotary position embedding in the
// half-split layout of Hugging Face Llama: element i of the first half of a
// head is paired with element i of the second half (Su et al., arXiv
// 2104.09864).
type Rope struct {
	half      int
	cos       []float32 // [context, half]
	sin, back []float32 // [context, half]; back = -sin
}

// NewRope tabulates cos and sin of position / theta^(2i/headDim). Frequencies
// and angles are rounded to float32, as PyTorch does, so that long contexts
// agree with models trained there. headDim must be even.
func NewRope(context, headDim int, theta float64) *Rope {
	half := headDim / 2
	n := context * half
	r := &Rope{half, make([]float32, n), make([]float32, n), make([]float32, n)}
	for i := range half {
		frequency := 1 / float32(math.Pow(theta, float64(2*i)/float64(headDim)))
		for t := range context {
			sin, cos := math.Sincos(float64(float32(t) * frequency))
			at := t*half + i
			r.cos[at], r.sin[at], r.back[at] = float32(cos), float32(sin), float32(-sin)
		}
	}
	return r
}

// Apply rotates the first heads*headDim elements of each row in place. Row r
// is at position r % context.
//
//	x [rows, stride]
func (r *Rope) Apply(x []float32, rows, context, heads, stride int) {
	r.rotate(x, r.sin, rows, context, heads, stride)
}

// Backward rotates gradients back in place: a rotation's transpose is its
// inverse.
//
//	dx [rows, stride]
func (r *Rope) Backward(dx []float32, rows, context, heads, stride int) {
	r.rotate(dx, r.back, rows, context, heads, stride)
}

// ApplyAt rotates the heads of one row at a position.
func (r *Rope) ApplyAt(row []float32, position, heads int) {
	r.rotateRow(row, r.sin, position, heads)
}

func (r *Rope) rotate(x, sin []float32, rows, context, heads, stride int) {
	overRows(rows, func(lo, hi int) {
		for row := lo; row < hi; row++ {
			r.rotateRow(x[row*stride:], sin, row%context, heads)
		}
	})
}

func (r *Rope) rotateRow(row, sin []float32, position, heads int) {
	lo, hi := position*r.half, (position+1)*r.half
	tensor.Rotate(row[:2*r.half*heads], r.cos[lo:hi], sin[lo:hi])
}
