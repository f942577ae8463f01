package inspect

import (
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"atoll/gossip/wire"
	"atoll/node/genesis"
	"atoll/tensor/llama"
	"atoll/tensor/token"
)

// A built-in model of a corpus is exported with its tokenizer, whose token after a document ends what it generates.
func TestExportOfACorpus(t *testing.T) {
	trainer, err := token.NewTrainer(token.MinSize)
	if err != nil {
		t.Fatal(err)
	}
	file, home := trainer.Train().JSON(), t.TempDir()
	if err := os.WriteFile(filepath.Join(home, "tokenizer.json"), file, 0o600); err != nil {
		t.Fatal(err)
	}
	d := wire.Sum(file)
	g, _, err := genesis.Spec{Model: llama.Tiny, Tokens: 1e6, Text: genesis.Text{Name: "web", Corpus: &genesis.Shards{
		Manifest: strings.Repeat("0a", 32), Tokenizer: hex.EncodeToString(d[:]), Vocab: token.MinSize,
	}}}.Make()
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "model")
	if err := Export(home, g, out, g.NewSlab(), 1, "bfloat16"); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"config.json": `"eos_token_id": 0,`, "tokenizer_config.json": `"eos_token": "\u003c|endoftext|\u003e"`, "tokenizer.json": string(file)} {
		if b, err := os.ReadFile(filepath.Join(out, name)); err != nil || !strings.Contains(string(b), want) {
			t.Errorf("%s: %v: %.2000s", name, err, b)
		}
	}
	if err := os.WriteFile(filepath.Join(home, "tokenizer.json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Export(home, g, out+"2", g.NewSlab(), 1, ""); err == nil || !strings.Contains(err.Error(), "copy tokenizer.json") {
		t.Error(err)
	}
}

// What puts a token before each text is left out of exports, and nothing else.
func TestBare(t *testing.T) {
	for file, want := range map[string]string{
		`{"model":{},"post_processor":{"type":"TemplateProcessing","single":[]}}`: `{"model":{},"post_processor":null}`,
		`{"post_processor":{"type":"ByteLevel"},"model":{}}`:                      `{"post_processor":{"type":"ByteLevel"},"model":{}}`,
		`{"post_processor":null}`:                                                 `{"post_processor":null}`, `{}`: `{}`,
	} {
		if got := string(bare([]byte(file))); got != want {
			t.Errorf("%s: %s, want %s", file, got, want)
		}
	}
}
