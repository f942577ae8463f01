package outer_test

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"testing"

	"atoll/gossip/wire/spectest"
	"atoll/optimizer/outer"
	"atoll/tensor/codec"
	"github.com/zeebo/blake3"
	"pgregory.net/rapid"
)

// reputation is the place of an author's reputation, made if there is none.
func (x *textFold) reputation(a outer.Author) *outer.Reputation {
	for i := range x.reputations {
		if x.reputations[i].Author == a {
			return &x.reputations[i]
		}
	}
	return &outer.Reputation{Author: a, Score: 2048}
}

// trustByText is F-27.2.
func trustByText(v float64) float64 { return min(max((v-0.05)/0.2, 0), 1) }

// medianByText is F-15.2 of values with weights.
func medianByText(values, weights []float64) float64 {
	order, all := make([]int, len(values)), 0.0
	for i := range order {
		order[i], all = i, all+weights[i]
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(values[a], values[b]) })
	sum, last := 0.0, 0.0
	for _, i := range order {
		sum += weights[i]
		if last = values[i]; 2*sum >= all {
			break
		}
	}
	return last
}

// sampleByText is F-28.6 and F-28.7: the numbers of the values.
func sampleByText(chain outer.Digest, n int) (sample []int) {
	chosen := map[int]bool{}
	pieces := (n + 255) / 256
	for i := uint32(0); n > 16384 && len(chosen) < 64; i++ {
		sum := blake3.Sum256(binary.LittleEndian.AppendUint32(slices.Clone(chain[:]), i))
		chosen[int(binary.LittleEndian.Uint64(sum[:8])%uint64(pieces))] = true
	}
	for k := range n {
		if n <= 16384 || chosen[k/256] {
			sample = append(sample, k)
		}
	}
	return sample
}

// squaresByText is the sum of squares of F-9 over a sample.
func squaresByText(sample []int, value func(k int) float64) float64 {
	var lane [16]float64
	for place, k := range sample {
		v := value(k)
		lane[place%16] += float64(v * v)
	}
	for w := 8; w >= 1; w /= 2 {
		for i := range w {
			lane[i] += lane[i+w]
		}
	}
	return lane[0]
}

// compareSet is F-27 to F-30.
func (x *textFold) compareSet(chain outer.Digest) {
	refWeights, scales := make([]float64, len(x.set)), make([]float64, len(x.set))
	var references []int
	for i, c := range x.set {
		sum := 0.0
		for _, n := range x.norms[i] {
			sum += float64(n * n)
		}
		if sum > 0 {
			scales[i] = 1 / math.Sqrt(sum)
		}
		if !x.silent(i) {
			refWeights[i] = trustByText(float64(x.reputation(c.Delta.Author).Score) / 2048)
		}
		if c.Delta.Guest {
			refWeights[i] = 0
		}
		if refWeights[i] > 0 {
			references = append(references, i)
		}
	}
	seed := binary.LittleEndian.AppendUint32(nil, x.round)
	for _, i := range references {
		seed = append(seed, x.set[i].Delta.Author[:]...)
	}
	place := func(i int) []byte {
		sum := blake3.Sum256(append(slices.Clone(seed), x.set[i].Delta.Author[:]...))
		return sum[:]
	}
	slices.SortFunc(references, func(i, j int) int { return bytes.Compare(place(i), place(j)) })
	came := map[[32]byte]uint32{}
	references = slices.DeleteFunc(references, func(i int) bool {
		d := x.set[i].Delta
		came[d.Invite]++
		if d.Uses > 0 && came[d.Invite] > d.Uses {
			refWeights[i] = 0
		}
		return refWeights[i] == 0
	})
	references = references[:min(len(references), 8)]
	scores := x.scores(chain, references, refWeights, scales)
	defer func() { x.asOne(references) }()
	r := make([]float64, len(x.set))
	for i, c := range x.set {
		if scores != nil && !c.Delta.Guest {
			x.enter(c.Delta.Author, scores[i])
		}
		if r[i] = 1; !c.Delta.Guest {
			r[i] = float64(x.reputation(c.Delta.Author).Score) / 2048
		}
		if scores != nil {
			r[i] = min(r[i], scores[i])
		}
	}
	x.r = r
	x.bound(r)
	x.scored = scores != nil
	for len(x.reputations) > 1024 {
		oldest := slices.MinFunc(x.reputations, func(a, b outer.Reputation) int {
			return cmp.Or(cmp.Compare(a.Round, b.Round), bytes.Compare(b.Author[:], a.Author[:]))
		})
		x.reputations = slices.DeleteFunc(x.reputations, func(r outer.Reputation) bool { return r == oldest })
	}
}

// scores is F-28.5 to F-29.2; nil if the round scores nobody.
func (x *textFold) scores(chain outer.Digest, references []int, refWeights, scales []float64) []float64 {
	members := 0
	for _, c := range x.set {
		if !c.Delta.Guest {
			members++
		}
	}
	if members < 3 || len(references) < 2 {
		return nil
	}
	sample := sampleByText(chain, x.f.Len)
	direction := func(i, k int) float64 { return float64(scales[i] * float64(x.values[i][k])) }
	square := make([]float64, len(x.set))
	for i := range x.set {
		square[i] = squaresByText(sample, func(k int) float64 { return direction(i, k) })
	}
	common := make([]float64, len(x.set))
	x.cos = make([][]float64, len(x.set))
	var heard, by []float64
	for i := range x.set {
		var cosines, weights []float64
		x.cos[i] = make([]float64, len(x.set))
		for _, j := range references {
			if j == i {
				continue
			}
			cos := 0.0
			if xy := float64(square[i] * square[j]); xy > 0 {
				d := squaresByText(sample, func(k int) float64 { return direction(i, k) - direction(j, k) })
				cos = (square[i] + square[j] - d) / (2 * math.Sqrt(xy))
			}
			x.cos[i][j] = cos
			cosines, weights = append(cosines, cos), append(weights, refWeights[j])
		}
		if common[i] = medianByText(cosines, weights); len(cosines) == 2 {
			common[i] = max(cosines[0], cosines[1])
		}
		if refWeights[i] > 0 {
			heard, by = append(heard, common[i]), append(by, refWeights[i])
		}
	}
	m := medianByText(heard, by)
	if m < 4/math.Sqrt(float64(min(16384, x.f.Len))) {
		return nil
	}
	for i := range common {
		v, steps := common[i]/m, int(x.set[i].Delta.Steps)
		if v < 1 && steps < x.p.H {
			v = min(v*math.Sqrt(float64(x.p.H)/float64(max(steps, x.p.HMin))), 1)
		}
		common[i] = min(max(v, -1), 8)
	}
	return common
}

// enter is F-29.3.
func (x *textFold) enter(a outer.Author, score float64) {
	r := *x.reputation(a)
	r.Score += int16((int(math.RoundToEven(2048*score)) - int(r.Score)) / 4)
	r.Round = x.round
	x.reputations = slices.DeleteFunc(x.reputations, func(o outer.Reputation) bool { return o.Author == a })
	x.reputations = append(x.reputations, r)
	slices.SortFunc(x.reputations, func(a, b outer.Reputation) int { return bytes.Compare(a.Author[:], b.Author[:]) })
}

// bound is F-30.
func (x *textFold) bound(r []float64) {
	trusts, ofMembers, members := make([]float64, len(r)), make([]float64, len(r)), 0
	for i := range r {
		trusts[i] = trustByText(r[i])
		if x.silent(i) {
			trusts[i] = 0
		}
		if !x.set[i].Delta.Guest {
			ofMembers[i] = trusts[i]
			members++
		}
	}
	if slices.Max(ofMembers) == 0 {
		for _, r := range x.reputations {
			if x.round-r.Round < 64 && trustByText(float64(r.Score)/2048) > 0 {
				clear(x.weights)
			}
		}
		return
	}
	var steady []float64
	for i, c := range x.set {
		steady = append(steady, x.weights[i]/workByText(x.p, c.Delta))
	}
	median := medianByText(steady, ofMembers)
	for i, c := range x.set {
		if members >= 3 {
			x.weights[i] = min(x.weights[i], float64(max(1, float64(2*float64(r[i]*r[i])))*median*workByText(x.p, c.Delta)))
		}
		x.weights[i] *= trusts[i]
	}
}

// likeness is F-31 to F-31.4, for j of the references.
func (x *textFold) likeness(references []int, i, j int) float64 {
	var all, by []float64
	for _, k := range references {
		var quotients, byOne []float64
		for _, l := range references {
			if slices.Contains([]int{i, j}, k) || slices.Contains([]int{i, j, k}, l) || trustByText(x.r[k]) == 0 || trustByText(x.r[l]) == 0 {
				continue
			}
			one, two := 0.0, 0.0
			if x.cos[k][l] != 0 {
				one, two = x.cos[i][k]*x.cos[j][l]/x.cos[k][l], x.cos[i][l]*x.cos[j][k]/x.cos[k][l]
			}
			quotients, byOne = append(quotients, one, two), append(byOne, trustByText(x.r[l]), trustByText(x.r[l]))
		}
		if len(quotients) > 0 {
			all, by = append(all, medianByText(quotients, byOne)), append(by, trustByText(x.r[k]))
		}
	}
	if len(all) == 0 {
		return 0
	}
	e := max(medianByText(all, by), 0)
	if e >= 0.9 {
		return 0
	}
	p := (x.cos[i][j] - e) / (1 - e)
	if p < 4/math.Sqrt(float64(min(16384, x.f.Len))) {
		return 0
	}
	return min(max((p-0.5)/0.25, 0), 1)
}

// asOne is F-31.5 to F-31.8.
func (x *textFold) asOne(references []int) {
	if len(references) < 4 {
		return
	}
	was := slices.Clone(x.weights)
	for i := range x.set {
		s, m := 0.0, 0.0
		for j := range x.set {
			like := 0.0
			switch {
			case i == j:
				like = 1
			case x.set[j].Delta.Guest && !x.set[i].Delta.Guest:
			case slices.Contains(references, j):
				like = x.likeness(references, i, j)
			case slices.Contains(references, i):
				like = x.likeness(references, j, i)
			}
			part := float64(like * was[j])
			s, m = s+part, max(m, part)
		}
		if s != 0 {
			x.weights[i] = float64(was[i]*m) / s
		}
	}
}

// compared are parameters of a run that compares deltas.
func compared() outer.Params {
	p := plain()
	p.OwnText = false
	return p
}

// crowd makes the deltas of a round: each is the signal times its factor, and noise of its own.
func crowd(t testing.TB, p outer.Params, f outer.Fragment, round uint32, noise float64, factors ...float64) (set []outer.Contribution) {
	signal := random(uint64(round), f.Len)
	for i, factor := range factors {
		v := random(uint64(1000*int(round)+i), f.Len)
		for k := range v {
			v[k] = float32(factor)*signal[k] + float32(noise)*v[k]
		}
		set = append(set, delta(t, p, byte(i+1), round, v...))
	}
	return set
}

// The arithmetic is that of the text, to the bit, whatever deltas have in common, in fragments that are
// compared whole and in those of which a sample is.
func TestAgreementByText(t *testing.T) {
	for _, f := range []outer.Fragment{fragment("a", 300, "b", 17, "c", 5), fragment("a", 20_000, "b", 3_001)} {
		rapid.Check(t, func(rt *rapid.T) {
			if f.Len > 1000 && rapid.IntRange(0, 9).Draw(rt, "seldom") > 0 {
				return
			}
			p := compared()
			p.Codec = rapid.SampledFrom([]codec.Kind{codec.F32, codec.Int4, codec.Sparse8}).Draw(rt, "codec")
			tip := zeroTip(p, f)
			for range 4 {
				n := rapid.IntRange(1, 12).Draw(rt, "deltas")
				factors := make([]float64, n)
				for i := range factors {
					factors[i] = rapid.SampledFrom([]float64{1, 1, 1, 0.5, 0, -1, 1e6}).Draw(rt, "factor")
				}
				set := crowd(t, p, f, tip.Round+1, rapid.SampledFrom([]float64{0, 0.5, 3}).Draw(rt, "noise"), factors...)
				for i := range set {
					set[i].Delta.Steps = rapid.SampledFrom([]uint32{1, 6, 24, 100}).Draw(rt, "steps")
					set[i].Delta.Tokens = uint64(set[i].Delta.Steps) * rapid.Uint64Range(1, 60000).Draw(rt, "tokens")
					set[i].Delta.Guest = rapid.IntRange(0, 3).Draw(rt, "guest") == 0
					if i > 0 && rapid.IntRange(0, 3).Draw(rt, "copy") == 0 {
						set[i].Payload, set[i].Delta.Size = set[i-1].Payload, set[i-1].Delta.Size
					}
				}
				tip, _ = agree(t, p, f, tip, set...)
			}
		})
	}
}

// byText maps clauses to the comparison with the text, which has each of them by its number.
func byText(t *testing.T, _ *spectest.Spec) {
	p, f := compared(), fragment("a", 300, "b", 17)
	tip := zeroTip(p, f)
	for _, factors := range [][]float64{{1, 1, 1, 1, -1, 0}, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1}, {1, 1, 1}} {
		var x *textFold
		tip, x = agree(t, p, f, tip, crowd(t, p, f, tip.Round+1, 1, factors...)...)
		if len(factors) == 6 && (len(x.reputations) != 6 || x.weights[0] == 0 || x.weights[4] != 0) {
			t.Errorf("reputations %v, weights %v", x.reputations, x.weights)
		}
	}
}

func specRecords(t *testing.T, s *spectest.Spec) {
	byText(t, s)
	p, f := compared(), fragment("a", 300)
	tip, _ := agree(t, p, f, zeroTip(p, f), crowd(t, p, f, 1, 1, 1, 1, 1, 1, -1)...)
	if len(tip.Reputations) != 5 || tip.Reputations[4].Score >= 2048 || tip.Reputations[4].Round != 1 {
		t.Errorf("reputations %v", tip.Reputations)
	}
	encoded := tip.Encode()
	if n := binary.LittleEndian.Uint16(encoded[len(encoded)-2:]); n != 5 {
		t.Errorf("%d reputations by the last bytes", n)
	}
	again, err := outer.DecodeTip(encoded, f, p)
	if err != nil || again.State != tip.State || !slices.Equal(again.Reputations, tip.Reputations) || !again.Sound() {
		t.Errorf("decoded %+v, %v", again, err)
	}
}

func specRecordsRefused(t *testing.T, _ *spectest.Spec) {
	p, f := compared(), fragment("a", 300)
	tip, _ := agree(t, p, f, zeroTip(p, f), crowd(t, p, f, 1, 1, 1, 1, 1, 1)...)
	b := tip.Encode()
	at := len(b) - 2 - 4*38
	many := bytes.Clone(b[:at])
	for i := range 1025 {
		r := make([]byte, 38)
		binary.BigEndian.PutUint32(r, uint32(i))
		r[34] = 1
		many = append(many, r...)
	}
	for name, c := range map[string]struct {
		b  []byte
		ok bool
	}{
		"valid":           {b, true},
		"the most":        {binary.LittleEndian.AppendUint16(bytes.Clone(many[:len(many)-38]), 1024), true},
		"too many":        {binary.LittleEndian.AppendUint16(bytes.Clone(many), 1025), false},
		"the other order": {slices.Concat(b[:at], b[at+38:at+76], b[at:at+38], b[at+76:]), false},
		"twice":           {slices.Concat(b[:at], b[at:at+38], b[at:at+38], b[at+76:]), false},
		"round 0":         {slices.Concat(b[:at+34], []byte{0, 0, 0, 0}, b[at+38:]), false},
		"a later round":   {slices.Concat(b[:at+34], []byte{2, 0, 0, 0}, b[at+38:]), false},
		"one less":        {slices.Concat(b[:len(b)-2], []byte{3, 0}), false},
		"one more":        {slices.Concat(b[:len(b)-2], []byte{5, 0}), false},
		"no number":       {b[:len(b)-2], false},
	} {
		if _, err := outer.DecodeTip(c.b, f, p); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// specFewScore: of three the one that has nothing in common with either loses its trust, and two score nobody.
func specFewScore(t *testing.T, s *spectest.Spec) {
	byText(t, s)
	p, f := compared(), fragment("a", 300)
	if tip, _ := agree(t, p, f, zeroTip(p, f), crowd(t, p, f, 1, 0.1, 1, -1)...); len(tip.Reputations) != 0 {
		t.Errorf("two score: %v", tip.Reputations)
	}
	tip, x := agree(t, p, f, zeroTip(p, f), crowd(t, p, f, 1, 0.1, 1, 1, -1)...)
	if len(tip.Reputations) != 3 || tip.Reputations[2].Score >= 2048 || tip.Reputations[0].Score != 2048 || x.weights[2] != 0 {
		t.Errorf("three score: %v, weights %v", tip.Reputations, x.weights)
	}
	for tip.Trust(outer.Author{3}) > 0 { // it is no reference any more, and the other two go on scoring it
		tip, _ = agree(t, p, f, tip, crowd(t, p, f, tip.Round+1, 0.1, 1, 1, -1)...)
	}
	for rounds := 0; tip.Trust(outer.Author{3}) < 1; rounds++ { // so it comes back once it is mended
		if tip, _ = agree(t, p, f, tip, crowd(t, p, f, tip.Round+1, 0.1, 1, 1, 1)...); rounds > 20 {
			t.Fatalf("mended, and never trusted again: %v", tip.Reputations)
		}
	}
}

// specNoConsensus: noise scores nobody.
func specNoConsensus(t *testing.T, s *spectest.Spec) {
	byText(t, s)
	p, f := compared(), fragment("a", 3000)
	if tip, _ := agree(t, p, f, zeroTip(p, f), crowd(t, p, f, 1, 1, 0, 0, 0, 0, 0, 0)...); len(tip.Reputations) != 0 {
		t.Errorf("noise scores: %v", tip.Reputations)
	}
}

// specMostReputations: whoever was scored longest ago goes first, of equals the last author.
func specMostReputations(t *testing.T, _ *spectest.Spec) {
	p, f := compared(), fragment("a", 300)
	tip := *zeroTip(p, f)
	tip.Round = 9
	for i := range 1024 {
		r := outer.Reputation{Score: 2048, Round: 5}
		binary.BigEndian.PutUint16(r.Author[:], uint16(0x8000+i))
		if i == 7 {
			r.Round = 3
		}
		tip.Reputations = append(tip.Reputations, r)
	}
	next, _ := agree(t, p, f, &tip, crowd(t, p, f, 10, 1, 1, 1, 1, 1)...)
	has := func(i int) bool {
		return slices.ContainsFunc(next.Reputations, func(r outer.Reputation) bool { return binary.BigEndian.Uint16(r.Author[:]) == uint16(0x8000+i) })
	}
	if len(next.Reputations) != 1024 || has(7) || has(1023) || has(1022) || has(1021) || !has(1020) || !has(6) {
		t.Errorf("%d reputations; 7: %v, 1023: %v, 1021: %v, 1020: %v", len(next.Reputations), has(7), has(1023), has(1021), has(1020))
	}
}

// specClaims: a claim of more is worth twice the median, unless the author has a higher score.
func specClaims(t *testing.T, s *spectest.Spec) {
	byText(t, s)
	p, f := compared(), fragment("a", 3000)
	p.MaxShare = 1
	shares := func(noise float64) string {
		set := crowd(t, p, f, 1, 1, 1, 1, 1, 1)
		clear := crowd(t, p, f, 1, noise, 1, 1, 1, 1)
		set[0] = clear[0]
		set[0].Delta.Tokens *= 64
		_, x := agree(t, p, f, zeroTip(p, f), set...)
		return fmt.Sprintf("%.1f", x.weights[0]/x.weights[1])
	}
	if got := shares(1); got < "1.8" || got > "2.2" {
		t.Errorf("one like the others weighs %s times as much", got)
	}
	if got := shares(0); got <= "2.1" {
		t.Errorf("one without noise weighs %s times as much", got)
	}
}

// specNobodyTrusted: where nobody is, all count as they did.
func specNobodyTrusted(t *testing.T, s *spectest.Spec) {
	byText(t, s)
	p, f := compared(), fragment("a", 300)
	tip := *zeroTip(p, f)
	set := crowd(t, p, f, 1, 1, 1, 1)
	for i := range set {
		tip.Reputations = append(tip.Reputations, outer.Reputation{Author: set[i].Delta.Author, Score: -2048, Round: 1})
	}
	tip.Round = 3
	for i := range set {
		set[i].Delta.Round, set[i].Delta.Base = 4, 3
	}
	if _, x := agree(t, p, f, &tip, set...); x.weights[0] == 0 || x.weights[0] != x.weights[1] {
		t.Errorf("weights %v", x.weights)
	}
}

// specSample: of a long fragment some pieces are compared, which the ids of the round choose.
func specSample(t *testing.T, s *spectest.Spec) {
	byText(t, s)
	p, f := compared(), fragment("a", 40_000)
	agree(t, p, f, zeroTip(p, f), crowd(t, p, f, 1, 1, 1, 1, 1, 1, -1)...)
	one, other := sampleByText(outer.Digest{1}, f.Len), sampleByText(outer.Digest{2}, f.Len)
	if len(one) > 16384 || len(one) < 63*256 || slices.Equal(one, other) {
		t.Errorf("%d and %d values", len(one), len(other))
	}
}

// specCrowdReferences: an invite that came into many hands has as many refWeights as it is meant for. Its crowd, which agrees
// with itself, is scored by the others and does not score them.
func specCrowdReferences(t *testing.T, _ *spectest.Spec) {
	p, f := compared(), fragment("a", 3000)
	set := crowd(t, p, f, 1, 1, 1, 1, 1, 1, 1)
	for i, lie := 0, random(99, f.Len); i < 9; i++ {
		c := delta(t, p, byte(100+i), 1, lie...)
		c.Delta.Invite, c.Delta.Uses = [32]byte{1}, 2
		set = append(set, c)
	}
	tip, result, err := outer.Fold(p, f, zeroTip(p, f), 1, set)
	if err != nil {
		t.Fatal(err)
	}
	for i, w := range result.Weights {
		if liar := i >= 5; liar != (w == 0) {
			t.Errorf("delta %d has the weight %g", i, w)
		}
	}
	if tip.Trust(outer.Author{1}) != 1 {
		t.Errorf("an honest author's trust is %g", tip.Trust(outer.Author{1}))
	}
}

// specMissed: who is not trusted moves nothing while somebody else was there recently.
func specMissed(t *testing.T, s *spectest.Spec) {
	byText(t, s)
	p, f := compared(), fragment("a", 300)
	p.Mu = 0.9
	set := crowd(t, p, f, 100, 1, 1)
	for last, moves := range map[uint32]bool{99: false, 37: false, 36: true, 1: true} {
		tip := *zeroTip(p, f)
		tip.Round = 99
		tip.Reputations = []outer.Reputation{{Author: set[0].Delta.Author, Score: -2048, Round: 98}, {Author: outer.Author{9}, Score: 2048, Round: last}}
		next, _ := agree(t, p, f, &tip, set...)
		if moved := !slices.Equal(next.Global, tip.Global); moved != moves || next.Tokens != set[0].Delta.Tokens {
			t.Errorf("somebody trusted was there in round %d: it moves %v, %d tokens", last, moved, next.Tokens)
		}
	}
}

// specLifted: few steps are made up for, and make nobody better than the median.
func specLifted(t *testing.T, s *spectest.Spec) {
	byText(t, s)
	p, f := compared(), fragment("a", 3000)
	p.HMin = 6
	reputation := func(steps uint32, noise float64) int16 {
		set := crowd(t, p, f, 1, 1, 1, 1, 1, 1, 1)
		set[0] = crowd(t, p, f, 1, noise, 1)[0]
		set[0].Delta.Steps, set[0].Delta.Tokens = steps, uint64(steps)*512
		tip, _ := agree(t, p, f, zeroTip(p, f), set...)
		return tip.Reputations[0].Score
	}
	noisy, few, fewer := reputation(24, 6), reputation(6, 6), reputation(1, 6)
	if noisy >= few || few != fewer || few > outer.ScoreUnit {
		t.Errorf("reputations %d of 24 steps, %d of six, %d of one", noisy, few, fewer)
	}
	if clear, few := reputation(24, 0.1), reputation(6, 0.1); clear != few || clear <= outer.ScoreUnit {
		t.Errorf("reputations %d of 24 steps without noise, %d of six", clear, few)
	}
}

// specOneTrusted: one that is trusted beside one that is not has all of the weight, with any share cap.
func specOneTrusted(t *testing.T, _ *spectest.Spec) {
	p, f := compared(), fragment("a", 300)
	p.MaxShare, p.Quorum = 0.5, 3
	set := crowd(t, p, f, 1, 1, 1, 1)
	tip := *zeroTip(p, f)
	tip.Round, tip.Reputations = 1, []outer.Reputation{{Author: set[1].Delta.Author, Score: -2048, Round: 1}}
	for i := range set {
		set[i].Delta.Round, set[i].Delta.Base = 2, 1
	}
	next, x := agree(t, p, f, &tip, set...)
	if x.weights[0] == 0 || x.weights[1] != 0 || slices.Equal(next.Global, tip.Global) {
		t.Errorf("weights %v", x.weights)
	}
}
