package main

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"

	"atoll/cmd/atoll/internal/cli"
	"atoll/node/data"
	"atoll/node/genesis"
	"atoll/node/inspect"
	"atoll/node/status"
	"atoll/node/store"
	"atoll/optimizer/trainer"
	"atoll/optimizer/trainer/corpus"
	"atoll/optimizer/trainer/corpus/shards"
	"atoll/tensor"
)

const evalHelp = `
Measures the newest model of a node, running or not, in bits per byte; fewer is better. It reads a sample of what is held out, in windows of the model's context that are spread evenly over it: the last tenth of the text that was trained on, all of another text, or the held-out shards of a corpus. With --all it reads everything, which can take long; progress goes to stderr. For a mixture it also prints a figure for each corpus. Who knows nothing needs 8 bits.

    atoll eval first
    atoll eval first --all
    atoll eval first --data book.txt --json`

// EvalCmd is `atoll eval`.
type EvalCmd struct {
	dirArg
	Data string `help:"Text to measure on: a file, a folder, a corpus with the run's tokenizer, or goroot for the Go code that ships with Go. Default: the text that the node trained on." placeholder:"PATH"`
	All  bool   `help:"Measure on all that is held out. Default: a sample of 128 KiB."`
	cli.ThreadsFlag
	cli.JSONFlag
}

// evalSample is the text of a sample, in bytes. The model small takes 46 s of one core for it, and would take
// 17 minutes for all that is held out of goroot.
const evalSample = 128 << 10

// Help implements kong.HelpProvider.
func (*EvalCmd) Help() string { return evalHelp }

// evaluation is the answer of `atoll eval`.
type evaluation struct {
	ValBPB       float64 `json:"val_bpb"`
	Bytes        int     `json:"held_out_bytes"`     // that were scored
	Sample       bool    `json:"sample,omitempty"`   // they are a part of what is held out
	Of           int     `json:"of_bytes,omitempty"` // of so many, if they are a sample
	Data         string  `json:"data"`
	SHA256       string  `json:"data_sha256,omitempty"`
	Manifest     string  `json:"data_manifest,omitempty"` // of a corpus, instead
	TokensFolded uint64  `json:"tokens_folded"`
	Params       int     `json:"params"`
	Run          string  `json:"run"`

	Mixture []partEvaluation `json:"mixture,omitempty"`
}

// partEvaluation is what the model is worth on a corpus of a mixture.
type partEvaluation struct {
	Name   string  `json:"name"`
	ValBPB float64 `json:"val_bpb"`
	Bytes  int     `json:"held_out_bytes"`
}

// Run measures the model.
func (c *EvalCmd) Run(ctx context.Context, out *cli.Console) error {
	dir, err := c.folder(out)
	if err != nil {
		return err
	}
	if err := setThreads(c.ThreadsFlag); err != nil {
		return err
	}
	g, slab, tokens, err := inspect.LoadModel(replaying(ctx, out, loadingModel), dir)
	if err != nil {
		return err
	}
	if err := builtInOnly(g, "eval"); err != nil {
		return err
	}
	own, err := store.LoadText(dir)
	if err != nil {
		return err
	}
	path := cmp.Or(c.Data, own)
	run := g.RunID()
	e := evaluation{TokensFolded: tokens, Params: g.Model.Params(), Run: fmt.Sprintf("%x", run[:])}
	if g.Corpus != nil {
		if c.Data == "" {
			path = heldOutFolder(dir, path)
		}
		if err := c.corpus(ctx, out, g, slab, path, &e); err != nil {
			return err
		}
		return c.print(out, e)
	}
	data, err := corpus.Open(path)
	if err != nil {
		return err
	}
	out.Note(data.Note())
	if err := data.Fits(g.Model.Context); err != nil {
		return err
	}
	if g.Data.SHA256 != "" && g.Data.SHA256 != data.SHA256() {
		out.Say("note: the run trains on %q (sha256 %.16s), this is %q (sha256 %.16s)", g.Data.Name, g.Data.SHA256, data.Name(), data.SHA256())
	}
	trained := cmp.Or(g.Data.SHA256, data.SHA256())
	if g.Data.SHA256 == "" && c.Data != "" { // each learner has a text of its own
		text, err := corpus.Open(own)
		if err != nil {
			return fmt.Errorf("the node's own text, which tells what is held out: %w", err)
		}
		trained = text.SHA256()
	}
	if trained != data.SHA256() {
		data = data.Unseen()
	}
	windows := c.windows(data, g.Model.Context, &e)
	if e.ValBPB, err = trainer.BitsPerByte(scoring(ctx, out, "scoring text"), g.Model, slab, windows); err != nil {
		return err
	}
	e.Data, e.SHA256 = data.Name(), data.SHA256()
	return c.print(out, e)
}

// windows are those that are scored: all of the held-out text, or a sample of it.
func (c *EvalCmd) windows(data *corpus.Corpus, context int, e *evaluation) (windows [][]byte) {
	all := len(data.HeldOut())
	if windows = corpus.Windows(data.HeldOut(), context); !c.All && all > evalSample {
		windows = data.HeldOutSample(evalSample, context)
	}
	for _, w := range windows {
		e.Bytes += len(w) - 1
	}
	e.sampleOf(all - 1) // its first byte is context only
	return windows
}

// sampleOf notes how much there is, if it was not all scored.
func (e *evaluation) sampleOf(all int) {
	if e.Sample = e.Bytes < all; e.Sample {
		e.Of = all
	}
}

// heldOutFolder is the corpus of a node that has all held-out shards: what the node fetched, or the
// folder that it was told.
func heldOutFolder(dir, told string) string {
	fetched := filepath.Join(dir, data.Folder)
	d, err := shards.OpenDir(fetched)
	if err != nil {
		return told
	}
	for _, s := range d.Manifest.HeldOut {
		if _, err := os.Stat(shards.ShardFile(fetched, s.Digest)); err != nil && told != "" {
			return told
		}
	}
	return fetched
}

// corpus measures on the held-out shards of a corpus that has the run's tokenizer.
func (c *EvalCmd) corpus(ctx context.Context, out *cli.Console, g genesis.Genesis, slab *tensor.Slab, path string, e *evaluation) error {
	dir, err := shards.OpenDir(path)
	if err != nil {
		return err
	}
	if digest := dir.Manifest.Tokenizer.Digest.String(); digest != g.Corpus.Tokenizer {
		return fmt.Errorf("the model reads the tokens of the tokenizer %.16s, and %s has those of %.16s: build it with the run's tokenizer.json", g.Corpus.Tokenizer, path, digest)
	}
	e.Data, e.Manifest = dir.Manifest.Name, dir.Manifest.Digest().String()
	if e.Manifest != g.Corpus.Manifest {
		out.Say("note: the run trains on %q (manifest %.16s), this is %q (manifest %.16s)", g.Data.Name, g.Corpus.Manifest, e.Data, e.Manifest)
	}
	tokenizer, err := dir.Tokenizer()
	if err != nil {
		return err
	}
	_, all := shards.Tokens(dir.Manifest.HeldOut)
	all = max(all, 1)
	text := min(evalSample, all)
	if c.All {
		text = all
	}
	bits := 0.0
	for _, p := range dir.Manifest.Parts() {
		// Each corpus of a mixture is measured by itself, on its part of the sample.
		m := *dir.Manifest
		m.HeldOut = p.HeldOut
		_, of := shards.Tokens(p.HeldOut)
		sample, err := m.Sample(ctx, dir.Fetch, tokenizer, int64(math.Ceil(float64(text)*float64(of)/float64(all))), g.Model.Context)
		if err != nil {
			return err
		}
		bpb, err := trainer.BitsPerByteOf(scoring(ctx, out, "scoring text of "+p.Name), g.Model, slab, sample.Windows, sample.Bytes)
		if err != nil {
			return err
		}
		bits, e.Bytes = bits+bpb*float64(sample.Bytes), e.Bytes+int(sample.Bytes)
		if dir.Manifest.Mixed() {
			e.Mixture = append(e.Mixture, partEvaluation{p.Name, bpb, int(sample.Bytes)})
		}
	}
	e.ValBPB = bits / float64(e.Bytes)
	if text < all {
		e.sampleOf(int(all))
	}
	return nil
}

func (c *EvalCmd) print(out *cli.Console, e evaluation) error {
	if c.JSON {
		return out.JSON(e)
	}
	rows := [][]string{{"bits per byte", fmt.Sprintf("%.4f", e.ValBPB)}}
	for _, p := range e.Mixture {
		rows = append(rows, []string{"", fmt.Sprintf("%.4f on %d bytes of %s", p.ValBPB, p.Bytes, p.Name)})
	}
	return cli.Table(out.Out, append(rows,
		[]string{"text", e.text()},
		[]string{"model", fmt.Sprintf("%s parameters after %s tokens", status.Count(float64(e.Params)), status.Count(float64(e.TokensFolded)))},
	)...)
}

// text says what was scored.
func (e evaluation) text() string {
	if !e.Sample {
		return fmt.Sprintf("all %d held-out bytes of %s", e.Bytes, e.Data)
	}
	return fmt.Sprintf("a sample of %d of the %d held-out bytes of %s; --all scores them all", e.Bytes, e.Of, e.Data)
}

// setThreads makes the process compute with as many threads as the flag says.
func setThreads(f cli.ThreadsFlag) error {
	if err := f.Check(); err != nil {
		return err
	}
	if f.Threads > 0 {
		tensor.SetThreads(f.Threads)
	}
	return nil
}
