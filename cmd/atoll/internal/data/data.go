// Package data is atoll data: it makes tokenizers and corpora, mixes these, and shows them. It reads and writes folders of
// documents and of shards, and knows of no run.
package data

import (
	"context"
	"fmt"
	"io"
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
	Inputs []string `arg:"" name:"input" help:"Text: files and folders. Reads text, Markdown and code, .jsonl, .parquet, and all but the last packed as .gz or .zst."`
	Field  string   `help:"Field of .jsonl or column of .parquet that holds the text." default:"text" placeholder:"NAME"`
}

// each hands every document of the inputs to a function, and says how far it is.
func (f inputsFlags) each(ctx context.Context, out *cli.Console, use func(documents.Document) error) error {
	files, err := documents.List(f.Inputs)
	if err != nil {
		return err
	}
	total := int64(0)
	for _, file := range files {
		total += file.Size
	}
	p := &reading{out: out, total: total, begun: time.Now()}
	for _, file := range files {
		if err := f.file(ctx, file, p, use); err != nil {
			return err
		}
		p.done += file.Size
	}
	return nil
}

func (f inputsFlags) file(ctx context.Context, file documents.File, p *reading, use func(documents.Document) error) error {
	r, err := file.Open(documents.Options{Field: f.Field, End: -1})
	if err != nil {
		return err
	}
	defer r.Close()
	for {
		d, err := r.Next()
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		}
		if err := use(d); err != nil {
			return err
		}
		p.say(p.done + r.Offset())
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
	text := fmt.Sprintf("read %s of %s, %s/s", status.Bytes(float64(at)), status.Bytes(float64(total)), status.Bytes(speed))
	if speed > 0 && at < total {
		text += ", " + cli.Seconds(float64(total-at)/speed) + " left"
	}
	return text
}
