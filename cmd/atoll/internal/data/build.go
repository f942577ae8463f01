package data

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"atoll/cmd/atoll/internal/cli"
	"atoll/node/status"
	"atoll/optimizer/trainer/corpus/build"
	"atoll/optimizer/trainer/corpus/documents"
	"atoll/optimizer/trainer/corpus/shards"
	"atoll/tensor/token"
)

const buildHelp = `
Makes a corpus: shards of tokens, and a manifest that names them. Documents stay whole, in an order that --seed decides, and each is there once. Some are held out for good: nobody trains on them. The same text and flags give the same bytes, on any machine. After an interruption the same command goes on.

    atoll data build --tokenizer tokens --out corpus book.txt src
    atoll data build --tokenizer model/tokenizer.json --out corpus --name web --licence ODC-By-1.0 part*.jsonl.zst
    xzcat book.txt.xz | atoll data build --out corpus -

Tokens of nanoGPT and llm.c, .bin, are taken as they are, with the tokenizer that made them.`

// buildCmd is `atoll data build`.
type buildCmd struct {
	inputsFlags
	Tokenizer string   `help:"tokenizer.json, or a folder that has it. Default: tokens are bytes." placeholder:"PATH"`
	Out       string   `help:"Folder to write. It must be new, or have a build that was interrupted." required:"" placeholder:"DIR"`
	Name      string   `help:"What people call the corpus. Default: the folder's name." placeholder:"TEXT"`
	Licence   string   `help:"Terms under which the text may be used, such as CC-BY-4.0." placeholder:"TEXT"`
	Seed      uint64   `help:"Seed of the order of documents, and of which are held out." default:"1"`
	HeldOut   float64  `help:"Share of the tokens that is held out. It is at most one shard, 8 MiB." default:"0.1"`
	Mirror    []string `help:"Folder on the web that will have this corpus: https://..." placeholder:"URL"`
	cli.ThreadsFlag
	cli.JSONFlag
}

// Help implements kong.HelpProvider.
func (*buildCmd) Help() string { return buildHelp }

// Run builds.
func (c *buildCmd) Run(ctx context.Context, out *cli.Console) error {
	if !(c.HeldOut > 0 && c.HeldOut < 1) {
		return cli.BadUsage("--held-out is %v; use a share above 0 and below 1, such as 0.1", c.HeldOut)
	}
	if err := c.Check(); err != nil {
		return err
	}
	tally := documents.Tally{}
	config, err := c.config(out, tally)
	if err != nil {
		return err
	}
	result, err := build.Run(ctx, config)
	tally.Add(result.Tally)
	out.Note(tally.String())
	if ctx.Err() != nil {
		return errors.New("interrupted: the same command goes on")
	}
	if err != nil {
		return err
	}
	if result.Duplicates > 0 {
		out.Say("note: %d of %d documents were there already and are left out", result.Duplicates, result.Documents)
	}
	return printCorpus(out, c.JSON, c.Out, result.Manifest)
}

func (c *buildCmd) config(out *cli.Console, tally documents.Tally) (build.Config, error) {
	files, err := documents.List(c.Inputs, tally)
	if err != nil {
		return build.Config{}, err
	}
	config := build.Config{Out: c.Out, Inputs: files, Field: c.Field, Broken: int64(c.SkipBroken), Tokenizer: token.Byte, Name: c.Name, Licence: c.Licence,
		Mirrors: c.Mirror, Seed: c.Seed, HeldOut: c.HeldOut, Workers: c.Threads, Progress: newBuilding(out).say}
	if config.Name == "" {
		config.Name = filepath.Base(c.Out)
	}
	if c.Tokenizer != "" {
		bpe, file, err := readTokenizer(c.Tokenizer)
		if err != nil {
			return config, err
		}
		config.Tokenizer, config.TokenizerName, config.TokenizerFile = bpe, bpe.Family(), file
	}
	return config, nil
}

// readTokenizer reads a tokenizer.json, given by its path or its folder's.
func readTokenizer(path string) (*token.BPE, []byte, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, shards.TokenizerFile)
	}
	file, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, fmt.Errorf("read the tokenizer: %w: pass a folder that `atoll data tokenizer` wrote, or a tokenizer.json", err)
	}
	bpe, err := token.Parse(file)
	if err != nil {
		return nil, nil, fmt.Errorf("read the tokenizer %s: %w: pass one that `atoll data tokenizer` wrote, or of a model of Hugging Face", path, err)
	}
	return bpe, file, nil
}

// building says now and then how far a build is.
type building struct {
	out              *cli.Console
	reading, writing *cli.Meter // writing: nil while it reads
	begun            time.Time
}

func newBuilding(out *cli.Console) *building {
	return &building{out: out, reading: cli.NewMeter(out, "reading text"), begun: time.Now()}
}

func (b *building) say(p build.Progress) {
	b.reading.At(float64(p.Read-p.Resumed), float64(p.Total-p.Resumed))
	if p.Writing && b.writing == nil {
		b.writing = cli.NewMeter(b.out, "writing shards")
		b.out.Say("read %s in %s: %s tokens, writing shards", cli.Plural(int(p.Documents), "document", "documents"),
			cli.Seconds(time.Since(b.begun).Seconds()), status.Count(float64(p.Tokens)))
	}
	if b.writing != nil {
		b.writing.At(p.Written, 1)
	}
}

// corpusView is the answer of `atoll data build` and `atoll data show`.
type corpusView struct {
	Dir           string `json:"dir"`
	Digest        string `json:"digest"`
	Name          string `json:"name"`
	Licence       string `json:"licence"`
	Tokenizer     string `json:"tokenizer"`
	Vocab         int    `json:"vocab"`
	Shards        int    `json:"shards"`
	Tokens        int64  `json:"tokens"`
	Bytes         int64  `json:"bytes"` // of text, as the following ones
	HeldOutShards int    `json:"held_out_shards"`
	HeldOutTokens int64  `json:"held_out_tokens"`
	HeldOutBytes  int64  `json:"held_out_bytes"`
	Here          int    `json:"shards_here"` // of both kinds

	Mixture []componentView `json:"mixture,omitempty"`
}

func viewOf(dir string, m *shards.Manifest) corpusView {
	v := corpusView{Dir: dir, Digest: m.Digest().String(), Name: m.Name, Licence: m.Licence, Tokenizer: m.Tokenizer.Name,
		Vocab: m.Tokenizer.Size, Shards: len(m.Shards), HeldOutShards: len(m.HeldOut), Mixture: viewMixture(m)}
	v.Tokens, v.Bytes = shards.Tokens(m.Shards)
	v.HeldOutTokens, v.HeldOutBytes = shards.Tokens(m.HeldOut)
	for _, list := range [][]shards.Shard{m.HeldOut, m.Shards} {
		for _, s := range list {
			if _, err := os.Stat(shards.ShardFile(dir, s.Digest)); err == nil {
				v.Here++
			}
		}
	}
	return v
}

func printCorpus(out *cli.Console, asJSON bool, dir string, m *shards.Manifest) error {
	v := viewOf(dir, m)
	if asJSON {
		return out.JSON(v)
	}
	part := func(n int, tokens, text int64) string {
		return fmt.Sprintf("%s with %s tokens of %s", cli.Plural(n, "shard", "shards"), status.Count(float64(tokens)), status.Bytes(float64(text)))
	}
	rows := [][]string{{"corpus", v.Name}, {"digest", v.Digest}}
	if v.Licence != "" {
		rows = append(rows, []string{"licence", v.Licence})
	}
	rows = append(rows, []string{"tokenizer", fmt.Sprintf("%s, %d tokens, %.2f bytes a token", v.Tokenizer, v.Vocab, float64(v.Bytes)/float64(v.Tokens))},
		[]string{"to train on", part(v.Shards, v.Tokens, v.Bytes)},
		[]string{"held out", part(v.HeldOutShards, v.HeldOutTokens, v.HeldOutBytes)},
		[]string{"here", fmt.Sprintf("%d of %s", v.Here, cli.Plural(v.Shards+v.HeldOutShards, "shard", "shards"))})
	for i, component := range v.Mixture {
		row := component.row()
		if i == 0 {
			row[0] = "mixture"
		}
		rows = append(rows, row)
	}
	return cli.Table(out.Out, rows...)
}
