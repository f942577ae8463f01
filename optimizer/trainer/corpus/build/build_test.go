package build

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"atoll/optimizer/trainer/corpus/documents"
	"atoll/optimizer/trainer/corpus/shards"
	"atoll/tensor/token"
)

// inputs writes files and lists them.
func inputs(t testing.TB, files map[string]string) []documents.File {
	t.Helper()
	root := t.TempDir()
	var paths []string
	for _, name := range slices.Sorted(maps.Keys(files)) {
		path := filepath.Join(root, name)
		if err := os.WriteFile(path, []byte(files[name]), 0o644); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	list, err := documents.List(paths, documents.Tally{})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// sentences are documents of words, each another.
func sentences(n int) []string {
	r := rand.New(rand.NewPCG(7, 7))
	words := strings.Fields("the rays of light are not similar but certain dispositions and colours of it")
	list := make([]string, n)
	for i := range list {
		var b strings.Builder
		fmt.Fprintf(&b, "%d:", i)
		for range 5 + r.IntN(200) {
			b.WriteString(" " + words[r.IntN(len(words))])
		}
		list[i] = b.String()
	}
	return list
}

func jsonLines(texts []string) string {
	var b strings.Builder
	for _, text := range texts {
		fmt.Fprintf(&b, "{\"text\":%q}\n", text)
	}
	return b.String()
}

func tokenizerOf(t testing.TB, texts []string) (token.Tokenizer, []byte) {
	t.Helper()
	trainer, err := token.NewTrainer(400)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range texts {
		trainer.Add([]byte(text))
	}
	file := trainer.Train().JSON()
	bpe, err := token.Parse(file)
	if err != nil {
		t.Fatal(err)
	}
	return bpe, file
}

func config(t testing.TB, files []documents.File, texts []string) Config {
	bpe, file := tokenizerOf(t, texts)
	return Config{Out: filepath.Join(t.TempDir(), "corpus"), Inputs: files, Field: "text", Tokenizer: bpe, TokenizerName: "test",
		TokenizerFile: file, Name: "sentences", Licence: "none", Seed: 3, HeldOut: 0.1}
}

// decoded returns the documents of shards, in order.
func decoded(t testing.TB, dir string, list func(*shards.Manifest) []shards.Shard) []string {
	t.Helper()
	d, err := shards.OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	tokenizer, err := d.Tokenizer()
	if err != nil {
		t.Fatal(err)
	}
	var docs []string
	for _, s := range list(d.Manifest) {
		ids, err := d.Read(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		text := string(token.Decode(tokenizer, nil, ids))
		parts := strings.Split(strings.TrimSuffix(text, token.EndName), token.EndName)
		docs = append(docs, parts...)
		if want := int64(len(text) - len(parts)*len(token.EndName)); s.Bytes != want {
			t.Errorf("shard %v is said to have %d bytes of text, it has %d", s.Digest, s.Bytes, want)
		}
	}
	return docs
}

func heldOut(m *shards.Manifest) []shards.Shard { return m.HeldOut }
func train(m *shards.Manifest) []shards.Shard   { return m.Shards }

// files returns the files of a folder and what is in them.
func files(t testing.TB, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		rel, _ := filepath.Rel(dir, path)
		all[rel] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestEveryDocumentIsThereOnce, trained on or held out.
func TestEveryDocumentIsThereOnce(t *testing.T) {
	texts := sentences(500)
	c := config(t, inputs(t, map[string]string{"a.jsonl": jsonLines(texts[:300]), "b.jsonl": jsonLines(texts[200:])}), texts)
	r, err := Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if r.Documents != 600 || r.Duplicates != 100 {
		t.Errorf("%d documents and %d duplicates, want 600 and 100", r.Documents, r.Duplicates)
	}
	held, trained := decoded(t, c.Out, heldOut), decoded(t, c.Out, train)
	got := slices.Concat(held, trained)
	if slices.Equal(got, texts) {
		t.Error("the documents are in the order of the inputs")
	}
	slices.Sort(got)
	if want := slices.Sorted(slices.Values(texts)); !slices.Equal(got, want) {
		t.Errorf("%d documents came back, of %d", len(got), len(want))
	}
	if share := float64(len(held)) / float64(len(got)); share < 0.05 || share > 0.2 {
		t.Errorf("%d of %d documents are held out, want about a tenth", len(held), len(got))
	}
	if _, err := os.Stat(filepath.Join(c.Out, workFolder)); err == nil {
		t.Error("what only the build needed is still there")
	}
}

// TestSameBytes: the order of inputs, how they are packed into files and the number of
// goroutines do not change the corpus; the seed does.
func TestSameBytes(t *testing.T) {
	texts := sentences(90)
	build := func(change func(*Config), split int) map[string]string {
		c := config(t, inputs(t, map[string]string{"a.jsonl": jsonLines(texts[:split]), "b.jsonl": jsonLines(texts[split:])}), texts)
		change(&c)
		if _, err := Run(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		return files(t, c.Out)
	}
	want := build(func(*Config) {}, 30)
	for name, change := range map[string]func(*Config){
		"other files":   func(*Config) {},
		"reversed":      func(c *Config) { slices.Reverse(c.Inputs) },
		"one goroutine": func(c *Config) { c.Workers = 1 },
		"many":          func(c *Config) { c.Workers = 7 },
	} {
		if got := build(change, 60); !maps.Equal(got, want) {
			t.Errorf("%s: another corpus", name)
		}
	}
	if got := build(func(c *Config) { c.Seed++ }, 30); maps.Equal(got, want) {
		t.Error("another seed gave the same corpus")
	}
}

// TestGoesOn interrupts a build at its saves and anywhere else, and compares the outcome.
func TestGoesOn(t *testing.T) {
	texts := sentences(200)
	in := map[string]string{}
	for i := range 10 {
		in[fmt.Sprintf("%d.jsonl", i)] = "{\n" + jsonLines(texts[20*i:20*i+20]) + "{\"text\":null}\n"
	}
	list := inputs(t, in)
	c := config(t, list, texts)
	c.Broken = 9
	if _, err := Run(t.Context(), c); err == nil || !strings.Contains(err.Error(), "9.jsonl: line 1: ") {
		t.Errorf("error %v of one broken line too many", err)
	}
	c.Broken = 10
	result, err := Run(t.Context(), c)
	if err != nil || len(result.Tally) != 2 || result.Tally[documents.Broken] != 10 {
		t.Fatal(result.Tally, err)
	}
	want := files(t, c.Out)
	checked := 0
	rapid.Check(t, func(t *rapid.T) {
		if checked++; checked > 20 && os.Getenv("ATOLL_LONG") == "" { // each writes many files
			return
		}
		c := c
		dir, err := os.MkdirTemp("", "corpus")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		c.Out = filepath.Join(dir, "corpus")
		for range rapid.IntRange(1, 3).Draw(t, "interruptions") {
			interrupt(t, c, rapid.IntRange(0, 150).Draw(t, "documents"))
		}
		again, err := Run(context.Background(), c)
		if err != nil || !maps.Equal(again.Tally, result.Tally) {
			t.Fatal(again.Tally, result.Tally, err)
		}
		got := map[string]string{}
		for name := range want {
			data, err := os.ReadFile(filepath.Join(c.Out, name))
			if err != nil {
				t.Fatal(err)
			}
			got[name] = string(data)
		}
		if !maps.Equal(got, want) {
			t.Fatal("another corpus")
		}
	})
}

// interrupt builds up to so many more documents, saves or not, and leaves the rest of what
// a kill leaves: half a record.
func interrupt(t *rapid.T, c Config, n int) {
	c.Workers, c.Progress = 2, func(Progress) {}
	b, err := open(c)
	if err != nil {
		t.Fatal(err)
	}
	p, in := newPool(b), &stream{b: b}
	defer in.close()
	p.begin()
	for range n {
		d, err := in.next()
		if err != nil {
			break
		}
		d.Text = bytes.Clone(d.Text)
		p.jobs <- []documents.Document{d}
	}
	close(p.jobs)
	p.done.Wait()
	if rapid.Bool().Draw(t, "saved") {
		if err := b.save(); err != nil {
			t.Fatal(err)
		}
	}
	for _, w := range b.buckets.writers {
		if w != nil {
			w.Write([]byte("half a record"))
			w.Flush()
		}
	}
	if err := b.buckets.close(); err != nil {
		t.Fatal(err)
	}
}

func TestCancelled(t *testing.T) {
	texts := sentences(50)
	c := config(t, inputs(t, map[string]string{"a.jsonl": jsonLines(texts)}), texts)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Run(ctx, c); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v of a build that was cancelled", err)
	}
}

// TestTokenFiles: the files of nanoGPT and llm.c give the corpus of the text that they are of.
func TestTokenFiles(t *testing.T) {
	texts := sentences(100)
	c := config(t, inputs(t, map[string]string{"a.jsonl": jsonLines(texts)}), texts)
	if _, err := Run(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	var raw []byte
	e := c.Tokenizer.NewEncoder()
	end, _ := c.Tokenizer.End()
	for _, text := range texts {
		raw = shards.AppendTokens(raw, 2, append(e.Append(nil, []byte(text)), end))
	}
	head := make([]byte, 1024)
	binary.LittleEndian.PutUint32(head, 20240520)
	binary.LittleEndian.PutUint32(head[8:], uint32(len(raw)/2))
	for name, data := range map[string][]byte{"nanogpt.bin": raw, "llmc.bin": append(head, raw...)} {
		other := config(t, inputs(t, map[string]string{name: string(data)}), texts)
		if _, err := Run(t.Context(), other); err != nil {
			t.Fatal(err)
		}
		if !maps.Equal(files(t, other.Out), files(t, c.Out)) {
			t.Errorf("%s gave another corpus", name)
		}
	}
}

// TestShardsAreEven: long documents fill shards of one size, and a longer one than a shard
// is cut.
func TestShardsAreEven(t *testing.T) {
	var long strings.Builder
	r := rand.New(rand.NewPCG(1, 1))
	for long.Len() < 9<<20 {
		fmt.Fprintf(&long, "%x", r.Uint64())
	}
	texts := []string{long.String(), strings.Repeat("short ", 1000), strings.Repeat("words ", 1000)}
	for i := range 60 {
		texts = append(texts, fmt.Sprintf("%d %s", i, long.String()[i*100_000:i*100_000+100_000]))
	}
	c := config(t, inputs(t, map[string]string{"a.jsonl": jsonLines(texts)}), nil)
	c.Tokenizer, c.TokenizerFile = token.Byte, nil
	result, err := Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	tokens, text := shards.Tokens(slices.Concat(result.Manifest.HeldOut, result.Manifest.Shards))
	want := int64(0)
	for _, doc := range texts {
		want += int64(len(doc) + 1) // and a line's end
	}
	if tokens != want || text != want {
		t.Errorf("%d tokens of %d bytes, want %d of each", tokens, text, want)
	}
	if result.Manifest.Tokenizer != shards.ByteTokenizer() || len(result.Manifest.Shards) < 4 {
		t.Errorf("%d shards of %v", len(result.Manifest.Shards), result.Manifest.Tokenizer)
	}
}

func TestWrongConfigs(t *testing.T) {
	texts := sentences(20)
	lines := inputs(t, map[string]string{"a.jsonl": jsonLines(texts)})
	one := inputs(t, map[string]string{"a.txt": "one document"})
	foreign := inputs(t, map[string]string{"a.bin": "\xff\xff"})
	for name, c := range map[string]struct {
		change func(*Config)
		want   string
	}{
		"one document":   {func(c *Config) { c.Inputs = one }, "too few documents"},
		"no document":    {func(c *Config) { c.Inputs = nil }, "too few documents"},
		"all held out":   {func(c *Config) { c.HeldOut = 1 }, "between 0 and 1"},
		"a plain mirror": {func(c *Config) { c.Mirrors = []string{"http://example.org/x"} }, "mirror"},
		"a long name":    {func(c *Config) { c.Name = strings.Repeat("x", 2000) }, "more than"},
		"other tokens":   {func(c *Config) { c.Inputs = foreign }, "ids: pass the tokenizer that made it"},
		"a wrong field":  {func(c *Config) { c.Field = "body" }, "no field"},
	} {
		config := config(t, lines, texts)
		c.change(&config)
		if _, err := Run(t.Context(), config); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one that says %q", name, err, c.want)
		}
	}
	c := config(t, lines, texts)
	if _, err := Run(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if _, err := Run(t.Context(), c); err == nil || !strings.Contains(err.Error(), "has a corpus already") {
		t.Errorf("error %v of a folder that has a corpus", err)
	}
	started := config(t, lines, texts)
	if b, err := open(started); err != nil || b.save() != nil {
		t.Fatal(err)
	}
	started.Seed++
	if _, err := Run(t.Context(), started); err == nil || !strings.Contains(err.Error(), "other inputs or with other flags") {
		t.Errorf("error %v of a folder with another build", err)
	}
}

// TestOneShardIsHeldOut, however large the share.
func TestOneShardIsHeldOut(t *testing.T) {
	w := newWriter(t.TempDir(), 2, 40<<20, 0.5)
	if err := os.MkdirAll(filepath.Dir(shards.ShardFile(w.out, shards.Digest{})), 0o755); err != nil {
		t.Fatal(err)
	}
	for i := range byte(50) {
		if err := w.add(record{shards.Digest{i}, 1, bytes.Repeat([]byte{i, 0}, 350_000)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.close(); err != nil {
		t.Fatal(err)
	}
	if len(w.heldOut) != 1 || len(w.train) < 2 {
		t.Errorf("%d shards are held out and %d trained on, want 1 held out", len(w.heldOut), len(w.train))
	}
}

// TestTokenizersShareTheHeldOut: corpora of two tokenizers have the same documents in the same
// order, so bits per byte of models of both are of the same text.
func TestTokenizersShareTheHeldOut(t *testing.T) {
	texts := sentences(80)
	c := config(t, inputs(t, map[string]string{"a.jsonl": jsonLines(texts)}), texts)
	plain := c
	plain.Out, plain.Tokenizer, plain.TokenizerFile = c.Out+"-bytes", token.Byte, nil
	for _, c := range []Config{c, plain} {
		if _, err := Run(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	d, err := shards.OpenDir(plain.Out)
	if err != nil {
		t.Fatal(err)
	}
	ids, err := d.Read(t.Context(), d.Manifest.HeldOut[0])
	if err != nil {
		t.Fatal(err)
	}
	inBytes := strings.Split(strings.TrimSpace(string(token.Decode(token.Byte, nil, ids))), "\n")
	inTokens := decoded(t, c.Out, heldOut)
	if n := min(len(inBytes), len(inTokens)); n < 3 || !slices.Equal(inBytes[:n], inTokens[:n]) {
		t.Errorf("held out are %q and %q", inBytes, inTokens)
	}
}

// A build tells how much of the shards is written, up to the end.
// TestPrefixIsNoText: tokenizers that put a space before each document count the bytes of the text.
func TestPrefixIsNoText(t *testing.T) {
	texts := sentences(300)
	for name, end := range map[string]string{"llama2": "</s>", "mistral": "</s>", "gemma": "<eos>"} {
		file, err := os.ReadFile("../../../../tensor/token/testdata/" + name + ".json")
		if err != nil {
			t.Fatal(err)
		}
		bpe, err := token.Parse(file)
		if err != nil {
			t.Fatal(err)
		}
		c := config(t, inputs(t, map[string]string{"a.jsonl": jsonLines(texts)}), texts)
		c.Tokenizer, c.TokenizerFile = bpe, file
		result, err := Run(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(bpe.Bytes(result.Manifest.Tokenizer.End)); got != end {
			t.Errorf("%s: the end token is %q, want %q", name, got, end)
		}
		d, err := shards.OpenDir(c.Out)
		if err != nil {
			t.Fatal(err)
		}
		sample, err := d.HeldOut(t.Context(), bpe, 1<<30, 1<<30)
		if err != nil || len(sample.Windows) != 1 {
			t.Fatalf("%s: %d windows, %v; want one", name, len(sample.Windows), err)
		}
		_, text := shards.Tokens(result.Manifest.HeldOut)
		if first := int64(len(token.Text(bpe, true, sample.Windows[0][0]))); sample.Bytes != text-first {
			t.Errorf("%s: the held-out targets have %d bytes, want the %d of the text less the %d of the first token", name, sample.Bytes, text, first)
		}
	}
}

func TestBuildTellsHowMuchIsWritten(t *testing.T) {
	texts := sentences(100)
	c := config(t, inputs(t, map[string]string{"a.jsonl": jsonLines(texts)}), texts)
	last := 0.0
	c.Progress = func(p Progress) {
		if p.Written < last || !p.Writing && p.Written != 0 {
			t.Errorf("%+v after %v", p, last)
		}
		last = p.Written
	}
	if _, err := Run(t.Context(), c); err != nil || last != 1 {
		t.Errorf("written %v, %v", last, err)
	}
}
