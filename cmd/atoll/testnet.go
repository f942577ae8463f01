package main

import (
	"context"
	"fmt"
	"time"

	"atoll/cmd/atoll/internal/cli"
	"atoll/testnet"
)

// TestnetCmd is `atoll testnet`.
type TestnetCmd struct {
	Dir   string `arg:"" optional:"" help:"Folder for the nodes' folders, the join link and the report. Default: a new temporary folder, which is kept."`
	Nodes *int   `help:"Nodes to start. Default: as many as --learner-list names, otherwise 4." placeholder:"N"`
	runFlags
	Data        string        `help:"Text to train on: a file, a folder, a corpus that atoll data build made, or goroot for the Go code that ships with Go. Default: Newton's Opticks, which comes with atoll." placeholder:"PATH"`
	Tokens      amount        `help:"Budget: the run ends when this many tokens are folded into the model." default:"2e6"`
	Speed       []float64     `help:"Divisor of each node's speed: 1,1,2,4 makes node 3 four times slower than node 0. A short list repeats. Default: 1 for all." placeholder:"DIVISOR"`
	Chaos       string        `help:"Faults during the run: VERB TARGET @WHEN, with commas between. WHEN is a time or a share of the tokens. Repeated faults end when four fifths of the tokens are folded, or after --timeout, or after half an hour without one. Default: none." placeholder:"SPEC"`
	Baseline    string        `help:"What trains the model: ${enum}. dp, diloco and local are baselines to compare atoll with." enum:"atoll,dp,diloco,local" default:"atoll"`
	Overlap     bool          `help:"With --baseline dp: send gradients while others are still being computed." negatable:"" default:"true"`
	Link        []string      `help:"What links are like, such as rate=100mbit,delay=40ms: rate= or up= and down=, delay=, jitter=, loss=. May be given more than once: NODES:LINK is for these nodes alone, and the last that names a node wins. Default: no limits." sep:"none" placeholder:"LINK"`
	Learner     []string      `help:"Program that trains instead of atoll's own trainer, as for atoll join. May be given more than once: NODES:CMD, such as 1:torch, is for these nodes alone, and the last that names a node wins." sep:"none" placeholder:"CMD"`
	LearnerList []string      `help:"The same as one list, from node 0 on, such as go,torch,torchrun:2; go is atoll's own trainer, which nodes beyond the list have as well." placeholder:"CMD"`
	Precision   []string      `help:"Arithmetic of matrix products in atoll's own trainer: f32, bf16, or auto for what is faster here. May be given more than once: NODES:PRECISION, such as 1:bf16, is for these nodes alone." sep:"none" placeholder:"PRECISION"`
	Pace        time.Duration `help:"Least time of a step at full speed, such as 100ms. Default: calibrated so that all learners together use 80 % of the cores." placeholder:"TIME"`
	Timeout     time.Duration `help:"Kill all nodes after this time, such as 2h, and exit with 4. Default: when nothing was folded for half an hour, or for eight rounds if that is longer." placeholder:"TIME"`
	UnionWindow int           `help:"Union window: how many closed rounds of a fragment may change. Two sides of a partition that close no more are reconciled when they connect again. Beyond it, the chain of one side wins. Default: 256." placeholder:"ROUNDS"`
	webFlag
	Eval  bool `help:"Evaluate the model at the end, which takes a minute with --model small." negatable:"" default:"true"`
	Trace bool `help:"Write the life of every delta to trace.jsonl in the folder, and report where its time goes."`
	JSON  bool `name:"json" help:"Print the report as one JSON object, the last line of stdout."`
}

// Help is what `atoll testnet --help` says first.
func (TestnetCmd) Help() string {
	return `Starts several nodes of this program on this machine, which train one model together. It shows the run live and ends with a report: how good the model is, where every token went, and whether all nodes hold the same bits. Exit code 0 only if every check of the report passed.

--baseline trains in another way, with the same text, model, trainer and budget. dp averages gradients in every step. diloco averages progress every H steps, behind a barrier. Both use a ring all-reduce among the members that a coordinator in this process admits. local is one node with all the tokens, whatever --nodes says. The report of a baseline leaves out what only atoll has.

Examples:

  atoll testnet
  atoll testnet --nodes 4 --speed 1,1,2,4 --tokens 1e6
  atoll testnet --nodes 3 --chaos "join @33%, leave 1 @66%" --json
  atoll testnet --chaos "kill 1 @20s, start 1 @30s, partition 0,1|2,3 @40s..60s"
  atoll testnet --chaos "kill any every 60s for 10s, pause any every 45s for 20s"
  atoll testnet --chaos random --seed 7
  atoll testnet --chaos "attack inverted-gradient 3 @20%, loss 1 1% @10%"
  atoll testnet --link rate=100mbit,delay=40ms --link 3:up=5mbit,down=100mbit,delay=40ms,jitter=10ms,loss=0.1%
  atoll testnet --link rate=100mbit,delay=40ms --chaos "link 0 rate=5mbit @60s..120s"
  atoll testnet --learner-list "go,torch --threads 1,torchrun:2 --fsdp --threads 1" --chaos "kill learner 1 @30s, kill learner 2 rank 1 @60s"
  atoll testnet --baseline dp --link rate=100mbit,delay=40ms --chaos "kill 1 @20s, start 1 @30s"
  atoll testnet --baseline diloco --h 48
  atoll testnet world --link rate=20mbit,delay=40ms --trace
  atoll join $(cat DIR/link) me            (in a second terminal: takes part in it)
  atoll testnet-node $(cat DIR/link) me --shape rate=none      (the same in a testnet with --link; for scripts)`
}

// Run is the command.
func (cmd TestnetCmd) Run(ctx context.Context, c *cli.Console) error {
	outliveReaders()
	cfg := testnet.Config{
		Nodes: cmd.nodes(), Model: cmd.model(), Data: cmd.Data, Tokens: uint64(cmd.Tokens), Seed: cmd.Seed,
		Speed: cmd.Speed, Chaos: cmd.Chaos, Pace: cmd.Pace, Timeout: cmd.Timeout,
		H: cmd.H, Fragments: cmd.Fragments, Batch: cmd.Batch, Codec: asked(cmd.Codec), Optimizer: builtinOptimizer(cmd.Optimizer), LR: cmd.LR, Window: cmd.UnionWindow,
		Baseline: cmd.Baseline, NoOverlap: !cmd.Overlap, Link: cmd.Link, Learner: cmd.learner(), Precision: cmd.Precision, Trace: cmd.Trace, NoEval: !cmd.Eval,
		Place:   testnet.Place{Dir: cmd.Dir},
		Console: testnet.Console{Out: c.Err, Terminal: terminalSize(c.Err), Abort: c.Abort},
	}
	if err := cmd.check(); err != nil {
		return err
	}
	switch {
	case cfg.Nodes < 1:
		return cli.BadUsage("--nodes is %d: use 1 or more", cfg.Nodes)
	case cmd.Tokens < 1:
		return cli.BadUsage("--tokens is %d: use 1 or more", cmd.Tokens)
	case cmd.Timeout < 0:
		return cli.BadUsage("--timeout is %v: use a duration such as 30m", cmd.Timeout)
	}
	if err := cfg.Validate(); err != nil {
		return cli.BadUsage("%v", err)
	}
	shownAt, err := cmd.open(c)
	if err != nil {
		return err
	}
	defer shownAt.close()
	cfg.Watch = shownAt.watch()
	report, err := testnet.Run(ctx, cfg)
	if err != nil {
		return err
	}
	if cmd.JSON {
		err = c.JSON(report)
		sayFailed(c, report.Checks)
	} else {
		err = report.WriteText(c.Out)
	}
	if err == nil && !report.Passed() {
		err = errSilent
	}
	return err
}

// usualNodes is how many nodes a testnet has where nobody says.
const usualNodes = 4

func (cmd TestnetCmd) nodes() int {
	switch {
	case cmd.Nodes != nil:
		return *cmd.Nodes
	case len(cmd.LearnerList) > 0:
		return len(cmd.LearnerList)
	}
	return usualNodes
}

// learner are the programs of --learner-list and then those of --learner, which win.
func (cmd TestnetCmd) learner() (all []string) {
	for i, l := range cmd.LearnerList {
		all = append(all, fmt.Sprintf("%d:%s", i, l))
	}
	return append(all, cmd.Learner...)
}

// sayFailed tells of the checks that failed where the answer is for programs.
func sayFailed(c *cli.Console, checks []testnet.Check) {
	for _, check := range checks {
		if !check.Passed {
			c.Say("atoll: check failed: %s: %s", check.Name, check.Detail)
		}
	}
}
