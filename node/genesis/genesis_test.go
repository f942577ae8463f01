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
		Rules: 1, Name: "golden <run> é", Model: llama.Tiny, Seed: 42, Batch: 4, Inner: Inner{Optimizer: optimizer.NameMuon, LR: 4e-3},
		Outer: outer.Spec{
			Fragments: 8, Codec: codec.Int4, H: 24, LearnersPerRound: 16, Learners: 32, Budget: 3_000_000, CreatedMs: 1_700_000_000_000,
			SweepMs: 90_000, Window: 200,
		},
		WayMs: 100, Data: Data{Name: "prose", SHA256: strings.Repeat("0a", 32)},
	}
}

// A change here makes every run unreadable that was made before: then Rules must change too.
func TestGenesisGolden(t *testing.T) {
	g := fixedGenesis()
	if err := g.Validate(); err != nil {
		t.Fatal(err)
	}
	const want = "840d10c8aa83c546f3567d01170796aae7c0f4c7f88ef8a00db6ced1bd4f5dde"
	run := g.RunID()
	if got := hex.EncodeToString(run[:]); got != want {
		t.Errorf("RunID %s, want %s\n%s", got, want, g.Encode())
	}
	back, err := Decode(g.Encode())
	if err != nil || !reflect.DeepEqual(back, g) {
		t.Errorf("read back %+v, %v", back, err)
	}
}

// The optimizer is part of the RunID, and decides what trainers take.
func TestInnerFollowsTheOptimizer(t *testing.T) {
	for name, momentum := range map[string]float64{optimizer.NameMuon: 0.95, optimizer.NameAdamW: 0} {
		o := Inner{Optimizer: name, LR: 1}.Optim()
		if want := (optimizer.AdamW{Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, WeightDecay: 0.1}); o.Name != name || o.Momentum != momentum || o.Clip != 1 || o.AdamW != want {
			t.Errorf("trainers take %+v", o)
		}
	}
	if want := (optimizer.Schedule{Peak: 0.5, WarmupFraction: 0.03, FinalFraction: 0.02}); (Inner{LR: 0.5}).Schedule() != want {
		t.Errorf("not %+v", want)
	}
	if err := CheckOptimizer("sgd"); err == nil || !strings.Contains(err.Error(), `optimizer "sgd": use adamw or muon`) {
		t.Errorf("error %v", err)
	}
}

// What follows from the document has no field.
func TestWhatFollows(t *testing.T) {
	plain, layout := fixedGenesis(), corpusGenesis()
	if plain.Admission() != Open || plain.Given() || plain.Tokenizer() != ByteTokenizer || layout.Tokenizer() != CorpusTokenizer {
		t.Errorf("%s, %v, %s, %s", plain.Admission(), plain.Given(), plain.Tokenizer(), layout.Tokenizer())
	}
	layout, _ = layoutGenesis()
	layout.Owners = owners{{1}}
	if layout.Admission() != Invite || !layout.Given() || layout.Tokenizer() != OwnTokenizer {
		t.Errorf("%s, %v, %s", layout.Admission(), layout.Given(), layout.Tokenizer())
	}
}

func TestGenesisValidateNamesTheField(t *testing.T) {
	for _, c := range []struct {
		want  string
		spoil func(g *Genesis)
	}{
		{"Rules is 2, this program knows 1; use the version of atoll that made the run", func(g *Genesis) { g.Rules = 2 }},
		{"Owners has 17 keys; use at most 16", func(g *Genesis) { g.Owners = make(owners, 17) }},
		{"Recipe is \"{}\"", func(g *Genesis) { g.Recipe = "{}" }},
		{"WayMs is 0", func(g *Genesis) { g.WayMs = 0 }},
		{"WayMs is 10001", func(g *Genesis) { g.WayMs = 10_001 }},
		{"Name has 201 bytes", func(g *Genesis) { g.Name = strings.Repeat("x", maxName+1) }},
		{"Name is \"\\x1b[2J\"", func(g *Genesis) { g.Name = "\x1b[2J" }},
		{"Name is \"\\xff\"", func(g *Genesis) { g.Name = "\xff" }},
		{"Data.Name has", func(g *Genesis) { g.Data.Name = strings.Repeat("x", maxName+1) }},
		{"Data.SHA256", func(g *Genesis) { g.Data.SHA256 = "abcd" }},
		{"Data.SHA256", func(g *Genesis) { g.Data.SHA256 = strings.Repeat("x", sha256Hex) }},
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
		{"Batch x Model.Context", func(g *Genesis) { g.Batch, g.Model.Context = MaxBatch, 1<<14+1 }},
		{"Inner.LR is NaN", func(g *Genesis) { g.Inner.LR = math.NaN() }},
		{"Inner.LR is +Inf", func(g *Genesis) { g.Inner.LR = math.Inf(1) }},
		{"Inner.Optimizer is \"\"; this version knows", func(g *Genesis) { g.Inner.Optimizer = "" }},
		{"Inner.Optimizer is \"sgd\"", func(g *Genesis) { g.Inner.Optimizer = "sgd" }},
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
		{"nothing", "", "this version of atoll"},
		{"too long", strings.Repeat(" ", wire.MaxGenesis+1), "the limit is"},
		{"unknown field", `{"Rules":1,"Colour":1}`, `unknown field "Colour"`},
		{"later rules", `{"Rules":2,"Colour":1}`, "Rules is 2, this program knows 1"},
		{"owners", strings.Replace(good, `"Owners":[]`, `"Owners":["ab"]`, 1), "2 characters, want 64 hex digits"},
		{"a layout without values", strings.Replace(good, `"Layout":[]`, `"Layout":[{"Name":"w"}]`, 1), "First is empty"},
		{"no layout", strings.Replace(good, `"Layout":[]`, `"Layout":null`, 1), "not in canonical form"},
		{"space", good + "\n", "not in canonical form"},
		{"two documents", good + good, "not in canonical form"},
		{"other order of letters", strings.Replace(good, `"Seed"`, `"seed"`, 1), "not in canonical form"},
		{"field twice", strings.Replace(good, `"Seed":42`, `"Seed":1,"Seed":42`, 1), "not in canonical form"},
		{"number in another form", strings.Replace(good, `"LR":0.004`, `"LR":4e-3`, 1), "not in canonical form"},
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
	f.Add([]byte(`{"Rules":2}`))
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
		if err := g.OuterParams().CheckPlan(g.Plan()); err != nil {
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
