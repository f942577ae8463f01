package data

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"atoll/cmd/atoll/internal/cli"
	"atoll/optimizer/trainer/corpus/shards"
)

const showHelp = `
Shows what a corpus has: its digest, its tokenizer, what is trained on and what is held out, and how many of its shards are in the folder. For a mixture it shows each corpus and its share of the rows that are read.

With --verify it reads every shard instead and compares it with the manifest, and the tokenizer too. Exit code 0 if all is there and right. If not, exit code 1, and the answer names what is damaged and what is missing.

    atoll data show corpus
    atoll data show corpus --verify`

// showCmd is `atoll data show`.
type showCmd struct {
	Corpus string `arg:"" help:"Folder of the corpus."`
	Verify bool   `help:"Check every byte."`
	cli.JSONFlag
}

// Help implements kong.HelpProvider.
func (*showCmd) Help() string { return showHelp }

// Run shows.
func (c *showCmd) Run(ctx context.Context, out *cli.Console) error {
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

func (c *showCmd) verify(ctx context.Context, out *cli.Console, d *shards.Dir) error {
	v, err := verifyCorpus(ctx, out, d)
	if err != nil {
		return err
	}
	if c.JSON {
		err = out.JSON(v)
	} else if v.OK {
		out.Answer("ok: %s and the tokenizer of %s", cli.Plural(v.Shards, "shard", "shards"), v.Digest)
	}
	for _, text := range v.Errors {
		out.Say("%s", text)
	}
	if err == nil && !v.OK {
		err = fmt.Errorf("%s: %d shards are right, %d missing, and %s: build the corpus anew, or copy those files again",
			c.Corpus, v.Shards, len(v.Missing), cli.Plural(len(v.Errors), "file is wrong", "files are wrong"))
	}
	return err
}

func verifyCorpus(ctx context.Context, out *cli.Console, d *shards.Dir) (corpusVerdict, error) {
	v := corpusVerdict{Digest: d.Manifest.Digest().String(), Missing: []string{}, Errors: []string{}}
	if _, err := d.Tokenizer(); err != nil {
		v.Errors = append(v.Errors, err.Error())
	}
	all, m := slices.Concat(d.Manifest.HeldOut, d.Manifest.Shards), cli.NewMeter(out, "reading shards")
	for i, s := range all {
		m.At(float64(i), float64(len(all)))
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
