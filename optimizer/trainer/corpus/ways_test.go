package corpus

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"
	"pgregory.net/rapid"

	"atoll/optimizer/trainer/corpus/documents"
)

// ways are forms in which the same documents may lie in a file.
var ways = map[string]func(t *rapid.T, docs []string) []byte{
	"a.jsonl":     func(_ *rapid.T, docs []string) []byte { return lines(docs) },
	"mark.ndjson": func(_ *rapid.T, docs []string) []byte { return append([]byte("\ufeff"), lines(docs)...) },
	"a.jsonl.gz":  func(_ *rapid.T, docs []string) []byte { return gzipped(lines(docs)) },
	"unnamed":     func(_ *rapid.T, docs []string) []byte { return gzipped(lines(docs)) },
	"a.jsonl.zst": func(_ *rapid.T, docs []string) []byte { return zstded(lines(docs)) },
	"wide.jsonl": func(t *rapid.T, docs []string) []byte {
		return encoded(t, unicode.UTF16(unicode.LittleEndian, unicode.UseBOM), lines(docs))
	},
	"wide.jsonl.gz": func(t *rapid.T, docs []string) []byte {
		return gzipped(encoded(t, unicode.UTF16(unicode.BigEndian, unicode.UseBOM), lines(docs)))
	},
	"wider.json": func(t *rapid.T, docs []string) []byte {
		return encoded(t, utf32.UTF32(utf32.BigEndian, utf32.UseBOM), lines(docs))
	},
	"a.parquet": rows,
}

func lines(docs []string) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	for i, text := range docs {
		_ = e.Encode(map[string]any{"id": i, "text": text}) // a Buffer takes all
	}
	return b.Bytes()
}

func rows(t *rapid.T, docs []string) []byte {
	type row struct {
		ID   int64
		Text string `parquet:"text"`
	}
	var b bytes.Buffer
	w := parquet.NewGenericWriter[row](&b, parquet.Compression(&parquet.Zstd))
	for i, text := range docs {
		if _, err := w.Write([]row{{int64(i), text}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func gzipped(b []byte) []byte {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = w.Write(b)
	_ = w.Close() // neither fails on a Buffer
	return packed.Bytes()
}

func zstded(b []byte) []byte {
	w, _ := zstd.NewWriter(nil) // it has no options that could be wrong
	return w.EncodeAll(b, nil)
}

func encoded(t *rapid.T, to encoding.Encoding, b []byte) []byte {
	out, err := to.NewEncoder().Bytes(b)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// The same documents are the same text in every form, in whichever way they are named: to atoll data build, which reads
// documents, or to new, join and eval, and so to learners, which get one text.
func TestOneTextInAllForms(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		docs := rapid.SliceOfN(rapid.StringN(1, 50, 200), 1, 20).Filter(func(docs []string) bool {
			return !slices.ContainsFunc(docs, func(text string) bool { return !utf8.ValidString(text) || strings.HasPrefix(text, "\ufeff") })
		}).Draw(t, "documents")
		want := ""
		for _, text := range docs {
			want += strings.TrimSuffix(text, "\n") + "\n"
		}
		for name, form := range ways {
			path := filepath.Join(dir, name)
			if err := os.WriteFile(path, form(t, docs), 0o600); err != nil {
				t.Fatal(err)
			}
			if c, err := Open(path); err != nil || string(c.data) != want {
				t.Fatalf("%s: %v, %q; want %q", name, err, c.data, want)
			}
			files, err := documents.List([]string{path}, documents.Tally{})
			var got []string
			if err == nil {
				err = files[0].Each(documents.Options{Field: "text", End: -1, Tally: documents.Tally{}}, func(d documents.Document, _ int64) error {
					got = append(got, string(d.Text))
					return nil
				})
			}
			if err != nil || !slices.Equal(got, docs) {
				t.Fatalf("%s: %v, %q; want %q", name, err, got, docs)
			}
		}
	})
}
