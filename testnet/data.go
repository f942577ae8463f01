package testnet

import (
	"context"
	"fmt"
	"math"

	"atoll/node/genesis"
	"atoll/optimizer/trainer"
	"atoll/optimizer/trainer/corpus"
	"atoll/optimizer/trainer/corpus/shards"
	"atoll/tensor"
)

// data is what a world trains on and measures with.
type data interface {
	// describe is what a run goes by of it, if it suits the world's model.
	describe(c Config) (genesis.Text, error)
	// label is its name, and its SHA-256 if it has one.
	label() (name, sha256 string)
	// measure evaluates a model on about so many bytes of what is held out.
	measure(ctx context.Context, g genesis.Genesis, model *tensor.Slab, most float64) (quality, error)
}

// quality is what a model is worth.
type quality struct {
	bits  float64 // per byte
	bytes int     // that were scored
}

// openData opens what --data names.
func openData(c Config) (data, error) {
	if !shards.IsDir(c.Data) {
		text, err := corpus.Open(c.Data)
		return plainText{text}, err
	}
	if c.Baseline != Atoll {
		return nil, fmt.Errorf("--baseline %s trains on texts, and %s is a corpus: pass the text", c.Baseline, c.Data)
	}
	dir, err := shards.OpenDir(c.Data)
	return shardedText{dir}, err
}

// plainText is a text of bytes.
type plainText struct{ *corpus.Corpus }

func (t plainText) describe(c Config) (genesis.Text, error) {
	model, err := genesis.ModelConfig(c.Model)
	if err != nil {
		return genesis.Text{}, err
	}
	return genesis.Text{Name: t.Name(), SHA256: t.SHA256(), Train: len(t.Train())}, t.Fits(model.Context)
}

func (t plainText) label() (name, sha256 string) { return t.Name(), t.SHA256() }

func (t plainText) measure(ctx context.Context, g genesis.Genesis, model *tensor.Slab, most float64) (quality, error) {
	windows := corpus.Windows(t.HeldOut(), g.Model.Context)
	if float64(len(t.HeldOut())) > most {
		windows = t.HeldOutSample(int(most), g.Model.Context)
	}
	bits, err := trainer.BitsPerByte(ctx, g.Model, model, windows)
	if err != nil {
		return quality{}, err
	}
	q := quality{bits: bits}
	for _, w := range windows {
		q.bytes += len(w) - 1
	}
	return q, nil
}

// shardedText is a corpus of shards.
type shardedText struct{ *shards.Dir }

func (t shardedText) describe(c Config) (genesis.Text, error) {
	model, err := genesis.ModelConfig(c.Model)
	if err != nil {
		return genesis.Text{}, err
	}
	return genesis.Text{Name: t.Manifest.Name, Train: int(t.Manifest.Pass()), Corpus: genesis.ShardsOf(t.Manifest)}, t.Manifest.Fits(model.Context)
}

func (t shardedText) label() (name, sha256 string) { return t.Manifest.Name, "" }

func (t shardedText) measure(ctx context.Context, g genesis.Genesis, model *tensor.Slab, most float64) (quality, error) {
	tokenizer, err := t.Tokenizer()
	if err != nil {
		return quality{}, err
	}
	// A token costs what a byte costs, so there is time for more bytes.
	tokens, text := shards.Tokens(t.Manifest.HeldOut)
	sample, err := t.HeldOut(ctx, tokenizer, int64(math.Ceil(most*float64(text)/float64(tokens))), g.Model.Context)
	if err != nil {
		return quality{}, err
	}
	bits, err := trainer.BitsPerByteOf(ctx, g.Model, model, sample.Windows, sample.Bytes)
	return quality{bits: bits, bytes: int(sample.Bytes)}, err
}
