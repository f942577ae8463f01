package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"atoll/optimizer/trainer/corpus/shards"
)

const dataShowHelp = `
Shows what a corpus has: its digest, its tokenizer, what is trained on and what is held out, and how many of its shards are in the folder. For a mixture it shows each corpus and its share of the rows that are read.

With --verify it reads every shard instead and compares it with the manifest, and the tokenizer too. Exit code 0 if all is there and right. If not, exit code 1, and the answer names what is damaged and what is missing.

    atoll data show corpus
    atoll data show corpus --verify`

// DataShowCmd is `atoll data show`.
type DataShowCmd struct {
	Corpus string `arg:"" help:"Folder of the corpus."`
	Verify bool   `help:"Check every byte."`
	jsonFlag
}

// Help implements kong.HelpProvider.
func (*DataShowCmd) Help() string { return dataShowHelp }

// Run shows.
func (c *DataShowCmd) Run(ctx context.Context, out *console) error {
	d, err := shards.OpenDir(c.Corpus)
	if err != nil {
		return err
	}
	if c.Verify {
		return c.verify(ctx, out, d)
	}
	return printCorpus(out, c.JSON, c.Corpus, d.Manifest)
}

// corpusVerdict is the answer of `atoll data show --verify`.
type corpusVerdict struct {
	OK      bool     `json:"ok"`
	Digest  string   `json:"digest"`
	Shards  int      `json:"shards"` // that are right
	Missing []string `json:"missing"`
	Errors  []string `json:"errors"`
}

func (c *DataShowCmd) verify(ctx context.Context, out *console, d *shards.Dir) error {
	v, err := verifyCorpus(ctx, out, d)
	if err != nil {
		return err
	}
	if c.JSON {
		err = out.json(v)
	} else if v.OK {
		out.answer("ok: %s and the tokenizer of %s", plural(v.Shards, "shard", "shards"), v.Digest)
	}
	for _, text := range v.Errors {
		out.say("%s", text)
	}
	if err == nil && !v.OK {
		err = fmt.Errorf("%s: %d shards are right, %d missing, and %s: build the corpus anew, or copy those files again",
			c.Corpus, v.Shards, len(v.Missing), plural(len(v.Errors), "file is wrong", "files are wrong"))
	}
	return err
}

func verifyCorpus(ctx context.Context, out *console, d *shards.Dir) (corpusVerdict, error) {
	v := corpusVerdict{Digest: d.Manifest.Digest().String(), Missing: []string{}, Errors: []string{}}
	if _, err := d.Tokenizer(); err != nil {
		v.Errors = append(v.Errors, err.Error())
	}
	all, m := slices.Concat(d.Manifest.HeldOut, d.Manifest.Shards), newMeter(out, "reading shards")
	for i, s := range all {
		m.at(float64(i), float64(len(all)))
		_, err := d.Read(ctx, s)
		switch {
		case ctx.Err() != nil:
			return v, ctx.Err()
		case err == nil:
			v.Shards++
		case errors.Is(err, shards.ErrMissing):
			v.Missing = append(v.Missing, s.Digest.String())
		default:
			v.Errors = append(v.Errors, err.Error())
		}
	}
	v.OK = len(v.Missing) == 0 && len(v.Errors) == 0
	return v, nil
}
