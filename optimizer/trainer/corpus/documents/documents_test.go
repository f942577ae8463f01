package documents

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"
	"pgregory.net/rapid"
)

// options are what most tests read with.
var options = Options{Field: "text", End: 0}

func write(t *testing.T, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// readAll returns the documents of a file, those of tokens as numbers.
func readAll(f File, o Options) (all []string, err error) {
	r, err := f.Open(o)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	for {
		d, err := r.Next()
		if err == io.EOF {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		if d.Tokens != nil {
			all = append(all, fmt.Sprint(d.Tokens))
		} else {
			all = append(all, string(d.Text))
		}
	}
}

func gzipped(data []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Write(data)
	w.Close()
	return b.Bytes()
}

func zstded(data []byte) []byte {
	w, _ := zstd.NewWriter(nil)
	return w.EncodeAll(data, nil)
}

type row struct {
	ID   int64   `parquet:"id"`
	Text *string `parquet:"text,optional"`
	Tags []string
}

func parqueted(t *testing.T, texts ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := parquet.NewGenericWriter[row](&b, parquet.MaxRowsPerRowGroup(100), parquet.Compression(&parquet.Snappy))
	for i, text := range texts {
		r := row{ID: int64(i), Tags: []string{"a", "b"}}
		if text != "null" {
			r.Text = &text
		}
		if _, err := w.Write([]row{r}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func llmc(magic uint32, count int, body []byte) []byte {
	head := make([]byte, llmcHeader)
	for i, n := range []uint32{magic, 1, uint32(count)} {
		binary.LittleEndian.PutUint32(head[4*i:], n)
	}
	return append(head, body...)
}

func TestFormats(t *testing.T) {
	const lines = `{"text":"one","n":1}` + "\n\n" + `{"n":2,"text":"two\nlines"}` + "\n" + `{"text":""}` + "\n" + `{"text":null}` + "\n" + `{"text":"three"}`
	documents := []string{"one", "two\nlines", "three"}
	many := make([]string, 1000)
	for i := range many {
		many[i] = fmt.Sprintf("row %d", i)
	}
	for _, c := range []struct {
		name string
		data []byte
		want []string
	}{
		{"a.txt", []byte("one\n\nfile"), []string{"one\n\nfile"}},
		{"a.go", []byte("package a\n"), []string{"package a\n"}},
		{"empty.txt", nil, nil},
		{"a.txt.gz", gzipped([]byte("packed")), []string{"packed"}},
		{"a.MD.zst", zstded([]byte("packed")), []string{"packed"}},
		{"a.jsonl", []byte(lines), documents},
		{"a.jsonl.gz", gzipped([]byte(lines)), documents},
		{"a.ndjson.zst", zstded([]byte(lines)), documents},
		{"a.parquet", parqueted(t, "one", "null", "", "two\nlines", "three"), documents},
		{"many.parquet", parqueted(t, many...), many},
		{"nanogpt.bin", []byte{1, 0, 2, 1, 0, 0, 0, 0, 3, 0}, []string{"[1 258]", "[3]"}},
		{"llmc.bin", llmc(llmcMagic16, 4, []byte{0, 0, 1, 0, 0, 0, 2, 0}), []string{"[1]", "[2]"}},
		{"llama.bin", llmc(llmcMagic32, 2, []byte{1, 0, 1, 0, 0, 0, 0, 0}), []string{"[65537]"}},
	} {
		path := write(t, c.name, c.data)
		files, err := List([]string{path})
		if err != nil || len(files) != 1 {
			t.Fatal(files, err)
		}
		got, err := readAll(files[0], options)
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, %v; want %q", c.name, got, err, c.want)
		}
	}
}

func TestWrongFiles(t *testing.T) {
	for _, c := range []struct {
		name string
		data []byte
		want string
	}{
		{"a.jsonl", []byte("{\"text\":\"a\"}\n{\"body\":\"b\"}\n"), `line 2: no field "text"`},
		{"b.jsonl", []byte(`{"text":7}`), `field "text" is no string`},
		{"c.jsonl", []byte(`{"text":`), "line 1"},
		{"a.parquet", []byte("PAR1"), "a.parquet"},
		{"a.parquet.gz", gzipped(nil), "unpack it"},
		{"a.gz", []byte("text"), "a.gz"},
		{"odd.bin", []byte{1, 0, 2}, "ends within a token"},
		{"short.bin", llmc(llmcMagic16, 3, []byte{1, 0}), "2 tokens before its header says"},
		{"huge.bin", llmc(llmcMagic32, 1, []byte{0, 0, 0, 0xff}), "is no token"},
	} {
		_, err := readAll(File{Path: write(t, c.name, c.data), Size: int64(len(c.data))}, options)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), c.name) {
			t.Errorf("%s: error %v, want one of the file and %q", c.name, err, c.want)
		}
	}
	path := write(t, "b.parquet", parqueted(t, "one"))
	for field, want := range map[string]string{"body": "it has id, text, Tags", "id": "not of strings", "Tags": "not of strings"} {
		info, _ := os.Stat(path)
		if _, err := readAll(File{Path: path, Size: info.Size()}, Options{Field: field}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("column %s: error %v, want one that says %q", field, err, want)
		}
	}
}

func TestList(t *testing.T) {
	root := filepath.Dir(write(t, "b.txt", []byte("b")))
	for name, text := range map[string]string{"a/z.go": "z", "a/.hidden": "h", ".git/x": "g", "c.bin": "no\x00text", "d.txt": "d"} {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	files, err := List([]string{filepath.Join(root, "d.txt"), root})
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, f := range files {
		got, err := readAll(f, options)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, got...)
	}
	if want := []string{"d", "z", "b", "d"}; !slices.Equal(all, want) {
		t.Errorf("read %q, want %q", all, want)
	}
	if _, err := List([]string{filepath.Join(root, "absent")}); err == nil || !strings.Contains(err.Error(), "absent") {
		t.Errorf("error %v of a file that is not there", err)
	}
}

// TestLongTextsAreCut: the parts together are the text, and each begins a line where the
// text has lines, or a rune.
func TestLongTextsAreCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		piece := rapid.SampledFrom([]string{"a line of words\n", "words, no lines ", "ünïcödé…", "par\n\n", "\x80"})
		var b strings.Builder
		for b.Len() < 3*MaxText {
			b.WriteString(strings.Repeat(piece.Draw(t, "piece"), rapid.IntRange(1, 6000).Draw(t, "times")))
		}
		text := b.String()
		r := &textReader{counter: &counter{}, in: bufio.NewReader(strings.NewReader(text))}
		var all []byte
		for {
			d, err := r.Next()
			if err == io.EOF {
				break
			}
			if len(d.Text) == 0 || len(d.Text) > MaxText {
				t.Fatalf("a document of %d bytes", len(d.Text))
			}
			if !utf8.RuneStart(d.Text[0]) && !strings.Contains(text, "\x80") {
				t.Fatalf("a document begins within a rune: %q", d.Text[:8])
			}
			all = append(all, d.Text...)
		}
		if string(all) != text {
			t.Fatal("the documents together are not the text")
		}
	})
}

// FuzzReaders: no bytes make a reader fail other than by an error, and none goes on forever.
func FuzzReaders(f *testing.F) {
	f.Add(uint8(0), []byte(`{"text":"one"}`))
	f.Add(uint8(1), llmc(llmcMagic16, 1, []byte{1, 0}))
	f.Add(uint8(2), []byte("text"))
	f.Fuzz(func(t *testing.T, kind uint8, data []byte) {
		counted, in := &counter{}, bufio.NewReader(bytes.NewReader(data))
		var r reader = &textReader{counter: counted, in: in}
		switch kind % 3 {
		case 0:
			r = &jsonLines{counter: counted, in: in, field: "text"}
		case 1:
			tokens, err := newTokens(counted, in, 0)
			if err != nil {
				return
			}
			r = tokens
		}
		for range len(data) + 2 {
			if _, err := r.Next(); err != nil {
				return
			}
		}
		t.Fatalf("more documents than the %d bytes", len(data))
	})
}
