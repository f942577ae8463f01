package tune

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"atoll/optimizer/outer"
	"atoll/tensor/codec"
)

// By hand: three peers' deltas of 1 M values at 0.43 bytes are 1.29 MB. Half of a 20 Mbit/s link carries 1.25 MB each
// second: two steps. A round of eight deltas takes 16 + 8 x 3 ns a value, 40 ms, 3.6 times a tenth of a core's 110 ms; with
// clip 8 ns more. Sparse deltas take 16 + 5 and 3 ns.
func TestChooseByHand(t *testing.T) {
	for _, c := range []struct {
		name string
		m    Means
		want Choice
	}{
		{"links decide", Means{Params: 1e6, Tensors: 20, Learners: 4, StepSeconds: 1, BytesPerSecond: 2.5e6},
			Choice{H: 2, Fragments: 2, BytesPerSecond: 645_000, LinkShare: 0.258, CoreShare: 0.016}},
		{"cores decide", Means{Params: 1e6, Tensors: 20, Learners: 8, StepSeconds: 0.11, BytesPerSecond: 1e9},
			Choice{H: 5, Fragments: 5, BytesPerSecond: 5.47273e6, LinkShare: 0.00547273, CoreShare: 0.087273}},
		{"alone", Means{Params: 1e6, Tensors: 20, Learners: 1, StepSeconds: 1, BytesPerSecond: 1},
			Choice{H: 1, Fragments: 1, CoreShare: 0.02}},
		{"few values", Means{Params: 10_000, Tensors: 20, Learners: 4, StepSeconds: 0.001, BytesPerSecond: 1e6},
			Choice{H: 26, Fragments: 2, BytesPerSecond: 496_153.8, LinkShare: 0.4962, CoreShare: 0.012308}},
		{"sparse", Means{Params: 1e7, Tensors: 20, Learners: 11, StepSeconds: 1, BytesPerSecond: 222_000, Codec: codec.Sparse},
			Choice{H: 20, Fragments: 20, BytesPerSecond: 111_000, LinkShare: 0.5, CoreShare: 0.0325}},
		{"few values in sparse", Means{Params: 200_000, Tensors: 20, Learners: 2, StepSeconds: 1, BytesPerSecond: 1110, Codec: codec.Sparse},
			Choice{H: 8, Fragments: 2, BytesPerSecond: 555, LinkShare: 0.5, CoreShare: 0.000725}},
	} {
		if c.m.Codec == 0 {
			c.m.Codec = codec.Int4
		}
		got, err := Choose(c.m)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got.H != c.want.H || got.Fragments != c.want.Fragments ||
			off(got.BytesPerSecond, c.want.BytesPerSecond) || off(got.LinkShare, c.want.LinkShare) || off(got.CoreShare, c.want.CoreShare) {
			t.Errorf("%s: %+v\nwant %+v", c.name, got, c.want)
		}
	}
}

func off(a, b float64) bool { return math.Abs(a-b) > 1e-3*math.Abs(b) }

func TestChooseErrors(t *testing.T) {
	good := Means{Params: 1e6, Tensors: 20, Learners: 4, StepSeconds: 1, BytesPerSecond: 2.5e6, Codec: codec.Int4}
	for _, c := range []struct {
		want   string
		change func(*Means)
	}{
		{"a model of 0 values", func(m *Means) { m.Params = 0 }},
		{"0 tensors", func(m *Means) { m.Tensors = 0 }},
		{"-1 learners in a round", func(m *Means) { m.LearnersPerRound = -1 }},
		{"at least 5 of 4 sampled learners", func(m *Means) { m.LearnersPerRound, m.LeastLearnersPerRound = 4, 5 }},
		{"0 learners", func(m *Means) { m.Learners = 0 }},
		{"steps of NaN s", func(m *Means) { m.StepSeconds = math.NaN() }},
		{"links of 0 bytes/s", func(m *Means) { m.BytesPerSecond = 0 }},
		{"codec 99 is unknown", func(m *Means) { m.Codec = 99 }},
		{"smaller model, or the codec sparse8, whose deltas fit these links", func(m *Means) { m.BytesPerSecond = 20_000 }},
		{"smaller model, or the codec sparse, whose deltas fit these links", func(m *Means) { m.BytesPerSecond = 6_000 }},
		{"links of 0.024 Mbit/s would need H = 45, and the codec sparse allows at most 24: offer 0.0444 Mbit/s, or take a larger batch, fewer learners or a smaller model!",
			func(m *Means) { m.Codec, m.BytesPerSecond = 0, 3000 }},
		{"the codec sparse allows at most 24", func(m *Means) { m.Codec, m.BytesPerSecond = codec.Sparse, 3000 }},
		{"links of 0.16 Mbit/s would need H = 129, and the codec int4 allows at most 64: offer 0.323 Mbit/s", func(m *Means) { m.BytesPerSecond = 20_000 }},
		// Links that carry sparse deltas do not help who has no time for them.
		{"H = 80, links of 16 Mbit/s would need H = 323, and the codec int4 allows at most 64: take a larger batch (steps of 0.005 s) or fewer learners; and offer 80.7 Mbit/s, or less with a larger batch!", func(m *Means) { m.StepSeconds, m.BytesPerSecond = 0.004, 2e6 }},
		{"H = 72, and the codec int4 allows at most 64: take a larger batch (steps of 0.005 s) or fewer learners!", func(m *Means) { m.Codec, m.StepSeconds, m.BytesPerSecond = 0, 0.0045, 1e9 }},
		// Cores are too slow for sparse deltas, which ask for a smaller H, and not for others: it is the link that falls short.
		{"the codec sparse8 allows at most 64: offer 6.44 Mbit/s", func(m *Means) { m.Codec, m.StepSeconds, m.BytesPerSecond = 0, 0.012, 780_000 }},
		{"a rate above 0", func(m *Means) { m.StepSeconds, m.BytesPerSecond = 1e-200, 1e-200 }},
		{"take a larger batch (steps of 0.005 s)!", func(m *Means) { m.StepSeconds = 0.001; m.BytesPerSecond = 1e12 }},
		{"take a larger batch (steps of 0.013 s) or fewer sampled learners than 16!", func(m *Means) { m.Learners, m.LearnersPerRound, m.StepSeconds, m.BytesPerSecond = 17, 16, 0.005, 1e12 }},
		{"take a larger batch, fewer sampled learners than 16 or a smaller model", func(m *Means) { m.Learners, m.LearnersPerRound, m.BytesPerSecond = 17, 16, 20_000 }},
		{"take a larger batch, fewer learners or a smaller model", func(m *Means) { m.Learners, m.LearnersPerRound, m.BytesPerSecond = 16, 16, 20_000 }},
		{"take a larger batch (steps of 6.3 s) or fewer learners!", func(m *Means) { m.Learners, m.BytesPerSecond = 10_000, 1e12 }},
		{"H = 72, and the codec int4 allows at most 64: take a larger batch (steps of 0.005 s) or fewer learners!", func(m *Means) { m.StepSeconds = 0.0045; m.BytesPerSecond = 1e12 }},
	} {
		m := good
		c.change(&m)
		if _, err := Choose(m); err == nil || !strings.Contains(err.Error()+"!", c.want) {
			t.Errorf("error %v, want %q", err, c.want)
		}
	}
}

func TestRoundUp(t *testing.T) {
	for _, c := range []struct {
		x      float64
		digits int
		want   float64
	}{
		{8.3e6, 2, 8.3e6}, {1e6, 2, 1e6}, {6.71e7, 3, 6.71e7}, {9.9e6, 2, 9.9e6}, {9.91e6, 2, 1e7}, {0.0444, 3, 0.0444}, {0.04441, 3, 0.0445}, {1, 1, 1}, {5e-324, 1, 5e-324},
		{0, 2, 0}, {-3.14, 2, -3.14}, {math.Inf(1), 2, math.Inf(1)}, {math.MaxFloat64, 2, math.Inf(1)},
	} {
		if got := RoundUp(c.x, c.digits); got != c.want {
			t.Errorf("%v with %d digits: %v, want %v", c.x, c.digits, got, c.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		x, digits := rapid.Float64Range(1e-12, 1e15).Draw(t, "x"), rapid.IntRange(1, 6).Draw(t, "digits")
		got := RoundUp(x, digits)
		text := strconv.FormatFloat(got, 'e', digits-1, 64)
		if back, err := strconv.ParseFloat(text, 64); err != nil || back != got || got < x || got > x*(1+math.Pow(10, float64(1-digits))) {
			t.Fatalf("%v with %d digits: %v, as text %s", x, digits, got, text)
		}
		if again := RoundUp(got, digits); again != got {
			t.Fatalf("%v becomes %v", got, again)
		}
	})
}

// What an error says that links must carry is enough.
func TestChooseAsksForEnough(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := Means{
			Params: rapid.IntRange(1e5, 1e8).Draw(t, "params"), Tensors: 20, Learners: rapid.IntRange(2, 40).Draw(t, "learners"), StepSeconds: 100,
			BytesPerSecond: 1, Codec: rapid.SampledFrom([]codec.Kind{0, codec.Int4, codec.Sparse8, codec.Sparse}).Draw(t, "codec"),
		}
		_, err := Choose(m)
		if err == nil {
			t.Fatal("a link of a byte in a second is enough")
		}
		_, text, _ := strings.Cut(err.Error(), "offer ")
		var asked float64
		if _, err := fmt.Sscanf(text, "%g Mbit/s", &asked); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		m.BytesPerSecond = asked * 1e6 / 8
		if _, err := Choose(m); err != nil {
			t.Fatalf("%s, but with %v: %v", text, asked, err)
		}
	})
}

// By hand: half of 20 Mbit/s carries 1.25 MB in a second. Seven deltas of 124 M values take 373 MB in int4, 89 in sparse8 and
// 19.3 in sparse, so 299, 72 and 16 steps of 1 s. Eight of them take (16 + 5 + 8 x 3) x 0.124 = 5.6 s of a core, 11 steps
// where that may be half of one, and 56 where it trains.
// Half of 1 Gbit/s carries 62.5 MB. Seven deltas of 1.236 G values take 3.72 GB in int4: 15 steps of 4 s. A core has
// (16 + 8 x 4) x 1.236 = 59.3 s to do, 30 steps.
func TestChooseForLargeModels(t *testing.T) {
	of124M := Means{Params: 124e6, Tensors: 256, Learners: 8, LearnersPerRound: 16, LeastLearnersPerRound: 3, BytesPerSecond: 2.5e6, StepSeconds: 1, FreeCores: true}
	of1B := Means{Params: 1_236e6, Tensors: 256, Learners: 8, LearnersPerRound: 16, LeastLearnersPerRound: 3, BytesPerSecond: 125e6, StepSeconds: 4, FreeCores: true}
	slow := of124M
	slow.StepSeconds = 20
	many := of124M
	many.Learners = 16
	short := of1B
	short.StepSeconds = 1.4
	for _, c := range []struct {
		name             string
		m                Means
		codec            codec.Kind
		h                int
		learnersPerRound int
	}{
		{"124M, 20 Mbit/s", of124M, codec.Sparse, 16, 16},
		{"124M, 20 Mbit/s, long steps", slow, codec.Int4, 15, 16},
		{"124M, 20 Mbit/s, 16 learners", many, codec.Sparse, 23, 10}, // 11 would need 25
		{"1B, 1 Gbit/s", of1B, codec.Int4, 30, 16},
		{"1B, 1 Gbit/s, short steps", short, codec.Int4, 64, 5}, // 6 would need 71 by their cores
	} {
		got, err := Choose(c.m)
		if err != nil || got.Codec != c.codec || got.H != c.h || got.LearnersPerRound != c.learnersPerRound || got.Fragments != min(c.h, paperFragments) {
			t.Errorf("%s: %+v, %v; want %v every %d steps of %d", c.name, got, err, c.codec, c.h, c.learnersPerRound)
		}
		if sweep := float64(min(got.LearnersPerRound, c.m.Learners-1)) * float64(c.m.Params) * BytesOf(got.Codec) / c.m.BytesPerSecond; off(got.SweepSeconds, sweep) {
			t.Errorf("%s: what all send takes %v s, want %v", c.name, got.SweepSeconds, sweep)
		}
	}
	busy := of124M
	busy.FreeCores = false // then no codec fits but with fewer sampled learners
	if got, err := Choose(busy); err != nil || got.CoreShare > maxCoreShare || got.LearnersPerRound >= 8 {
		t.Errorf("with cores that train: %+v, %v", got, err)
	}
	short.StepSeconds = 0.5
	if _, err := Choose(short); err == nil || !strings.Contains(err.Error(), "take a larger batch (steps of 1.9 s)") {
		t.Errorf("half a second: %v", err)
	}
}

// What is chosen with fewer sampled learners fits, and one more would not.
func TestChooseTakesTheMostLearnersPerRound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := Means{
			Params: rapid.IntRange(1e6, 2e9).Draw(t, "params"), Tensors: 200, Learners: rapid.IntRange(4, 40).Draw(t, "learners"), LearnersPerRound: rapid.SampledFrom([]int{0, 8, 16}).Draw(t, "sampled learners"),
			LeastLearnersPerRound: 3, StepSeconds: rapid.Float64Range(0.1, 30).Draw(t, "step"), BytesPerSecond: rapid.Float64Range(1e5, 1e9).Draw(t, "rate"), FreeCores: rapid.Bool().Draw(t, "free"),
		}
		c, err := Choose(m)
		if err != nil || c.LearnersPerRound == m.LearnersPerRound {
			return
		}
		m.LeastLearnersPerRound = 0
		m.LearnersPerRound = c.LearnersPerRound
		if same, err := Choose(m); err != nil || same != c {
			t.Fatalf("%+v, asked for it %+v, %v", c, same, err)
		}
		if m.LearnersPerRound++; m.LearnersPerRound < min(m.Learners, 40) {
			if more, err := Choose(m); err == nil {
				t.Fatalf("%+v, and one more %+v", c, more)
			}
		}
	})
}

// Learners beyond those whose deltas a round has cost nobody anything.
func TestChooseCountsThoseWhoPublish(t *testing.T) {
	m := Means{Params: 1e6, Tensors: 20, Learners: 16, LearnersPerRound: 16, StepSeconds: 1, BytesPerSecond: 2.5e6, Codec: codec.Int4}
	few, err := Choose(m)
	if err != nil {
		t.Fatal(err)
	}
	m.Learners = 17 // each receives from one more
	more, err := Choose(m)
	if err != nil || more.BytesPerSecond*float64(more.H) < few.BytesPerSecond*float64(few.H)*1.06 {
		t.Errorf("%+v, with one more %+v, %v", few, more, err)
	}
	m.Learners = 1000
	if many, err := Choose(m); err != nil || many != more {
		t.Errorf("of 17 %+v, of 1000 %+v, %v", more, many, err)
	}
}

// By hand: at 0.43 bytes a value three peers' deltas of 1 M values are 1.29 MB, which half of a link of 54 kB/s
// carries in 48 s; sparse8 takes 0.309 MB and sparse 66.6 kB.
func TestChooseCodec(t *testing.T) {
	last := codec.Int4
	for _, c := range []struct {
		bytesPerSecond float64
		want           codec.Kind
		h              int
	}{
		{1e6, codec.Int4, 3},
		{54_000, codec.Int4, 48},
		{53_000, codec.Sparse8, 12},
		{12_900, codec.Sparse8, 48},
		{12_800, codec.Sparse, 11},
		{5_600, codec.Sparse, 24},
	} {
		m := Means{Params: 1e6, Tensors: 20, Learners: 4, StepSeconds: 1, BytesPerSecond: c.bytesPerSecond}
		got, err := Choose(m)
		if err != nil || got.Codec != c.want || got.H != c.h || BytesOf(got.Codec) > BytesOf(last) {
			t.Errorf("%v bytes/s: %+v, %v; want %v every %d steps", c.bytesPerSecond, got, err, c.want, c.h)
		}
		m.Codec = got.Codec
		if asked, err := Choose(m); err != nil || asked != got {
			t.Errorf("%v bytes/s: asked for %v: %+v, %v; chosen %+v", c.bytesPerSecond, m.Codec, asked, err, got)
		}
		last = got.Codec
		m.Codec, m.BytesPerSecond = 0, 1.0001*m.Int4BytesPerSecond()
		if enough, err := Choose(m); err != nil || enough.Codec != codec.Int4 || enough.H != 48 {
			t.Errorf("with what int4 needs: %+v, %v", enough, err)
		}
	}
}

// Where cores do not let thinner deltas come twice as often, they are not taken.
func TestChooseCodecByCores(t *testing.T) {
	for _, c := range []struct {
		stepSeconds float64
		want        codec.Kind
		h           int
	}{
		{0.05, codec.Sparse8, 12}, // by the link, which would carry int4 in 50
		{0.0148, codec.Sparse8, 25},
		{0.0146, codec.Int4, 50}, // sparse8 would take 37 ms of a core, so 26 steps
	} {
		m := Means{Params: 1e6, Tensors: 20, Learners: 4, StepSeconds: c.stepSeconds, BytesPerSecond: 1.29e6 / 25 / c.stepSeconds}
		if got, err := Choose(m); err != nil || got.Codec != c.want || got.H != c.h {
			t.Errorf("steps of %v s: %+v, %v; want %v every %d steps", c.stepSeconds, got, err, c.want, c.h)
		}
	}
}

// What is chosen fits the means, can be a run's Params, and more bandwidth never
// makes H larger with the same codec, or deltas thinner.
func TestChooseFits(t *testing.T) {
	var drawn, chosen int
	rapid.Check(t, func(t *rapid.T) {
		drawn++
		m := Means{
			Params: rapid.IntRange(1, 1e10).Draw(t, "params"), Learners: rapid.IntRange(1, 64).Draw(t, "learners"),
			Codec: rapid.SampledFrom(append(codec.Kinds(), 0, 0, 0)).Draw(t, "codec"),
		}
		byCore := rapid.Float64Range(0.01, 80).Draw(t, "H by the cores, about")
		byLink := rapid.Float64Range(0.01, 1500).Draw(t, "H by the link in int4, about")
		m.StepSeconds = float64(m.Params) * (20e-9 + 3e-9*float64(m.Learners)) / 0.1 / byCore
		m.BytesPerSecond = float64(m.Learners) * float64(m.Params) * 0.43 / 0.5 / m.StepSeconds / byLink
		m.Tensors = rapid.IntRange(1, min(m.Params, 500)).Draw(t, "tensors")
		c, err := Choose(m)
		if err != nil {
			return
		}
		if c.LinkShare > maxLinkShare+1e-9 || c.CoreShare > maxCoreShare+1e-9 {
			t.Fatalf("%+v asks for more than there is", c)
		}
		p := outer.Spec{Fragments: c.Fragments, H: c.H, Codec: c.Codec, StepTokens: 1, Budget: 1}.Params()
		if err := p.Validate(); err != nil || c.Fragments > c.H || c.Fragments > m.Tensors {
			t.Fatalf("%+v: %v", c, err)
		}
		if m.Codec == 0 && c.Codec != codec.Int4 { // then int4 is not carried, or half as often at most
			m.Codec = codec.Int4
			if plain, err := Choose(m); err == nil && plain.H < 2*c.H {
				t.Fatalf("%+v, and in int4 %+v", c, plain)
			}
			m.Codec = 0
		}
		m.BytesPerSecond *= 2
		more, err := Choose(m)
		if err != nil || more.H > c.H && more.Codec == c.Codec || BytesOf(more.Codec) < BytesOf(c.Codec) {
			t.Fatalf("twice the bandwidth: %+v, before %+v; %v", more, c, err)
		}
		chosen++
	})
	if chosen < drawn/3 {
		t.Errorf("%d of %d links are refused", drawn-chosen, drawn)
	}
}
