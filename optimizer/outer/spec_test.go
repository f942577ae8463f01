package outer_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"atoll/gossip/wire/spectest"
	"atoll/optimizer/outer"
	"atoll/tensor"
	"atoll/tensor/codec"
	"github.com/zeebo/blake3"
	"pgregory.net/rapid"
)

// One test for each clause of gossip/wire/SPEC.md that is about deltas, plans,
// folds and tips. Most hold outer.Fold to the fold of spec_fold_test.go, which
// follows the text, on inputs that reach what the clause says.
func TestSpecFold(t *testing.T) {
	spectest.Run(t, "F", map[string]spectest.Clause{
		"F-1": specValid, "F-1.2": specInvalidFolded, "F-1.3": specRevocationValid, "F-2": specSize, "F-3": specPayload, "F-4": specPlan,
		"F-5": specVectors, "F-6": specOrder, "F-6.2": specSet, "F-7": specEnd,
		"F-8": specWide, "F-8.2": specSumsInOrder, "F-8.3": specArithmetic, "F-8.4": specRoot, "F-9": specLanes, "F-9.2": specNorm,
		"F-10": specNorms, "F-10.2": specSilent, "F-10.3": specSilent, "F-10.4": specTwoDisagree, "F-10.5": specSilent, "F-10.6": specSparseSpeaks, "F-11.3": specSilent, "F-11": specWeight, "F-11.2": specCounted, "F-12": specCrowds, "F-13.4": spectest.All(specGuests, specGuestsBesideCap), "F-13.5": specGuestsScored, "F-13.6": specGuests, "F-13": specCapped, "F-13.2": spectest.All(specShare, specOneTrusted), "F-13.3": specNoShare,
		"F-13.7": specTotal, "F-13.8": specFrozen, "F-14": specScaled, "F-14.2": specOldLimit, "F-14.3": specFirstLimit, "F-14.4": specYoungLimit,
		"F-14.5": specClip, "F-15": specMedianOf, "F-15.2": specMedian, "F-16": specHeldNorms, "F-16.2": specReference,
		"F-17": specSaturation, "F-18": specPlainStep, "F-19": specMomentum, "F-20": specTokens, "F-20.2": specEndRound, "F-20.3": spectest.All(specCounted, specUsual), "F-20.4": specUsual, "F-20.5": specGuests,
		"F-20.6": specEmptyRound, "F-21": specNoChain, "F-21.2": specChain, "F-21.3": specRevocationFolded, "F-21.4": specRevokedNames, "F-21.5": specMostRevoked, "F-21.6": specKept, "F-22": specTip, "F-22.2": specMagic, "F-22.3": specNoEnd, "F-22.4": specTipOfRevoked, "F-22.5": specRecords,
		"F-23": specState, "F-24": specTipRefused, "F-24.2": specRevokedRefused, "F-24.3": specRecordsRefused,
		"F-27": specRecords, "F-27.2": byText, "F-27.3": specGuestReputations, "F-28": byText, "F-28.2": byText, "F-28.3": specCrowdReferences, "F-28.4": byText, "F-28.5": specFewScore, "F-28.6": specSample,
		"F-28.7": specSample, "F-28.8": byText, "F-28.9": byText, "F-28.10": byText, "F-28.11": specNoConsensus, "F-29": byText, "F-29.2": specLifted, "F-29.3": byText,
		"F-29.4": specMostReputations, "F-30": specClaims, "F-30.2": byText,
		"F-30.3": specNobodyTrusted, "F-30.4": specMissed, "F-31": specCopies, "F-31.2": specLiarsBetween, "F-31.9": specCopies, "F-31.3": specCopies, "F-31.4": specLittleNoise, "F-31.5": specFarCopies, "F-31.6": specGuestCopies, "F-31.7": byText, "F-31.8": specCopies, "F-25": specGenesisTip, "F-26": specCentred, "F-26.2": specDistances,
		"F-26.3": specTau, "F-26.4": specPulls, "F-26.5": specStays, "F-26.6": specMove,
	})
}

// example is the run, the fragment and the deltas of the text's example.
type example struct {
	p    outer.Params
	f    outer.Fragment
	tips [3][]byte
	set  []outer.Contribution
}

func parameter(t testing.TB, s *spectest.Spec, name string) float64 {
	t.Helper()
	for _, row := range s.Table(t, "fold parameters") {
		if row[0] == name {
			return number(t, row[1])
		}
	}
	t.Fatalf("no parameter %q", name)
	return 0
}

func number(t testing.TB, text string) float64 {
	t.Helper()
	x, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func exampleOf(t testing.TB, s *spectest.Spec) example {
	t.Helper()
	p := outer.Plain(1, uint64(parameter(t, s, "Budget")), 0)
	p.H, p.HMin, p.Codec, p.Quorum = int(parameter(t, s, "H")), 1, codec.F32, 3
	p.Eta, p.Mu, p.ClipFactor = parameter(t, s, "Eta"), parameter(t, s, "Mu"), parameter(t, s, "ClipFactor")
	p.RefDecay, p.MaxShare = parameter(t, s, "RefDecay"), parameter(t, s, "MaxShare")
	if err := p.Validate(); err != nil {
		t.Fatal(err)
	}
	e := example{p: p, f: fragment("model.embed_tokens.weight", 2, "w", 3)}
	for i := range e.tips {
		e.tips[i] = s.Hex(t, fmt.Sprintf("tip %d", i))
	}
	for _, row := range s.Table(t, "deltas") {
		payload, err := hex.DecodeString(strings.ReplaceAll(row[6], " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		repeat := func(cell string) [32]byte {
			b, err := hex.DecodeString(strings.Repeat(cell, 32))
			if err != nil {
				t.Fatal(err)
			}
			return [32]byte(b)
		}
		e.set = append(e.set, outer.Contribution{Payload: payload, Delta: outer.Delta{
			Author: repeat(row[0]), ID: repeat(row[1]), Round: uint32(number(t, row[2])), Base: uint32(number(t, row[3])),
			Steps: uint32(number(t, row[4])), Tokens: uint64(number(t, row[5])),
			Codec: codec.F32, Size: len(payload),
		}})
	}
	return e
}

func (e example) tip(t testing.TB, i int) *outer.Tip {
	t.Helper()
	tip, err := outer.DecodeTip(e.tips[i], e.f, e.p)
	if err != nil {
		t.Fatal(err)
	}
	return tip
}

// fragment is one of names and lengths.
func fragment(tensors ...any) outer.Fragment {
	var specs []tensor.Spec
	for i := 0; i < len(tensors); i += 2 {
		specs = append(specs, tensor.Spec{Name: tensors[i].(string), Shape: []int{tensors[i+1].(int)}})
	}
	return outer.NewPlan(tensor.Layout(specs), 1)[0]
}

// agree folds a set both ways and fails unless the tips are the same bits.
func agree(t testing.TB, p outer.Params, f outer.Fragment, prev *outer.Tip, set ...outer.Contribution) (*outer.Tip, *textFold) {
	t.Helper()
	got, _, err := outer.Fold(p, f, prev, prev.Round+1, set)
	if err != nil {
		t.Fatal(err)
	}
	want, x := foldByText(t, p, f, prev, set)
	if !bytes.Equal(got.Encode(), encodeByText(want)) || got.State != want.State {
		t.Fatalf("folded\n%x\nby the text\n%x", got.Encode(), encodeByText(want))
	}
	return got, x
}

// delta makes a valid contribution of an author to a round.
func delta(t testing.TB, p outer.Params, author byte, round uint32, v ...float32) outer.Contribution {
	t.Helper()
	payload, err := codec.Encode(p.Codec, v)
	if err != nil {
		t.Fatal(err)
	}
	d := outer.Delta{
		Author: outer.Author{author}, Round: round, Base: round - 1, Steps: 24, Tokens: 24 * 512,
		Codec: p.Codec, Size: len(payload),
	}
	d.ID = blake3.Sum256(binary.LittleEndian.AppendUint32([]byte{author}, round))
	return outer.Contribution{Delta: d, Payload: payload}
}

// plain are parameters without clipping or momentum, for f32 payloads.
func plain() outer.Params {
	p := outer.Plain(1, 1<<40, 0)
	p.Codec = codec.F32
	return p
}

func zeroTip(p outer.Params, f outer.Fragment) *outer.Tip {
	return outer.Genesis(f, make([]float32, f.Len), p)
}

func random(seed uint64, n int) []float32 {
	r := rand.New(rand.NewPCG(seed, 3))
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(r.NormFloat64())
	}
	return v
}

// invalid are changes that make a header invalid in the run of validRun.
var invalid = map[string]func(d *outer.Delta){
	"fragment":         func(d *outer.Delta) { d.Fragment = 2 },
	"base":             func(d *outer.Delta) { d.Base = d.Round },
	"no steps":         func(d *outer.Delta) { d.Steps = 0 },
	"more steps":       func(d *outer.Delta) { d.Steps = 17 },
	"no tokens":        func(d *outer.Delta) { d.Tokens = 0 },
	"more tokens":      func(d *outer.Delta) { d.Tokens = uint64(d.Steps)*100 + 1 },
	"another codec":    func(d *outer.Delta) { d.Codec = codec.Int4 },
	"an empty payload": func(d *outer.Delta) { d.Size = 0 },
}

// validRun is the example with limits that some deltas are beyond.
func validRun(t *testing.T, s *spectest.Spec) (example, outer.Params) {
	e := exampleOf(t, s)
	p := e.p
	p.Fragments, p.MaxSteps, p.MaxTokensPerStep = 2, 16, 100
	return e, p
}

func specValid(t *testing.T, s *spectest.Spec) {
	e, p := validRun(t, s)
	good := e.set[0].Delta
	if err := p.Check(good); err != nil {
		t.Fatal(err)
	}
	for name, change := range invalid {
		d := good
		if change(&d); p.Check(d) == nil {
			t.Errorf("%s is valid", name)
		}
	}
	for name, change := range map[string]func(d *outer.Delta){
		"fragment":        func(d *outer.Delta) { d.Fragment = 1 },
		"the most steps":  func(d *outer.Delta) { d.Steps = 16 },
		"the most tokens": func(d *outer.Delta) { d.Tokens = uint64(d.Steps) * 100 },
		"one byte":        func(d *outer.Delta) { d.Size = 1 },
	} {
		d := good
		change(&d)
		if err := p.Check(d); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func specInvalidFolded(t *testing.T, s *spectest.Spec) {
	e, p := validRun(t, s)
	for name, change := range invalid {
		c := e.set[0]
		change(&c.Delta)
		if tip, _ := agree(t, p, e.f, e.tip(t, 0), c); tip.Tokens != 0 {
			t.Errorf("%s is folded", name)
		}
	}
}

func specSize(t *testing.T, s *spectest.Spec) {
	p, f := plain(), fragment("w", 5)
	most := 6 + 4*(1+5) // C-12
	if p.CheckSize(f, most) != nil || p.CheckSize(f, most+1) == nil || p.CheckSize(f, 0) == nil {
		t.Errorf("sizes around %d: %v, %v, %v", most, p.CheckSize(f, most), p.CheckSize(f, most+1), p.CheckSize(f, 0))
	}
	large := delta(t, p, 1, 1, 1, 2, 3, 4, 5)
	large.Payload = append(large.Payload, make([]byte, most+1-len(large.Payload))...)
	large.Delta.Size = most + 1
	if tip, _ := agree(t, p, f, zeroTip(p, f), large); tip.Tokens != 0 {
		t.Error("a larger payload is folded")
	}
}

func specPayload(t *testing.T, s *spectest.Spec) {
	p, f := plain(), fragment("w", 3)
	good := delta(t, p, 1, 1, 1, 2, 3)
	other := p
	other.Codec = codec.Sparse8
	kind := delta(t, other, 2, 1, 1, 2, 3)
	kind.Delta.Codec = codec.F32
	length := delta(t, p, 3, 1, 1, 2, 3)
	length.Delta.Size--
	values := delta(t, p, 4, 1, 1, 2, 3, 4)
	corrupt := delta(t, p, 5, 1, 1, 2, 3)
	corrupt.Payload = append(bytes.Clone(corrupt.Payload), 0)
	corrupt.Delta.Size++
	alone, _ := agree(t, p, f, zeroTip(p, f), good)
	for _, bad := range []outer.Contribution{kind, length, values, corrupt} {
		if p.CheckPayload(f, bad.Delta, bad.Payload) == nil {
			t.Errorf("payload of author %d passes", bad.Delta.Author[0])
		}
		if tip, _ := agree(t, p, f, zeroTip(p, f), good, bad); tip.State != alone.State {
			t.Errorf("payload of author %d counts", bad.Delta.Author[0])
		}
	}
}

func specPlan(t *testing.T, s *spectest.Spec) {
	views := tensor.Layout([]tensor.Spec{
		{Name: "c", Shape: []int{4}}, {Name: "b", Shape: []int{4}}, {Name: "a", Shape: []int{5}}, {Name: "d", Shape: []int{1}}, {Name: "e", Shape: []int{3}},
	})
	// a 5 into 0, b 4 into 1, c 4 into 2, e 3 into 1 (4 = 4, the lower), d 1 into 2.
	want := [][]string{{"a"}, {"b", "e"}, {"c", "d"}}
	for range 2 {
		for i, f := range outer.NewPlan(views, 3) {
			var names []string
			for _, tensor := range f.Tensors {
				names = append(names, tensor.Name)
			}
			if !slices.Equal(names, want[i]) {
				t.Errorf("fragment %d has %v, by the text %v", i, names, want[i])
			}
		}
		slices.Reverse(views)
	}
}

func specVectors(t *testing.T, s *spectest.Spec) {
	f := fragment("z", 1, "w", 3, "a", 2)
	for i, name := range []string{"z", "w", "a"} {
		if f.Tensors[i].Name != name {
			t.Errorf("tensor %d is %+v, want %s", i, f.Tensors[i], name)
		}
	}
	slab, back, dst := []float32{1, 2, 3, 4, 5, 6}, make([]float32, 6), make([]float32, f.Len)
	f.Gather(slab, dst)
	if f.Scatter(dst, back); !slices.Equal(dst, slab) || !slices.Equal(back, slab) {
		t.Errorf("gathered %v, scattered %v", dst, back)
	}
}

// Any set, in any order, with repeats, by any parameters: the same bits.
func specSet(t *testing.T, s *spectest.Spec) {
	f := fragment("lm_head.weight", 7, "a", 40, "b", 16, "c", 1)
	rapid.Check(t, func(rt *rapid.T) {
		p := plain()
		p.Codec = rapid.SampledFrom([]codec.Kind{codec.F32, codec.Int4}).Draw(rt, "codec")
		p.Mu, p.Eta = rapid.SampledFrom([]float64{0, 0.5, 0.9}).Draw(rt, "mu"), rapid.SampledFrom([]float64{0, 0.7, 1}).Draw(rt, "eta")
		p.MaxShare, p.ClipFactor = rapid.Float64Range(0.01, 1).Draw(rt, "share"), rapid.Float64Range(1, 3).Draw(rt, "clip")
		tip := outer.Genesis(f, random(9, f.Len), p)
		tip.Round = rapid.SampledFrom([]uint32{0, 7}).Draw(rt, "rounds before") // F-14 ends with round 8
		for end := tip.Round + 3; tip.Round < end; {
			round := tip.Round + 1
			var set []outer.Contribution
			for author := range rapid.ByteRange(0, 6).Draw(rt, "deltas") {
				v := random(rapid.Uint64().Draw(rt, "values"), f.Len)
				tensor.Scale(rapid.Float32Range(-9, 9).Draw(rt, "scale"), v)
				c := delta(t, p, author, round, v...)
				c.Delta.Steps = rapid.Uint32Range(1, p.MaxSteps+1).Draw(rt, "steps")
				c.Delta.Tokens = rapid.Uint64Range(0, uint64(c.Delta.Steps)*p.MaxTokensPerStep).Draw(rt, "tokens")
				c.Delta.Base = round - rapid.Uint32Range(1, round).Draw(rt, "age")
				set = append(set, c)
			}
			shuffled := rapid.Permutation(append(slices.Clone(set), set...)).Draw(rt, "order")
			tip, _ = agree(t, p, f, tip, shuffled...)
		}
	})
}

func specEnd(t *testing.T, s *spectest.Spec) {
	p, f := plain(), fragment("w", 1)
	p.Budget = 2 * 24 * 512
	tip := zeroTip(p, f)
	for round := uint32(1); round <= 5; round++ {
		tip, _ = agree(t, p, f, tip, delta(t, p, 1, round, 1))
		if folded := min(round, 3); tip.Tokens != uint64(folded)*24*512 || tip.EndRound != 2 && round >= 2 {
			t.Errorf("round %d: %d tokens, end round %d", round, tip.Tokens, tip.EndRound)
		}
	}
}

// Values chosen so that a fused or reordered sum gives other bits.
func specArithmetic(t *testing.T, s *spectest.Spec) {
	p, f := plain(), fragment("w", 33)
	p.Mu, p.Eta = 0.1, 0.3
	tip := outer.Genesis(f, random(1, f.Len), p)
	differ := false
	for round := uint32(1); round <= 8; round++ {
		prev := tip
		var x *textFold
		tip, x = agree(t, p, f, tip, delta(t, p, 1, round, random(uint64(round), f.Len)...), delta(t, p, 2, round, random(uint64(100+round), f.Len)...))
		for i, u := range x.u {
			fused := float32(math.FMA(p.Mu, float64(prev.Momentum[i]), u))
			differ = differ || math.FMA(p.Mu, float64(prev.Momentum[i]), u) != float64(p.Mu*float64(prev.Momentum[i]))+u || fused != tip.Momentum[i]
		}
	}
	if !differ {
		t.Error("no value of this test tells a fused sum")
	}
}

// quantities compares intermediate results of round 1 with the text's.
func quantities(t *testing.T, s *spectest.Spec, prefix string, have map[string]float64) {
	t.Helper()
	seen := 0
	for _, row := range s.Table(t, "fold 1") {
		if !strings.HasPrefix(row[0], prefix) {
			continue
		}
		bits, err := strconv.ParseUint(row[1], 16, 64)
		if err != nil {
			t.Fatal(err)
		}
		x, ok := have[row[0]]
		if seen++; !ok || math.Float64bits(x) != bits {
			t.Errorf("%s is %v (%016x), the text says %s", row[0], x, math.Float64bits(x), row[1])
		}
		if math.Abs(number(t, row[2])-x) > 1e-6*math.Abs(x) {
			t.Errorf("%s is %v, the text says %s", row[0], x, row[2])
		}
	}
	if seen != len(have) {
		t.Errorf("the text has %d quantities %q, the test %d", seen, prefix, len(have))
	}
}

// round1 folds the first round of the example.
func round1(t *testing.T, s *spectest.Spec) (example, *outer.Tip, *textFold) {
	e := exampleOf(t, s)
	tip, x := agree(t, e.p, e.f, e.tip(t, 0), e.set[:2]...)
	return e, tip, x
}

// perTensor names what there is of each delta and tensor.
func perTensor(name string, of func(i, t int) float64) map[string]float64 {
	have := map[string]float64{}
	for i, author := range []string{"10", "20"} {
		for t, tensor := range []string{"embed", "w"} {
			have[name+" "+author+" "+tensor] = of(i, t)
		}
	}
	return have
}

func specNorms(t *testing.T, s *spectest.Spec) {
	_, _, x := round1(t, s)
	quantities(t, s, "norm ", perTensor("norm", func(i, t int) float64 { return x.norms[i][t] }))
}

func specWeight(t *testing.T, s *spectest.Spec) {
	e, _, _ := round1(t, s)
	p := e.p
	p.MaxShare = 1
	w := outer.Weights(p, []outer.Delta{e.set[1].Delta, e.set[0].Delta})
	quantities(t, s, "weight ", map[string]float64{"weight 10": w[0], "weight 20": w[1]})
	if w := outer.Weights(p, []outer.Delta{e.set[2].Delta}); w[0] != 90.0*90/1 {
		t.Errorf("the third delta weighs %v", w)
	}
}

func specShare(t *testing.T, s *spectest.Spec) {
	_, _, x := round1(t, s)
	quantities(t, s, "capped ", map[string]float64{"capped 10": x.weights[0], "capped 20": x.weights[1], "capped total": x.total})
	rapid.Check(t, func(rt *rapid.T) {
		p := plain()
		p.MaxShare = rapid.Float64Range(0.01, 1).Draw(rt, "share")
		var set []outer.Delta
		var weights []float64
		for range rapid.IntRange(1, 12).Draw(rt, "n") {
			d := outer.Delta{Round: 1, Steps: rapid.Uint32Range(1, 100).Draw(rt, "steps")}
			d.Tokens = uint64(d.Steps) * rapid.Uint64Range(1, 1<<16).Draw(rt, "tokens")
			set = append(set, d)
			weights = append(weights, float64(d.Tokens)*float64(d.Tokens)/float64(d.Steps))
		}
		for i, w := range outer.Weights(p, set) {
			if capped := cappedByText(p, set, weights); w != capped[i] {
				rt.Fatalf("weight %d is %v of %v, by the text %v", i, w, weights[i], capped[i])
			}
		}
	})
}

// cappedByText are weights after F-13.
func cappedByText(p outer.Params, set []outer.Delta, weights []float64) []float64 {
	x := textFold{p: p, weights: slices.Clone(weights)}
	for _, d := range set {
		x.set = append(x.set, outer.Contribution{Delta: d})
	}
	x.cap()
	return x.weights
}

func specMedian(t *testing.T, s *spectest.Spec) {
	p, f := plain(), fragment("w", 1)
	for _, c := range []struct {
		values []float32
		want   float32
	}{{[]float32{4, -1}, 1}, {[]float32{4, 1, -2}, 2}, {[]float32{5, 1, 9, 3}, 3}} {
		var set []outer.Contribution
		for i, v := range c.values {
			set = append(set, delta(t, p, byte(i+1), 1, v))
		}
		if tip, _ := agree(t, p, f, zeroTip(p, f), set...); tip.Ref[0] != c.want {
			t.Errorf("of %v the reference is %v, want %v", c.values, tip.Ref[0], c.want)
		}
	}
	heavy := delta(t, p, 1, 1, 9)
	heavy.Delta.Tokens *= 2
	if tip, _ := agree(t, p, f, zeroTip(p, f), heavy, delta(t, p, 2, 1, 1), delta(t, p, 3, 1, 2)); tip.Ref[0] != 9 {
		t.Errorf("the heavier half is not counted: %v", tip.Ref[0])
	}
}

func specReference(t *testing.T, s *spectest.Spec) {
	p, f := plain(), fragment("w", 1)
	p.ClipFactor = 2
	tip, _ := agree(t, p, f, zeroTip(p, f), delta(t, p, 1, 1, 4))
	if tip.Ref[0] != 4 {
		t.Errorf("the first reference is %v", tip.Ref[0])
	}
	tip, _ = agree(t, p, f, tip, delta(t, p, 1, 2, 0))
	if tip.Ref[0] != 4 {
		t.Errorf("a delta of zeros moves the reference to %v", tip.Ref[0])
	}
	tip, _ = agree(t, p, f, tip, delta(t, p, 1, 3, 100))
	if kept, added := 0.9*4.0, (1-0.9)*8.0; tip.Ref[0] != float32(kept+added) {
		t.Errorf("the next reference is %v", tip.Ref[0])
	}
}

func specSaturation(t *testing.T, s *spectest.Spec) {
	p, f := plain(), fragment("w", 2)
	p.Eta = 4
	tip, _ := agree(t, p, f, zeroTip(p, f), delta(t, p, 1, 1, 0x1.8p126, -0x1.8p126))
	if tip.Global[0] != math.MaxFloat32 || tip.Global[1] != -math.MaxFloat32 {
		t.Errorf("4 x 1.5 x 2^126 gives %v", tip.Global)
	}
}

func specPlainStep(t *testing.T, s *spectest.Spec) {
	p, f := plain(), fragment("w", 5)
	p.Eta = 0.3
	if tip, _ := agree(t, p, f, outer.Genesis(f, random(1, 5), p), delta(t, p, 1, 1, random(2, 5)...)); tip.Momentum != nil {
		t.Error("there is a momentum")
	}
}

func specMomentum(t *testing.T, s *spectest.Spec) {
	e, tip, _ := round1(t, s)
	if !bytes.Equal(tip.Encode(), e.tips[1]) {
		t.Errorf("round 1:\n got %x\nwant %x", tip.Encode(), e.tips[1])
	}
	if tip, _ = agree(t, e.p, e.f, tip, e.set[2]); !bytes.Equal(tip.Encode(), e.tips[2]) {
		t.Errorf("round 2:\n got %x\nwant %x", tip.Encode(), e.tips[2])
	}
}

func specTokens(t *testing.T, s *spectest.Spec) {
	e := exampleOf(t, s)
	one, two := e.tip(t, 1), e.tip(t, 2)
	if got, _ := agree(t, e.p, e.f, e.tip(t, 0), e.set[:2]...); got.Tokens != 40+32 || one.Tokens != got.Tokens {
		t.Errorf("%d tokens, the text's tip has %d", got.Tokens, one.Tokens)
	}
	if got, _ := agree(t, e.p, e.f, one, e.set[2]); got.Tokens != 40+32+90 || two.Tokens != got.Tokens {
		t.Errorf("%d tokens, the text's tip has %d", got.Tokens, two.Tokens)
	}
	guest := e.set[2]
	guest.Delta.Guest = true
	if got, _ := agree(t, e.p, e.f, one, guest); got.Tokens != 40+32 {
		t.Errorf("%d tokens with those of a guest", got.Tokens)
	}
}

func specEndRound(t *testing.T, s *spectest.Spec) {
	p, f := plain(), fragment("w", 1)
	for budget, want := range map[uint64]uint32{1: 1, 24 * 512: 1, 24*512 + 1: 2, 2 * 24 * 512: 2, 3*24*512 + 1: 0} {
		p.Budget = budget
		tip := zeroTip(p, f)
		for round := uint32(1); round <= 3; round++ {
			tip, _ = agree(t, p, f, tip, delta(t, p, 1, round, 1))
		}
		if tip.EndRound != want {
			t.Errorf("Budget %d: end round %d, want %d", budget, tip.EndRound, want)
		}
	}
}

func specEmptyRound(t *testing.T, s *spectest.Spec) {
	e := exampleOf(t, s)
	for i := range e.tips {
		before := e.tip(t, i)
		empty, _ := agree(t, e.p, e.f, before)
		same := *empty
		same.Round, same.Chain = before.Round, before.Chain
		if empty.Round != before.Round+1 || empty.Chain == before.Chain || !bytes.Equal(encodeByText(&same), before.Encode()) {
			t.Errorf("a round without deltas after tip %d changes other things than round and chain", i)
		}
	}
}

func specNoChain(t *testing.T, s *spectest.Spec) {
	e := exampleOf(t, s)
	if e.tip(t, 0).Chain != (outer.Digest{}) || zeroTip(e.p, e.f).Chain != (outer.Digest{}) {
		t.Error("round 0 has a chain")
	}
}

func specChain(t *testing.T, s *spectest.Spec) {
	e := exampleOf(t, s)
	a, b, c := e.set[1].Delta.ID, e.set[0].Delta.ID, e.set[2].Delta.ID
	one := blake3.Sum256(slices.Concat(make([]byte, 32), a[:], b[:]))
	two := blake3.Sum256(slices.Concat(one[:], c[:]))
	if e.tip(t, 1).Chain != one || outer.ChainDigest(outer.Digest{}, []outer.ID{a, b}) != one || e.tip(t, 2).Chain != two {
		t.Errorf("chains %x and %x, by the text %x and %x", e.tip(t, 1).Chain, e.tip(t, 2).Chain, one, two)
	}
	empty := blake3.Sum256(two[:])
	if got, _ := agree(t, e.p, e.f, e.tip(t, 2)); got.Chain != empty {
		t.Errorf("a round without deltas has the chain %x, by the text %x", got.Chain, empty)
	}
}

func specMagic(t *testing.T, s *spectest.Spec) {
	e := exampleOf(t, s)
	if got := e.tip(t, 1).Encode()[:8]; string(got) != "atollT\x00\x01" {
		t.Errorf("a tip begins with %x", got)
	}
}

func specNoEnd(t *testing.T, s *spectest.Spec) {
	p, f := plain(), fragment("w", 1)
	tip, _ := agree(t, p, f, zeroTip(p, f), delta(t, p, 1, 1, 1))
	if b := tip.Encode(); tip.EndRound != 0 || !bytes.Equal(b[12:16], make([]byte, 4)) || !tip.Takes(99) {
		t.Errorf("a tip far from the budget has end round %x", b[12:16])
	}
}

func specTip(t *testing.T, s *spectest.Spec) {
	e := exampleOf(t, s)
	tip, head := e.tip(t, 2), s.Layout(t, "tip", e.tips[2][:56])
	if string(head["magic"]) != "atollT\x00\x01" || binary.LittleEndian.Uint32(head["round"]) != tip.Round ||
		binary.LittleEndian.Uint32(head["end round"]) != tip.EndRound || binary.LittleEndian.Uint64(head["tokens"]) != tip.Tokens ||
		!bytes.Equal(head["chain"], tip.Chain[:]) {
		t.Errorf("head %x, decoded %+v", head, tip)
	}
	for i := range e.tips {
		if !bytes.Equal(encodeByText(e.tip(t, i)), e.tips[i]) {
			t.Errorf("tip %d is encoded differently by the text", i)
		}
	}
	plainRun := e.p
	plainRun.Mu = 0
	if with, without := outer.TipSize(e.f, e.p), outer.TipSize(e.f, plainRun); with != 56+4*(2+5+5) || without != with-4*5 {
		t.Errorf("sizes %d and %d", with, without)
	}
}

func specState(t *testing.T, s *spectest.Spec) {
	e := exampleOf(t, s)
	for i, tip := range e.tips {
		want := s.Hex(t, fmt.Sprintf("state %d", i))
		if got := e.tip(t, i).State; !bytes.Equal(got[:], want) || outer.Digest(want) != blake3.Sum256(tip) {
			t.Errorf("state %d is %x, the text says %x", i, got, want)
		}
	}
}

func specTipRefused(t *testing.T, s *spectest.Spec) {
	e := exampleOf(t, s)
	for name, b := range map[string][]byte{
		"shorter":       e.tips[1][:len(e.tips[1])-1],
		"longer":        append(bytes.Clone(e.tips[1]), 0),
		"another magic": append([]byte("atollT\x00\x02"), e.tips[1][8:]...),
		"an infinity":   slices.Concat(e.tips[1][:56], []byte{0, 0, 0x80, 0x7f}, e.tips[1][60:]),
		"no number":     slices.Concat(e.tips[1][:len(e.tips[1])-4], []byte{1, 0, 0x80, 0xff}),
	} {
		if _, err := outer.DecodeTip(b, e.f, e.p); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

func specGenesisTip(t *testing.T, s *spectest.Spec) {
	e := exampleOf(t, s)
	if got := outer.Genesis(e.f, []float32{1, 2, 3, 4, 5}, e.p).Encode(); !bytes.Equal(got, e.tips[0]) {
		t.Errorf("got %x, the text says %x", got, e.tips[0])
	}
}
