package main

import (
	"context"
	"fmt"

	"atoll/node/inspect"
	"atoll/node/store"
	"atoll/optimizer/trainer"
	"atoll/optimizer/trainer/corpus"
	"atoll/tensor"
)

const evalHelp = `
Measures the newest model of a node, running or not, in bits per byte; fewer is better. It reads the held-out part of a text, which is the last tenth, in windows of the model's context. Beside it stands what a simple model reaches on the same text that counts the last two bytes (interpolated Witten-Bell).

    atoll eval --dir first
    atoll eval --dir first --data book.txt --json`

// EvalCmd is `atoll eval`.
type EvalCmd struct {
	dirFlag
	Data string `help:"Text to measure on: a file, a folder, or goroot for the Go code that ships with Go. Default: the text that the node trained on." placeholder:"PATH"`
	threadsFlag
	jsonFlag
}

// Help implements kong.HelpProvider.
func (*EvalCmd) Help() string { return evalHelp }

// evaluation is the answer of `atoll eval`.
type evaluation struct {
	ValBPB       float64 `json:"val_bpb"`
	BaselineBPB  float64 `json:"baseline_bpb"`
	Ratio        float64 `json:"ratio"` // of the two
	Bytes        int     `json:"held_out_bytes"`
	Data         string  `json:"data"`
	SHA256       string  `json:"data_sha256"`
	TokensFolded uint64  `json:"tokens_folded"`
	Params       int     `json:"params"`
	Run          string  `json:"run"`
}

// Run measures the model.
func (c *EvalCmd) Run(ctx context.Context, out *console) error {
	dir, err := c.folder()
	if err != nil {
		return err
	}
	if err := c.set(); err != nil {
		return err
	}
	g, slab, tokens, err := inspect.LoadModel(ctx, dir)
	if err != nil {
		return err
	}
	if err := builtInOnly(g, "eval"); err != nil {
		return err
	}
	path := c.Data
	if path == "" {
		if path, err = store.LoadText(dir); err != nil {
			return err
		}
	}
	data, err := corpus.Open(path)
	if err != nil {
		return err
	}
	if err := data.Fits(g.Model.Context); err != nil {
		return err
	}
	if g.Data.SHA256 != "" && g.Data.SHA256 != data.SHA256() {
		out.say("note: the run trains on %q (sha256 %.16s), this is %q (sha256 %.16s)", g.Data.Name, g.Data.SHA256, data.Name(), data.SHA256())
	}
	bits, err := trainer.BitsPerByte(ctx, g.Model, slab, corpus.Windows(data.HeldOut(), g.Model.Context))
	if err != nil {
		return err
	}
	run := g.RunID()
	return c.print(out, evaluation{
		ValBPB: bits, BaselineBPB: corpus.WittenBell(data.Train(), data.HeldOut()), Bytes: len(data.HeldOut()),
		Data: data.Name(), SHA256: data.SHA256(), TokensFolded: tokens, Params: g.Model.Params(), Run: fmt.Sprintf("%x", run[:]),
	})
}

func (c *EvalCmd) print(out *console, e evaluation) error {
	e.Ratio = e.ValBPB / e.BaselineBPB
	if c.JSON {
		return out.json(e)
	}
	return table(out.out,
		[]string{"bits per byte", fmt.Sprintf("%.4f", e.ValBPB)},
		[]string{"Witten-Bell", fmt.Sprintf("%.4f  (the model needs %.2f of it)", e.BaselineBPB, e.Ratio)},
		[]string{"text", fmt.Sprintf("%d held-out bytes of %s", e.Bytes, e.Data)},
		[]string{"model", fmt.Sprintf("%s parameters after %s tokens", big(float64(e.Params)), big(float64(e.TokensFolded)))},
	)
}

// set makes the process compute with so many threads.
func (f threadsFlag) set() error {
	if err := f.check(); err != nil {
		return err
	}
	if f.Threads > 0 {
		tensor.SetThreads(f.Threads)
	}
	return nil
}
