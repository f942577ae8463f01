package genesis

import (
	"encoding/hex"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"atoll/optimizer"
	"atoll/tensor/llama"
)

func TestDefaultGenesis(t *testing.T) {
	for _, c := range []struct {
		model            string
		fragments, batch int
		params           llama.Config
		maxTokensPerStep uint64
		rate             float64
	}{
		{"tiny", 8, 4, llama.Tiny, 64 * 4 * 128, 0.004},
		{"small", 24, 4, llama.Small, 64 * 4 * 256, 0.0023},
		{"base", 24, 2, llama.Base, 64 * 2 * 256, 0.0016},
	} {
		g, err := Default(c.model, 3_000_000, 7, 1_700_000_000_000)
		if err != nil {
			t.Fatalf("%s: %v", c.model, err)
		}
		o := g.OuterParams()
		if g.Name != c.model || g.Model != c.params || g.Batch != c.batch || g.Seed != 7 {
			t.Errorf("%s: %+v", c.model, g)
		}
		if o.Fragments != c.fragments || o.Budget != 3_000_000 || o.CreatedMs != 1_700_000_000_000 || o.MaxTokensPerStep != c.maxTokensPerStep {
			t.Errorf("%s: outer %+v", c.model, o)
		}
		if in := g.Inner; in.Optimizer != optimizer.NameMuon || in.LR != c.rate {
			t.Errorf("%s: inner %+v", c.model, in)
		}
		if err := o.CheckPlan(g.Plan()); err != nil {
			t.Errorf("%s: %v", c.model, err)
		}
		if back, err := Decode(g.Encode()); err != nil || !reflect.DeepEqual(back, g) {
			t.Errorf("%s: read back %+v, %v", c.model, back, err)
		}
	}
}

// What is not asked for stays as it was: only a change of a default changes these.
func TestDefaultRunIDs(t *testing.T) {
	for model, want := range map[string]string{
		"tiny":  "84ae2fa549f6e3c87f53895cda9f9450d8f0a65d32739e7d671d675c120a7fae",
		"small": "091e7524067bfdd95713fcdb5ce0c74554f0275b4cd51e7c59808f29e6dac268",
		"base":  "65ec4e5d5c229afbcee36edda93415b1acd60197b5a042c0125e78a64736e65d",
	} {
		g, err := Default(model, 3_000_000, 7, 1_700_000_000_000)
		if err != nil {
			t.Fatal(err)
		}
		if run := g.RunID(); hex.EncodeToString(run[:]) != want {
			t.Errorf("%s: RunID %x, want %s", model, run[:], want)
		}
	}
}

func TestMuonRateFallsWithTheWidth(t *testing.T) {
	for hidden, want := range map[int]float64{1: 0.064, 16: 0.016, 64: 0.008, 256: 0.004, 4096: 0.001, 1 << 20: 0.000063} {
		if got := muonRateOf(hidden, 1); got != want {
			t.Errorf("%d: %v, want %v", hidden, got, want)
		}
	}
}

// Momentum wants half the rate that an average wants, and what has no outer steps one between.
func TestRateGoesWithTheOuterSteps(t *testing.T) {
	for _, c := range []struct {
		optimizer string
		h         int
		outer     bool
		want      float64
	}{
		{optimizer.NameMuon, 24, true, 0.004}, {optimizer.NameMuon, 4, true, 0.008}, {optimizer.NameMuon, 24, false, 0.0057}, {optimizer.NameMuon, 4, false, 0.0057},
		{optimizer.NameAdamW, 24, true, 0.002}, {optimizer.NameAdamW, 4, true, 0.002}, {optimizer.NameAdamW, 4, false, 0.002},
	} {
		g, _, err := Spec{Model: llama.Tiny, H: c.h, Optimizer: c.optimizer}.Make()
		if err != nil {
			t.Fatal(err)
		}
		if rate := RateWith(g, c.outer); rate != c.want || c.outer && g.Inner.LR != rate {
			t.Errorf("%+v: %v, in the run %v", c, rate, g.Inner.LR)
		}
	}
}

func TestModelConfigFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "nano.json")
	if err := os.WriteFile(path, []byte(`{"vocab":256,"hidden":16,"layers":1,"heads":2,"kvheads":1,"intermediate":32,"context":8}`), 0o600); err != nil {
		t.Fatal(err)
	}
	g, err := Default(path, 1000, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	if want := (llama.Config{Vocab: 256, Hidden: 16, Layers: 1, Heads: 2, KVHeads: 1, Intermediate: 32, Context: 8, RopeTheta: 10000, NormEps: 1e-5, Tied: true}); g.Model != want {
		t.Errorf("model %+v", g.Model)
	}
	if g.Name != "nano" || g.Outer.Fragments != 11 {
		t.Errorf("name %q, %d fragments: want nano and one per tensor", g.Name, g.Outer.Fragments)
	}
}

// A model whose snapshot is too large with momentum goes without, and one whose snapshot is too large anyway is refused.
func TestSnapshotOfALargeModel(t *testing.T) {
	c := llama.Config{Vocab: 256, Hidden: 2048, Layers: 80, Heads: 16, KVHeads: 16, Intermediate: 5632, Context: 1024, RopeTheta: 10000, NormEps: 1e-5, Tied: true}
	if g, _, err := (Spec{Model: c, Tokens: 1000}).Make(); err != nil || !g.Outer.NoMomentum || g.OuterParams().Mu != 0 {
		t.Errorf("%v, without momentum: %v", err, g.Outer.NoMomentum)
	}
	const want = "use a smaller model"
	c.Layers *= 2
	if _, _, err := (Spec{Model: c, Tokens: 1000}).Make(); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %q", err, want)
	}
}

func TestDefaultGenesisErrors(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, c := range []struct {
		name, model string
		tokens      uint64
		want        string
	}{
		{"unknown name", "huge", 1, "tiny, small, base"},
		{"no file", filepath.Join(dir, "absent.json"), 1, "no such file"},
		{"unknown field", write("field.json", `{"width":3}`), 1, `unknown field "width"`},
		{"bad size", write("size.json", `{"vocab":256,"hidden":0,"layers":1,"heads":1,"kvheads":1,"intermediate":1,"context":1}`), 1, "Hidden is 0"},
		{"small vocabulary", write("vocab.json", `{"vocab":16,"hidden":16,"layers":1,"heads":2,"kvheads":1,"intermediate":32,"context":8}`), 1, "Vocab is 16"},
		{"too long", write("long.json", strings.Repeat(" ", maxModelFile+1)), 1, "at most"},
	} {
		if _, err := Default(c.model, c.tokens, 1, 0); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", c.name, err, c.want)
		}
	}
}
