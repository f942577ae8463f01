package node

import (
	"context"
	"fmt"
	"math"
	"slices"

	"atoll/node/genesis"
	"atoll/optimizer/outer"
	"atoll/optimizer/trainer"
	"atoll/optimizer/trainer/corpus/shards"
	"atoll/optimizer/trainer/external"
	"atoll/tensor/token"
)

// sharded is the corpus of a run that names one.
type sharded struct {
	dir       *shards.Dir
	source    *shards.Source
	tokenizer token.Tokenizer
	sample    shards.Sample // of the held-out part; empty where nothing is evaluated
}

// readCorpus opens the run's corpus. Nobody trains on another one. An observer who was told
// of none evaluates nothing.
func (n *node) readCorpus() error {
	if n.cfg.Observe && n.cfg.EvalBytes == 0 {
		return nil
	}
	if !n.cfg.Observe && n.cfg.Learner != "" {
		return fmt.Errorf("the run trains on %s, which only the built-in trainer reads: leave --learner out", corpusLabel(n.genesis))
	}
	path, err := n.dataPath()
	if err == nil && path == "" {
		err = fmt.Errorf("the run trains on %s: pass --data DIR with the folder that `atoll data build` made", corpusLabel(n.genesis))
	}
	if err == nil {
		n.corpus, err = openCorpus(n.genesis, path)
	}
	switch {
	case err != nil && n.cfg.Observe && path == "":
		n.evaluateNothing(err.Error())
		return nil
	case err != nil:
		return err
	}
	n.check("remember the text", n.rememberText(path))
	n.check("keep the tokenizer", n.keepTokenizer())
	if n.cfg.EvalBytes == 0 {
		return nil
	}
	if err := n.corpus.readSample(n.cfg.EvalBytes, n.genesis.Model.Context); err != nil {
		n.evaluateNothing("the held-out part of the corpus: " + err.Error())
	}
	return nil
}

// readSample reads what evaluations measure. It keeps its own windows alone: the held-out part may be large.
func (c *sharded) readSample(text, length int) (err error) {
	c.sample, err = c.dir.HeldOut(context.Background(), c.tokenizer, int64(text), length)
	for i, w := range c.sample.Windows {
		c.sample.Windows[i] = slices.Clone(w)
	}
	return err
}

// keepTokenizer copies tokenizer.json to the node's folder: it belongs to the model.
func (n *node) keepTokenizer() error {
	digest := n.corpus.dir.Manifest.Tokenizer.Digest
	if digest == (shards.Digest{}) { // bytes, which have no file
		return nil
	}
	if _, err := shards.ReadTokenizerFile(n.cfg.Dir, digest); err == nil {
		return nil
	}
	file, err := shards.ReadTokenizerFile(n.corpus.dir.Path, digest)
	if err != nil {
		return err
	}
	return n.cfg.disk.WriteFile(n.cfg.Dir, shards.TokenizerFile, file)
}

func corpusLabel(g genesis.Genesis) string {
	return fmt.Sprintf("the corpus %q (manifest %.16s)", g.Data.Name, g.Corpus.Manifest)
}

// openCorpus opens the corpus in a folder, if it is the run's.
func openCorpus(g genesis.Genesis, path string) (*sharded, error) {
	dir, err := shards.OpenDir(path)
	if err != nil {
		return nil, err
	}
	if digest := dir.Manifest.Digest().String(); digest != g.Corpus.Manifest {
		return nil, fmt.Errorf("the run trains on %s, but %s has the corpus %q (manifest %.16s): pass --data DIR with the run's", corpusLabel(g), path, dir.Manifest.Name, digest)
	}
	if digest := dir.Manifest.Tokenizer.Digest.String(); digest != g.Corpus.Tokenizer {
		return nil, fmt.Errorf("the run names the tokenizer %.16s, the manifest of its corpus %.16s: whoever made the run has to make it anew", g.Corpus.Tokenizer, digest)
	}
	c := &sharded{dir: dir}
	if c.tokenizer, err = dir.Tokenizer(); err != nil {
		return nil, err
	}
	if size := c.tokenizer.Size(); g.BuiltIn() && size > g.Model.Vocab {
		return nil, fmt.Errorf("the corpus has %d ids, the model of the run %d: whoever made the run has to make it anew", size, g.Model.Vocab)
	}
	window := shards.Window{Shards: g.Corpus.Shards, Steps: g.Corpus.Steps}
	if c.source, err = shards.NewSource(dir.Manifest, window, dir.Fetch); err != nil {
		return nil, err
	}
	return c, c.source.Fits(g.Model.Context)
}

// text is what the built-in trainer draws batches from.
func (n *node) text() trainer.Source {
	if n.corpus != nil {
		return n.corpus.source
	}
	return n.data
}

// evaluate measures an anchor on the sample.
func (c *sharded) evaluate(ctx context.Context, g genesis.Genesis, tips []*outer.Tip) (external.Evaluation, error) {
	bits, err := trainer.BitsPerByteOf(ctx, g.Model, g.Anchor(tips), c.sample.Windows, c.sample.Bytes)
	targets := 0
	for _, w := range c.sample.Windows {
		targets += len(w) - 1
	}
	return external.Evaluation{Loss: bits * math.Ln2 * float64(c.sample.Bytes) / float64(targets), Tokens: targets, Bytes: int(c.sample.Bytes)}, err
}
