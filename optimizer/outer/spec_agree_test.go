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

// record is the place of an author's record, made if there is none.
func (x *textFold) record(a outer.Author) *outer.Record {
	for i := range x.records {
		if x.records[i].Author == a {
			return &x.records[i]
		}
	}
	return &outer.Record{Author: a, Agreement: 2048}
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

// judge is F-27 to F-30.
func (x *textFold) judge(chain outer.Digest) {
	voices, scales := make([]float64, len(x.set)), make([]float64, len(x.set))
	var committee []int
	for i, c := range x.set {
		sum := 0.0
		for _, n := range x.norms[i] {
			sum += float64(n * n)
		}
		if sum > 0 {
			scales[i] = 1 / math.Sqrt(sum)
		}
		if !x.silent(i) {
			voices[i] = trustByText(float64(x.record(c.Delta.Author).Agreement) / 2048)
		}
		if c.Delta.Guest {
			voices[i] = 0
		}
		if voices[i] > 0 {
			committee = append(committee, i)
		}
	}
	seed := binary.LittleEndian.AppendUint32(nil, x.round)
	for _, i := range committee {
		seed = append(seed, x.set[i].Delta.Author[:]...)
	}
	place := func(i int) []byte {
		sum := blake3.Sum256(append(slices.Clone(seed), x.set[i].Delta.Author[:]...))
		return sum[:]
	}
	slices.SortFunc(committee, func(i, j int) int { return bytes.Compare(place(i), place(j)) })
	came := map[[32]byte]uint32{}
	committee = slices.DeleteFunc(committee, func(i int) bool {
		d := x.set[i].Delta
		came[d.Invite]++
		if d.Places > 0 && came[d.Invite] > d.Places {
			voices[i] = 0
		}
		return voices[i] == 0
	})
	committee = committee[:min(len(committee), 8)]
	verdicts := x.verdicts(chain, committee, voices, scales)
	defer func() { x.asOne(committee) }()
	r := make([]float64, len(x.set))
	for i, c := range x.set {
		if verdicts != nil && !c.Delta.Guest {
			x.enter(c.Delta.Author, verdicts[i])
		}
		if r[i] = 1; !c.Delta.Guest {
			r[i] = float64(x.record(c.Delta.Author).Agreement) / 2048
		}
		if verdicts != nil {
			r[i] = min(r[i], verdicts[i])
		}
	}
	x.r = r
	x.bound(r)
	x.judges = verdicts != nil
	for len(x.records) > 1024 {
		oldest := slices.MinFunc(x.records, func(a, b outer.Record) int {
			return cmp.Or(cmp.Compare(a.Round, b.Round), bytes.Compare(b.Author[:], a.Author[:]))
		})
		x.records = slices.DeleteFunc(x.records, func(r outer.Record) bool { return r == oldest })
	}
}

// verdicts is F-28.5 to F-29.2; nil if the round judges nobody.
func (x *textFold) verdicts(chain outer.Digest, committee []int, voices, scales []float64) []float64 {
	members := 0
	for _, c := range x.set {
		if !c.Delta.Guest {
			members++
		}
	}
	if members < 3 || len(committee) < 2 {
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
		for _, j := range committee {
			if j == i {
				continue
			}
			cos := 0.0
			if xy := float64(square[i] * square[j]); xy > 0 {
				d := squaresByText(sample, func(k int) float64 { return direction(i, k) - direction(j, k) })
				cos = (square[i] + square[j] - d) / (2 * math.Sqrt(xy))
			}
			x.cos[i][j] = cos
			cosines, weights = append(cosines, cos), append(weights, voices[j])
		}
		if common[i] = medianByText(cosines, weights); len(cosines) == 2 {
			common[i] = max(cosines[0], cosines[1])
		}
		if voices[i] > 0 {
			heard, by = append(heard, common[i]), append(by, voices[i])
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
func (x *textFold) enter(a outer.Author, verdict float64) {
	r := *x.record(a)
	r.Agreement += int16((int(math.RoundToEven(2048*verdict)) - int(r.Agreement)) / 4)
	r.Round = x.round
	x.records = slices.DeleteFunc(x.records, func(o outer.Record) bool { return o.Author == a })
	x.records = append(x.records, r)
	slices.SortFunc(x.records, func(a, b outer.Record) int { return bytes.Compare(a.Author[:], b.Author[:]) })
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
		for _, r := range x.records {
			if x.round-r.Round < 64 && trustByText(float64(r.Agreement)/2048) > 0 {
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

// likeness is F-31 to F-31.4, for j of the committee.
func (x *textFold) likeness(committee []int, i, j int) float64 {
	var all, by []float64
	for _, k := range committee {
		var quotients, byOne []float64
		for _, l := range committee {
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
func (x *textFold) asOne(committee []int) {
	if len(committee) < 4 {
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
			case slices.Contains(committee, j):
				like = x.likeness(committee, i, j)
			case slices.Contains(committee, i):
				like = x.likeness(committee, j, i)
			}
			part := float64(like * was[j])
			s, m = s+part, max(m, part)
		}
		if s != 0 {
			x.weights[i] = float64(was[i]*m) / s
		}
	}
}

// judged are parameters of a run with agreement.
func judged() outer.Params {
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
			p := judged()
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
	p, f := judged(), fragment("a", 300, "b", 17)
	tip := zeroTip(p, f)
	for _, factors := range [][]float64{{1, 1, 1, 1, -1, 0}, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1}, {1, 1, 1}} {
		var x *textFold
		tip, x = agree(t, p, f, tip, crowd(t, p, f, tip.Round+1, 1, factors...)...)
		if len(factors) == 6 && (len(x.records) != 6 || x.weights[0] == 0 || x.weights[4] != 0) {
			t.Errorf("records %v, weights %v", x.records, x.weights)
		}
	}
}

func specRecords(t *testing.T, s *spectest.Spec) {
	byText(t, s)
	p, f := judged(), fragment("a", 300)
	tip, _ := agree(t, p, f, zeroTip(p, f), crowd(t, p, f, 1, 1, 1, 1, 1, 1, -1)...)
	if len(tip.Records) != 5 || tip.Records[4].Agreement >= 2048 || tip.Records[4].Round != 1 {
		t.Errorf("records %v", tip.Records)
	}
	encoded := tip.Encode()
	if n := binary.LittleEndian.Uint16(encoded[len(encoded)-2:]); n != 5 {
		t.Errorf("%d records by the last bytes", n)
	}
	again, err := outer.DecodeTip(encoded, f, p)
	if err != nil || again.State != tip.State || !slices.Equal(again.Records, tip.Records) || !again.Sound() {
		t.Errorf("decoded %+v, %v", again, err)
	}
}

func specRecordsRefused(t *testing.T, _ *spectest.Spec) {
	p, f := judged(), fragment("a", 300)
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

// specFewJudge: of three the one that has nothing in common with either loses its trust, and two judge nobody.
func specFewJudge(t *testing.T, s *spectest.Spec) {
	byText(t, s)
	p, f := judged(), fragment("a", 300)
	if tip, _ := agree(t, p, f, zeroTip(p, f), crowd(t, p, f, 1, 0.1, 1, -1)...); len(tip.Records) != 0 {
		t.Errorf("two judge: %v", tip.Records)
	}
	tip, x := agree(t, p, f, zeroTip(p, f), crowd(t, p, f, 1, 0.1, 1, 1, -1)...)
	if len(tip.Records) != 3 || tip.Records[2].Agreement >= 2048 || tip.Records[0].Agreement != 2048 || x.weights[2] != 0 {
		t.Errorf("three judge: %v, weights %v", tip.Records, x.weights)
	}
	for tip.Trust(outer.Author{3}) > 0 { // its voice goes, and the other two go on judging it
		tip, _ = agree(t, p, f, tip, crowd(t, p, f, tip.Round+1, 0.1, 1, 1, -1)...)
	}
	for rounds := 0; tip.Trust(outer.Author{3}) < 1; rounds++ { // so it comes back once it is mended
		if tip, _ = agree(t, p, f, tip, crowd(t, p, f, tip.Round+1, 0.1, 1, 1, 1)...); rounds > 20 {
			t.Fatalf("mended, and never trusted again: %v", tip.Records)
		}
	}
}

// specNoConsensus: noise judges nobody.
func specNoConsensus(t *testing.T, s *spectest.Spec) {
	byText(t, s)
	p, f := judged(), fragment("a", 3000)
	if tip, _ := agree(t, p, f, zeroTip(p, f), crowd(t, p, f, 1, 1, 0, 0, 0, 0, 0, 0)...); len(tip.Records) != 0 {
		t.Errorf("noise judges: %v", tip.Records)
	}
}

// specMostRecords: whoever was judged longest ago goes first, of equals the last author.
func specMostRecords(t *testing.T, _ *spectest.Spec) {
	p, f := judged(), fragment("a", 300)
	tip := *zeroTip(p, f)
	tip.Round = 9
	for i := range 1024 {
		r := outer.Record{Agreement: 2048, Round: 5}
		binary.BigEndian.PutUint16(r.Author[:], uint16(0x8000+i))
		if i == 7 {
			r.Round = 3
		}
		tip.Records = append(tip.Records, r)
	}
	next, _ := agree(t, p, f, &tip, crowd(t, p, f, 10, 1, 1, 1, 1, 1)...)
	has := func(i int) bool {
		return slices.ContainsFunc(next.Records, func(r outer.Record) bool { return binary.BigEndian.Uint16(r.Author[:]) == uint16(0x8000+i) })
	}
	if len(next.Records) != 1024 || has(7) || has(1023) || has(1022) || has(1021) || !has(1020) || !has(6) {
		t.Errorf("%d records; 7: %v, 1023: %v, 1021: %v, 1020: %v", len(next.Records), has(7), has(1023), has(1021), has(1020))
	}
}

// specClaims: a claim of more is worth twice the median, unless the author agrees better than that.
func specClaims(t *testing.T, s *spectest.Spec) {
	byText(t, s)
	p, f := judged(), fragment("a", 3000)
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
	p, f := judged(), fragment("a", 300)
	tip := *zeroTip(p, f)
	set := crowd(t, p, f, 1, 1, 1, 1)
	for i := range set {
		tip.Records = append(tip.Records, outer.Record{Author: set[i].Delta.Author, Agreement: -2048, Round: 1})
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
	p, f := judged(), fragment("a", 40_000)
	agree(t, p, f, zeroTip(p, f), crowd(t, p, f, 1, 1, 1, 1, 1, 1, -1)...)
	one, other := sampleByText(outer.Digest{1}, f.Len), sampleByText(outer.Digest{2}, f.Len)
	if len(one) > 16384 || len(one) < 63*256 || slices.Equal(one, other) {
		t.Errorf("%d and %d values", len(one), len(other))
	}
}

// specCrowdVoices: an invite that came into many hands has as many voices as it is meant for. Its crowd, which agrees
// with itself, is judged by the others and does not judge them.
func specCrowdVoices(t *testing.T, _ *spectest.Spec) {
	p, f := judged(), fragment("a", 3000)
	set := crowd(t, p, f, 1, 1, 1, 1, 1, 1, 1)
	for i, lie := 0, random(99, f.Len); i < 9; i++ {
		c := delta(t, p, byte(100+i), 1, lie...)
		c.Delta.Invite, c.Delta.Places = [32]byte{1}, 2
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

// specMissed: who is not trusted moves nothing while somebody else was there of late.
func specMissed(t *testing.T, s *spectest.Spec) {
	byText(t, s)
	p, f := judged(), fragment("a", 300)
	p.Mu = 0.9
	set := crowd(t, p, f, 100, 1, 1)
	for last, moves := range map[uint32]bool{99: false, 37: false, 36: true, 1: true} {
		tip := *zeroTip(p, f)
		tip.Round = 99
		tip.Records = []outer.Record{{Author: set[0].Delta.Author, Agreement: -2048, Round: 98}, {Author: outer.Author{9}, Agreement: 2048, Round: last}}
		next, _ := agree(t, p, f, &tip, set...)
		if moved := !slices.Equal(next.Global, tip.Global); moved != moves || next.Tokens != set[0].Delta.Tokens {
			t.Errorf("somebody trusted was there in round %d: it moves %v, %d tokens", last, moved, next.Tokens)
		}
	}
}

// specLifted: few steps are made up for, and make nobody better than the median.
func specLifted(t *testing.T, s *spectest.Spec) {
	byText(t, s)
	p, f := judged(), fragment("a", 3000)
	p.HMin = 6
	record := func(steps uint32, noise float64) int16 {
		set := crowd(t, p, f, 1, 1, 1, 1, 1, 1, 1)
		set[0] = crowd(t, p, f, 1, noise, 1)[0]
		set[0].Delta.Steps, set[0].Delta.Tokens = steps, uint64(steps)*512
		tip, _ := agree(t, p, f, zeroTip(p, f), set...)
		return tip.Records[0].Agreement
	}
	noisy, few, fewer := record(24, 6), record(6, 6), record(1, 6)
	if noisy >= few || few != fewer || few > outer.RecordUnit {
		t.Errorf("records %d of 24 steps, %d of six, %d of one", noisy, few, fewer)
	}
	if clear, few := record(24, 0.1), record(6, 0.1); clear != few || clear <= outer.RecordUnit {
		t.Errorf("records %d of 24 steps without noise, %d of six", clear, few)
	}
}

// specOneTrusted: one that is trusted beside one that is not has all of the weight, with any share cap.
func specOneTrusted(t *testing.T, _ *spectest.Spec) {
	p, f := judged(), fragment("a", 300)
	p.MaxShare, p.Quorum = 0.5, 3
	set := crowd(t, p, f, 1, 1, 1, 1)
	tip := *zeroTip(p, f)
	tip.Round, tip.Records = 1, []outer.Record{{Author: set[1].Delta.Author, Agreement: -2048, Round: 1}}
	for i := range set {
		set[i].Delta.Round, set[i].Delta.Base = 2, 1
	}
	next, x := agree(t, p, f, &tip, set...)
	if x.weights[0] == 0 || x.weights[1] != 0 || slices.Equal(next.Global, tip.Global) {
		t.Errorf("weights %v", x.weights)
	}
}
