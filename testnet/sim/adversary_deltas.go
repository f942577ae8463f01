package sim

import (
	"math"
	"regexp"
	"slices"

	"atoll/optimizer/outer"
	"atoll/tensor/codec"
)

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
