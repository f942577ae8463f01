package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"atoll/cmd/atoll/internal/cli"
	"atoll/node/inspect"
	"atoll/tensor"
	"atoll/tensor/llama"
	"atoll/tensor/token"
)

const generateHelp = `
Continues a prompt with the newest model of a node, running or not. The same seed gives the same text.

    atoll generate first
    atoll generate first --prompt "The rays of light" --length 200 --temperature 0.6`

// GenerateCmd is `atoll generate`.
type GenerateCmd struct {
	dirArg
	Prompt      string  `help:"Text to continue. Default: the start of a document, or of a line where tokens are bytes." placeholder:"TEXT"`
	Length      int     `help:"Tokens to write." default:"400"`
	Temperature float64 `help:"Below 1 prefers likely tokens; 0 always takes the likeliest." default:"0.8"`
	TopK        int     `help:"Draw only from this many likeliest tokens; 0 for all." default:"0"`
	TopP        float64 `help:"Draw only from the likeliest tokens that together have this probability; 0 for all." default:"0"`
	Seed        uint64  `help:"Seed of the draws." default:"1"`
	cli.JSONFlag
}

// Help implements kong.HelpProvider.
func (*GenerateCmd) Help() string { return generateHelp }

// generated is the answer of `atoll generate --json`.
type generated struct {
	Prompt       string `json:"prompt"`
	Text         string `json:"text"` // without the prompt
	Tokens       int    `json:"tokens"`
	TokensFolded uint64 `json:"tokens_folded"`
}

// Run writes text.
func (c *GenerateCmd) Run(ctx context.Context, out *cli.Console) error {
	if err := c.check(); err != nil {
		return err
	}
	dir, g, slab, folded, err := c.model(ctx, out)
	if err != nil {
		return err
	}
	if err := builtInOnly(g, "generate"); err != nil {
		return err
	}
	tokenizer, _, err := inspect.Tokenizer(dir, g)
	if err != nil {
		return err
	}
	if !c.JSON {
		fmt.Fprint(out.Out, c.Prompt)
		_, err := c.write(ctx, out.Out, g.Model, slab, tokenizer)
		out.Answer("")
		return err
	}
	var text strings.Builder
	n, err := c.write(ctx, &text, g.Model, slab, tokenizer)
	if err != nil {
		return err
	}
	return out.JSON(generated{Prompt: c.Prompt, Text: text.String(), Tokens: n, TokensFolded: folded})
}

// write writes text as it comes, up to the end of the document, and returns the number of tokens in it.
func (c *GenerateCmd) write(ctx context.Context, to io.Writer, sizes llama.Config, slab *tensor.Slab, t token.Tokenizer) (n int, err error) {
	end, ends := t.End()
	w := utf8Writer{w: to}
	for id := range llama.Sample(sizes, slab, c.prompt(t), c.sampling()) {
		if ends && id == end {
			break
		}
		w.token(token.Text(t, n == 0 && ends && c.Prompt == "", id))
		if n++; n >= c.Length || ctx.Err() != nil || w.err != nil {
			break
		}
	}
	return n, w.end()
}

func (c *GenerateCmd) check() error {
	switch {
	case c.Length < 1:
		return cli.BadUsage("--length is %d; use 1 or more", c.Length)
	case !(c.Temperature >= 0):
		return cli.BadUsage("--temperature is %v; use 0 or more", c.Temperature)
	case c.TopK < 0:
		return cli.BadUsage("--top-k is %d; use 1 or more, or 0 for all tokens", c.TopK)
	case !(c.TopP >= 0 && c.TopP <= 1):
		return cli.BadUsage("--top-p is %v; use 0 to 1", c.TopP)
	}
	return nil
}

func (c *GenerateCmd) sampling() llama.Sampling {
	return llama.Sampling{Temperature: c.Temperature, TopK: c.TopK, TopP: c.TopP, Seed: c.Seed}
}

// prompt is what the model continues: without --prompt the end of a document, which another one follows, or of a line.
func (c *GenerateCmd) prompt(t token.Tokenizer) []int32 {
	if end, ok := t.End(); ok && c.Prompt == "" {
		return []int32{end}
	}
	return t.NewEncoder().Append(nil, []byte(cmp.Or(c.Prompt, "\n")))
}

// utf8Writer writes the bytes of tokens as they come, each character when it is
// complete. What is not UTF-8 becomes U+FFFD. So does a control character, which
// could take over a terminal. So does a token that stands for no byte: a model
// with a larger vocabulary may draw one.
type utf8Writer struct {
	w    io.Writer
	held []byte // the start of a character
	err  error
}

func (u *utf8Writer) token(text []byte) {
	if text == nil {
		u.flush(true)
		u.write(string(utf8.RuneError))
		return
	}
	u.held = append(u.held, text...)
	u.flush(false)
}

// flush writes the characters that are held, with all those that will never be
// complete.
func (u *utf8Writer) flush(all bool) {
	for len(u.held) > 0 && (all || utf8.FullRune(u.held)) {
		r, size := utf8.DecodeRune(u.held)
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			r = utf8.RuneError
		}
		u.write(string(r))
		u.held = u.held[size:]
	}
}

func (u *utf8Writer) write(s string) {
	_, err := io.WriteString(u.w, s)
	u.err = errors.Join(u.err, err)
}

func (u *utf8Writer) end() error {
	u.flush(true)
	return u.err
}
