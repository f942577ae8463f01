package node

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

	"atoll/optimizer/trainer/corpus"
	"atoll/optimizer/trainer/corpus/build"
	"atoll/optimizer/trainer/corpus/documents"
	"atoll/optimizer/trainer/corpus/shards"
	"atoll/tensor/token"
)

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
func bothReaders(t *testing.T, root string) (text, built []string) {
	c, err := corpus.Open(root)
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
	return linesOf(slices.Concat(c.Train(), c.HeldOut())), linesOf(textOf(t, out))
}

func linesOf(text []byte) []string {
	return slices.Sorted(strings.SplitSeq(strings.TrimSuffix(string(text), "\n"), "\n"))
}

// textOf is the text of a corpus of bytes.
func textOf(t *testing.T, dir string) (text []byte) {
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
	root := t.TempDir()
	must(t, os.WriteFile(filepath.Join(root, "a"), raw, 0o600))
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
