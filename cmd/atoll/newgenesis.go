package main

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"atoll/node/genesis"
	"atoll/optimizer/outer"
	"atoll/optimizer/trainer/corpus"
	"atoll/optimizer/trainer/corpus/shards"
	"atoll/tensor/codec"
)

// genesis is the default genesis of the model with the flags on top, and the tokens that there are to train on. It is
// valid only when links have chosen H.
func (c *NewCmd) genesis(now time.Time) (g genesis.Genesis, train int, err error) {
	if err := c.check(); err != nil {
		return g, 0, err
	}
	budget := uint64(1) // Enough takes its place when H is known
	if c.Tokens != nil {
		budget = uint64(*c.Tokens)
	}
	if g, err = genesis.Default(c.model(), budget, c.Seed, now.UnixMilli()); err != nil {
		return g, 0, err
	}
	if err := c.checkModel(g); err != nil {
		return g, 0, err
	}
	if err := g.SetOptimizer(builtinOptimizer(c.Optimizer)); err != nil {
		return g, 0, err
	}
	if err := c.setCodec(&g); err != nil {
		return g, 0, err
	}
	c.apply(&g) // SetH goes by the codec
	if train, err = c.setData(&g); err != nil {
		return g, 0, err
	}
	return g, train, g.SetProfile(c.Profile)
}

// setData says what the run trains on, and returns how many tokens that has.
func (c *NewCmd) setData(g *genesis.Genesis) (train int, err error) {
	if shards.IsDir(c.Data) {
		return c.setCorpus(g)
	}
	if err := g.FitBytes(); err != nil {
		return 0, err
	}
	text, err := corpus.Open(c.Data)
	if err != nil {
		return 0, err
	}
	g.Data = genesis.Data{Name: text.Name(), SHA256: text.SHA256()}
	if c.OwnData {
		c.unlike(g)
	}
	return len(text.Train()), text.Fits(g.Model.Context)
}

// setCorpus has the run train on the corpus that --data names. Of a mixture it returns the tokens after which one of
// its corpora begins again.
func (c *NewCmd) setCorpus(g *genesis.Genesis) (train int, err error) {
	dir, err := shards.OpenDir(c.Data)
	if err != nil {
		return 0, err
	}
	m := dir.Manifest
	if err := g.FitVocab(m.Tokenizer.Size); err != nil {
		return 0, err
	}
	tokens, _ := shards.Tokens(m.Shards)
	g.SetCorpus(m.Name, m.Digest().String(), m.Tokenizer.Digest.String(), m.Tokenizer.Size, tokens/int64(len(m.Shards)))
	if c.OwnData {
		c.unlike(g)
		g.Corpus.Own = true
	}
	return int(m.Pass()), m.Fits(g.Model.Context)
}

// unlike makes a run one in which each learner has a text of its own. What such learners have in common
// says little about their work.
func (c *NewCmd) unlike(g *genesis.Genesis) {
	g.Data, g.Outer.Agreement, g.Outer.Alike = genesis.Data{Name: genesis.OwnText}, false, false
}

// setCodec gives the run the codec that was asked for.
func (c *NewCmd) setCodec(g *genesis.Genesis) (err error) {
	if c.Codec != auto {
		g.Outer.Codec, err = codec.Parse(c.Codec)
	}
	return err
}

// checkModel refuses flags that the model, or what all runs have in common, does not allow.
func (c *NewCmd) checkModel(g genesis.Genesis) error {
	if most := len(g.Model.Specs()); c.Fragments > most {
		return badUsage("--fragments is %d; the model has only %d tensors", c.Fragments, most)
	}
	if least := g.Outer.Quorum; c.Answerers != 0 && (c.Answerers < least || c.Answerers > outer.MaxAnswerers) {
		return badUsage("--answerers is %d; use %d to %d, or leave it out", c.Answerers, least, outer.MaxAnswerers)
	}
	return nil
}

// maxName bounds the bytes of a run's name.
const maxName = 200

// check refuses flags that no genesis can have.
func (c *NewCmd) check() error {
	switch {
	case len(c.Name) > maxName:
		return badUsage("--name has %d bytes; use at most %d", len(c.Name), maxName)
	case c.Tokens != nil && *c.Tokens < 1:
		return badUsage("--tokens is %d; use 1 or more, or leave it out", *c.Tokens)
	case c.OwnData && c.Data == "":
		return badUsage("--own-data needs --data PATH with the text of this machine")
	}
	if dir := filepath.Dir(c.Out); c.Out != "" {
		if info, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir() {
			return badUsage("--out %s: there is no folder %s: make it first, or name another file", c.Out, dir)
		}
	}
	return cmp.Or(c.runFlags.check(), c.checkLinks())
}

// apply puts the flags that were given into a genesis.
func (c *NewCmd) apply(g *genesis.Genesis) {
	set(&g.Name, c.Name)
	set(&g.Outer.Fragments, c.Fragments)
	set(&g.Outer.Answerers, c.Answerers)
	g.Outer.SetH(cmp.Or(c.H, outer.DefaultH(g.Outer.Codec))) // again, as it depends on the codec
	c.followH(g)
	g.Outer.SetLearners(c.Learners)
	if c.Batch > 0 {
		g.Outer.MaxTokensPerStep = g.Outer.MaxTokensPerStep / uint64(g.Batch) * uint64(c.Batch)
	}
	set(&g.Batch, c.Batch)
}

// followH sets what goes with H, unless it was asked for: the merge, after SetH, and the rate, which goes with that.
func (c *NewCmd) followH(g *genesis.Genesis) {
	if merge := asked(c.Merge); merge != "" {
		g.Outer.SetMerge(merge)
	} else if !g.BuiltIn() && !g.TipsFit() {
		g.Outer.SetMerge(outer.MergeRDA) // it needs no momentum, which is half of what joiners are given
	}
	if g.BuiltIn() {
		g.SetRate(true)
	}
	set(&g.Inner.LR, c.LR)
}

func set[T comparable](field *T, value T) {
	var zero T
	if value != zero {
		*field = value
	}
}
