package main

import (
	"context"
	"fmt"
	"time"

	"atoll/node"
	"atoll/node/status"
	"atoll/optimizer/trainer"
	"atoll/tensor"
	"atoll/tensor/llama"
)

const benchHelp = `
Measures what this machine can do.

    atoll bench step --model tiny --threads 1 --seconds 8 --json`

// BenchCmd is `atoll bench`.
type BenchCmd struct {
	Step BenchStepCmd `cmd:"" help:"Training steps: forward, backward, optimizer."`
}

// Help implements kong.HelpProvider.
func (*BenchCmd) Help() string { return benchHelp }

const benchStepHelp = `
Times training steps on random bytes and reports the median. The batch is that of the shared benchmark: 16 rows for tiny, 8 for small, 2 for base.

    atoll bench step --model tiny --threads 1 --seconds 8
    atoll bench step --model small --optimizer muon --json`

// BenchStepCmd is `atoll bench step`.
type BenchStepCmd struct {
	Model     string  `help:"tiny, small, base, or a JSON file of sizes." default:"tiny"`
	Threads   int     `help:"Threads to train with. Default: one per core." placeholder:"N"`
	Seconds   float64 `help:"How long to measure." default:"8"`
	Batch     int     `help:"Rows of a step. Default: the shared benchmark's." placeholder:"ROWS"`
	Optimizer string  `help:"Inner optimizer: ${enum}." enum:"adamw,muon" default:"adamw"`
	JSON      bool    `name:"json" help:"Answer with one JSON object."`
}

// Help implements kong.HelpProvider.
func (*BenchStepCmd) Help() string { return benchStepHelp }

// benchedStep is the answer of `atoll bench step`.
type benchedStep struct {
	Model           string  `json:"model"`
	Threads         int     `json:"threads"`
	Params          int     `json:"params"`
	Batch           int     `json:"batch"`
	Context         int     `json:"context"`
	Kernel          string  `json:"kernel"`
	Optimizer       string  `json:"optimizer"`
	Steps           int     `json:"steps"` // timed
	TokensPerSecond float64 `json:"tokens_per_s"`
	MsPerStep       float64 `json:"ms_per_step"` // median
	RSSBytes        uint64  `json:"rss_bytes,omitempty"`
}

// benchSteps is the least number of timed steps, so that there is a median.
const benchSteps = 3

// maxSeconds bounds a benchmark to a day.
const maxSeconds = 86400

// Run times the steps.
func (c *BenchStepCmd) Run(ctx context.Context, out *console) error {
	sizes, err := node.ModelConfig(c.Model)
	if err != nil {
		return err
	}
	if !(c.Seconds >= 0 && c.Seconds <= maxSeconds) {
		return badUsage("--seconds is %v; use 0 to %d", c.Seconds, maxSeconds)
	}
	if c.Batch < 0 {
		return badUsage("--batch is %d; use 1 or more", c.Batch)
	}
	if err := setThreads(c.Threads); err != nil {
		return err
	}
	batch := c.Batch
	if batch == 0 {
		batch = benchBatch(sizes)
	}
	cfg := trainer.Config{Model: sizes, Batch: batch, Threads: c.Threads, Optim: trainer.DefaultOptim()}
	cfg.Optim.Name, cfg.Optim.Momentum = c.Optimizer, trainer.DefaultMomentum
	speed, err := trainer.Measure(ctx, cfg, benchSteps, time.Duration(c.Seconds*float64(time.Second)), time.Now)
	if err != nil {
		return err
	}
	return c.print(out, benchedStep{
		Model: c.Model, Threads: tensor.Threads(), Params: sizes.Params(), Batch: batch, Context: sizes.Context,
		Kernel: tensor.Kernel(), Optimizer: c.Optimizer, Steps: speed.Steps, TokensPerSecond: speed.TokensPerSecond,
		MsPerStep: speed.Step.Seconds() * 1000, RSSBytes: node.RSSBytes(),
	})
}

// benchBatch is the batch of the shared benchmark.
func benchBatch(c llama.Config) int {
	switch c {
	case llama.Tiny:
		return 16
	case llama.Small:
		return 8
	}
	return 2
}

func (c *BenchStepCmd) print(out *console, r benchedStep) error {
	if c.JSON {
		return out.json(r)
	}
	return table(out.out,
		[]string{"MODEL", "PARAMS", "THREADS", "KERNEL", "OPTIMIZER", "BATCH", "TOKENS/S", "MS/STEP", "MEMORY"},
		[]string{
			r.Model, big(float64(r.Params)), fmt.Sprint(r.Threads), r.Kernel, r.Optimizer, fmt.Sprintf("%d x %d", r.Batch, r.Context),
			fmt.Sprintf("%.0f", r.TokensPerSecond), fmt.Sprintf("%.1f", r.MsPerStep), status.Bytes(float64(r.RSSBytes)),
		},
	)
}
