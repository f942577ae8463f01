package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"atoll/node/genesis"
	"atoll/optimizer/trainer"
	"atoll/optimizer/trainer/corpus"
	"atoll/optimizer/trainer/external"
)

// LearnerCmd is `atoll learner`.
type LearnerCmd struct {
	Check LearnerCheckCmd `cmd:"" help:"Try a program that trains: is it fit for a run?"`
}

const learnerCheckHelp = `
Starts a program as atoll join --learner does, and does with it what a node does: start, load, step, flush, evaluate, save and resume, kill, values that are no numbers, stop, a run with another layout. It measures steps, flush and load, and says what is wrong or too slow. Authors of learners use it as their test.

    atoll learner check torch                 hf, jax, mlx and idle come with atoll too
    atoll learner check "torch --device cuda --precision bf16" --model small
    atoll learner check "torchrun:2 --fsdp"   two processes that are one learner, with torch or hf
    atoll learner check "python3 mine.py" --genesis my.genesis --init model
    atoll learner check "python3 mine.py" --steps 0    one that trains in its own way

For a built-in model it compares the first loss and the first step with those of the built-in trainer. A program in bf16 may differ by 2 % of the loss. Exit code 1 if something is wrong.`

// LearnerCheckCmd is `atoll learner check`.
type LearnerCheckCmd struct {
	Command   string `arg:"" help:"Program, as for --learner of atoll join."`
	Genesis   string `help:"Genesis of the run that it is for. Default: one of --model." placeholder:"FILE"`
	Init      string `help:"Initial values of that run, where they are given: the file or folder of the model." placeholder:"PATH"`
	Model     string `help:"Built-in model, if there is no --genesis: tiny, small, base, or a JSON file of sizes." default:"tiny"`
	Optimizer string `help:"Inner optimizer of that run: ${enum}. auto is muon, or what --genesis says." enum:"auto,adamw,muon" default:"auto"`
	Rows      int    `help:"Rows of a step." default:"2"`
	Steps     int    `help:"Steps whose losses are compared with the built-in trainer's; 0 compares nothing, for programs that train in their own way." default:"20"`
	jsonFlag
}

// Help implements kong.HelpProvider.
func (*LearnerCheckCmd) Help() string { return learnerCheckHelp }

// Run checks the program.
func (c *LearnerCheckCmd) Run(ctx context.Context, out *console) (err error) {
	if c.Rows < 1 || c.Rows > maxBatch {
		return badUsage("--rows is %d; use 1 to %d", c.Rows, maxBatch)
	}
	if c.Steps < 0 {
		return badUsage("--steps is %d; use 1 or more, or 0 to compare nothing", c.Steps)
	}
	dir, err := os.MkdirTemp("", "atoll-learner-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	g, err := c.genesis()
	if err != nil {
		return err
	}
	cfg, text, err := c.config(out, g, dir)
	if err != nil {
		return err
	}
	values, judge, err := c.values(g, text)
	if err != nil {
		return err
	}
	err = c.tell(out, external.Check(ctx, cfg, values, external.Pace{H: g.Outer.H, Fragments: len(g.Plan())}, judge))
	if err == nil {
		err = ctx.Err() // what is left has not been looked at
	}
	return err
}

// genesis is that of the run, or one of the model.
func (c *LearnerCheckCmd) genesis() (genesis.Genesis, error) {
	if c.Genesis == "" {
		sizes, err := genesis.ModelConfig(c.Model)
		if err != nil {
			return genesis.Genesis{}, err
		}
		g, _, err := genesis.Spec{Model: sizes, Tokens: 1e6, Seed: 1, CreatedMs: time.Now().UnixMilli(), Optimizer: asked(c.Optimizer)}.Make()
		return g, err
	}
	if name := asked(c.Optimizer); name != "" {
		return genesis.Genesis{}, badUsage("--optimizer is %s, and --genesis says what its run uses: leave one of them out", name)
	}
	b, err := os.ReadFile(c.Genesis)
	if err != nil {
		return genesis.Genesis{}, err
	}
	return genesis.Decode(b)
}

// config is what the learner is told of the run, with the text that comes with atoll.
func (c *LearnerCheckCmd) config(out *console, g genesis.Genesis, dir string) (cfg external.Config, text *corpus.Corpus, err error) {
	cfg = external.Config{
		Dir: dir, Views: g.Views(), Recipe: g.LearnerRecipe(), Seed: g.Seed, Rows: c.Rows, Context: g.Model.Context,
		MostTokens: g.OuterParams().MaxTokensPerStep, Log: func(line string) { out.say("learner: %s", line) },
		Starts: func(_ int64, rows int) ([]uint64, error) { return make([]uint64, rows), nil },
	}
	if cfg.Command, err = external.Command(c.Command, dir); err != nil {
		return cfg, nil, err
	}
	if cfg.Command.Attach != "" {
		return cfg, nil, badUsage("a script that attaches runs already, and a check starts, kills and starts it again: check the command that starts it")
	}
	if !g.BuiltIn() {
		return cfg, nil, nil
	}
	if text, err = corpus.Open(corpus.Prose); err != nil {
		return cfg, nil, err
	}
	cfg.Text = filepath.Join(dir, "text")
	cfg.HeldOut = cfg.Text // so that an evaluation can be compared with a step
	cfg.Starts = func(step int64, rows int) ([]uint64, error) {
		return text.Starts(g.Seed, [32]byte{}, step, rows, g.Model.Context), nil
	}
	return cfg, text, os.WriteFile(cfg.Text, text.Train(), 0o600)
}

// values are what the run begins with, and the judge of its first step, if there is one.
func (c *LearnerCheckCmd) values(g genesis.Genesis, text *corpus.Corpus) ([]float32, *external.Judge, error) {
	if !g.BuiltIn() {
		if c.Init == "" {
			return nil, nil, badUsage("the run's initial values are given: pass --init with the file or folder of its model")
		}
		slab, err := g.LoadTensors(c.Init)
		if err != nil {
			return nil, nil, err
		}
		return slab.Data, nil, nil
	}
	builtin, err := trainer.New(g.TrainerConfig(c.Rows), text)
	if err != nil {
		return nil, nil, err
	}
	values := append([]float32(nil), builtin.Params()...)
	if c.Steps == 0 {
		return values, nil, nil
	}
	return values, &external.Judge{Trainer: builtin, Steps: c.Steps}, nil
}

// tell prints what was found.
func (c *LearnerCheckCmd) tell(out *console, findings []external.Finding) error {
	wrong := 0
	var rows [][]string
	for _, f := range findings {
		mark, text := "ok", f.Detail
		if f.Wrong != "" {
			mark, text, wrong = "NO", f.Wrong, wrong+1
		}
		rows = append(rows, []string{mark, f.What, text})
	}
	if c.JSON {
		if err := out.json(findings); err != nil {
			return err
		}
	} else if err := table(out.out, rows...); err != nil {
		return err
	}
	if wrong > 0 {
		return fmt.Errorf("%s of this learner is not as PROTOCOL.md wants it", plural(wrong, "thing", "things"))
	}
	return nil
}
