package main

import (
	"time"

	"atoll/node/genesis"
	"atoll/optimizer/trainer/corpus"
	"atoll/optimizer/trainer/corpus/shards"
	"atoll/tensor/codec"
)

// spec is what the flags choose of a run, but its owners.
func (c *NewCmd) spec(now time.Time) (s genesis.Spec, err error) {
	s = genesis.Spec{
		Name: c.Name, Seed: c.Seed, CreatedMs: now.UnixMilli(), Context: c.Context, Batch: c.Batch, Optimizer: asked(c.Optimizer), LR: c.LR,
		H: c.H, Fragments: c.Fragments, Answerers: c.Answerers, Merge: asked(c.Merge), Learners: c.Learners,
		WindowBytes: float64(c.Window), Profile: c.Profile,
	}
	if c.Tokens != nil {
		s.Tokens = uint64(*c.Tokens)
	}
	if c.Codec != auto {
		if s.Codec, err = codec.Parse(c.Codec); err != nil {
			return s, err
		}
	}
	if c.From != "" {
		s.From, err = genesis.ReadModel(c.From)
	} else {
		s.Model, err = genesis.ModelConfig(c.model())
		set(&s.Name, c.modelName())
	}
	if err != nil {
		return s, err
	}
	s.Text, err = c.text()
	return s, err
}

// modelName is what the run is called where nobody named it.
func (c *NewCmd) modelName() string {
	if c.Name != "" {
		return c.Name
	}
	return genesis.ModelLabel(c.model())
}

// text is what --data names, as far as a run goes by it.
func (c *NewCmd) text() (t genesis.Text, err error) {
	t.Own = c.OwnData
	switch {
	case c.From != "" && c.Data == "":
		return t, nil // learners bring their own
	case shards.IsDir(c.Data):
		dir, err := shards.OpenDir(c.Data)
		if err != nil {
			return t, err
		}
		m := dir.Manifest
		tokens, _ := shards.Tokens(m.Shards)
		t.Name, t.Train = m.Name, int(m.Pass())
		t.Corpus = &genesis.Shards{
			Manifest: m.Digest().String(), Tokenizer: m.Tokenizer.Digest.String(), Vocab: m.Tokenizer.Size, ShardTokens: tokens / int64(len(m.Shards)),
		}
		return t, nil
	}
	text, err := corpus.Open(c.Data)
	if err != nil {
		return t, err
	}
	t.Name, t.SHA256, t.Train = text.Name(), text.SHA256(), len(text.Train())
	return t, nil
}

// links is what --bandwidth says of the machines of the run.
func (c *NewCmd) links(g genesis.Genesis, step time.Duration) *genesis.Links {
	return &genesis.Links{
		BytesPerSecond: c.Bandwidth.bytesPerSecond(), StepSeconds: step.Seconds(), FreeCores: !g.BuiltIn() || c.Step != 0 && g.Large(),
	}
}
