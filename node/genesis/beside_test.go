package genesis

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"atoll/gossip/wire"
	"atoll/tensor/safetensors"
)

// put writes files into a folder.
func put(t testing.TB, dir string, texts map[string]string) {
	t.Helper()
	for name, text := range texts {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
}

// beside are files that belong beside weights, with bytes that a parser would change.
var beside = map[string]string{
	"tokenizer.json": "{\r\n \"a\":1e0,\"a\":2}\n\n", "tokenizer_config.json": `{"x":"é"}`, "chat_template.jinja": "{{ \xff }}", "additional_chat_templates/rag_2.jinja": "x",
	"generation_config.json": `{ "temperature": 0.70 }`, "tokenizer.model": "\x00\x01",
}

// The files beside the weights come out byte for byte, and no others do.
func TestFilesBesideTheWeights(t *testing.T) {
	dir, _ := modelFolder(t, `{}`, spec("a", 3))
	put(t, dir, beside)
	put(t, dir, map[string]string{"optimizer.pt": "x", "README.md": "x", "tokenizer.json.bak": "x", "sub/tokenizer.json": "{}", "modeling.py": "import os", "additional_chat_templates/a b.jinja": "x"})
	out := filepath.Join(t.TempDir(), "model")
	m, err := exportedFrom(t, dir, out)
	if err != nil || !HasTokenizer(m.Files) {
		t.Fatalf("%v: %+v", err, m)
	}
	if names := slices.Sorted(maps.Keys(m.Beside)); !slices.Equal(names, slices.Sorted(maps.Keys(beside))) {
		t.Errorf("%q came along", names)
	}
	all := int64(3 * 4)
	for name, want := range beside {
		if got, err := os.ReadFile(filepath.Join(out, name)); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		all += int64(len(want))
	}
	if g := madeFrom(t, m); g.ExportBytes("") != all || g.ExportBytes("float16") != all-6 {
		t.Errorf("%d bytes, want %d", g.ExportBytes(""), all)
	}
	if found, err := os.ReadDir(out); err != nil || len(found) != len(beside)+3 { // weights, config, card
		t.Errorf("%v, %v", found, err)
	}
}

// What is beside weights and cannot be right is refused before there is a run.
func TestFilesThatAreWrongAreRefused(t *testing.T) {
	for want, change := range map[string]func(dir string) error{
		"tokenizer.json is no file, or a link to one that is not there: fetch": func(dir string) error { return os.Symlink("gone", filepath.Join(dir, "tokenizer.json")) },
		"merges.txt is no file":      func(dir string) error { return os.Mkdir(filepath.Join(dir, "merges.txt"), 0o755) },
		"added_tokens.json is empty": func(dir string) error { return os.WriteFile(filepath.Join(dir, "added_tokens.json"), nil, 0o600) },
		"tokenizer.json is empty, a pointer": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "tokenizer.json"), []byte(`{"a":`), 0o600)
		},
		"tokenizer.model is empty, a pointer of git-lfs": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "tokenizer.model"), []byte("version https://git-lfs.github.com/spec/v1\noid"), 0o600)
		},
		"vocab.txt has 67108865 bytes; a run has room for 67108864": func(dir string) error {
			path := filepath.Join(dir, "vocab.txt")
			return errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, wire.MaxBlob+1))
		},
		"there are 65 files beside the weights; use at most 64: move": func(dir string) error {
			for i := range 65 {
				put(t, dir, map[string]string{fmt.Sprintf("additional_chat_templates/%d.jinja", i): "x"})
			}
			return nil
		},
	} {
		dir, _ := modelFolder(t, `{}`, spec("a", 3))
		if err := change(dir); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadModel(dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// A node's folder whose files are not those of the run exports nothing, and says what to do.
func TestFilesOfANodeAreChecked(t *testing.T) {
	dir, _ := modelFolder(t, `{}`, spec("a", 3))
	put(t, dir, beside)
	m, err := ReadModel(dir)
	if err != nil {
		t.Fatal(err)
	}
	g, home := madeFrom(t, m), t.TempDir()
	if err := m.SaveBeside(home); err != nil {
		t.Fatal(err)
	}
	put(t, home, map[string]string{BesideFolder + "/tokenizer.json": "{}"})
	if _, err := g.ReadFiles(home); err == nil || !strings.Contains(err.Error(), "tokenizer.json is not the file of the run: copy it from") {
		t.Error(err)
	}
	if _, err := g.ReadFiles(t.TempDir()); err == nil || !strings.Contains(err.Error(), "copy it from") {
		t.Error(err)
	}
}

// Adapters get the tokenizer of their model, unless they have one.
func TestAdaptersGetTheTokenizerOfTheirModel(t *testing.T) {
	base, _ := modelFolder(t, `{}`, spec("a", 3))
	put(t, base, map[string]string{"tokenizer.json": `"base"`})
	for own, want := range map[string]string{"tokenizer_config.json": `"base"`, "tokenizer.json": `"own"`} {
		dir, _ := modelFolder(t, `{"peft_type":"LORA"}`, spec("a", 3))
		put(t, dir, map[string]string{own: `"own"`})
		m, err := ReadModel(dir)
		if err == nil {
			err = m.AddFiles(base)
		}
		if err != nil || string(m.Beside["tokenizer.json"]) != want || len(m.Files) != 1 || len(m.Beside) != 1 {
			t.Errorf("%v: %q", err, m.Beside)
		}
	}
}

// rawModel writes a model whose only file has these tensors.
func rawModel(t testing.TB, dir, config string, entries map[string]any, data []byte) {
	t.Helper()
	header, err := json.Marshal(entries)
	if err != nil {
		t.Fatal(err)
	}
	b := append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header...)
	put(t, dir, map[string]string{"config.json": config, "model.safetensors": string(b) + string(data)})
}

// tensorsOf are the type and the bytes of each tensor of a file.
func tensorsOf(t testing.TB, path string) map[string]string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := safetensors.Open(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	begin := 8 + int64(binary.LittleEndian.Uint64(b))
	tensors := map[string]string{}
	for _, x := range f.Tensors {
		tensors[x.Name] = fmt.Sprintf("%s %v %x", x.DType, x.Shape, b[begin+x.Begin:begin+x.End])
	}
	return tensors
}

// Before the first step an export has the source's bits in every tensor, whatever their types are.
func TestBitsComeBack(t *testing.T) {
	root := t.TempDir()
	i := 0
	rapid.Check(t, func(r *rapid.T) {
		i++
		entries, data := map[string]any{}, []byte(nil)
		for n := range rapid.IntRange(1, 5).Draw(r, "tensors") {
			dtype := rapid.SampledFrom([]string{"F32", "F64", "BF16", "F16"}).Draw(r, "type")
			length, begin := rapid.IntRange(1, 9).Draw(r, "length"), len(data)
			for range length {
				bits := rapid.Uint32().Draw(r, "bits")
				switch dtype {
				case "BF16":
					data = binary.LittleEndian.AppendUint16(data, uint16(bits&0xbf7f)) // finite
				case "F16":
					data = binary.LittleEndian.AppendUint16(data, uint16(bits&0xbbff))
				case "F32":
					data = binary.LittleEndian.AppendUint32(data, bits&0xbf7fffff)
				case "F64": // as far as float32 goes
					data = binary.LittleEndian.AppendUint64(data, math.Float64bits(float64(math.Float32frombits(bits&0xbf7fffff))))
				}
			}
			entries[fmt.Sprint("t", n)] = map[string]any{"dtype": dtype, "shape": []int{length}, "data_offsets": []int{begin, len(data)}}
		}
		dir, out := filepath.Join(root, fmt.Sprint("in", i)), filepath.Join(root, fmt.Sprint("out", i))
		rawModel(t, dir, `{"torch_dtype":"bfloat16","x":1.50}`, entries, data)
		if _, err := exportedFrom(t, dir, out); err != nil {
			r.Fatal(err)
		}
		if got, want := tensorsOf(t, filepath.Join(out, "model.safetensors")), tensorsOf(t, filepath.Join(dir, "model.safetensors")); !maps.Equal(got, want) {
			r.Fatalf("%v, want %v", got, want)
		}
		if !sameJSON(t, filepath.Join(out, "config.json"), `{"torch_dtype":"bfloat16","x":1.50}`) {
			r.Fatal("config.json is not what went in")
		}
	})
}

// Another type is for all tensors and in the config; what is too large for it leaves no folder.
func TestExportInAnotherType(t *testing.T) {
	dir, s := modelFolder(t, `{"dtype":"bfloat16","x":1.50}`, spec("a", 3), spec("b", 2))
	m, err := ReadModel(dir)
	if err != nil {
		t.Fatal(err)
	}
	g, out := madeFrom(t, m), t.TempDir()
	for dtype, name := range dtypes {
		to := filepath.Join(out, dtype)
		if err := g.Export(to, s, 1, Form{DType: dtype}); err != nil {
			t.Fatal(err)
		}
		for _, x := range tensorsOf(t, filepath.Join(to, "model.safetensors")) {
			if !strings.HasPrefix(x, name+" ") {
				t.Errorf("%s: %s", dtype, x)
			}
		}
		if !sameJSON(t, filepath.Join(to, "config.json"), `{"torch_dtype":"`+dtype+`","x":1.50}`) {
			t.Errorf("%s: the config says another", dtype)
		}
	}
	s.Data[4] = 7e4
	to := filepath.Join(out, "large")
	if err := g.Export(to, s, 1, Form{DType: "float16"}); err == nil || err.Error() != `export: tensor "b" has the value 70000, which is too large for F16: export it with --dtype float32` {
		t.Error(err)
	}
	if left, err := os.ReadDir(out); err != nil || len(left) != len(dtypes) {
		t.Errorf("%v, %v", left, err)
	}
}

// A built-in model of a corpus ends its texts with the tokenizer's token after a document.
func TestEndTokenIsExported(t *testing.T) {
	g, out := fixedGenesis(), filepath.Join(t.TempDir(), "model")
	if err := g.Export(out, g.NewSlab(), 1, Form{DType: "bfloat16", End: "<|endoftext|>", EndID: 7, Files: map[string][]byte{"tokenizer.json": []byte(`{"x": 1}`)}}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"config.json": `"eos_token_id": 7,`, "tokenizer_config.json": `"eos_token": "\u003c|endoftext|\u003e"`} {
		if b, err := os.ReadFile(filepath.Join(out, name)); err != nil || !strings.Contains(string(b), want) {
			t.Errorf("%v: %s", err, b)
		}
	}
	if b, err := os.ReadFile(filepath.Join(out, "tokenizer.json")); err != nil || string(b) != `{"x": 1}` {
		t.Error("another tokenizer", err)
	}
	if b, err := os.ReadFile(filepath.Join(out, "config.json")); err != nil || !strings.Contains(string(b), `"torch_dtype": "bfloat16"`) {
		t.Errorf("%v: %s", err, b)
	}
}
