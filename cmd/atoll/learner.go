package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"atoll/cmd/atoll/internal/cli"
	"atoll/node/genesis"
	"atoll/node/inspect"
	"atoll/node/joinlink"
	"atoll/optimizer/trainer"
	"atoll/optimizer/trainer/corpus"
	"atoll/optimizer/trainer/external"
)

// trial is a program that trains and the run that it is tried for: `atoll doctor --learner CMD --try`.
type trial struct {
	Try       bool   `help:"With --learner: start the program as a node does and have it do all that a run asks: load, step, flush, evaluate, save and resume, kill, values that are no numbers, stop, a run with another layout. For the run of the folder if one is typed, otherwise for one of --model."`
	Init      string `help:"With --try: initial values of that run, where they are given: the file or folder of the model." placeholder:"PATH"`
	Model     string `help:"With --try: built-in model: tiny, small, base, or a JSON file of sizes." default:"tiny"`
	Optimizer string `help:"With --try: inner optimizer of that run: ${enum}. auto is muon, or what the folder's run says." enum:"auto,adamw,muon" default:"auto"`
	Rows      int    `help:"With --try: rows of a step." default:"2"`
	Steps     int    `help:"With --try: steps whose losses are compared with the built-in trainer's; 0 compares nothing, for programs that train in their own way." default:"20"`
}

// try checks the program.
func (c *DoctorCmd) try(ctx context.Context, out *cli.Console) (err error) {
	if c.Learner == "" || joinlink.Is(c.Dir) {
		return cli.BadUsage("--try needs --learner CMD, and no link")
	}
	if c.Rows < 1 || c.Rows > maxBatch {
		return cli.BadUsage("--rows is %d; use 1 to %d", c.Rows, maxBatch)
	}
	if c.Steps < 0 {
		return cli.BadUsage("--steps is %d; use 1 or more, or 0 to compare nothing", c.Steps)
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
	values, reference, err := c.values(g, text)
	if err != nil {
		return err
	}
	err = c.print(out, external.Check(ctx, cfg, values, external.Pace{H: g.Outer.H, Fragments: len(g.Plan())}, reference))
	if err == nil {
		err = ctx.Err() // what is left has not been looked at
	}
	return err
}

// genesis is that of the folder's run, or one of the model.
func (c *DoctorCmd) genesis() (genesis.Genesis, error) {
	if c.Dir == "" {
		sizes, err := genesis.ModelConfig(c.Model)
		if err != nil {
			return genesis.Genesis{}, err
		}
		g, _, err := genesis.Spec{Model: sizes, Tokens: 1e6, Seed: 1, CreatedMs: time.Now().UnixMilli(), Optimizer: asked(c.Optimizer)}.Make()
		return g, err
	}
	if name := asked(c.Optimizer); name != "" {
		return genesis.Genesis{}, cli.BadUsage("--optimizer is %s, and the run of %s says what it uses: leave one of them out", name, c.Dir)
	}
	return inspect.FolderGenesis(c.Dir)
}

// config is what the learner is told of the run, with the text that comes with atoll.
func (c *DoctorCmd) config(out *cli.Console, g genesis.Genesis, dir string) (cfg external.Config, text *corpus.Corpus, err error) {
	cfg = external.Config{
		Dir: dir, Views: g.Views(), Recipe: g.LearnerRecipe(), Seed: g.Seed, Rows: c.Rows, Context: g.Model.Context,
		MostTokens: g.OuterParams().MaxTokensPerStep, Log: func(line string) { out.Say("learner: %s", line) },
		Starts: func(_ int64, rows int) ([]uint64, error) { return make([]uint64, rows), nil },
	}
	if cfg.Command, err = external.Command(c.Learner, dir); err != nil {
		return cfg, nil, err
	}
	if cfg.Command.Attach != "" {
		return cfg, nil, cli.BadUsage("a script that attaches runs already, and a check starts, kills and starts it again: check the command that starts it")
	}
	if !g.BuiltIn() {
		cfg.Tokenizer = g.TokenizerIn(c.Dir)
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

// values are what the run begins with, and the reference for its first steps, if there is one.
func (c *DoctorCmd) values(g genesis.Genesis, text *corpus.Corpus) ([]float32, *external.Judge, error) {
	if !g.BuiltIn() {
		if c.Init == "" {
			return nil, nil, cli.BadUsage("the run's initial values are given: pass --init with the file or folder of its model")
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

// print writes what was found.
func (c *DoctorCmd) print(out *cli.Console, findings []external.Finding) error {
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
		if err := out.JSON(findings); err != nil {
			return err
		}
	} else if err := cli.Table(out.Out, rows...); err != nil {
		return err
	}
	if wrong > 0 {
		return fmt.Errorf("%s of this learner is not as PROTOCOL.md wants it", cli.Plural(wrong, "thing", "things"))
	}
	return nil
}
