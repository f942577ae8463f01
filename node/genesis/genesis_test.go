package genesis

import (
	"encoding/hex"
	"errors"
	"math"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"atoll/gossip/wire"
	"atoll/optimizer"
	"atoll/optimizer/outer"
	"atoll/tensor/codec"
	"atoll/tensor/llama"
)

// fixedGenesis never changes: its RunID is a golden.
func fixedGenesis() Genesis {
	return Genesis{
		Format: Format, Rules: 1, Name: "golden <run> é", Admission: "open", Model: llama.Tiny, Init: "seed", Tokenizer: "byte", Seed: 42, Batch: 4,
		Inner: Inner{LR: 2e-3, Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, WeightDecay: 0.1, Clip: 1, WarmupFraction: 0.03, FinalFraction: 0.1},
		Outer: outer.Params{
			Fragments: 8, H: 24, HMin: 6, Eta: 1, Merge: outer.MergeRDA, ClipFactor: 3, RefDecay: 0.9, MaxShare: 0.5,
			MaxSteps: 1024, MaxTokensPerStep: 1 << 16, Codec: codec.Int4, WindowAccept: 16, WindowUnion: 256, Answerers: 16, Quorum: 3,
			Budget: 3_000_000, MinRoundMs: 20, CreatedMs: 1_700_000_000_000, GraceMinMs: 200, GraceMaxMs: 30_000, MaxPace: 6, TokensPerStep: 512,
		},
		WayMs: 100, Data: Data{Name: "prose", SHA256: strings.Repeat("0a", 32)},
	}
}

// A change here makes every run unreadable that was made before: then Format must change too.
func TestGenesisGolden(t *testing.T) {
	g := fixedGenesis()
	if err := g.Validate(); err != nil {
		t.Fatal(err)
	}
	const want = "78d5f75ccb6887ee065c96791107fe17362fbe729308ed6f43a81dfac3e2e95d"
	run := g.RunID()
	if got := hex.EncodeToString(run[:]); got != want {
		t.Errorf("RunID %s, want %s\n%s", got, want, g.Encode())
	}
	back, err := Decode(g.Encode())
	if err != nil || !reflect.DeepEqual(back, g) {
		t.Errorf("read back %+v, %v", back, err)
	}
}

// The optimizer is part of the RunID, but AdamW needs no word: a genesis of
// before there was a choice is one of today, with the RunID of TestGenesisGolden.
func TestGenesisWithMuon(t *testing.T) {
	adamw, muon := fixedGenesis(), fixedGenesis()
	for _, name := range []string{optimizer.NameMuon, optimizer.NameAdamW, ""} {
		var err error
		if adamw.Inner, err = adamw.Inner.with(name); err != nil {
			t.Fatal(err)
		}
	}
	if !reflect.DeepEqual(adamw, fixedGenesis()) || adamw.Inner.OptimizerName() != optimizer.NameAdamW {
		t.Errorf("there and back: %+v", adamw.Inner)
	}
	var err error
	if muon.Inner, err = muon.Inner.with(optimizer.NameMuon); err != nil {
		t.Fatal(err)
	}
	const want = `"FinalFraction":0.1,"Optimizer":"muon","Momentum":0.95},`
	if !strings.Contains(string(muon.Encode()), want) || muon.RunID() == adamw.RunID() {
		t.Errorf("no %s in %s, or the RunID of AdamW", want, muon.Encode())
	}
	if back, err := Decode(muon.Encode()); err != nil || !reflect.DeepEqual(back, muon) {
		t.Errorf("read back %+v, %v", back, err)
	}
	if o := muon.Inner.Optim(); o.Name != optimizer.NameMuon || o.Momentum != 0.95 || o.Clip != 1 || o.AdamW != adamw.Inner.Optim().AdamW {
		t.Errorf("trainers take %+v", o)
	}
	if _, err := muon.Inner.with("sgd"); err == nil || !strings.Contains(err.Error(), `optimizer "sgd": use adamw or muon`) {
		t.Errorf("error %v", err)
	}
}

func TestGenesisValidateNamesTheField(t *testing.T) {
	for _, c := range []struct {
		want  string
		spoil func(g *Genesis)
	}{
		{"Format is 3, this program reads 2; use the version of atoll that made the run", func(g *Genesis) { g.Format = 3 }},
		{"Rules is \"2\", this program knows \"1\"", func(g *Genesis) { g.Rules = 2 }},
		{"Admission is \"closed\", this program knows \"open\" and \"invite\"; use the version of atoll that made the run", func(g *Genesis) { g.Admission = "closed" }},
		{"Owners has 0 keys; use 1 to 16 with the admission \"invite\"", func(g *Genesis) { g.Admission = Invite }},
		{"Init is \"digests\"", func(g *Genesis) { g.Init = "digests" }},
		{"Recipe is \"{}\"", func(g *Genesis) { g.Recipe = "{}" }},
		{"WayMs is 0", func(g *Genesis) { g.WayMs = 0 }},
		{"WayMs is 10001", func(g *Genesis) { g.WayMs = 10_001 }},
		{"Name has 201 bytes", func(g *Genesis) { g.Name = strings.Repeat("x", maxName+1) }},
		{"Name is \"\\x1b[2J\"", func(g *Genesis) { g.Name = "\x1b[2J" }},
		{"Name is \"\\xff\"", func(g *Genesis) { g.Name = "\xff" }},
		{"Data.Name has", func(g *Genesis) { g.Data.Name = strings.Repeat("x", maxName+1) }},
		{"Data.SHA256", func(g *Genesis) { g.Data.SHA256 = "abcd" }},
		{"Data.SHA256", func(g *Genesis) { g.Data.SHA256 = strings.Repeat("x", sha256Hex) }},
		{"Tokenizer is \"bpe\"", func(g *Genesis) { g.Tokenizer = "bpe" }},
		{"Hidden", func(g *Genesis) { g.Model.Hidden = -1 }},
		{"Vocab is 255", func(g *Genesis) { g.Model.Vocab = 255 }},
		{"Model.Layers is 1025", func(g *Genesis) { g.Model.Layers = maxLayers + 1 }},
		{"use a smaller model", func(g *Genesis) {
			g.Model.Hidden, g.Model.Intermediate, g.Model.Layers, g.Outer.Fragments = 1<<14, 1<<16, 64, 256
		}},
		{"use more Fragments", func(g *Genesis) { g.Model = llama.Base; g.Outer.Fragments, g.Outer.Codec = 1, codec.F32 }},
		{"use that many or fewer", func(g *Genesis) { g.Outer.Fragments = 256 }},
		{"Fragments is 257", func(g *Genesis) { g.Outer.Fragments = 257 }},
		{"Outer: outer: Budget is 0", func(g *Genesis) { g.Outer.Budget = 0 }},
		{"Batch is 0", func(g *Genesis) { g.Batch = 0 }},
		{"Batch x Model.Context", func(g *Genesis) { g.Batch = 1 << 10 }},
		{"Inner.LR is NaN", func(g *Genesis) { g.Inner.LR = math.NaN() }},
		{"Inner.LR is +Inf", func(g *Genesis) { g.Inner.LR = math.Inf(1) }},
		{"Inner.Beta1 is 1", func(g *Genesis) { g.Inner.Beta1 = 1 }},
		{"Inner.Beta2 is -1", func(g *Genesis) { g.Inner.Beta2 = -1 }},
		{"Inner.Eps is 0", func(g *Genesis) { g.Inner.Eps = 0 }},
		{"Inner.WeightDecay", func(g *Genesis) { g.Inner.WeightDecay = 11 }},
		{"Inner.Clip is 0", func(g *Genesis) { g.Inner.Clip = 0 }},
		{"Inner.WarmupFraction", func(g *Genesis) { g.Inner.WarmupFraction = 2 }},
		{"Inner.FinalFraction", func(g *Genesis) { g.Inner.FinalFraction = -0.1 }},
		{"Inner.Optimizer is \"adamw\"; leave it out", func(g *Genesis) { g.Inner.Optimizer = "adamw" }},
		{"Inner.Optimizer is \"sgd\"", func(g *Genesis) { g.Inner.Optimizer = "sgd" }},
		{"Inner.Momentum is 0.9; it is of muon alone", func(g *Genesis) { g.Inner.Momentum = 0.9 }},
		{"Inner.Momentum is 1; use", func(g *Genesis) { g.Inner.Optimizer, g.Inner.Momentum = "muon", 1 }},
	} {
		g := fixedGenesis()
		c.spoil(&g)
		if err := g.Validate(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want one with %q", err, c.want)
		}
	}
}

func TestDecodeGenesisErrors(t *testing.T) {
	good := string(fixedGenesis().Encode())
	for _, c := range []struct{ name, text, want string }{
		{"nothing", "", "another version"},
		{"too long", strings.Repeat(" ", wire.MaxGenesis+1), "the limit is"},
		{"unknown field", `{"Format":2,"Colour":1}`, `unknown field "Colour"`},
		{"a later format", `{"Format":3,"Colour":1}`, "Format is 3, this program reads 2"},
		{"owners", strings.Replace(good, `"Owners":[]`, `"Owners":["ab"]`, 1), "2 characters, want 64 hex digits"},
		{"a layout without values", strings.Replace(good, `"Layout":[]`, `"Layout":[{"Name":"w"}]`, 1), `the first values of a Layout are "given"`},
		{"no layout", strings.Replace(good, `"Layout":[]`, `"Layout":null`, 1), "not in canonical form"},
		{"space", good + "\n", "not in canonical form"},
		{"two documents", good + good, "not in canonical form"},
		{"other order of letters", strings.Replace(good, `"Seed"`, `"seed"`, 1), "not in canonical form"},
		{"field twice", strings.Replace(good, `"Seed":42`, `"Seed":1,"Seed":42`, 1), "not in canonical form"},
		{"a name for AdamW", strings.Replace(good, `"FinalFraction":0.1`, `"FinalFraction":0.1,"Optimizer":"adamw"`, 1), "leave it out"},
		{"no optimizer, spelt out", strings.Replace(good, `"FinalFraction":0.1`, `"FinalFraction":0.1,"Optimizer":""`, 1), "not in canonical form"},
		{"no momentum, spelt out", strings.Replace(good, `"FinalFraction":0.1`, `"FinalFraction":0.1,"Momentum":0`, 1), "not in canonical form"},
		{"number in another form", strings.Replace(good, `"LR":0.002`, `"LR":2e-3`, 1), "not in canonical form"},
	} {
		if _, err := Decode([]byte(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", c.name, err, c.want)
		}
	}
}

// A stranger's genesis costs little to refuse, whatever sizes it names.
func TestHostileGenesisAllocatesLittle(t *testing.T) {
	for _, spoil := range []func(g *Genesis){
		func(g *Genesis) { g.Model.Layers = 1 << 20 },
		func(g *Genesis) { g.Model.Layers, g.Model.Intermediate = maxLayers, 1<<20 },
		func(g *Genesis) { g.Model.Vocab, g.Model.Hidden = 1<<20, 1<<20 },
		func(g *Genesis) { g.Model.Layers, g.Outer.Fragments = maxLayers, wire.MaxFragments },
	} {
		g := fixedGenesis()
		spoil(&g)
		raw := g.Encode()
		const most = 32 << 20
		if got := allocated(func() { _, _ = Decode(raw) }); got > most {
			t.Errorf("%+v: decoding allocated %d MiB, at most %d", g.Model, got>>20, most>>20)
		}
	}
}

// allocated is how many bytes f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func FuzzDecodeGenesis(f *testing.F) {
	f.Add(fixedGenesis().Encode())
	muon := fixedGenesis()
	muon.Inner.Optimizer, muon.Inner.Momentum = optimizer.NameMuon, 0.95
	f.Add(muon.Encode())
	f.Add([]byte(`{"Format":1}`))
	f.Add([]byte(strings.Replace(string(fixedGenesis().Encode()), `"Layers":4`, `"Layers":1048576`, 1)))
	f.Add([]byte(strings.Replace(string(fixedGenesis().Encode()), `"Fragments":8`, `"Fragments":-1`, 1)))
	f.Fuzz(func(t *testing.T, b []byte) {
		g, err := Decode(b)
		if err != nil {
			return
		}
		if string(g.Encode()) != string(b) {
			t.Errorf("%q is not canonical", b)
		}
		if err := g.Outer.CheckPlan(g.Plan()); err != nil {
			t.Error(err)
		}
	})
}

// Fragments are doubled until what travels of each fits, and no further than a run may have.
func TestSplitToFit(t *testing.T) {
	for _, c := range []struct {
		hidden, intermediate, want int
	}{
		{16, 32, 2},                          // fits as it is
		{4096, 16_384, 4},                    // doubled
		{65_536, 1 << 18, wire.MaxFragments}, // rows of 2^36 values fit nothing
	} {
		g := fixedGenesis()
		g.Model = llama.Config{Vocab: 256, Hidden: 16, Layers: 1, Heads: 2, KVHeads: 1, Intermediate: 24, Context: 16, RopeTheta: 10000, NormEps: 1e-5, Tied: true}
		g.Model.Hidden, g.Model.Intermediate, g.Outer.Fragments = c.hidden, c.intermediate, 2
		g.splitToFit()
		if g.Outer.Fragments != c.want {
			t.Errorf("%d x %d: %d fragments, want %d", c.hidden, c.intermediate, g.Outer.Fragments, c.want)
		}
		for _, f := range g.Plan() {
			if !g.travels(f) && c.want < wire.MaxFragments {
				t.Errorf("%d x %d: a fragment of %d tensors with %d values does not travel", c.hidden, c.intermediate, len(f.Tensors), f.Len)
			}
		}
	}
}

// A vocabulary is as large as the tokenizer, or is made so: by a corpus, of a model that has a name or the
// vocabulary of bytes.
func TestFitVocab(t *testing.T) {
	own := func(vocab int) llama.Config {
		c := llama.Tiny
		c.Vocab, c.Layers = vocab, c.Layers+1
		return c
	}
	for _, c := range []struct {
		model  llama.Config
		tokens int
		ok     bool
	}{
		{llama.Tiny, 256, true}, {llama.Tiny, 8192, true}, {llama.Base, 8192, true}, {llama.Base, 256, false},
		{own(256), 256, true}, {own(256), 270, true}, {own(1000), 256, false}, {own(1000), 1000, true}, {own(1000), 999, false},
	} {
		err := Genesis{Model: c.model}.fitVocab(c.tokens)
		if (err == nil) != c.ok || err != nil && !errors.Is(err, ErrVocab) {
			t.Errorf("%d and %d tokens: %v", c.model.Vocab, c.tokens, err)
		}
	}
	if err := (Genesis{Model: own(300)}).fitBytes(); !errors.Is(err, ErrVocab) {
		t.Errorf("bytes: %v", err)
	}
}
