package nn

import "math"

// Rope holds the rotation angles of rotary position embedding in the
// half-split layout of Hugging Face Llama: element i of the first half of a
// head is paired with element i of the second half (Su et al., arXiv
// 2104.09864).
type Rope struct {
	half     int
	cos, sin []float32 // [context, half]
}

// NewRope tabulates cos and sin of position / theta^(2i/headDim). Frequencies
// and angles are rounded to float32, as PyTorch does, so that long contexts
// agree with models trained there. headDim must be even.
func NewRope(context, headDim int, theta float64) *Rope {
	half := headDim / 2
	r := &Rope{half, make([]float32, context*half), make([]float32, context*half)}
	for i := range half {
		power := float32(math.Pow(theta, float64(2*i)/float64(headDim)))
		frequency := 1 / power
		for t := range context {
			angle := float64(float32(t) * frequency)
			r.cos[t*half+i] = float32(math.Cos(angle))
			r.sin[t*half+i] = float32(math.Sin(angle))
		}
	}
	return r
}

// Apply rotates the first heads*headDim elements of each row in place. Row r
// is at position r % context.
//
//	x [rows, stride]
func (r *Rope) Apply(x []float32, rows, context, heads, stride int) {
	r.rotate(x, rows, context, heads, stride, rotateHead)
}

// Backward rotates gradients back in place: a rotation's transpose is its
// inverse.
//
//	dx [rows, stride]
func (r *Rope) Backward(dx []float32, rows, context, heads, stride int) {
	r.rotate(dx, rows, context, heads, stride, rotateHeadBack)
}

// ApplyAt rotates the heads of one row at a position.
func (r *Rope) ApplyAt(row []float32, position, heads int) {
	r.rotateRow(row, position, heads, rotateHead)
}

// rotation turns a head whose halves are p and q by the angles of a position.
type rotation func(p, q, cos, sin []float32)

func (r *Rope) rotate(x []float32, rows, context, heads, stride int, f rotation) {
	overRows(rows, func(lo, hi int) {
		for row := lo; row < hi; row++ {
			r.rotateRow(x[row*stride:(row+1)*stride], row%context, heads, f)
		}
	})
}

func (r *Rope) rotateRow(row []float32, position, heads int, f rotation) {
	at := position * r.half
	cos, sin := r.cos[at:at+r.half], r.sin[at:at+r.half]
	for h := range heads {
		head := row[2*h*r.half : 2*(h+1)*r.half]
		f(head[:r.half], head[r.half:], cos, sin)
	}
}

func rotateHead(p, q, cos, sin []float32) {
	q, cos, sin = q[:len(p)], cos[:len(p)], sin[:len(p)]
	for i := range p {
		a, b := p[i], q[i]
		p[i] = a*cos[i] - b*sin[i]
		q[i] = b*cos[i] + a*sin[i]
	}
}

func rotateHeadBack(p, q, cos, sin []float32) {
	q, cos, sin = q[:len(p)], cos[:len(p)], sin[:len(p)]
	for i := range p {
		a, b := p[i], q[i]
		p[i] = a*cos[i] + b*sin[i]
		q[i] = b*cos[i] - a*sin[i]
	}
}
