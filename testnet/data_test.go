package testnet

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"atoll/node/genesis"
	corpusbuild "atoll/optimizer/trainer/corpus/build"
	"atoll/optimizer/trainer/corpus/documents"
	"atoll/tensor/token"
)

// builtCorpus is a corpus of words, whose tokens are several bytes each.
func builtCorpus(t *testing.T) string {
	t.Helper()
	var lines strings.Builder
	for i := range 40 {
		lines.WriteString(`{"text":"` + strings.Repeat(string(rune('a'+i%26))+" quick brown fox jumps over a lazy dog. ", 40+i) + "\"}\n")
	}
	file := filepath.Join(t.TempDir(), "words.jsonl")
	if err := os.WriteFile(file, []byte(lines.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	trainer, err := token.NewTrainer(300)
	if err != nil {
		t.Fatal(err)
	}
	trainer.Add([]byte(lines.String()))
	tokenizer := trainer.Train().JSON()
	bpe, err := token.Parse(tokenizer)
	if err != nil {
		t.Fatal(err)
	}
	files, err := documents.List([]string{file}, documents.Tally{})
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "words")
	config := corpusbuild.Config{Out: out, Inputs: files, Field: "text", Tokenizer: bpe, TokenizerName: bpe.Family(), TokenizerFile: tokenizer, Name: "words", HeldOut: 0.1}
	if _, err := corpusbuild.Run(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	return out
}

// A world on a corpus has a genesis that names it, and measures in bits per byte with its
// tokenizer.
func TestWorldOnACorpus(t *testing.T) {
	c, err := Config{Tokens: 5000, Data: builtCorpus(t)}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	d, err := openData(c)
	if err != nil {
		t.Fatal(err)
	}
	g, err := genesisOf(c, d, time.UnixMilli(1234))
	if err != nil {
		t.Fatal(err)
	}
	if g.Corpus == nil || g.Tokenizer() != genesis.CorpusTokenizer || g.Model.Vocab != 300 || g.Data.Name != "words" {
		t.Errorf("genesis %+v", g)
	}
	all, err := d.measure(t.Context(), g, g.NewSlab(), 1e9)
	if err != nil {
		t.Fatal(err)
	}
	some, err := d.measure(t.Context(), g, g.NewSlab(), 200)
	if err != nil {
		t.Fatal(err)
	}
	if all.bits <= 0 || all.bits > 8 || some.bytes >= all.bytes || some.bytes < 200 {
		t.Errorf("%+v of all that is held out, %+v of some", all, some)
	}
	c.Baseline = baselines[1]
	if _, err := openData(c); err == nil || !strings.Contains(err.Error(), "is a corpus: pass the text") {
		t.Errorf("error %v of a baseline on a corpus", err)
	}
}
