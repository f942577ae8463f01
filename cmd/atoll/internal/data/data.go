// Package data is atoll data: it makes tokenizers and corpora, mixes these, and shows them. It reads and writes folders of
// documents and of shards, and knows of no run.
package data

import (
	"context"
	"errors"

	"atoll/cmd/atoll/internal/cli"
	"atoll/optimizer/trainer/corpus/documents"
)

const help = `
A corpus is a folder of tokens that a run trains on: shards, and a manifest that names them by their hashes. First make a tokenizer, or take the tokenizer.json of a model, such as GPT-2, Llama, Mistral, Gemma or Qwen; then build the corpus.

    atoll data tokenizer --train 8192 --out tokens book.txt
    atoll data build --tokenizer tokens --out corpus book.txt
    atoll data show corpus`

// Cmd is `atoll data`.
type Cmd struct {
	Tokenizer tokenizerCmd `cmd:"" help:"Train a tokenizer."`
	Build     buildCmd     `cmd:"" help:"Make a corpus of text."`
	Mix       mixCmd       `cmd:"" help:"Make one corpus of several, with weights."`
	Show      showCmd      `cmd:"" help:"Show what a corpus has, or check every byte of it."`
}

// Help implements kong.HelpProvider.
func (*Cmd) Help() string { return help }

// inputsFlags are the text that a command reads.
type inputsFlags struct {
	Inputs     []string `arg:"" name:"input" help:"Text: files and folders, or - for the standard input. Reads text, Markdown and code, lines of JSON and Parquet, all but that also packed with gzip, zstd or bzip2, in UTF-8, or in UTF-16 or UTF-32 with a mark."`
	Field      string   `help:"Field of JSON, or column of Parquet, that holds the text: below others with dots, such as meta.text. Texts of a list are one document, one on a line." default:"text" placeholder:"NAME"`
	SkipBroken uint32   `help:"Leave out up to so many lines of JSON, or rows, that are broken or have no such field. Default: the first one ends the command." placeholder:"N"`
}

// each hands every document of the inputs to a function, and says how far it is, and at last what reading did and left out.
func (f inputsFlags) each(ctx context.Context, out *cli.Console, use func(documents.Document) error) error {
	o := documents.Options{Field: f.Field, End: -1, Broken: int64(f.SkipBroken), Tally: documents.Tally{}}
	files, err := documents.List(f.Inputs, o.Tally)
	if err != nil {
		return err
	}
	m, done, all := cli.NewMeter(out, "reading text"), int64(0), documents.Size(files)
	for _, file := range files {
		err := file.Each(o, func(d documents.Document, offset int64) error {
			m.At(float64(done+offset), float64(all))
			return errors.Join(ctx.Err(), use(d))
		})
		if err != nil {
			return err
		}
		done += max(file.Size, 0)
	}
	out.Note(o.Tally.String())
	return nil
}
