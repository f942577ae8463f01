package token

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// nasty are texts in which tokenizers with marks differ.
var nasty = []string{
	"", " ", "  ", "   a", "a ", "a  b", "a   \n  b", "\n", "\n\n\n\n\n\n", "\r\n\t x", "▁", "▁▁▁", "a▁b", " ▁ ▁", "</s>", "</s>a", "</s> a", "a</s>b</s></s>c", " </s>",
	"<b>bold</b> <table>\n\n\n", "<start_of_turn>user\nHi<end_of_turn>\n", "[INST] x [/INST]", "<0x0A>", "<0x41>A", "<unk><s>", "\x00\x01\x7f", "\ufeff\ufffd\u00a0\u3000", "👨‍👩‍👧🏽🇫🇷",
	"𐍈𒀀𠀀", "e\u0301\u0302ê", "tab\tif x == 10 {\n\t\treturn  nil\n    }", "日本語と中文，한국어", "для всех   людей", "هذا الحقل مطلوب", "यह फ़ील्ड आवश्यक है",
	strings.Repeat(" ", 100) + "x", strings.Repeat("a", 300), strings.Repeat("\n", 70), strings.Repeat("é ", 50), "1234567890 3.14 ½",
}

// markedForms writes the files of the families with marks, in all forms that Parse takes, and returns their paths.
func markedForms(t *testing.T) []string {
	type object = map[string]any
	var files []string
	form := func(name, of string, change func(object)) {
		path := filepath.Join(t.TempDir(), name+".json")
		if err := os.WriteFile(path, changed(t, of, change), 0o644); err != nil {
			t.Fatal(err)
		}
		files = append(files, path)
	}
	for _, name := range markedFiles {
		form(name, name, func(object) {})
		form(name+"-whole", name, func(f object) { f["model"].(object)["ignore_merges"] = true })
		form(name+"-normalized", name, func(f object) {
			for _, a := range f["added_tokens"].([]any) {
				a.(object)["normalized"] = true
			}
		})
	}
	form("gemma-null", "gemma", func(f object) { f["pre_tokenizer"] = nil })
	for _, scheme := range []string{"first", "always", "never"} {
		for _, split := range []bool{false, true} {
			for _, whole := range []bool{false, true} {
				form("mistral-"+scheme, "mistral", func(f object) {
					f["pre_tokenizer"].(object)["prepend_scheme"] = scheme
					f["pre_tokenizer"].(object)["split"] = split
					f["model"].(object)["ignore_merges"] = whole
				})
			}
		}
	}
	form("mistral-old", "mistral", func(f object) {
		f["pre_tokenizer"] = object{"type": "Sequence", "pretokenizers": []any{object{"type": "Metaspace", "replacement": mark, "add_prefix_space": true}}}
	})
	form("across", "llama2", acrossWords)
	return files
}

// acrossWords adds tokens that go on after a space, as no model of these families has but others may.
func acrossWords(f map[string]any) {
	model := f["model"].(map[string]any)
	vocab := model["vocab"].(map[string]any)
	for _, m := range [][2]string{{"a", "▁"}, {"a▁", "b"}, {"e", "▁"}, {"▁▁", "a▁"}, {"\n", "\n"}} {
		for _, token := range []string{m[0], m[1], m[0] + m[1]} {
			if vocab[token] == nil {
				vocab[token] = len(vocab)
			}
		}
		model["merges"] = append([]any{[]any{m[0], m[1]}}, model["merges"].([]any)...)
	}
}

// TestMarkedTextComesBack: any bytes come back, with a space for each mark, and less the first one of a text
// where Metaspace puts none before it.
func TestMarkedTextComesBack(t *testing.T) {
	for _, file := range markedForms(t) {
		tokenizer := load(t, file)
		if strings.Contains(file, "-normalized") {
			continue // the prefix of these tokens is in their names
		}
		encoder := tokenizer.NewEncoder()
		rapid.Check(t, func(t *rapid.T) {
			text := markedText(t)
			if tokenizer.words != nil && bytes.Contains(text, []byte("<0x")) {
				return // the judge takes the name of a byte for its token, alone or between added ones
			}
			want := []byte(strings.ReplaceAll(string(text), mark, " "))
			if tokenizer.family.late && tokenizer.Prefixed() {
				want = bytes.TrimPrefix(want, []byte(" "))
			}
			ids := encoder.Append(nil, text)
			if got := Decode(tokenizer, nil, ids); !bytes.Equal(got, want) || TextSize(tokenizer, -1, -1, ids) != int64(len(want)) {
				t.Fatalf("%s: %q came back as %q, of %d bytes", file, text, got, TextSize(tokenizer, -1, -1, ids))
			}
		})
	}
}

// markedText is text without added tokens, after which some families put another space.
func markedText(t *rapid.T) []byte {
	part := rapid.SampledFrom([]string{" ", "  ", mark, "a", "ab", "e", "\n", "the", "return", "é", "для", "这个", "هذا", "है", "👍", "<0x41>", "\xff", "\xe2\x96", "\ufffd"})
	return []byte(strings.Join(rapid.SliceOfN(part, 0, 40).Draw(t, "parts"), "") + rapid.String().Draw(t, "text"))
}

// TestCutsChangeNothing: text that is cut where no merge joins it has the tokens of the whole one, merged as defined.
func TestCutsChangeNothing(t *testing.T) {
	for _, file := range markedForms(t) {
		tokenizer := load(t, file)
		e := tokenizer.NewEncoder().(*encoder)
		if tokenizer.words != nil {
			continue
		}
		rapid.Check(t, func(t *rapid.T) {
			text := bytes.ReplaceAll(markedText(t), []byte(mark), []byte(" "))
			if len(text) == 0 {
				return
			}
			var ids []int32
			for _, s := range tokenizer.begin(nil, text) {
				ids = append(ids, s.id)
			}
			if got, want := e.runs(nil, text), naiveMerges(tokenizer, ids); !slices.Equal(got, want) {
				t.Fatalf("%s: %q: %v, want %v", file, text, got, want)
			}
		})
	}
}

// TestLongMarkedText: a text of a million bytes that cannot be cut takes no time that grows with its square.
func TestLongMarkedText(t *testing.T) {
	tokenizer := load(t, familyFile("gemma"))
	text := strings.Repeat(" ", 1_000_000)
	if got := Decode(tokenizer, nil, tokenizer.NewEncoder().Append(nil, []byte(text))); string(got) != text {
		t.Error("a long text did not come back")
	}
}

// TestMarkedEnds: the end of a document is the one of the model, and no tag of HTML.
func TestMarkedEnds(t *testing.T) {
	for i, want := range []string{"</s>", "</s>", "<eos>"} {
		tokenizer := load(t, familyFile(markedFiles[i]))
		if end, ok := tokenizer.End(); !ok || string(tokenizer.Bytes(end)) != want {
			t.Errorf("%s: the end token is %q, want %q", markedFiles[i], tokenizer.Bytes(end), want)
		}
	}
}

// TestTextSizeLeavesOutPrefixes: the space before each document is no text, and its end is not either.
func TestTextSizeLeavesOutPrefixes(t *testing.T) {
	for i, want := range []int64{3 + 4, 3 + 3, 3 + 4} { // Metaspace puts no space before " abc"
		tokenizer := load(t, familyFile(markedFiles[i]))
		e, end := tokenizer.NewEncoder(), tokenizer.end
		first := e.Append(nil, []byte("abc"))
		ids := e.Append(append(first, end), []byte(" abc"))
		if got := TextSize(tokenizer, end, -1, append(ids, end)); got != want {
			t.Errorf("%s: %d bytes, want %d", markedFiles[i], got, want)
		}
		if got := TextSize(tokenizer, end, end, first); got != 3 {
			t.Errorf("%s: %d bytes after an end, want 3", markedFiles[i], got)
		}
	}
}

func TestParseRefusesWithMarks(t *testing.T) {
	type object = map[string]any
	model := func(f object) object { return f["model"].(object) }
	for _, c := range []struct {
		name, of string
		change   func(object)
		want     string
	}{
		{"no byte fallback", "llama2", func(f object) { model(f)["byte_fallback"] = false }, "byte_fallback false"},
		{"a byte less", "llama2", func(f object) { delete(model(f)["vocab"].(object), "<0x07>") }, "0x07"},
		{"no mark", "gemma", func(f object) {
			model(f)["merges"] = []any{}
			delete(model(f)["vocab"].(object), mark)
		}, "no token for " + mark},
		{"a merge of a byte", "gemma", func(f object) {
			model(f)["vocab"].(object)["a<0x07>"] = len(model(f)["vocab"].(object))
			model(f)["merges"] = []any{"a <0x07>"}
		}, "token of a byte"},
		{"another mark", "mistral", func(f object) { f["pre_tokenizer"].(object)["replacement"] = "_" }, "another replacement"},
		{"another scheme", "mistral", func(f object) { f["pre_tokenizer"].(object)["prepend_scheme"] = "last" }, `"last"`},
		{"both", "mistral", func(f object) {
			f["normalizer"] = object{"type": "Replace", "pattern": object{"String": " "}, "content": mark}
		}, "pre_tokenizer is Metaspace"},
		{"another decoder", "gemma", func(f object) { f["decoder"] = object{"type": "ByteLevel"} }, "decoder is ByteLevel, and that of Gemma"},
		{"another normalizer", "llama2", func(f object) {
			f["normalizer"] = object{"type": "Sequence", "normalizers": []any{nil, object{"type": "NFKC"}}}
		}, "null, then NFKC"},
	} {
		_, err := Parse(changed(t, c.of, c.change))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one that names %s", c.name, err, c.want)
		}
	}
}
