package documents

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"

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

// readAll returns the documents of a file, those of tokens as numbers, and what was counted.
func readAll(f File, o Options) (all []string, t Tally, err error) {
	o.Tally = Tally{}
	err = f.Each(o, func(d Document, _ int64) error {
		if d.Tokens != nil {
			all = append(all, fmt.Sprint(d.Tokens))
		} else {
			all = append(all, string(d.Text))
		}
		return nil
	})
	return all, o.Tally, err
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

// asUTF16 and asUTF32 are text with the mark of its encoding.
func asUTF16(text string, order binary.AppendByteOrder) (b []byte) {
	for _, unit := range utf16.Encode([]rune("\ufeff" + text)) {
		b = order.AppendUint16(b, unit)
	}
	return b
}

func asUTF32(text string, order binary.AppendByteOrder) (b []byte) {
	for _, r := range "\ufeff" + text {
		b = order.AppendUint32(b, uint32(r))
	}
	return b
}

// packedByBzip2 is "packed".
var packedByBzip2 = fromHex("425a6839314159265359d4c738a200000281802e0840002000221868300152985dc914e14243531ce288")

func fromHex(text string) []byte {
	b, err := hex.DecodeString(text)
	if err != nil {
		panic(err)
	}
	return b
}

type row struct {
	ID   int64   `parquet:"id"`
	Text *string `parquet:"text,optional"`
	Meta struct {
		Text string   `parquet:"text"`
		List []string `parquet:"list,list"`
	} `parquet:"meta"`
	Tags []string
}

func parqueted(t testing.TB, texts ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := parquet.NewGenericWriter[row](&b, parquet.MaxRowsPerRowGroup(100), parquet.Compression(&parquet.Snappy))
	for i, text := range texts {
		r := row{ID: int64(i), Tags: []string{"a", text}}
		r.Meta.Text = "meta of " + text
		if i%2 == 0 {
			r.Meta.List = []string{text, "", "list"}
		}
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
	rows := parqueted(t, "one", "null", "", "two\nlines", "three")
	const nulls = "null and empty documents left out: 2"
	const wide = "ünïcödé 😀"
	tape := strings.Repeat("x", 257) + "ustar is what archives of tape have there"
	for _, c := range []struct {
		name string
		data []byte
		want []string
		note string
	}{
		{"a.txt", []byte("one\n\nfile"), []string{"one\n\nfile"}, ""},
		{"a.go", []byte("package a\n"), []string{"package a\n"}, ""},
		{"empty.txt", nil, nil, "empty files left out: 1"},
		{"a.txt.gz", gzipped([]byte("packed")), []string{"packed"}, "files unpacked: 1"},
		{"a.MD.zst", zstded([]byte("packed")), []string{"packed"}, "files unpacked: 1"},
		{"a.bz2", packedByBzip2, []string{"packed"}, "files unpacked: 1"},
		{"a.jsonl", []byte(lines), documents, nulls},
		{"a.jsonl.gz", gzipped([]byte(lines)), documents, "files unpacked: 1, null and empty documents left out: 2"},
		{"a.ndjson.zst", zstded([]byte(lines)), documents, "files unpacked: 1, null and empty documents left out: 2"},
		{"a.parquet", rows, documents, nulls},
		{"many.parquet", parqueted(t, many...), many, ""},
		{"nanogpt.bin", []byte{1, 0, 2, 1, 0, 0, 0, 0, 3, 0}, []string{"[1 258]", "[3]"}, ""},
		{"packed.bin.gz", gzipped([]byte{1, 0, 0, 0, 3, 0}), []string{"[1]", "[3]"}, "files unpacked: 1"},
		{"llmc.bin", llmc(llmcMagic16, 4, []byte{0, 0, 1, 0, 0, 0, 2, 0}), []string{"[1]", "[2]"}, ""},
		{"llama.bin", llmc(llmcMagic32, 2, []byte{1, 0, 1, 0, 0, 0, 0, 0}), []string{"[65537]"}, ""},

		// Names that do not tell.
		{"text.gz", []byte("unpacked on its way"), []string{"unpacked on its way"}, ""},
		{"gzip.txt", gzipped([]byte("packed")), []string{"packed"}, "files unpacked: 1"},
		{"part-0", zstded([]byte(lines)), documents, "files unpacked: 1, null and empty documents left out: 2"},
		{"lines.json", []byte(lines), documents, nulls},
		{"lines.txt", []byte(lines), documents, nulls},
		{"table.dat", rows, documents, nulls},
		{"PAR1.txt", []byte("PAR1 is a text"), []string{"PAR1 is a text"}, ""},
		{"object.txt", []byte("{\n  \"text\": 1\n}\n"), []string{"{\n  \"text\": 1\n}\n"}, ""},

		// What follows each other.
		{"two.gz", append(gzipped([]byte("one ")), gzipped([]byte("two"))...), []string{"one two"}, "files unpacked: 1"},
		{"two.zst", append(zstded([]byte("one ")), zstded([]byte("two"))...), []string{"one two"}, "files unpacked: 1"},
		{"two.bz2", append(packedByBzip2[:len(packedByBzip2):len(packedByBzip2)], packedByBzip2...), []string{"packedpacked"}, "files unpacked: 1"},
		{"skip.zst", append([]byte{0x50, 0x2a, 0x4d, 0x18, 1, 0, 0, 0, 0}, zstded([]byte("packed"))...), []string{"packed"}, "files unpacked: 1"},
		{"two.jsonl", []byte(utf8Mark + "{\"text\":\"one\"}\n" + utf8Mark + "{\"text\":\"two\"}\n"), []string{"one", "two"}, ""},

		// Encodings.
		{"mark.txt", []byte(utf8Mark + wide), []string{wide}, ""},
		{"little.txt", asUTF16(wide, binary.LittleEndian), []string{wide}, "files converted to UTF-8: 1"},
		{"big.txt", asUTF16(wide, binary.BigEndian), []string{wide}, "files converted to UTF-8: 1"},
		{"little32.txt", asUTF32(wide, binary.LittleEndian), []string{wide}, "files converted to UTF-8: 1"},
		{"big32.txt", asUTF32(wide, binary.BigEndian), []string{wide}, "files converted to UTF-8: 1"},
		{"lone.txt", append(asUTF16(wide, binary.LittleEndian), 0, 0xd8, 'a', 0), []string{wide + "\ufffda"}, "characters that could not be converted: 1, files converted to UTF-8: 1"},
		{"odd.txt.gz", gzipped(append(asUTF16(wide, binary.LittleEndian), 'a')), []string{wide + "\ufffd"}, "characters that could not be converted: 1, files converted to UTF-8: 1, files unpacked: 1"},
		{"tape.txt", []byte(tape), []string{tape}, ""},
		{"wide.jsonl.gz", gzipped(asUTF16(lines, binary.LittleEndian)), documents, "files converted to UTF-8: 1, files unpacked: 1, null and empty documents left out: 2"},
	} {
		path := write(t, c.name, c.data)
		files, err := List([]string{path}, Tally{})
		if err != nil || len(files) != 1 {
			t.Fatal(files, err)
		}
		got, note, err := readAll(files[0], options)
		if err != nil || !slices.Equal(got, c.want) || note.String() != c.note {
			t.Errorf("%s: %q, %q, %v; want %q, %q", c.name, got, note, err, c.want, c.note)
		}
	}
}

func TestWrongFiles(t *testing.T) {
	text := strings.Repeat("a text to pack, 1234567890\n", 300)
	rows := parqueted(t, "one")
	for _, c := range []struct {
		name string
		data []byte
		want string
	}{
		{"a.jsonl", []byte("{\"text\":\"a\"}\n{\"content\":\"b\",\"meta\":{\"n\":1,\"title\":[\"c\"]}}\n"), `line 2: no field "text": text is in "content" "meta.title": take one with ` + "`atoll data build --field NAME`"},
		{"n.jsonl", []byte("{\"n\":1}"), `line 1: no field "text": nor has any other text`},
		{"b.jsonl", []byte(`{"text":7}`), `line 1: field "text" is not text`},
		{"c.jsonl", []byte(`{"text":`), "line 1: it is not one JSON object a line"},
		{"d.jsonl", []byte("{\"text\":\"a\"}\n{\"text\" \"b\"}"), "line 2: it is not one JSON object a line"},
		{"e.jsonl", []byte("[{\"text\":\"a\"}]"), "from an array with `jq -c '.[]'`"},
		{"f.jsonl", []byte("{\n\"text\":\"a\"}"), "from objects with `jq -c .`, or leave broken ones out with atoll data build --skip-broken"},
		{"g.jsonl", []byte("{\"text\":\"caf\xe9\"}"), "line 1: it is not UTF-8 from its byte 12 on: if it is of another encoding convert it"},
		{"h.jsonl", []byte("{\"text\":\"a\"}{}"), "line 1: it is not one JSON object a line"},
		{"list.json", []byte("[\n{\"text\":\"a\"}\n]"), "from an array with `jq -c '.[]'`"},
		{"object.json", []byte("{\n\"text\":\"a\"\n}"), "it is not one JSON object a line"},
		{"content.json", []byte("{\"content\":\"a\"}"), `text is in "content"`},
		{"a.parquet", []byte("PAR1"), "it is cut off or damaged"},
		{"cut.parquet", rows[:len(rows)/2], "it is cut off or damaged"},
		{"two.parquet", append(rows[:len(rows):len(rows)], rows...), "several files of Parquet"},
		{"page.parquet", []byte("<html>not found</html>"), "it is cut off or damaged"},
		{"none.parquet", nil, "it is cut off or damaged"},
		{"a.parquet.gz", gzipped(rows), "unpack it and pass the file"},
		{"none.gz", nil, "it is cut off or damaged"},
		{"cut.txt.gz", gzipped([]byte(text))[:60], "it is cut off or damaged"},
		{"cut.zst", zstded([]byte(text))[:30], "it is cut off or damaged"},
		{"cut.bz2", packedByBzip2[:30], "it is cut off or damaged"},
		{"more.gz", append(gzipped([]byte(text)), "more text behind it"...), "it is cut off or damaged: copy or download it again"},
		{"wrong.gz", []byte("\x1f\x00\x08 and so on"), "it is cut off or damaged"},
		{"a.gz.gz", gzipped(gzipped([]byte(text))), "packed with gzip, which is not read here: unpack it, as with `gzip -d`"},
		{"a.xz", []byte("\xfd7zXZ\x00\x00"), "unpack it, as with `xz -d`"},
		{"a.zip", []byte("PK\x03\x04\x14\x00"), "unpack it, as with `unzip`"},
		{"a.tar.gz", gzipped([]byte("name" + strings.Repeat("\x00", 253) + "ustar\x00")), "unpack it, as with `tar -xf`"},
		{"a.png", []byte("\x89PNG\r\n\x1a\n\x00"), "it is binary"},
		{"a.pdf", []byte("%PDF-1.7\n%\xe2\xe3\xcf\xd3\n"), "it is binary"},
		{"random", []byte("\x8a\x01\xff\x99"), "it is binary"},
		{"latin1.txt", []byte("caf\xe9 au lait"), "it is not UTF-8 from its byte 3 on: if it is of another encoding convert it, from Latin-1 with `iconv -f LATIN1 -t UTF-8`"},
		{"late.txt", []byte(text + text + text + text + text + text + text + text + text + text + "caf\xe9 au lait"), "it is not UTF-8 from its byte 81003 on"},
		{"cut.txt", []byte("caf\xc3"), "it is cut off or damaged"},
		{"odd.txt", append(asUTF16("text", binary.LittleEndian), 'x'), "it is cut off or damaged"},
		{"pointer.txt", []byte("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12345\n"), "`git lfs pull`"},
		{"odd.bin", []byte{1, 0, 2}, "it is cut off or damaged"},
		{"short.bin", llmc(llmcMagic16, 3, []byte{1, 0}), "it is cut off or damaged"},
		{"huge.bin", llmc(llmcMagic32, 1, []byte{0, 0, 0, 0xff}), "is no token"},
	} {
		_, _, err := readAll(File{Path: write(t, c.name, c.data), Size: int64(len(c.data))}, options)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), c.name) {
			t.Errorf("%s: error %v, want one of the file and %q", c.name, err, c.want)
		}
	}
}

// TestFields: fields of JSON and columns of Parquet have the same names and the same texts.
func TestFields(t *testing.T) {
	const lines = `{"text":"one","id":0,"meta":{"text":"meta of one","list":["one","","list"]},"Tags":["a","one"]}
{"text":null,"id":1,"meta":{"text":"meta of null","list":[]},"Tags":["a","null"]}
{"text":"two","id":2,"meta":{"text":"meta of two","list":["two","","list"]},"Tags":["a","two"]}
`
	for field, want := range map[string][]string{
		"text": {"one", "two"}, "meta.text": {"meta of one", "meta of null", "meta of two"}, "meta.list": {"one\n\nlist", "two\n\nlist"}, "Tags": {"a\none", "a\nnull", "a\ntwo"},
	} {
		for name, data := range map[string][]byte{"a.jsonl": []byte(lines), "a.parquet": parqueted(t, "one", "null", "two")} {
			got, _, err := readAll(File{Path: write(t, name, data), Size: int64(len(data))}, Options{Field: field})
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("%s of %s is %q, %v; want %q", field, name, got, err, want)
			}
		}
	}
	for _, field := range []string{"body", "id"} {
		for name, data := range map[string][]byte{"a.jsonl": []byte(lines), "a.parquet": parqueted(t, "one", "null", "two")} {
			_, _, err := readAll(File{Path: write(t, name, data), Size: int64(len(data))}, Options{Field: field})
			if err == nil || !strings.Contains(err.Error(), strconv.Quote(field)) || field == "body" && !strings.Contains(err.Error(), `text is in "Tags" "meta.list" "meta.text" "text": take one`) {
				t.Errorf("%s of %s: error %v", field, name, err)
			}
		}
	}
	long, want := parqueted(t, "one"), []string{"one\n\nlist"}
	if got, _, err := readAll(File{Path: write(t, "b.parquet", long), Size: int64(len(long))}, Options{Field: "meta.list.list.element"}); err != nil || !slices.Equal(got, want) {
		t.Errorf("a list by the name of its column: %q, %v", got, err)
	}
	if got, _, err := readAll(File{Path: write(t, "b.jsonl", nil)}, options); err != nil || got != nil {
		t.Errorf("no lines: %q, %v", got, err)
	}
}

func TestBrokenLines(t *testing.T) {
	path := write(t, "a.jsonl", []byte("{\"text\":\"a\"}\n{\"text\n{\"tex\":\"b\"}\n{\"text\":\"c\"}\n\"text\"\n{\"text\":\"d\"}"))
	got, note, err := readAll(File{Path: path}, Options{Field: "text", Broken: 3})
	if err != nil || !slices.Equal(got, []string{"a", "c", "d"}) || note.String() != "broken documents left out: 3" {
		t.Errorf("%q, %q, %v", got, note, err)
	}
	if got, _, err := readAll(File{Path: path}, Options{Field: "text", Broken: 2}); err == nil || !strings.Contains(err.Error(), "line 5: ") || len(got) != 2 {
		t.Errorf("%q, %v: want an error of the third broken line", got, err)
	}
	rows := parqueted(t, "one", "\xff", "two")
	got, note, err = readAll(File{Path: write(t, "a.parquet", rows), Size: int64(len(rows))}, Options{Field: "text", Broken: 1})
	if err != nil || !slices.Equal(got, []string{"one", "two"}) || note[Broken] != 1 {
		t.Errorf("%q, %q, %v", got, note, err)
	}
	if _, _, err = readAll(File{Path: write(t, "a.parquet", rows), Size: int64(len(rows))}, options); err == nil || !strings.Contains(err.Error(), "row 2: its text is not UTF-8") {
		t.Error(err)
	}
}

// TestLongTextsAreCut: the parts together are the text, and each begins a line where the
// text has lines, or a rune.
func TestLongTextsAreCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		piece := rapid.SampledFrom([]string{"a line of words\n", "words, no lines ", "ünïcödé…", "par\n\n"})
		var b strings.Builder
		for b.Len() < 3*MaxText {
			b.WriteString(strings.Repeat(piece.Draw(t, "piece"), rapid.IntRange(1, 6000).Draw(t, "times")))
		}
		text := b.String()
		r := &textReader{counter: &counter{}, in: bufio.NewReaderSize(strings.NewReader(text), bufferSize)}
		var all []byte
		for {
			d, err := r.Next()
			if err == io.EOF {
				break
			}
			if len(d.Text) == 0 || len(d.Text) > MaxText {
				t.Fatalf("a document of %d bytes", len(d.Text))
			}
			if err != nil || !d.Part {
				t.Fatalf("error %v, part %v", err, d.Part)
			}
			all = append(all, d.Text...)
		}
		if string(all) != text {
			t.Fatal("the documents together are not the text")
		}
	})
}

// A folder is read although some of what is in it is no text, and tells what was left out. Lines of JSON of other names are text unless the
// field is there.
func TestFoldersOfOthers(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a.txt": "plain\n", "latin.txt": "caf\xe9 au lait\n", "app.log": "{\"level\":\"info\"}\n{\"level\":\"warn\"}\n",
		"number.txt": "{\"text\": 1}\nis prose\n", "said.log": "{\"text\":\"said\"}\n", "image.gz": "\x1f\x8b\x08\x00",
	} {
		if name == "image.gz" {
			text = string(gzipped([]byte("\x00\x01")))
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tally := Tally{}
	files, err := List([]string{dir}, tally)
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, f := range files {
		err := f.Each(Options{Field: "text", End: -1, Tally: tally}, func(d Document, _ int64) error {
			all.Write(d.Text)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	want := "plain\n{\"level\":\"info\"}\n{\"level\":\"warn\"}\n{\"text\": 1}\nis prose\nsaid"
	if all.String() != want {
		t.Errorf("%q, want %q", all.String(), want)
	}
	if got := tally.String(); got != "binary files left out: 1, files that are not UTF-8 left out, the first of them "+filepath.Join(dir, "latin.txt")+": 1" {
		t.Error(got)
	}
}
