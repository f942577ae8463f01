package outer_test

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math"
	"slices"
	"testing"

	"atoll/gossip/wire/spectest"
	"atoll/optimizer/outer"
	"atoll/tensor/codec"
	"github.com/zeebo/blake3"
)

// A fold after gossip/wire/SPEC.md, written to be read beside it: plain, slow,
// and sharing nothing with the package but the decoder of payloads.

// textFold is one round under way.
type textFold struct {
	p       outer.Params
	f       outer.Fragment
	round   uint32
	set     []outer.Contribution
	values  [][]float32 // [delta][value]
	norms   [][]float64 // [delta][tensor]
	weights []float64
	records []outer.Record
	total   float64
	judges  bool        // the round judges
	r       []float64   // of F-33
	cos     [][]float64 // [delta][delta of the committee]
	limits  []float64   // by tensor
	clips   [][]float64 // [delta][tensor]
	u       []float64
}

// foldByText is F-6 to F-23.
func foldByText(t testing.TB, p outer.Params, f outer.Fragment, prev *outer.Tip, given []outer.Contribution) (*outer.Tip, *textFold) {
	x := &textFold{p: p, f: f, round: prev.Round + 1}
	next := *prev
	next.Round++
	if prev.EndRound == 0 || next.Round <= prev.EndRound+1 {
		x.take(given)
	}
	x.records = slices.Clone(prev.Records)
	var ids [][]byte
	for _, c := range x.set {
		ids = append(ids, c.Delta.ID[:])
	}
	slices.SortFunc(ids, bytes.Compare)
	next.Chain = blake3.Sum256(append(prev.Chain[:], slices.Concat(ids...)...))
	if len(x.set) > 0 {
		x.weigh(next.Chain)
		if x.total > 0 {
			next.Ref = x.clip(prev.Ref)
			x.merge()
			x.step(prev, &next)
		}
		for _, c := range x.set {
			if !c.Delta.Guest {
				next.Tokens += countedByText(p, c.Delta)
			}
		}
		if next.EndRound == 0 && next.Tokens >= p.Budget {
			next.EndRound = next.Round
		}
	}
	next.Records = x.records
	next.State = blake3.Sum256(encodeByText(&next))
	return &next, x
}

// encodeByText is F-25.
func encodeByText(tip *outer.Tip) []byte {
	b := []byte("atollT\x00\x01")
	b = binary.LittleEndian.AppendUint32(b, tip.Round)
	b = binary.LittleEndian.AppendUint32(b, tip.EndRound)
	b = binary.LittleEndian.AppendUint64(b, tip.Tokens)
	b = append(b, tip.Chain[:]...)
	for _, v := range slices.Concat(tip.Ref, tip.Anchor, tip.Momentum) {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	if tip.Records == nil {
		return b
	}
	for _, r := range tip.Records {
		b = append(append(b, r.Author[:]...), byte(uint16(r.Agreement)), byte(uint16(r.Agreement)>>8))
		b = binary.LittleEndian.AppendUint32(b, r.Round)
	}
	return binary.LittleEndian.AppendUint16(b, uint16(len(tip.Records)))
}

// validByText is F-1 to F-3, and the round.
func (x *textFold) validByText(d outer.Delta, payload []byte) bool {
	classes := d.Precision >= 1 && d.Precision <= 4
	return d.Fragment >= 0 && d.Fragment < x.p.Fragments && d.Round == x.round && d.Base < d.Round &&
		d.Steps >= 1 && d.Steps <= x.p.MaxSteps && d.Tokens >= 1 && d.Tokens <= uint64(d.Steps)*x.p.MaxTokensPerStep &&
		classes && d.Codec == x.p.Codec && d.Size >= 1 && d.Size == len(payload) && payload[1] == byte(d.Codec)
}

func (x *textFold) take(given []outer.Contribution) {
	sorted := slices.Clone(given)
	slices.SortFunc(sorted, func(a, b outer.Contribution) int {
		return cmp.Or(bytes.Compare(a.Delta.Author[:], b.Delta.Author[:]), bytes.Compare(a.Delta.ID[:], b.Delta.ID[:]))
	})
	for i, c := range sorted {
		v := make([]float32, x.f.Len)
		if i > 0 && sorted[i-1].Delta.ID == c.Delta.ID || !x.validByText(c.Delta, c.Payload) || codec.Decode(c.Payload, x.f.Len, v) != nil {
			continue
		}
		var norms []float64
		x.each(func(_, at, n int) { norms = append(norms, norm(widen(v[at:at+n]))) })
		x.set, x.values, x.norms = append(x.set, c), append(x.values, v), append(x.norms, norms)
	}
}

// each goes through the tensors: number, first value, values.
func (x *textFold) each(do func(t, at, n int)) {
	at := 0
	for t, tensor := range x.f.Tensors {
		do(t, at, tensor.Len)
		at += tensor.Len
	}
}

func widen(v []float32) []float64 {
	w := make([]float64, len(v))
	for i := range v {
		w[i] = float64(v[i])
	}
	return w
}

// norm is F-9.
func norm(v []float64) float64 {
	var lane [16]float64
	for i, x := range v {
		square := x * x
		lane[i%16] += float64(square)
	}
	for w := 8; w >= 1; w /= 2 {
		for i := range w {
			lane[i] += lane[i+w]
		}
	}
	return math.Sqrt(lane[0])
}

// weigh is F-11 to F-13, and F-33.
func (x *textFold) weigh(chain outer.Digest) {
	factors := map[uint8]float64{1: 1, 2: 0.9375, 3: 0.9375, 4: 0.75}
	for _, c := range x.set {
		d := c.Delta
		tokens := float64(countedByText(x.p, d))
		w := tokens * tokens / float64(d.Steps)
		late := float64(x.p.StaleFactor * float64(d.Round-1-d.Base))
		x.weights = append(x.weights, w/(1+late)*factors[d.Precision])
	}
	if !x.p.OwnText {
		x.judge(chain)
	}
	var members []float64
	for i, c := range x.set {
		if !c.Delta.Guest {
			members = append(members, x.weights[i])
		}
	}
	if len(members) > 0 {
		cap := capByText(members, x.p.MaxShare)
		for i, c := range x.set {
			if !c.Delta.Guest {
				x.weights[i] = min(x.weights[i], cap)
			}
		}
	}
	x.boundGuests()
	for _, w := range x.weights {
		x.total += w
	}
}

// boundGuests is F-13.4 to F-13.6.
func (x *textFold) boundGuests() {
	share, m, g := 1.0/9, 0.0, 0.0
	if !x.p.OwnText && !x.judges {
		share = 0
	}
	for i, c := range x.set {
		if c.Delta.Guest {
			g += x.weights[i]
		} else {
			m += x.weights[i]
		}
	}
	q := float64(share * m)
	for i, c := range x.set {
		if c.Delta.Guest && g > q {
			x.weights[i] = float64(x.weights[i]*q) / g
		}
	}
}

func capByText(weights []float64, maxShare float64) float64 {
	n, some := len(weights), 0
	for _, w := range weights {
		if w > 0 {
			some++
		}
	}
	w := slices.Clone(weights)
	slices.SortFunc(w, func(a, b float64) int { return cmp.Compare(b, a) })
	share := max(maxShare, 1/float64(max(some, 1)))
	for k := range n {
		below := 0.0
		for i := n - 1; i >= k; i-- {
			below = w[i] + below
		}
		taken := float64(k) * share
		room := 1 - float64(taken)
		if room <= 0 {
			break
		}
		if v := share * below / room; w[k] <= v {
			return v
		}
	}
	return w[n-1]
}

func (x *textFold) scaled(i, t int) float64 {
	return x.norms[i][t] * math.Sqrt(float64(x.p.H)/float64(x.set[i].Delta.Steps))
}

// clip is F-14 and F-16.
func (x *textFold) clip(old []float32) (ref []float32) {
	x.clips = make([][]float64, len(x.set))
	for t := range x.f.Tensors {
		limit := float64(old[t])
		more := 0
		for i := range x.set {
			if x.scaled(i, t) != 0 {
				more++
			}
		}
		if median := x.median(t, math.Inf(1)); limit == 0 {
			limit = median
		} else if x.round <= 8 && more >= 2 {
			limit = max(limit, min(median, 4*limit))
		}
		limit *= x.p.ClipFactor
		x.limits = append(x.limits, limit)
		for i := range x.set {
			c := 1.0
			if n := x.scaled(i, t); n > limit {
				c = limit / n
			}
			x.clips[i] = append(x.clips[i], c)
		}
		ref = append(ref, x.reference(old[t], x.median(t, limit)))
	}
	return ref
}

func (x *textFold) reference(old float32, median float64) float32 {
	switch {
	case median == 0:
		return old
	case old == 0:
		return round32(median)
	}
	kept, added := x.p.RefDecay*float64(old), (1-x.p.RefDecay)*median
	return round32(float64(kept) + float64(added))
}

// median is F-15.
func (x *textFold) median(t int, limit float64) float64 {
	var order []int
	all := 0.0
	for i := range x.set {
		if x.scaled(i, t) > 0 {
			order = append(order, i)
			all += x.weights[i]
		}
	}
	value := func(i int) float64 { return min(x.scaled(i, t), limit) }
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(value(a), value(b)) })
	sum, last := 0.0, 0.0
	for _, i := range order {
		sum += x.weights[i]
		if last = value(i); 2*sum >= all {
			break
		}
	}
	return last
}

// merge is F-17 to F-19, and F-29.
func (x *textFold) merge() {
	x.u = make([]float64, x.f.Len)
	if x.p.Merge == outer.MergeClip {
		x.each(func(t, at, n int) {
			for move := range 2 {
				x.move(t, at, x.u[at:at+n], move == 0)
			}
		})
		return
	}
	x.each(func(t, at, n int) {
		u := x.u[at : at+n]
		if x.p.Merge == outer.MergeMean || x.f.Tensors[t].Mean || !x.direction(t, at, u) {
			clear(u)
			x.sum(u, at, func(i int) float64 { return x.weights[i] * x.clips[i][t] / x.total })
		}
	})
}

// move is one move of F-29.
func (x *textFold) move(t, at int, u []float64, first bool) {
	distances := make([]float64, len(x.set))
	for i := range x.set {
		distances[i] = x.norms[i][t] * x.clips[i][t]
		if !first {
			from := make([]float64, len(u))
			for j := range u {
				clipped := x.clips[i][t] * float64(x.values[i][at+j])
				from[j] = float64(clipped) - u[j]
			}
			distances[i] = norm(from)
		}
	}
	tau, pulled := x.lowerMedian(distances), 0.0
	pulls := make([]float64, len(x.set))
	for i, d := range distances {
		pulls[i] = x.weights[i] / x.total
		if d > tau {
			pulls[i] = pulls[i] * tau / d
		}
		pulled += pulls[i]
	}
	for j := range u {
		if !first {
			u[j] *= 1 - pulled
		}
	}
	x.sum(u, at, func(i int) float64 { return pulls[i] * x.clips[i][t] })
}

// lowerMedian is the lower median of F-15 over all deltas.
func (x *textFold) lowerMedian(values []float64) float64 {
	var order []int
	for i := range values {
		order = append(order, i)
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(values[a], values[b]) })
	sum, last := 0.0, 0.0
	for _, i := range order {
		sum += x.weights[i]
		if last = values[i]; 2*sum >= x.total {
			break
		}
	}
	return last
}

// sum adds factor times the values of each delta.
func (x *textFold) sum(u []float64, at int, factor func(i int) float64) {
	for i := range x.set {
		a := factor(i)
		for j := range u {
			product := a * float64(x.values[i][at+j])
			u[j] += float64(product)
		}
	}
}

// direction is F-18; false is F-19.
func (x *textFold) direction(t, at int, u []float64) bool {
	radius, walk := 0.0, 0.0
	for i, w := range x.weights {
		length := float64(x.norms[i][t] * x.clips[i][t])
		radius += float64(w * length)
		if x.norms[i][t] > 0 {
			walk += float64(w * w)
		}
	}
	x.sum(u, at, func(i int) float64 {
		if x.norms[i][t] == 0 {
			return 0
		}
		return x.weights[i] / x.norms[i][t]
	})
	d := norm(u)
	if d < 0.5*math.Sqrt(walk) {
		return false
	}
	for j := range u {
		if d > 0 {
			u[j] *= radius / x.total / d
		} else {
			u[j] = 0
		}
	}
	return true
}

// round32 is F-20.
func round32(x float64) float32 {
	const largest = 0x1.fffffep127
	switch {
	case x > largest:
		return largest
	case x < -largest:
		return -largest
	}
	return float32(x)
}

// step is F-21 and F-22.
func (x *textFold) step(prev, next *outer.Tip) {
	next.Anchor, next.Momentum = make([]float32, len(x.u)), nil
	if x.p.Mu != 0 {
		next.Momentum = make([]float32, len(x.u))
	}
	for i, ahead := range x.u {
		if x.p.Mu != 0 {
			kept := x.p.Mu * float64(prev.Momentum[i])
			next.Momentum[i] = round32(float64(kept) + x.u[i])
			more := x.p.Mu * float64(next.Momentum[i])
			ahead = x.u[i] + float64(more)
		}
		move := x.p.Eta * ahead
		next.Anchor[i] = round32(float64(prev.Anchor[i]) + float64(move))
	}
}

// countedByText is F-11.2.
func countedByText(p outer.Params, d outer.Delta) uint64 {
	lesser := min(int(d.Steps), p.MaxPace*p.H*int(d.Round-d.Base))
	return min(d.Tokens, p.MaxTokensPerStep*uint64(lesser))
}

func specCounted(t *testing.T, _ *spectest.Spec) {
	p, f := plain(), fragment("w", 1)
	p.H, p.MaxTokensPerStep, p.MaxPace = 4, 100, 3
	late := delta(t, p, 1, 2, 1)
	late.Delta.Base, late.Delta.Steps, late.Delta.Tokens = 0, 64, 6400
	bounded := late.Delta
	bounded.Tokens = 2 * 3 * 4 * 100
	if got, want := outer.Weights(p, []outer.Delta{late.Delta}, 2), outer.Weights(p, []outer.Delta{bounded}, 2); got[0] != want[0] {
		t.Errorf("weighs %v, want %v", got[0], want[0])
	}
	one, _ := agree(t, p, f, zeroTip(p, f))
	if tip, _ := agree(t, p, f, one, late); tip.Tokens != bounded.Tokens {
		t.Errorf("%d tokens, want %d", tip.Tokens, bounded.Tokens)
	}
}
