package sim

import (
	"cmp"
	"math"
	"regexp"
	"slices"

	"atoll/gossip/wire"
	"atoll/optimizer/outer"
	"atoll/tensor/codec"
)

// spoilZero sends a delta without a value, for which the learner's steps are claimed.
func spoilZero(l *liar, p int, d *outer.Draft) {
	l.encode(d, make([]float32, l.n.w.plan[p].Len))
}

// spoilNoise sends noise of the norm that the progress has, times Times.
func spoilNoise(l *liar, p int, d *outer.Draft) {
	q := l.n.decode(p, d.Payload)
	l.encode(d, l.noise(len(q), l.Times*norm(q)))
}

func norm(v []float32) float64 {
	sum := 0.0
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	return math.Sqrt(sum)
}

// spoilCopy sends the newest delta of somebody else that the disk holds, and noise of Times its norm.
func spoilCopy(l *liar, p int, d *outer.Draft) {
	var newest *wire.SignedHeader
	l.n.disk.Deltas(func(_ wire.Digest, h *wire.SignedHeader, payload []byte) {
		if int(h.Header.Fragment) == p && h.Header.Author != l.n.id && payload != nil && (newest == nil || newer(h, newest)) {
			newest, d.Payload = h, payload
		}
	})
	if newest != nil && l.Times > 0 {
		q := l.n.decode(p, d.Payload)
		for i, x := range l.noise(len(q), l.Times*norm(q)) {
			q[i] += x
		}
		l.encode(d, q)
	}
}

// noise has this norm.
func (l *liar) noise(n int, size float64) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(l.n.w.rng.NormFloat64())
	}
	times := size / norm(v)
	for i, x := range v {
		v[i] = float32(float64(x) * times)
	}
	return v
}

// newer orders headers by round, then by author: a disk lists them in no order.
func newer(a, b *wire.SignedHeader) bool {
	return cmp.Or(cmp.Compare(a.Header.Round, b.Header.Round), a.Header.Author.Compare(b.Header.Author)) > 0
}

// scale multiplies the progress of a draft.
func (l *liar) scale(p int, d *outer.Draft, times float64) {
	q := l.n.decode(p, d.Payload)
	for i := range q {
		q[i] = float32(float64(q[i]) * times)
	}
	l.encode(d, q)
}

// encode puts other progress into a draft; what cannot be encoded is cut down.
func (l *liar) encode(d *outer.Draft, q []float32) {
	const most = math.MaxFloat32 / 4
	for i, x := range q {
		q[i] = min(max(x, -most), most)
	}
	b, err := codec.Encode(l.n.w.s.Params.Codec, q)
	if err != nil {
		panic("sim: a liar's payload: " + err.Error())
	}
	d.Payload = b
}

// spoilInflate claims the most that the rules of the run allow: the weight of a
// delta is tokens^2/steps, and its norm may grow with its steps.
func spoilInflate(l *liar, p int, d *outer.Draft) {
	params := l.n.w.s.Params
	l.scale(p, d, l.Times)
	d.Steps, d.Tokens = params.MaxSteps, uint64(params.MaxSteps)*params.MaxTokensPerStep
}

// spoilUnfinite takes a payload of equal values, in which the top bytes of all
// values, or of all scales, are one byte, and makes an infinity of them.
func spoilUnfinite(l *liar, p int, d *outer.Draft) {
	q := make([]float32, l.n.w.plan[p].Len)
	for i := range q {
		q[i] = 1
	}
	l.encode(d, q) // equal values: every plane is a run, so the payload is short
	for i := range d.Payload {
		b := slices.Clone(d.Payload)
		b[i] = 0x7f
		if err := codec.Check(b, len(q)); err != nil && notFinite.MatchString(err.Error()) {
			d.Payload = b
			return
		}
	}
	panic("sim: no byte of the payload makes a value infinite")
}

// notFinite is what the codec says of values and of scales.
var notFinite = regexp.MustCompile(`a value is|scale \d+ is`)

// spoilGarbage keeps the size and the container's head.
func spoilGarbage(l *liar, _ int, d *outer.Draft) {
	b := append([]byte(nil), d.Payload...)
	for i := range b[6:] {
		b[6+i] = byte(l.n.w.rng.Uint32())
	}
	d.Payload = b
}
