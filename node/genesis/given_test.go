package genesis

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"atoll/tensor"
	"atoll/tensor/safetensors"
)

// modelFolder writes a folder in the form of Hugging Face: a config and a file of tensors.
func modelFolder(t *testing.T, config string, specs ...tensor.Spec) (dir string, s *tensor.Slab) {
	t.Helper()
	dir, s = t.TempDir(), tensor.NewSlab(specs)
	for i := range s.Data {
		s.Data[i] = float32(i%53) / 53
	}
	name, weights := "config.json", "model.safetensors"
	if strings.Contains(config, "peft_type") {
		name, weights = "adapter_config.json", "adapter_model.safetensors"
	}
	var b bytes.Buffer
	if err := safetensors.Write(&b, s, nil); err != nil {
		t.Fatal(err)
	}
	for file, content := range map[string][]byte{name: []byte(config), weights: b.Bytes()} {
		if err := os.WriteFile(filepath.Join(dir, file), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir, s
}

// madeFrom is a run that goes on with a model.
func madeFrom(t *testing.T, m *Source) Genesis {
	t.Helper()
	g, _, err := Spec{From: m, Fragments: 1, Tokens: 1e6, Seed: 1, CreatedMs: 1}.Make()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func spec(name string, shape ...int) tensor.Spec { return tensor.Spec{Name: name, Shape: shape} }

// The masks of GPT-2 are no parameters.
func TestGPT2IsDescribed(t *testing.T) {
	dir, _ := modelFolder(t, `{"model_type":"gpt2","vocab_size":300,"n_positions":64}`,
		spec("wte.weight", 300, 16), spec("wpe.weight", 64, 16), spec("h.0.attn.c_attn.weight", 16, 48), spec("h.0.attn.c_attn.bias", 48),
		spec("h.0.attn.bias", 1, 1, 64, 64), spec("h.0.attn.masked_bias"), spec("h.0.mlp.c_fc.weight", 16, 80), spec("ln_f.weight", 16))
	m, err := ReadModel(dir)
	if err != nil {
		t.Fatal(err)
	}
	g := madeFrom(t, m)
	var names []string
	for _, l := range g.Layout {
		names = append(names, l.Name)
	}
	if len(names) != 6 || slices.Contains(names, "h.0.attn.bias") {
		t.Errorf("trained: %v", names)
	}
	if left := m.Notes; len(left) != 2 || g.Model.Context != 64 {
		t.Errorf("left out %v; context %d", left, g.Model.Context)
	}
	if !strings.Contains(g.Recipe, `"family":"transformers"`) || !strings.Contains(g.Recipe, `"vocab_size":300`) || !strings.Contains(g.Recipe, `"adamw"`) {
		t.Errorf("recipe %s", g.Recipe)
	}
}

// What goes in comes out unchanged, to the bit, from files of several parts too.
func TestModelGoesInAndOut(t *testing.T) {
	for name, config := range map[string]string{
		"transformers": `{"model_type":"qwen2","vocab_size":40,"max_position_embeddings":32}`,
		"peft":         `{"peft_type":"LORA","r":4}`,
	} {
		dir, s := modelFolder(t, config, spec("a.lora_A.weight", 4, 30), spec("b.weight", 40, 8), spec("scale"))
		m, err := ReadModel(dir)
		if err != nil {
			t.Fatal(err)
		}
		g := madeFrom(t, m)
		in, err := g.LoadTensors(dir)
		if err != nil || !slices.Equal(in.Data, s.Data) {
			t.Fatalf("%s: %v", name, err)
		}
		out := filepath.Join(t.TempDir(), "model")
		if err := g.Export(out, in, 123, Form{}); err != nil {
			t.Fatal(err)
		}
		back, err := g.LoadTensors(out)
		if err != nil || !slices.EqualFunc(back.Data, s.Data, func(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) }) {
			t.Errorf("%s: %v", name, err)
		}
		file := map[string]string{"transformers": "config.json", "peft": "adapter_config.json"}[name]
		if !sameJSON(t, filepath.Join(out, file), config) {
			t.Errorf("%s: %s is not what went in", name, file)
		}
		if card, err := os.ReadFile(filepath.Join(out, "README.md")); err != nil || !strings.Contains(string(card), "| tokens folded | 123 |") {
			t.Errorf("%v: card %s", err, card)
		}
		if err := g.Export(out, in, 1, Form{}); err == nil {
			t.Error("wrote over an export")
		}
	}
}

func sameJSON(t *testing.T, path, want string) bool {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	return json.Compact(&got, b) == nil && got.String() == want
}

// Shards are one model, and what is missing or of another shape is named.
func TestModelsThatDoNotFitAreRefused(t *testing.T) {
	dir, _ := modelFolder(t, `{}`, spec("a", 3), spec("b", 2, 2))
	m, err := ReadModel(dir)
	if err != nil {
		t.Fatal(err)
	}
	g := madeFrom(t, m)
	other, _ := modelFolder(t, `{}`, spec("a", 4), spec("b", 2, 2))
	less, _ := modelFolder(t, `{}`, spec("a", 3))
	none := t.TempDir()
	only, s := modelFolder(t, `{}`, spec("a", 3), spec("b", 2, 2))
	if err := errors.Join(os.Remove(filepath.Join(only, "config.json")), os.Rename(filepath.Join(only, "model.safetensors"), filepath.Join(only, "mine.safetensors"))); err != nil {
		t.Fatal(err)
	}
	if in, err := g.LoadTensors(only); err != nil || !slices.Equal(in.Data, s.Data) {
		t.Errorf("the only file of a folder: %v", err)
	}
	for path, want := range map[string]string{
		other: `tensor "a" has the shape [4], the run's has [3]`, less: `tensor "b" of the run, of shape [2 2], is not there`,
		none: "has no model.safetensors", filepath.Join(none, "x"): "no such file",
	} {
		if _, err := g.LoadTensors(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	if _, err := ReadModel(none); err == nil || !strings.Contains(err.Error(), "has no model.safetensors") {
		t.Error(err)
	}
	bare, _ := modelFolder(t, `{}`, spec("a", 3))
	if err := os.Remove(filepath.Join(bare, "config.json")); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadModel(bare); err == nil || !strings.Contains(err.Error(), "there is no "+bare+"/config.json") {
		t.Error(err)
	}
	if err := os.WriteFile(filepath.Join(none, "config.json"), []byte("[]"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadModel(none); err == nil || !strings.Contains(err.Error(), "config.json: json: cannot unmarshal array") {
		t.Error(err)
	}
}

// A tied head that is stored beside is left out, and an export is the same model without it.
func TestTiedHeadIsLeftOut(t *testing.T) {
	dir, s := modelFolder(t, `{"model_type":"llama","vocab_size":5,"tie_word_embeddings":true}`, spec("model.embed_tokens.weight", 5, 2), spec("lm_head.weight", 5, 2))
	m, err := ReadModel(dir)
	if err != nil || len(m.Layout) != 1 || len(m.Notes) != 1 {
		t.Fatalf("%v: %+v", err, m)
	}
	g := madeFrom(t, m)
	values, err := g.LoadTensors(dir)
	if err != nil || !slices.Equal(values.Data, s.Data[:10]) {
		t.Fatal(err)
	}
	if _, err := g.CheckFirst(values.Data); err != nil {
		t.Error(err)
	}
	out := filepath.Join(t.TempDir(), "model")
	if err := g.Export(out, values, 1, Form{}); err != nil {
		t.Fatal(err)
	}
	again, err := ReadModel(out)
	if err != nil || !slices.EqualFunc(again.Layout, m.Layout, func(a, b Tensor) bool { return a.Name == b.Name && slices.Equal(a.Shape, b.Shape) }) || !slices.Equal(again.First, m.First) || len(again.Notes) != 0 {
		t.Errorf("%v: %+v", err, again)
	}
}

// The part for text of a model of several is a model of its own, in and out.
func TestPartForTextIsAModel(t *testing.T) {
	dir, _ := modelFolder(t, `{"model_type":"gemma3","text_config":{"model_type":"gemma3_text","vocab_size":5},"vision_config":{}}`,
		spec("vision_tower.weight", 3), spec("language_model.model.embed_tokens.weight", 5, 2))
	m, err := ReadModel(dir)
	if err != nil || len(m.Layout) != 1 || m.Layout[0].Name != "model.embed_tokens.weight" || !strings.Contains(string(m.Recipe), `{"model_type":"gemma3_text","vocab_size":5}`) {
		t.Fatalf("%v: %+v", err, m)
	}
	g, out := madeFrom(t, m), filepath.Join(t.TempDir(), "model")
	values, err := g.LoadTensors(dir)
	if err == nil {
		err = g.Export(out, values, 1, Form{})
	}
	if err != nil {
		t.Fatal(err)
	}
	if again, err := ReadModel(out); err != nil || !slices.Equal(again.First, m.First) || len(again.Notes) != 0 {
		t.Errorf("%v: %+v", err, again)
	}
}

// A run is called as the folder of its model, however that is typed.
func TestNameIsThatOfTheFolder(t *testing.T) {
	dir, _ := modelFolder(t, `{}`, spec("a", 3))
	named := filepath.Join(filepath.Dir(dir), "a model[1]")
	if err := os.Rename(dir, named); err != nil {
		t.Fatal(err)
	}
	t.Chdir(named)
	for _, typed := range []string{".", "../a model[1]/", named} {
		if m, err := ReadModel(typed); err != nil || m.Name != "a model[1]" {
			t.Errorf("%q: %v, %+v", typed, err, m)
		}
	}
}

// What no run can have is refused before it is made.
func TestModelsThatNoRunHasAreRefused(t *testing.T) {
	many := make([]tensor.Spec, maxTensors+1)
	for i := range many {
		many[i] = spec(fmt.Sprint(i), 1)
	}
	nan, s := modelFolder(t, `{}`, spec("a", 3))
	s.Data[1] = float32(math.NaN())
	var b bytes.Buffer
	if err := safetensors.Write(&b, s, nil); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(nan, "model.safetensors"), b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	folder := func(config string, specs ...tensor.Spec) string {
		dir, _ := modelFolder(t, config, specs...)
		return dir
	}
	for dir, want := range map[string]string{
		nan:                               `1 of the 3 values of tensor "a" are infinite or no numbers`,
		folder(`{}`):                      "has no tensors that can be trained: name the folder of a model",
		filepath.Join(nan, "config.json"): "config.json is no folder: name the one with",
		folder(`{"model_type":"x"}`, spec("a", 1)):                         "of a model that reads tokens, and no tensor to train has its embeddings",
		folder(`{}`, many...):                                              "the model has 8193 tensors; use at most 8192",
		folder(`{}`, spec("a b", 1)):                                       `the name "a b"`,
		folder(`{"model_type":"x","n_positions":"many"}`, spec("a", 1)):    `config.json: json: cannot unmarshal string`,
		folder(`{"x":"`+strings.Repeat("x", maxRecipe)+`"}`, spec("a", 1)): "a run has room for 64512",
	} {
		_, err := ReadModel(dir)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "genesis") {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// A model that is larger than any run is refused before its values are read: a file with holes claims any size.
func TestLargeModelIsRefusedUnread(t *testing.T) {
	dir, _ := modelFolder(t, `{}`, spec("a", 3))
	const values = 1<<32 + 1<<16
	header := fmt.Sprintf(`{"a":{"dtype":"F16","shape":[65537,65536],"data_offsets":[0,%d]}}`, 2*values)
	path := filepath.Join(dir, "model.safetensors")
	if err := os.WriteFile(path, append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header...), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 8+int64(len(header))+2*values); err != nil {
		t.Skip(err)
	}
	if _, err := ReadModel(dir); err == nil || !strings.Contains(err.Error(), "has 4295032832 parameters to train; a run has at most 4294967296") {
		t.Error(err)
	}
}

// Built-in models become LlamaForCausalLM, with a tokenizer of bytes.
func TestBuiltInModelIsExported(t *testing.T) {
	g := fixedGenesis()
	out := filepath.Join(t.TempDir(), "model")
	if err := g.Export(out, g.NewSlab(), 1, Form{}); err != nil {
		t.Fatal(err)
	}
	var config struct {
		Architectures []string `json:"architectures"`
		Hidden        int      `json:"hidden_size"`
		Tied          bool     `json:"tie_word_embeddings"`
	}
	var tokenizer struct {
		Model struct {
			Vocab map[string]int `json:"vocab"`
		} `json:"model"`
	}
	for name, v := range map[string]any{"config.json": &config, "tokenizer.json": &tokenizer} {
		b, err := os.ReadFile(filepath.Join(out, name))
		if err == nil {
			err = json.Unmarshal(b, v)
		}
		if err != nil {
			t.Fatal(name, err)
		}
	}
	if config.Architectures[0] != "LlamaForCausalLM" || config.Hidden != g.Model.Hidden || !config.Tied {
		t.Errorf("%+v", config)
	}
	vocab := tokenizer.Model.Vocab
	if len(vocab) != 256 || vocab["A"] != 'A' || vocab["Ġ"] != ' ' || vocab["Ċ"] != '\n' || vocab["ÿ"] != 255 {
		t.Errorf("%d tokens, A is %d, blank %d, newline %d", len(vocab), vocab["A"], vocab["Ġ"], vocab["Ċ"])
	}
}

// A folder that was filled by chunks is the same as one that was copied; a damaged chunk is fetched again.
func TestFirstValuesAreFetchedInChunks(t *testing.T) {
	g, values := layoutGenesis()
	first, dir := CutFirst(values), t.TempDir()
	p, err := g.OpenFirst(dir, first.List)
	if err != nil {
		t.Fatal(err)
	}
	missing, err := p.Missing()
	if err != nil || len(missing) != p.Chunks() {
		t.Fatalf("%v: %d of %d chunks are missing", err, len(missing), p.Chunks())
	}
	if err := p.Put(0, make([]byte, 8)); err == nil {
		t.Error("took a chunk of another length")
	}
	put := func(i int) {
		from, to := first.Span(i)
		if err := p.Put(i, EncodeValues(values[from:to])); err != nil {
			t.Fatal(err)
		}
	}
	put(0)
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if p, err = g.OpenFirst(dir, first.List); err != nil {
		t.Fatal(err)
	}
	if missing, err = p.Missing(); err != nil || slices.Contains(missing, 0) || len(missing) != p.Chunks()-1 {
		t.Fatalf("%v: after a stop %v are missing", err, missing)
	}
	if _, _, err := g.LoadFirst(dir); err == nil {
		t.Error("took a part for the whole")
	}
	for _, i := range missing {
		put(i)
	}
	if err := p.Finish(); err != nil {
		t.Fatal(err)
	}
	if _, s, err := g.LoadFirst(dir); err != nil || !slices.Equal(s.Data, values) {
		t.Error(err)
	}
	if _, err := g.OpenFirst(dir, [][]byte{make([]byte, 5)}); err == nil {
		t.Error("took a list of another length")
	}
	path := filepath.Join(dir, FirstFile)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	binary.LittleEndian.PutUint32(b[len(b)-4:], math.Float32bits(99))
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, _, err := g.LoadFirst(dir); err == nil || !strings.Contains(err.Error(), "not those that the run begins with") {
		t.Errorf("damaged values: %v", err)
	}
}
