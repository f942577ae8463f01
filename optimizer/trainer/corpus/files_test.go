package corpus

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"pgregory.net/rapid"

	"atoll/optimizer/trainer/corpus/build"
	"atoll/optimizer/trainer/corpus/documents"
	"atoll/optimizer/trainer/corpus/shards"
	"atoll/tensor/token"
)

// writeTree writes files, given by slash-separated path, below a new folder.
func writeTree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		full := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func text(c *Corpus) string { return string(c.Train()) + string(c.HeldOut()) }

func TestOpenFileIsTakenAsItIs(t *testing.T) {
	root := writeTree(t, map[string]string{"a.md": "no line end"})
	c, err := Open(filepath.Join(root, "a.md"))
	if err != nil {
		t.Fatal(err)
	}
	if text(c) != "no line end" || c.Name() != "a.md" || c.Note() != "" {
		t.Errorf("got %s with %q, %q", c.Name(), text(c), c.Note())
	}
}

func TestOpenFolder(t *testing.T) {
	root := writeTree(t, map[string]string{
		"a/x.md":      "second\n",
		"a-b/x.go":    "first", // '-' sorts before '/'
		"b.jsonl":     "{\"text\":\"third\"}\n\n{\"text\":\"fourth\",\"id\":1}\n{\"text\":null}\n",
		"c.png":       "\x89PNG\x00",
		".hidden":     "no",
		".git/config": "no",
		"a/.git/HEAD": "no",
		"d/empty.txt": "",
		"d/utf16.txt": "\xff\xfef\x00a\x00\xe7\x00a\x00d\x00e\x00",
	})
	c, err := Open(root)
	if err != nil {
		t.Fatal(err)
	}
	if want := "first\nsecond\nthird\nfourth\nfaçade\n"; text(c) != want {
		t.Errorf("got %q, want %q", text(c), want)
	}
	if want := "binary files left out: 1, empty files left out: 1, files converted to UTF-8: 1, hidden names left out: 3, null documents left out: 1"; c.Note() != want {
		t.Errorf("the note is %q, want %q", c.Note(), want)
	}
}

func TestOpenErrorsNameTheRemedy(t *testing.T) {
	root := writeTree(t, map[string]string{
		"notext.jsonl":   "{\"text\":\"a\"}\n{\"body\":\"b\"}\n",
		"bad.jsonl":      "{\"text\":\"a\"}\n{\"text\":",
		"empty/.nothing": "",
		"tokens.bin":     "\x01\x00",
	})
	for name, want := range map[string]string{
		"missing":      "pass files and folders, \"goroot\"",
		"notext.jsonl": `line 2: no field "text": text is in body`,
		"bad.jsonl":    "line 2: it is not one JSON object a line",
		"empty":        "holds no text: pass a file or folder of text (hidden names left out: 1)",
		"tokens.bin":   "pass it to atoll data build with --tokenizer",
	} {
		_, err := Open(filepath.Join(root, name))
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: error %v, want %q", name, err, want)
		}
	}
	if _, err := Open(os.DevNull); err == nil || !strings.Contains(err.Error(), "is a pipe or a device") {
		t.Error(err)
	}
}

// TestOneReader: what a run of bytes trains on and what a corpus is built of is the same text, whatever the form of its files.
func TestOneReader(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		root := t.TempDir()
		docs := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-zäß€😀"\\ ]{1,40}`), 4, 20, rapid.ID[string]).Draw(rt, "documents")
		form := rapid.SampledFrom(slices.Sorted(maps.Keys(forms))).Draw(rt, "form")
		for i, text := range docs {
			docs[i] = fmt.Sprintf("%d %s", i, text)
		}
		if err := forms[form](root, docs); err != nil {
			rt.Fatal(err)
		}
		if of, in := bothReaders(t, root); !slices.Equal(of, in) || len(of) != len(docs) {
			rt.Fatalf("as %s, text is %q, and the corpus is built of %q", form, of, in)
		}
	})
}

// bothReaders returns the lines of a folder's text, and of the corpus that is built of it.
func bothReaders(t *testing.T, root string) (text, corpus []string) {
	c, err := Open(root)
	if err != nil {
		t.Fatal(err)
	}
	files, err := documents.List([]string{root}, documents.Tally{})
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "corpus")
	if _, err := build.Run(t.Context(), build.Config{Out: out, Inputs: files, Field: "text", Tokenizer: token.Byte, Name: "x", HeldOut: 0.1}); err != nil {
		t.Fatal(err)
	}
	return linesOf(slices.Concat(c.Train(), c.HeldOut())), linesOf(built(t, out))
}

func linesOf(text []byte) []string {
	return slices.Sorted(strings.SplitSeq(strings.TrimSuffix(string(text), "\n"), "\n"))
}

// built is the text of a corpus of bytes.
func built(t *testing.T, dir string) (text []byte) {
	d, err := shards.OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range slices.Concat(d.Manifest.HeldOut, d.Manifest.Shards) {
		ids, err := d.Read(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		text = token.Decode(token.Byte, text, ids)
	}
	return text
}

// forms write documents as files of a folder.
var forms = map[string]func(root string, docs []string) error{
	"files": func(root string, docs []string) (err error) {
		for i, text := range docs {
			err = errors.Join(err, os.WriteFile(filepath.Join(root, fmt.Sprint(i)), []byte(text), 0o600))
		}
		return err
	},
	"lines": func(root string, docs []string) error {
		return os.WriteFile(filepath.Join(root, "a.jsonl"), lines(docs), 0o600)
	},
	"packed lines of any name": func(root string, docs []string) error {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		w.Write(lines(docs))
		w.Close()
		return os.WriteFile(filepath.Join(root, "part-0"), b.Bytes(), 0o600)
	},
	"UTF-16": func(root string, docs []string) (err error) {
		for i, text := range docs {
			b := []byte{0xff, 0xfe}
			for _, unit := range utf16.Encode([]rune(text)) {
				b = binary.LittleEndian.AppendUint16(b, unit)
			}
			err = errors.Join(err, os.WriteFile(filepath.Join(root, fmt.Sprint(i)), b, 0o600))
		}
		return err
	},
}

// table is Parquet of five texts.
const table = "UEFSMRUGFW4VbhXIw/SNDUwVChUAFQoVDBUAFQASHBgENCDDvBgEMCBvZhYAKAQ0IMO8GAQwIG9mAAAAgAEEBQgLBAAAAHcKAAAAAAAAAAAAAAAAAAAwIG9mMSB0aGUyIHJheXMzIG9mIGxpZ2h0NCDDvBkSABkYBDAgb2YZGAQ0IMO8FQAZFgAAGRwWCBXeARYAAAAVBBksSANyb3cVAgAVDCUAGAR0ZXh0JQBMHAAAABYKGRwZHCYAHBUMGRUMGRgEdGV4dBUAFgoW3gEW3gEmCDw2ACgENCDDvBgEMCBvZgAZHBUGFQwVAgA8FjoAABaUAhUWFuYBFS4AFt4BFgoZDBYIFt4BFAAAGQwYFGEgdmVyc2lvbiBiKGJ1aWxkIGMpGRwcAAAAlAAAAFBBUjE="

func TestOneReaderOfTables(t *testing.T) {
	raw, err := base64.StdEncoding.DecodeString(table)
	if err != nil {
		t.Fatal(err)
	}
	root := writeTree(t, map[string]string{"a": string(raw)})
	want := []string{"0 of", "1 the", "2 rays", "3 of light", "4 ü"}
	if of, in := bothReaders(t, root); !slices.Equal(of, want) || !slices.Equal(in, want) {
		t.Errorf("text is %q, and the corpus is built of %q; want %q", of, in, want)
	}
}

func lines(docs []string) (b []byte) {
	for _, text := range docs {
		line, _ := json.Marshal(map[string]string{"text": text})
		b = append(append(b, line...), '\n')
	}
	return b
}
