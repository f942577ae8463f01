package documents

import (
	"bytes"
	"encoding/binary"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// samples are a small file of each format.
func samples(t testing.TB) map[string][]byte {
	const text, lines = "the rays of light\nare not similar\n", "{\"text\":\"the rays\"}\n{\"text\":\"of light\",\"n\":[1,{}]}\n"
	return map[string][]byte{
		"a.txt": []byte(text), "a.jsonl": []byte(lines), "a.json": []byte(lines), "a.gz": gzipped([]byte(text)), "a.zst": zstded([]byte(text)), "a.bz2": packedByBzip2,
		"two.gz": append(gzipped([]byte(text)), gzipped([]byte(text))...), "a.jsonl.gz": gzipped([]byte(lines)),
		"utf16.txt": asUTF16(text, binary.LittleEndian), "utf32.jsonl": asUTF32(lines, binary.BigEndian), "mark.jsonl": []byte(utf8Mark + lines),
		"a.parquet": parqueted(t, "the rays", "null", "of light"), "a.bin": {1, 0, 0, 0, 2, 0}, "llmc.bin": llmc(llmcMagic16, 2, []byte{1, 0, 0, 0}),
	}
}

// innerWords are those of libraries and of the language.
var innerWords = regexp.MustCompile(`jsontext|(gzip|zstd|flate|bzip2|parquet|unicode): |thrift|magic|EOF|invalid|runtime|panic|slice|nil|0x|Kind|readat|<`)

// quoted is what a message cites.
var quoted = regexp.MustCompile(`"(\\.|[^"\\])*"`)

// readBytes reads a file that is not on disk.
func readBytes(name string, data []byte, o Options) (all []string, t Tally, err error) {
	f := File{Path: name, Size: int64(len(data))}
	o.Tally = Tally{}
	n := &Reader{of: f, Options: o}
	if n.reader, err = f.reader(&counter{r: bytes.NewReader(data)}, o); err != nil {
		return nil, o.Tally, f.explain(err)
	}
	for len(all) <= len(data) {
		d, err := n.Next()
		if err != nil {
			if err == io.EOF {
				err = nil
			}
			return all, o.Tally, err
		}
		all = append(all, string(d.Text))
	}
	panic("more documents than bytes")
}

func packed(data []byte) bool {
	kind, _ := packing(data)
	return kind != ""
}

// TestDamage: of a file that is cut or has a wrong bit nothing is read beside a good end, or what is read was in it.
func TestDamage(t *testing.T) {
	for name, data := range samples(t) {
		whole, _, err := readBytes(name, data, options)
		if err != nil || len(whole) == 0 && !strings.HasSuffix(name, ".bin") {
			t.Fatalf("%s: %q, %v", name, whole, err)
		}
		sealed := packed(data) || isParquet(data) // its end and its content are checked
		for n := range data {
			got, _, err := readBytes(name, data[:n], options)
			if sealed && err == nil && !(name == "two.gz" && n == len(data)/2) {
				t.Errorf("%s, cut to %d of %d bytes, is read as %q", name, n, len(data), got)
			}
			wantPlain(t, name, err)
		}
		for at := range 2 * len(data) {
			wrong := bytes.Clone(data)
			wrong[at/2] ^= []byte{1 << (at / 2 % 8), 0xff}[at%2]
			got, _, err := readBytes(name, wrong, options)
			if sealed && !isParquet(data) && err == nil && !slices.Equal(got, whole) {
				t.Errorf("%s with byte %d flipped is read as %q", name, at/2, got)
			}
			wantPlain(t, name, err)
		}
	}
}

func wantPlain(t *testing.T, name string, err error) {
	t.Helper()
	if err == nil {
		return
	}
	if word := innerWords.FindString(quoted.ReplaceAllString(strings.ReplaceAll(err.Error(), name, ""), "")); word != "" || !strings.Contains(err.Error(), name) {
		t.Errorf("%s: the error has the inner word %q, or not the name: %v", name, word, err)
	}
}

// FuzzFile: no bytes in any format make the reader fail other than by an error in plain words that names the file, and none goes on forever. What is
// read is UTF-8, and the same when it is read again.
func FuzzFile(f *testing.F) {
	names := []string{"a.txt", "a.jsonl", "a.json", "a.gz", "a.zst", "a.bz2", "a.parquet", "a.bin", "a", "a.bin.gz"}
	for name, data := range samples(f) {
		f.Add(uint8(max(slices.Index(names, name), 0)), data)
	}
	f.Fuzz(func(t *testing.T, kind uint8, data []byte) {
		name, o := names[int(kind)%len(names)], Options{Field: []string{"text", "meta.list", "Tags"}[int(kind)/len(names)%3], Broken: int64(kind) / 64}
		first, counted, err := readBytes(name, data, o)
		wantPlain(t, name, err)
		for _, text := range first {
			if strings.ToValidUTF8(text, "") != text {
				t.Fatalf("%q is not UTF-8", text)
			}
		}
		again, countedAgain, errAgain := readBytes(name, data, o)
		if !slices.Equal(first, again) || !maps.Equal(counted, countedAgain) || (err == nil) != (errAgain == nil) {
			t.Fatalf("%q, %v, %v; read again it is %q, %v, %v", first, counted, err, again, countedAgain, errAgain)
		}
	})
}
