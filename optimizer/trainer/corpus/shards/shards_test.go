package shards

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"atoll/tensor/token"
)

// example is a manifest of bytes with two shards, and what is in them.
func example() (*Manifest, [][]int32) {
	tokens := [][]int32{{1, 2, 3}, {4, 5, 255}}
	m := &Manifest{Format: Format, Name: "example", Licence: "CC0-1.0", Tokenizer: ByteTokenizer(), Width: 2, Mirrors: []string{"https://example.org/a"}}
	for i, ids := range tokens {
		s := Shard{Digest: Sum(AppendTokens(nil, 2, ids)), Tokens: 3, Bytes: 3}
		if i == 0 {
			m.HeldOut = append(m.HeldOut, s)
		} else {
			m.Shards = append(m.Shards, s)
		}
	}
	return m, tokens
}

func writeExample(t *testing.T) *Dir {
	t.Helper()
	m, tokens := example()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, shardFolder), 0o755); err != nil {
		t.Fatal(err)
	}
	for i, s := range slices.Concat(m.HeldOut, m.Shards) {
		if err := WriteFile(ShardFile(dir, s.Digest), AppendTokens(nil, 2, tokens[i])); err != nil {
			t.Fatal(err)
		}
	}
	if err := WriteFile(filepath.Join(dir, ManifestFile), m.Encode()); err != nil {
		t.Fatal(err)
	}
	d, err := OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// golden is the canonical form: other programs read it, and its hash names the corpus.
const golden = `{
 "atoll_corpus": 1,
 "name": "example",
 "licence": "CC0-1.0",
 "tokenizer": {
  "name": "byte",
  "size": 256,
  "end": -1,
  "digest": "0000000000000000000000000000000000000000000000000000000000000000"
 },
 "width": 2,
 "seed": 0,
 "mirrors": [
  "https://example.org/a"
 ],
 "held_out": [
  {
   "digest": "2628ed7d3cb918f76dbdd6e6e6b0538f271519c4997cd6144a69939af9f6845c",
   "tokens": 3,
   "bytes": 3
  }
 ],
 "shards": [
  {
   "digest": "33789a280ed2d6ef4b10f98a32182629f7316d378e371207b94ebc9f0427f269",
   "tokens": 3,
   "bytes": 3
  }
 ]
}
`

func TestCanonicalForm(t *testing.T) {
	m, _ := example()
	if got := string(m.Encode()); got != golden {
		t.Errorf("the manifest is\n%s\nwant\n%s", got, golden)
	}
	parsed, err := Parse([]byte(golden))
	if err != nil {
		t.Fatal(err)
	}
	if parsed.Digest() != m.Digest() {
		t.Error("the manifest has another digest after it was read")
	}
	for name, other := range map[string]string{
		"spaces":          strings.ReplaceAll(golden, "\n ", "\n  "),
		"order of fields": strings.Replace(golden, ` "name": "example",`+"\n"+` "licence": "CC0-1.0",`, ` "licence": "CC0-1.0",`+"\n"+` "name": "example",`, 1),
		"a field more":    strings.Replace(golden, ` "width"`, ` "depth": 1,`+"\n"+` "width"`, 1),
		"no mirrors":      strings.Replace(golden, "[\n  \"https://example.org/a\"\n ]", "null", 1),
		"something after": golden + "\n",
	} {
		if _, err := Parse([]byte(other)); err == nil {
			t.Errorf("%s: another form was taken", name)
		}
	}
}

func TestValidate(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Manifest)
		want   string
	}{
		"format":        {func(m *Manifest) { m.Format = 3 }, "format 3"},
		"width":         {func(m *Manifest) { m.Width = 4 }, "need 2"},
		"name":          {func(m *Manifest) { m.Name = "a\x1b[2J" }, "control character"},
		"no end":        {func(m *Manifest) { m.Tokenizer.End = 256 }, "end token"},
		"no digest":     {func(m *Manifest) { m.Tokenizer.Size = 300 }, "no digest"},
		"mirror":        {func(m *Manifest) { m.Mirrors = []string{"file:///etc"} }, "mirror"},
		"mirrors":       {func(m *Manifest) { m.Mirrors = slices.Repeat(m.Mirrors, 17) }, "17 mirrors"},
		"none held out": {func(m *Manifest) { m.HeldOut = nil }, "none that are held out"},
		"twice":         {func(m *Manifest) { m.Shards = m.HeldOut }, "twice"},
		"empty shard":   {func(m *Manifest) { m.Shards[0].Tokens = 0 }, "0 tokens"},
		"large shard":   {func(m *Manifest) { m.Shards[0].Tokens = MaxShard }, "a shard has 1 to"},
	} {
		m, _ := example()
		c.change(m)
		if err := m.Validate(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one that says %q", name, err, c.want)
		}
	}
}

func TestRead(t *testing.T) {
	d := writeExample(t)
	_, tokens := example()
	for i, s := range slices.Concat(d.Manifest.HeldOut, d.Manifest.Shards) {
		if got, err := d.Read(t.Context(), s); err != nil || !slices.Equal(got, tokens[i]) {
			t.Errorf("shard %d is %v, %v", i, got, err)
		}
	}
	s := d.Manifest.Shards[0]
	path := ShardFile(d.Path, s.Digest)
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"a bit": {append([]byte{good[0] ^ 1}, good[1:]...), "its bytes are damaged"},
		"short": {good[:5], "has 5 bytes"},
		"long":  {append(good, 0, 0), "has 8 bytes"},
	} {
		if err := os.WriteFile(path, c.data, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := d.Read(t.Context(), s); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one that says %q", name, err, c.want)
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Read(t.Context(), s); !errors.Is(err, ErrMissing) {
		t.Errorf("error %v of a shard that is not there", err)
	}
}

// TestTokensBeyondTheVocabulary: the right bytes of a wrong builder are refused too.
func TestTokensBeyondTheVocabulary(t *testing.T) {
	m, _ := example()
	b := AppendTokens(nil, 2, []int32{1, 256})
	if _, err := m.Decode(Shard{Digest: Sum(b), Tokens: 2}, b); err == nil || !strings.Contains(err.Error(), "the token 256, of 256 ids") {
		t.Errorf("error %v", err)
	}
}

func TestTokensComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := Manifest{Width: rapid.SampledFrom([]int{2, 4}).Draw(t, "width")}
		m.Tokenizer.Size = 1 << (8*m.Width - 1)
		if m.Width == 4 {
			m.Tokenizer.Size--
		}
		tokens := rapid.SliceOfN(rapid.Int32Range(0, int32(m.Tokenizer.Size-1)), 1, 50).Draw(t, "tokens")
		b := AppendTokens(nil, m.Width, tokens)
		got, err := m.Decode(Shard{Digest: Sum(b), Tokens: int64(len(tokens))}, b)
		if err != nil || !slices.Equal(got, tokens) {
			t.Fatalf("%v, %v; want %v", got, err, tokens)
		}
	})
}

func TestTokenizer(t *testing.T) {
	d := writeExample(t)
	if got, err := d.Tokenizer(); err != nil || got != token.Byte {
		t.Errorf("%v, %v", got, err)
	}
	trainer, _ := token.NewTrainer(300)
	trainer.Add([]byte("rays of rays"))
	file := trainer.Train().JSON()
	d.Manifest.Tokenizer = Tokenizer{Name: "test", Size: 300, Digest: Sum(file)}
	if _, err := d.Tokenizer(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v without tokenizer.json", err)
	}
	path := filepath.Join(d.Path, TokenizerFile)
	if err := os.WriteFile(path, append(file, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Tokenizer(); err == nil || !strings.Contains(err.Error(), "has the digest") {
		t.Errorf("error %v of another tokenizer.json", err)
	}
	if err := os.WriteFile(path, file, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Tokenizer(); err == nil || !strings.Contains(err.Error(), "ids, the manifest wants 300") {
		t.Errorf("error %v of a tokenizer of another size", err)
	}
}

// FuzzParse: what is taken is canonical and valid, and nothing makes Parse panic.
func FuzzParse(f *testing.F) {
	f.Add([]byte(golden))
	f.Add(mixed().Encode())
	f.Add([]byte(`{"atoll_corpus":1}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := Parse(b)
		if err != nil {
			return
		}
		if !bytes.Equal(m.Encode(), b) || m.Validate() != nil || !json.Valid(b) {
			t.Fatalf("took %q", b)
		}
	})
}

func TestHeldOut(t *testing.T) {
	d := writeExample(t)
	all, err := d.HeldOut(t.Context(), token.Byte, 100, 1)
	if err != nil || len(all.Windows) != 2 || all.Bytes != 2 || !slices.Equal(all.Windows[1], []int32{2, 3}) {
		t.Errorf("%+v, %v; want both windows of the held-out shard", all, err)
	}
	if one, err := d.HeldOut(t.Context(), token.Byte, 1, 1); err != nil || len(one.Windows) != 1 || one.Bytes != 1 {
		t.Errorf("%+v, %v; want one window", one, err)
	}
	d.Manifest.Tokenizer.End = 3
	if all, _ := d.HeldOut(t.Context(), token.Byte, 100, 1); all.Bytes != 1 {
		t.Errorf("%d bytes, want one: the end of a document is no text", all.Bytes)
	}
	if err := os.Remove(ShardFile(d.Path, d.Manifest.HeldOut[0].Digest)); err != nil {
		t.Fatal(err)
	}
	if _, err := d.HeldOut(t.Context(), token.Byte, 100, 1); !errors.Is(err, ErrMissing) {
		t.Errorf("error %v without the shard", err)
	}
}
