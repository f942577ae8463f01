package outer

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
	"slices"
	"testing"

	"atoll/tensor"
	"atoll/tensor/codec"
	"pgregory.net/rapid"
)

func TestSameSetSameBits(t *testing.T) {
	f := toyFragment()
	rapid.Check(t, func(rt *rapid.T) {
		p := drawParams(rt)
		tip := Genesis(f, vector(7, f.Len), p)
		for round := uint32(1); round <= 3; round++ {
			set := drawSet(rt, t, p, f, round)
			before := tip.Encode()
			next, r, err := Fold(p, f, tip, round, set)
			if err != nil || len(r.Refused) > 0 {
				rt.Fatal(err, r.Refused)
			}
			again := rapid.Permutation(append(slices.Clone(set), set[:len(set)/2]...)).Draw(rt, "order")
			other, _, err := Fold(p, f, tip, round, again)
			if err != nil || other.State != next.State {
				rt.Fatalf("another order gives another tip (%v)", err)
			}
			if !bytes.Equal(before, tip.Encode()) {
				rt.Fatal("the fold changed the tip it started from")
			}
			if want := ChainDigest(tip.Chain, idsOf(set)); next.Chain != want {
				rt.Fatalf("chain %x, want %x", next.Chain, want)
			}
			tip = next
		}
	})
}

func TestEmptyRoundSharesTheGlobal(t *testing.T) {
	p, f := toyParams(), toyFragment()
	p.Mu = 0.9
	tip := mustFold(t, p, f, Genesis(f, vector(1, f.Len), p), contribution(t, p, 1, 1, vector(2, f.Len)))
	next := mustFold(t, p, f, tip)
	if &next.Global[0] != &tip.Global[0] || &next.Momentum[0] != &tip.Momentum[0] || &next.Ref[0] != &tip.Ref[0] {
		t.Error("an empty round copies or changes the state")
	}
	if next.Round != 2 || next.Tokens != tip.Tokens || next.Chain != ChainDigest(tip.Chain, nil) || next.State == tip.State {
		t.Errorf("an empty round gives %d, %d tokens", next.Round, next.Tokens)
	}
}

// A payload is progress: alone, with eta 1 and no momentum, a learner's local parameters become the global ones.
func TestProgressIsAdded(t *testing.T) {
	p, f := toyParams(), toyFragment()
	start, u := vector(1, f.Len), vector(2, f.Len)
	tip := mustFold(t, p, f, Genesis(f, start, p), contribution(t, p, 1, 1, u))
	for i, a := range tip.Global {
		if want := start[i] + u[i]; math.Abs(float64(a-want)) > 1e-6 {
			t.Fatalf("value %d is %v, want %v + %v", i, a, start[i], u[i])
		}
	}
}

func TestNesterovStep(t *testing.T) {
	p, f := toyParams(), toyFragment()
	p.Eta, p.Mu = 0.7, 0.9
	start := vector(1, f.Len)
	tip := Genesis(f, start, p)
	a, m := float64(start[40]), 0.0
	for round := uint32(1); round <= 4; round++ {
		v := vector(uint64(round), f.Len)
		tip = mustFold(t, p, f, tip, contribution(t, p, 1, round, v))
		g := -float64(v[40]) // the outer gradient of the textbook
		m = p.Mu*m + g
		a -= p.Eta * (g + p.Mu*m)
		if math.Abs(a-float64(tip.Global[40])) > 1e-5 || math.Abs(-m-float64(tip.Momentum[40])) > 1e-5 {
			t.Fatalf("round %d: got %v and %v, want %v and %v", round, tip.Global[40], tip.Momentum[40], a, -m)
		}
	}
}

func TestFoldRefusesWhatIsInvalid(t *testing.T) {
	p, f := toyParams(), toyFragment()
	v := vector(3, f.Len)
	bad := map[string]func(c *Contribution){
		"other round":   func(c *Contribution) { c.Delta.Round, c.Delta.Base = 2, 1 },
		"no steps":      func(c *Contribution) { c.Delta.Steps = 0 },
		"size":          func(c *Contribution) { c.Delta.Size++ },
		"other codec":   func(c *Contribution) { c.Payload = encode(t, codec.Int4, v); c.Delta.Size = len(c.Payload) },
		"other length":  func(c *Contribution) { c.Payload = encode(t, p.Codec, v[1:]); c.Delta.Size = len(c.Payload) },
		"corrupt":       func(c *Contribution) { c.Payload = bytes.Clone(c.Payload); c.Payload[6] ^= 0xff },
		"empty payload": func(c *Contribution) { c.Payload, c.Delta.Size = nil, 0 },
	}
	good := contribution(t, p, 9, 1, vector(4, f.Len))
	if err := p.CheckPayload(f, good.Delta, good.Payload); err != nil {
		t.Fatal(err)
	}
	start := Genesis(f, vector(1, f.Len), p)
	want := mustFold(t, p, f, start, good)
	for name, change := range bad {
		c := contribution(t, p, 1, 1, v)
		change(&c)
		if p.Check(c.Delta) == nil && c.Delta.Round == 1 && p.CheckPayload(f, c.Delta, c.Payload) == nil {
			t.Errorf("%s: the checks before a fold pass", name)
		}
		got, r, err := Fold(p, f, start, 1, []Contribution{good, c})
		if err != nil || len(r.Refused) != 1 || r.Refused[0].ID != c.Delta.ID || r.Refused[0].Err == nil {
			t.Fatalf("%s: %v, %v", name, err, r)
		}
		if got.State != want.State || len(r.Weights) != 1 || !slices.Equal(r.Folded, []ID{good.Delta.ID}) {
			t.Errorf("%s: a refused delta changes the fold: %v", name, r)
		}
	}
}

func encode(t *testing.T, k codec.Kind, v []float32) []byte {
	b, err := codec.Encode(k, v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestFoldRefusesACallersMistake(t *testing.T) {
	p, f := toyParams(), toyFragment()
	tip := Genesis(f, vector(1, f.Len), p)
	if _, _, err := Fold(p, f, tip, 2, nil); err == nil {
		t.Error("a round that does not follow")
	}
	other := NewPlan(toyViews(), 2)[0]
	if _, _, err := Fold(p, other, tip, 1, nil); err == nil {
		t.Error("a tip of another fragment")
	}
	p.Mu = 0.5
	if _, _, err := Fold(p, f, tip, 1, nil); err == nil {
		t.Error("a tip without momentum")
	}
}

func TestEndRule(t *testing.T) {
	p, f := toyParams(), toyFragment()
	each := contribution(t, p, 1, 1, vector(1, f.Len)).Delta.Tokens
	p.Budget = 2 * each
	tip := Genesis(f, vector(1, f.Len), p)
	for round := uint32(1); round <= 5; round++ {
		next, r, err := Fold(p, f, tip, round, []Contribution{contribution(t, p, 1, round, vector(1, f.Len))})
		if err != nil {
			t.Fatal(err)
		}
		tip = next
		if ended := round > 3; ended != (len(r.Folded) == 0) || ended != (len(r.Refused) == 1 && errors.Is(r.Refused[0].Err, ErrEnded)) {
			t.Errorf("round %d: folded %d, refused %v", round, len(r.Folded), r.Refused)
		}
		if want := min(round, 3) * uint32(each); tip.Tokens != uint64(want) {
			t.Errorf("round %d: %d tokens, want %d", round, tip.Tokens, want)
		}
		if want := map[bool]uint32{true: 2}[round >= 2]; tip.EndRound != want {
			t.Errorf("round %d: end round %d, want %d", round, tip.EndRound, want)
		}
	}
}

// The round machine computes chains from headers alone; a fold must agree.
func TestFoldAgreesWithLinks(t *testing.T) {
	f := toyFragment()
	rapid.Check(t, func(rt *rapid.T) {
		p := drawParams(rt)
		p.Budget = rapid.Uint64Range(1, 1<<25).Draw(rt, "budget")
		p.MaxPace = rapid.IntRange(1, 4).Draw(rt, "pace")
		tip, link := Genesis(f, vector(7, f.Len), p), Link{}
		for round := uint32(1); round <= 4; round++ {
			set := drawSet(rt, t, p, f, round)
			var deltas []Delta
			for _, c := range set {
				deltas = append(deltas, c.Delta)
			}
			next, _, err := Fold(p, f, tip, round, set)
			if err != nil {
				rt.Fatal(err)
			}
			tip, link = next, NextLink(p, link, deltas)
			if tip.Chain != link.Chain || tip.Tokens != link.Tokens || tip.EndRound != link.EndRound {
				rt.Fatalf("round %d: tip %d %d, link %d %d", round, tip.Tokens, tip.EndRound, link.Tokens, link.EndRound)
			}
		}
	})
}

// Values of any size never make a NaN or an infinity.
func TestFoldStaysFinite(t *testing.T) {
	p, f := toyParams(), toyFragment()
	p.Mu, p.Eta = 0.9, 4
	tip := Genesis(f, make([]float32, f.Len), p)
	for round := uint32(1); round <= 6; round++ {
		v, w := vector(uint64(round), f.Len), vector(uint64(round+9), f.Len)
		for i := range v {
			v[i] = float32(math.Copysign(1e38, float64(v[i])))
			w[i] *= 1e-44
		}
		tip = mustFold(t, p, f, tip, contribution(t, p, 1, round, v), contribution(t, p, 2, round, w))
		if _, err := DecodeTip(tip.Encode(), f, p); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
	}
}

// goldenTip folds three rounds of values that are exact on any machine.
func goldenTip(t *testing.T, p Params) *Tip {
	f := toyFragment()
	exact := func(seed, n int) []float32 {
		v := make([]float32, n)
		state := uint32(seed)
		for i := range v {
			state = state*1664525 + 1013904223
			v[i] = float32(int32(state>>8)-1<<23) / (1 << 23)
		}
		return v
	}
	tip := Genesis(f, exact(1, f.Len), p)
	for round := uint32(1); round <= 3; round++ {
		var set []Contribution
		for author := range byte(3) {
			v := exact(int(round)*16+int(author), f.Len)
			tensor.Scale(float32(1+3*author), v)
			c := contribution(t, p, author, round, v)
			c.Delta.Steps += uint32(author) * 5
			c.Delta.Base = (round - 1) * uint32(author&1)
			set = append(set, c)
		}
		tip = mustFold(t, p, f, tip, set...)
	}
	return tip
}

// Pinned digests: another architecture, or a change of the arithmetic, shows here.
func TestGoldenDigests(t *testing.T) {
	for _, g := range []struct {
		kind    codec.Kind
		mu, eta float64
		want    string
	}{
		{codec.F32, 0, 1, "3a6ce43a56a0e1c397d185c684e23cdae5ac3ab04de72accbe59f6211cf40f80"},
		{codec.Int4, 0, 1, "62ed95cff648f636e58e6b1e2e6e6687419550d6ff1d0edde956858b7f37e72a"},
		{codec.F32, 0.9, 0.7, "70b62aad0d79c2a585b06c1ec8ee1628a94a9b05e338dbbc94a765e7a18ea13f"},
		{codec.Int4, 0.5, 0.9, "dfc385b6ef60eb03adecbe19ffeb8f50338c33573c382ee964e35d69673c7273"},
	} {
		p := toyParams()
		p.Codec, p.Mu, p.Eta, p.MaxShare, p.Quorum = g.kind, g.mu, g.eta, 0.5, 3
		tip := goldenTip(t, p)
		if got := hex.EncodeToString(tip.State[:]); got != g.want {
			t.Errorf("%v mu %v: got %s, want %s", g.kind, g.mu, got, g.want)
		}
	}
}
