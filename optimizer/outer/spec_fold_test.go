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
	p           outer.Params
	f           outer.Fragment
	round       uint32
	set         []outer.Contribution
	values      [][]float32 // [delta][value]
	norms       [][]float64 // [delta][tensor]
	speaks      [][]bool    // [delta][tensor]
	weights     []float64
	spoken      [][]float64 // [delta][tensor]
	totals      []float64
	reputations []outer.Reputation
	total       float64
	scored      bool        // the round scores its deltas
	r           []float64   // of F-30
	cos         [][]float64 // [delta][delta of the references]
	limits      []float64   // by tensor
	clips       [][]float64 // [delta][tensor]
	u           []float64
}

// foldByText is F-6 to F-20.
func foldByText(t testing.TB, p outer.Params, f outer.Fragment, prev *outer.Tip, given []outer.Contribution) (*outer.Tip, *textFold) {
	x := &textFold{p: p, f: f, round: prev.Round + 1}
	next := *prev
	next.Round++
	if prev.EndRound == 0 || next.Round <= prev.EndRound+1 {
		x.take(given)
	}
	x.reputations = slices.Clone(prev.Reputations)
	var ids [][]byte
	for _, c := range x.set {
		ids = append(ids, c.Delta.ID[:])
	}
	slices.SortFunc(ids, bytes.Compare)
	next.Chain = blake3.Sum256(append(prev.Chain[:], slices.Concat(ids...)...))
	if len(x.set) > 0 {
		x.listen(prev)
		x.weigh(next.Chain)
		x.share()
		if x.total > 0 {
			next.Ref = x.clip(prev.Ref)
			x.merge()
			x.step(prev, &next)
		}
		for _, n := range countedByText(p, x.set) {
			next.Tokens += n
		}
		if next.EndRound == 0 && next.Tokens >= p.Budget {
			next.EndRound = next.Round
		}
	}
	next.Reputations = x.reputations
	next.State = blake3.Sum256(encodeByText(&next))
	return &next, x
}

// encodeByText is F-22.
func encodeByText(tip *outer.Tip) []byte {
	b := []byte("atollT\x00\x01")
	b = binary.LittleEndian.AppendUint32(b, tip.Round)
	b = binary.LittleEndian.AppendUint32(b, tip.EndRound)
	b = binary.LittleEndian.AppendUint64(b, tip.Tokens)
	b = append(b, tip.Chain[:]...)
	for _, v := range slices.Concat(tip.Ref, tip.Global, tip.Momentum) {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	if tip.Reputations == nil {
		return b
	}
	for _, r := range tip.Reputations {
		b = append(append(b, r.Author[:]...), byte(uint16(r.Score)), byte(uint16(r.Score)>>8))
		b = binary.LittleEndian.AppendUint32(b, r.Round)
	}
	return binary.LittleEndian.AppendUint16(b, uint16(len(tip.Reputations)))
}

// validByText is F-1 to F-3, and the round.
func (x *textFold) validByText(d outer.Delta, payload []byte) bool {
	return d.Fragment >= 0 && d.Fragment < x.p.Fragments && d.Round == x.round && d.Base < d.Round &&
		d.Steps >= 1 && d.Steps <= x.p.MaxSteps && d.Tokens >= 1 && d.Tokens <= uint64(d.Steps)*x.p.MaxTokensPerStep &&
		d.Codec == x.p.Codec && d.Size >= 1 && d.Size == len(payload) && payload[1] == byte(d.Codec)
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

// listen is F-10.2 to F-10.6.
func (x *textFold) listen(prev *outer.Tip) {
	x.speaks = make([][]bool, len(x.set))
	x.each(func(t, at, n int) {
		var norms, refWeights []float64
		longest := 0.0
		for i, c := range x.set {
			if v := x.scaled(i, t); v > 0 {
				trust := 1.0
				for _, r := range prev.Reputations {
					if r.Author == c.Delta.Author {
						trust = trustByText(float64(r.Score) / 2048)
					}
				}
				if c.Delta.Guest {
					trust = 0
				}
				norms, refWeights, longest = append(norms, v), append(refWeights, trust), max(longest, v)
			}
		}
		usual := 0.0
		switch {
		case prev.Ref[t] > 0:
			usual = min(float64(prev.Ref[t]), longest)
		case len(norms) == 2:
			usual = min(longest, norm(widen(prev.Global[at:at+n]))/8)
		case len(norms) > 0:
			usual = medianByText(norms, refWeights)
		}
		for i := range x.set {
			x.speaks[i] = append(x.speaks[i], x.scaled(i, t) > 0 && x.scaled(i, t) >= usual/16)
		}
	})
	if k := x.p.Codec; k == codec.Sparse || k == codec.Sparse8 {
		for i := range x.set {
			all := !x.silent(i)
			for t := range x.speaks[i] {
				x.speaks[i][t] = all
			}
		}
	}
}

func (x *textFold) silent(i int) bool { return !slices.Contains(x.speaks[i], true) }

// share is F-13.8.
func (x *textFold) share() {
	x.spoken = make([][]float64, len(x.set))
	for t := range x.f.Tensors {
		total := 0.0
		for i, w := range x.weights {
			if !x.speaks[i][t] {
				w = 0
			}
			total += w
			x.spoken[i] = append(x.spoken[i], w)
		}
		x.totals = append(x.totals, total)
	}
}

// over is x / y, and 0 of nothing.
func over(x, y float64) float64 {
	if y == 0 {
		return 0
	}
	return x / y
}

// pacedByText are the steps that count, of F-11.2.
func pacedByText(p outer.Params, d outer.Delta) int {
	if p.MaxPace == 0 {
		return int(d.Steps)
	}
	return min(int(d.Steps), p.MaxPace*p.H*int(d.Round-d.Base))
}

// workByText is the work of F-13.2.
func workByText(p outer.Params, d outer.Delta) float64 { return float64(min(pacedByText(p, d), p.H)) }

// weigh is F-11 to F-13, and F-30.
func (x *textFold) weigh(chain outer.Digest) {
	for _, c := range x.set {
		d := c.Delta
		tokens := float64(claimedByText(x.p, d))
		x.weights = append(x.weights, tokens*tokens/float64(d.Steps))
	}
	for i := range x.set {
		if x.silent(i) {
			x.weights[i] = 0
		}
	}
	if !x.p.OwnText {
		x.compareSet(chain)
	}
	x.cap()
	x.boundGuests()
	for _, w := range x.weights {
		x.total += w
	}
}

// boundGuests is F-13.4 to F-13.6.
func (x *textFold) boundGuests() {
	share, m, g := 1.0/9, 0.0, 0.0
	if !x.p.OwnText && !x.scored {
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

// cap is F-13 to F-13.3.
func (x *textFold) cap() {
	var members []int
	work := 0.0
	for i, c := range x.set {
		if !c.Delta.Guest {
			members = append(members, i)
			if x.weights[i] > 0 {
				work += workByText(x.p, c.Delta)
			}
		}
	}
	caps := make([]float64, len(x.set))
	for _, i := range members {
		if caps[i] = x.p.MaxShare; work > 0 {
			caps[i] = max(caps[i], workByText(x.p, x.set[i].Delta)/work)
		}
	}
	members = slices.DeleteFunc(members, func(i int) bool { return x.weights[i] == 0 })
	if len(members) == 0 {
		return
	}
	sum, _ := sumByText(members, x.weights, caps)
	for _, i := range members {
		x.weights[i] = min(x.weights[i], float64(caps[i]*sum))
	}
}

// sumByText is S of F-13.3, and whether there is such a k.
func sumByText(members []int, w, caps []float64) (sum float64, found bool) {
	order := slices.Clone(members)
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(w[j]/caps[j], w[i]/caps[i]) })
	taken := 0.0
	for k, i := range order {
		below := 0.0
		for n := len(order) - 1; n >= k; n-- {
			below = w[order[n]] + below
		}
		room := 1 - taken
		if room <= 0 {
			break
		}
		if s := below / room; w[i]/caps[i] <= s {
			return s, true
		}
		taken += caps[i]
	}
	last := order[len(order)-1]
	return w[last] / caps[last], false
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
			if x.speaks[i][t] && x.scaled(i, t) > 0 {
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
		if x.speaks[i][t] && x.scaled(i, t) > 0 {
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

// merge is F-26.
func (x *textFold) merge() {
	x.u = make([]float64, x.f.Len)
	x.each(func(t, at, n int) {
		for move := range 2 {
			x.move(t, at, x.u[at:at+n], move == 0)
		}
	})
}

// move is one move of F-26.
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
	var far, shares []float64
	for i, d := range distances {
		if x.spoken[i][t] > 0 {
			far, shares = append(far, d), append(shares, x.spoken[i][t])
		}
	}
	tau, pulled := medianByText(far, shares), 0.0
	pulls := make([]float64, len(x.set))
	for i, d := range distances {
		pulls[i] = over(x.spoken[i][t], x.totals[t])
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

// round32 is F-17.
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

// step is F-18 and F-19.
func (x *textFold) step(prev, next *outer.Tip) {
	next.Global, next.Momentum = make([]float32, len(x.u)), nil
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
		next.Global[i] = round32(float64(prev.Global[i]) + float64(move))
	}
}

// claimedByText is F-11.2.
func claimedByText(p outer.Params, d outer.Delta) uint64 {
	return min(d.Tokens, p.MaxTokensPerStep*uint64(pacedByText(p, d)))
}

// countedByText is F-20.3 to F-20.5.
func countedByText(p outer.Params, set []outer.Contribution) []uint64 {
	usual := func(d outer.Delta) uint64 {
		claimed := claimedByText(p, d)
		return max(claimed, claimed/uint64(d.Steps)*uint64(p.H))
	}
	counts := make([]uint64, len(set))
	for i, c := range set {
		if c.Delta.Guest {
			continue
		}
		var others []uint64
		for j, o := range set {
			if j != i && !o.Delta.Guest {
				others = append(others, usual(o.Delta))
			}
		}
		slices.Sort(others)
		most := 4 * p.TokensPerStep * uint64(pacedByText(p, c.Delta))
		if len(others) >= 2 {
			most = 2 * max(others[len(others)/2], uint64(p.H)*p.TokensPerStep)
		}
		counts[i] = min(claimedByText(p, c.Delta), most)
	}
	return counts
}

func specCounted(t *testing.T, _ *spectest.Spec) {
	p, f := plain(), fragment("w", 1)
	p.H, p.MaxTokensPerStep, p.MaxPace, p.TokensPerStep = 4, 100, 3, 25
	late := delta(t, p, 1, 2, 1)
	late.Delta.Base, late.Delta.Steps, late.Delta.Tokens = 0, 64, 6400
	bounded := late.Delta
	bounded.Tokens = 2 * 3 * 4 * 100
	if got, want := outer.Weights(p, []outer.Delta{late.Delta}), outer.Weights(p, []outer.Delta{bounded}); got[0] != want[0] {
		t.Errorf("weighs %v, want %v", got[0], want[0])
	}
	one, _ := agree(t, p, f, zeroTip(p, f))
	if tip, _ := agree(t, p, f, one, late); tip.Tokens != bounded.Tokens {
		t.Errorf("%d tokens, want %d", tip.Tokens, bounded.Tokens)
	}
}

// specUsual: who claims more than twice what others do counts for twice that, and next to nothing takes nobody's tokens.
func specUsual(t *testing.T, _ *spectest.Spec) {
	p, f := plain(), fragment("w", 1)
	p.H, p.TokensPerStep = 24, 500
	for name, c := range map[string]struct {
		steps  []uint32
		tokens []uint64
		want   uint64
	}{
		"equal":                      {[]uint32{24, 24, 24}, []uint64{12000, 12000, 12000}, 36000},
		"one claims 64 times":        {[]uint32{24, 24, 24}, []uint64{12000, 12000, 768000}, 48000},
		"one claims a token":         {[]uint32{24, 24, 1}, []uint64{12000, 12000, 1}, 24001},
		"one is fast":                {[]uint32{24, 6, 6}, []uint64{12000, 3000, 3000}, 18000},
		"two of five claim 64 times": {[]uint32{24, 24, 24, 24, 24}, []uint64{12000, 12000, 12000, 768000, 768000}, 84000},
		"two":                        {[]uint32{24, 24}, []uint64{12000, 768000}, 60000},
		"one":                        {[]uint32{48}, []uint64{1536000}, 96000},
	} {
		var set []outer.Contribution
		for i := range c.steps {
			one := delta(t, p, byte(i+1), 1, 1)
			one.Delta.Steps, one.Delta.Tokens = c.steps[i], c.tokens[i]
			set = append(set, one)
		}
		if tip, _ := agree(t, p, f, zeroTip(p, f), set...); tip.Tokens != c.want {
			t.Errorf("%s: %d tokens count, want %d", name, tip.Tokens, c.want)
		}
	}
}
