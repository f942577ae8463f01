package token

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
)

// changed returns the file of a family after a change of it as JSON.
func changed(t *testing.T, name string, change func(map[string]any)) []byte {
	t.Helper()
	data, err := os.ReadFile(familyFile(name))
	if err != nil {
		t.Fatal(err)
	}
	var f map[string]any
	if err := json.Unmarshal(data, &f); err != nil {
		t.Fatal(err)
	}
	change(f)
	if data, err = json.Marshal(f); err != nil {
		t.Fatal(err)
	}
	return data
}

func TestParseNamesTheFamily(t *testing.T) {
	for i, name := range allFiles {
		if got := load(t, familyFile(name)).Family(); got != Families()[i] {
			t.Errorf("%s is of family %q, want %q", name, got, Families()[i])
		}
	}
}

func TestParseTakesOldForms(t *testing.T) {
	data := changed(t, "gpt2", func(f map[string]any) {
		model := f["model"].(map[string]any)
		delete(model, "type")
		delete(f["pre_tokenizer"].(map[string]any), "use_regex")
		var merges []any
		for _, m := range model["merges"].([]any) {
			pair := m.([]any)
			merges = append(merges, pair[0].(string)+" "+pair[1].(string))
		}
		model["merges"] = merges
	})
	old, err := Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	const text = "The rays of light are not similar"
	want := load(t, familyFile("gpt2")).NewEncoder().Append(nil, []byte(text))
	if got := old.NewEncoder().Append(nil, []byte(text)); !slices.Equal(got, want) {
		t.Errorf("ids %v, want %v", got, want)
	}
}

// TestParseRefuses: what the judge was not asked about is refused, and the error says what it is.
func TestParseRefuses(t *testing.T) {
	pre := func(v any) func(map[string]any) {
		return func(f map[string]any) { f["pre_tokenizer"] = v }
	}
	type object = map[string]any
	model := func(key string, v any) func(map[string]any) {
		return func(f map[string]any) { f["model"].(object)[key] = v }
	}
	added := func(key string, v any) func(map[string]any) {
		return func(f map[string]any) { f["added_tokens"].([]any)[0].(object)[key] = v }
	}
	for _, c := range []struct {
		name   string
		change func(map[string]any)
		want   string
	}{
		{"WordPiece", model("type", "WordPiece"), "its model is of type WordPiece"},
		{"byte fallback", model("byte_fallback", true), "its model has byte_fallback true"},
		{"prefix", model("continuing_subword_prefix", "##"), "continuing_subword_prefix"},
		{"suffix", model("end_of_word_suffix", "</w>"), "end_of_word_suffix"},
		{"dropout", model("dropout", 0.1), "dropout"},
		{"Metaspace", pre(object{"type": "Metaspace"}), "the step Metaspace"},
		{"no pre-tokenizer", pre(nil), "its pre_tokenizer is null"},
		{"prefix space", pre(object{"type": "ByteLevel", "add_prefix_space": true}), "add_prefix_space"},
		{"digits in groups", pre(object{"type": "Digits", "individual_digits": false}), "individual_digits"},
		{"another pattern", pre(object{"type": "Split", "pattern": object{"Regex": `\w+`}, "behavior": "Isolated"}), `Split by "\\w+"`},
		{"a nested sequence", pre(object{"type": "Sequence", "pretokenizers": []any{object{"type": "Sequence"}}}), "Sequence"},
		{"another behavior", pre(object{"type": "Split", "pattern": object{"Regex": qwen2Pattern}, "behavior": "Removed"}), "behavior"},
		{"another normalizer", func(f map[string]any) { f["normalizer"] = object{"type": "NFKC"} }, "NFKC"},
		{"a normalizer more", func(f map[string]any) { f["normalizer"] = object{"type": "NFC"} }, "its normalizer is NFC and its pre_tokenizer is ByteLevel"},
		{"another decoder", func(f map[string]any) { f["decoder"] = nil }, "decoder"},
		{"lstrip", added("lstrip", true), "lstrip"},
		{"another id", added("id", 5), "id 5"},
		{"a name of bytes", added("content", "éé"), "ASCII"},
		{"no text", added("content", ""), "no text"},
		{"an id too high", func(f map[string]any) { f["model"].(object)["vocab"].(object)["zz"] = maxSize }, "ids are"},
		{"one id twice", func(f map[string]any) { f["model"].(object)["vocab"].(object)["zz"] = 7 }, "have one id, 7"},
		{"a byte less", func(f map[string]any) { delete(f["model"].(object)["vocab"].(object), "!") }, "0x21"},
		{"a merge of nothing", model("merges", []any{"q zz"}), `"zz" is not in vocab`},
		{"a merge of three", model("merges", []any{"a b c"}), "two tokens"},
		{"a merge twice", model("merges", []any{"i n", "i n"}), "twice"},
	} {
		_, err := Parse(changed(t, "gpt2", c.change))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one that names %s", c.name, err, c.want)
		}
	}
}

// FuzzParse: no file makes Parse fail other than by an error, and what it takes gives
// every text back, unless it changes texts on purpose. Maps have no order, so coverage is
// not the same twice: pass -fuzzminimizetime 1x.
func FuzzParse(f *testing.F) {
	for _, name := range allFiles {
		data, err := os.ReadFile(familyFile(name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data, []byte("It's 12 <|endoftext|>\n"))
	}
	f.Add([]byte(`{"model":{"vocab":{"a":0},"merges":["a a"]}}`), []byte("a"))
	f.Fuzz(func(t *testing.T, data, text []byte) {
		tokenizer, err := Parse(data)
		if err != nil || tokenizer.family.normal == "NFC" {
			return
		}
		ids := tokenizer.NewEncoder().Append(nil, text)
		for _, id := range ids {
			if tokenizer.Bytes(id) == nil {
				t.Fatalf("id %d stands for nothing", id)
			}
		}
	})
}
