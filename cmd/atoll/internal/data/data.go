// Package data is atoll data: it makes tokenizers and corpora, mixes these, and shows them. It reads and writes folders of
// documents and of shards, and knows of no run.
package data

import (
	"context"
	"errors"
	"fmt"
	"time"

	"atoll/cmd/atoll/internal/cli"
	"atoll/node/status"
	"atoll/optimizer/trainer/corpus/documents"
)

const help = `
A corpus is a folder of tokens that a run trains on: shards, and a manifest that names them by their hashes. First make a tokenizer, or take the tokenizer.json of a model; then build the corpus.

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
	tally := documents.Tally{}
	files, err := documents.List(f.Inputs, tally)
	if err != nil {
		return err
	}
	p := &reading{out: out, begun: time.Now()}
	for _, file := range files {
		p.total += max(file.Size, 0)
	}
	o := documents.Options{Field: f.Field, End: -1, Broken: int64(f.SkipBroken), Tally: tally}
	for _, file := range files {
		err := file.Each(o, func(d documents.Document, offset int64) error {
			p.say(p.done + offset)
			return errors.Join(ctx.Err(), use(d))
		})
		if err != nil {
			return err
		}
		p.done += max(file.Size, 0)
	}
	sayTally(out, tally)
	return nil
}

func sayTally(out *cli.Console, t documents.Tally) {
	if len(t) > 0 {
		out.Say("note: %v", t)
	}
}

// reading says now and then how far the reading of inputs is.
type reading struct {
	out         *cli.Console
	done, total int64 // bytes
	resumed     int64 // of them read by an earlier command
	begun, said time.Time
}

func (p *reading) say(at int64) {
	now := time.Now()
	if p.said.IsZero() {
		p.said = p.begun
	}
	if now.Sub(p.said) < cli.LineEvery {
		return
	}
	p.said = now
	p.out.Say("%s", readingLine(at, p.total, p.resumed, now.Sub(p.begun)))
}

// readingLine says what was read in so much time, and how long the rest takes at that speed.
func readingLine(at, total, resumed int64, took time.Duration) string {
	speed := float64(at-resumed) / took.Seconds()
	all := ""
	if at <= total { // a pipe has no size
		all = " of " + status.Bytes(float64(total))
	}
	text := fmt.Sprintf("read %s%s, %s/s", status.Bytes(float64(at)), all, status.Bytes(speed))
	if speed > 0 && at < total {
		text += ", " + cli.Seconds(float64(total-at)/speed) + " left"
	}
	return text
}
