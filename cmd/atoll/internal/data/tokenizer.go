package data

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"atoll/cmd/atoll/internal/cli"
	"atoll/node/files"
	"atoll/optimizer/trainer/corpus/documents"
	"atoll/optimizer/trainer/corpus/shards"
	"atoll/tensor/token"
)

const tokenizerHelp = `
Trains a byte-level BPE on text and writes a folder that the from_pretrained of Hugging Face's transformers loads: tokenizer.json and tokenizer_config.json. The same text gives the same files. Its end token is <|endoftext|>.

    atoll data tokenizer --train 8192 --out tokens book.txt src
    python3 -c "from transformers import AutoTokenizer as T; print(T.from_pretrained('tokens').encode('Light'))"`

// tokenizerCmd is `atoll data tokenizer`.
type tokenizerCmd struct {
	inputsFlags
	Train int    `help:"Tokens of the vocabulary: 257, which are the bytes and the end token, or more." required:"" placeholder:"N"`
	Out   string `help:"Folder to write. It must not exist yet." required:"" placeholder:"DIR"`
	cli.JSONFlag
}

// Help implements kong.HelpProvider.
func (*tokenizerCmd) Help() string { return tokenizerHelp }

// trainedTokenizer is the answer of `atoll data tokenizer`.
type trainedTokenizer struct {
	Out       string `json:"out"`
	Tokens    int    `json:"tokens"`
	Documents int    `json:"documents"`
	Bytes     int64  `json:"bytes"` // of text
}

// Run trains and writes.
func (c *tokenizerCmd) Run(ctx context.Context, out *cli.Console) error {
	trainer, err := token.NewTrainer(c.Train)
	if err != nil {
		return cli.BadUsage("--train: %v", err)
	}
	if _, err := os.Lstat(c.Out); err == nil {
		return fmt.Errorf("%s is there already: pass a new folder", c.Out)
	}
	answer := trainedTokenizer{Out: c.Out}
	err = c.each(ctx, out, func(d documents.Document) error {
		trainer.Add(d.Text)
		answer.Documents++
		answer.Bytes += int64(len(d.Text))
		return nil
	})
	if err != nil {
		return err
	}
	m := cli.NewMeter(out, "merging pairs")
	trainer.Told = func(done, all int) { m.At(float64(done), float64(all)) }
	v := trainer.Train()
	answer.Tokens = len(v.Tokens)
	if answer.Tokens < c.Train {
		out.Say("note: the text has pairs for %d tokens, of the %d of --train", answer.Tokens, c.Train)
	}
	if err := writeTokenizer(c.Out, v); err != nil {
		return err
	}
	if c.JSON {
		return out.JSON(answer)
	}
	out.Answer("%s: %d tokens, trained on %s of text", c.Out, answer.Tokens, cli.Plural(answer.Documents, "document", "documents"))
	return nil
}

func writeTokenizer(dir string, v *token.Vocabulary) error {
	return files.NewFolder(dir, func(dir string) error {
		return errors.Join(os.WriteFile(filepath.Join(dir, "tokenizer_config.json"), v.Config(), 0o644),
			os.WriteFile(filepath.Join(dir, shards.TokenizerFile), v.JSON(), 0o644))
	})
}
