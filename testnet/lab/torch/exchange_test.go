package torch

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"atoll/optimizer/trainer/corpus"
	"atoll/tensor/llama"
)

// micro is a model that trains in milliseconds. Its heads share keys, and no size fills a tile.
var micro = llama.Config{Vocab: 256, Hidden: 24, Layers: 2, Heads: 4, KVHeads: 2, Intermediate: 52, Context: 20, RopeTheta: 10000, NormEps: 1e-5, Tied: true}

func microPlan() plan { return plan{model: micro, batch: 3, tokens: 10*60 + 5, rate: 2e-3, seed: 5} }

func words() *corpus.Corpus {
	return corpus.New("words", []byte(strings.Repeat("one two three four five six seven. ", 60)))
}

func microExchange(t *testing.T, p plan) *exchange {
	t.Helper()
	e, err := newExchange(p, words())
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func encoded(t *testing.T, e *exchange) []byte {
	t.Helper()
	file, err := e.encode()
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func TestExchangeRoundTrip(t *testing.T) {
	untied := microPlan()
	untied.model.Tied = false
	for _, p := range []plan{microPlan(), untied} {
		want := microExchange(t, p)
		got, err := decodeExchange(encoded(t, want))
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%+v came back as another", want.recipe)
		}
	}
}

// The batches are what a node would draw, and the rates follow its schedule.
func TestExchangeHoldsTheBatchesOfACorpus(t *testing.T) {
	p, text := microPlan(), words()
	e := microExchange(t, p)
	if len(e.rates) != 10 || !slices.Equal(e.heldOut, text.HeldOut()) {
		t.Fatalf("%d steps, %d bytes held out", len(e.rates), len(e.heldOut))
	}
	got, want := make([]int32, e.stepTokens()), make([]int32, e.stepTokens())
	for step := range e.rates {
		if err := (replay{e}).Batch(t.Context(), 99, [32]byte{1}, int64(step), p.batch, micro.Context, got); err != nil {
			t.Fatal(err)
		}
		if err := text.Batch(t.Context(), p.seed, [32]byte{}, int64(step), p.batch, micro.Context, want); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("step %d: %v, want %v", step, got, want)
		}
		if rate := p.schedule().At(float64(step) / 10); e.rates[step] != rate {
			t.Errorf("step %d: learning rate %v, want %v", step, e.rates[step], rate)
		}
	}
	if err := (replay{e}).Fits(micro.Context + 1); err == nil {
		t.Error("batches fit a longer context")
	}
}

// edited returns the file with a changed header. The function may return other data, whose digest is
// then the right one.
func edited(t *testing.T, file []byte, change func(header map[string]any, data []byte) []byte) []byte {
	t.Helper()
	raw, data, err := split(file)
	if err != nil {
		t.Fatal(err)
	}
	header := map[string]any{}
	for name, value := range raw {
		var v any
		if err := json.Unmarshal(value, &v); err != nil {
			t.Fatal(err)
		}
		header[name] = v
	}
	if other := change(header, slices.Clone(data)); other != nil {
		data = other
		if meta, ok := header[metaName].(map[string]any); ok {
			meta[digestKey] = digest(data)
		}
	}
	head, err := json.Marshal(header)
	if err != nil {
		t.Fatal(err)
	}
	return append(append(binary.LittleEndian.AppendUint64(nil, uint64(len(head))), head...), data...)
}

func TestDamagedExchangesAreRefused(t *testing.T) {
	file := encoded(t, microExchange(t, microPlan()))
	recipeOf := func(text string) func(map[string]any, []byte) []byte {
		return func(h map[string]any, _ []byte) []byte {
			meta := h[metaName].(map[string]any)
			old := meta[recipeKey].(string)
			if key, _, _ := strings.Cut(text, ":"); strings.Contains(old, key) {
				_, after, _ := strings.Cut(old, key+":")
				text = strings.Replace(old, key+":"+after[:strings.IndexAny(after, ",}")], text, 1)
			}
			meta[recipeKey] = text
			return nil
		}
	}
	entry := func(name, field string, value any) func(map[string]any, []byte) []byte {
		return func(h map[string]any, _ []byte) []byte { h[name].(map[string]any)[field] = value; return nil }
	}
	for _, c := range []struct {
		want   string
		change func(header map[string]any, data []byte) []byte
	}{
		{"metadata", func(h map[string]any, _ []byte) []byte { delete(h, metaName); return nil }},
		{"recipe: ", recipeOf("no JSON")},
		{"model Heads is 7", recipeOf(`"Heads":7`)},
		{"for a model of", recipeOf(`"Vocab":1000000`)},
		{"a batch of 0 rows", recipeOf(`"Batch":0`)},
		{"array batches is U8 [10 3 21]", recipeOf(`"Batch":2`)},
		{"the header has 24 entries, the recipe asks for 15", recipeOf(`"Layers":1`)},
		{"array model.norm.weight: ", func(h map[string]any, _ []byte) []byte {
			h["other"] = h["model.norm.weight"]
			delete(h, "model.norm.weight")
			return nil
		}},
		{"array held_out: ", func(h map[string]any, _ []byte) []byte { delete(h, heldOutName); return nil }},
		{"model.norm.weight is F16", entry("model.norm.weight", "dtype", "F16")},
		{"model.norm.weight is F32 [25]", entry("model.norm.weight", "shape", []int{25})},
		{"array held_out is at [-1", entry(heldOutName, "data_offsets", []int{-1, 5})},
		{"array held_out is at [9 5]", entry(heldOutName, "data_offsets", []int{9, 5})},
		{"array learning_rates is at", entry(ratesName, "data_offsets", []int{0, 1 << 50})},
		{"1 bytes after the last array", func(_ map[string]any, d []byte) []byte { return append(d, 0) }},
		{"array held_out is at", func(_ map[string]any, d []byte) []byte { return d[:len(d)-1] }},
	} {
		_, err := decodeExchange(edited(t, file, c.change))
		if !errors.Is(err, errExchange) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want %q", err, c.want)
		}
	}
}

// Whatever byte of a file is lost or turned, it is refused.
func TestTurnedBytesAreRefused(t *testing.T) {
	file := encoded(t, microExchange(t, microPlan()))
	refused := func(what string, at int, damaged []byte) {
		t.Helper()
		if _, err := decodeExchange(damaged); !errors.Is(err, errExchange) {
			t.Fatalf("%s at %d of %d: error %v", what, at, len(file), err)
		}
	}
	for at := 0; at < len(file); at += 997 {
		refused("cut", at, file[:at])
	}
	head := 8 + int(binary.LittleEndian.Uint64(file))
	for at := head; at < len(file); at += 997 {
		damaged := bytes.Clone(file)
		damaged[at] ^= 0x10
		refused("turned", at, damaged)
	}
	for at := range 8 {
		damaged := bytes.Clone(file)
		damaged[at] ^= 0x80
		refused("length turned", at, damaged)
	}
}
