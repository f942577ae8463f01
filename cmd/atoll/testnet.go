package main

import (
	"context"
	"fmt"
	"time"

	"atoll/optimizer/outer"
	"atoll/tensor/codec"
	"atoll/testnet"
)

// TestnetCmd is `atoll testnet`.
type TestnetCmd struct {
	Nodes int `help:"Learners that start together." default:"4" placeholder:"N"`
	runFlags
	Data     string        `help:"Text to train on: a file or a folder. Default: the prose that ships with Go; \"goroot\": the Go code there." placeholder:"PATH"`
	Tokens   amount        `help:"Budget: the run ends when so many tokens are folded into the model." default:"2e6"`
	Speed    []float64     `help:"How many times slower than full speed each node is, repeated if short." placeholder:"1,1,2,4"`
	Chaos    string        `help:"What happens to the nodes meanwhile: VERB TARGET @WHEN, with commas between; WHEN is a time or a share of the tokens. What has a rate goes on until four fifths of the tokens are folded, and for no longer than --timeout or, without it, half an hour." placeholder:"SPEC"`
	Baseline string        `help:"How the nodes train together: ${enum}. All except atoll are baselines to compare with." enum:"atoll,dp,diloco,local" default:"atoll" aliases:"arm"`
	Overlap  bool          `help:"With --baseline dp: send gradients while others are still being computed." negatable:"" default:"true"`
	Link     string        `help:"Make every node's link so slow and far. Default: as fast as this machine is." placeholder:"rate=100mbit,delay=40ms"`
	Pace     time.Duration `help:"Least time of a step at full speed. Default: so that all learners together need 80 % of the cores." placeholder:"100ms"`
	Dir      string        `help:"Folder for the nodes' folders, the join link and the report. Default: a new one for temporary files, which stays." placeholder:"DIR"`
	Timeout  time.Duration `help:"Kill everything and exit with 4 then. Default: once nothing was folded for half an hour, or for eight rounds where these take longer." placeholder:"2h"`
	Eta      *float64      `help:"Outer learning rate of atoll and of --baseline diloco. Default: 1 with --mu, and else what goes with the merge, which is the mean with diloco." placeholder:"RATE"`
	Mu       *float64      `help:"Outer Nesterov momentum of them. Default: none with --eta, and else likewise." placeholder:"MOMENTUM"`
	Window   int           `help:"Rounds within which nodes that were apart unite what they folded; one chain wins where they were apart for longer. Default: as every run." placeholder:"ROUNDS"`
	JSON     bool          `name:"json" help:"Print the report as one JSON object, the last line of stdout."`
}

// Help is what `atoll testnet --help` says first.
func (TestnetCmd) Help() string {
	return fmt.Sprintf(`Starts real node processes of this program on this machine, lets them train one model together with no leader, shows it live, and ends with a report: how good the model is, where every token went, and whether every node holds the same bits. Exit code 0 only if every check of the report passed. A round is %d inner steps unless --h says otherwise.

--baseline trains with something else, on the same data, model, trainer and budget: dp averages gradients in every step, diloco averages progress every H steps behind a barrier, both by a ring all-reduce among the members that a coordinator in this process lets in; local is one node with all the tokens, whatever --nodes says. The report of a baseline leaves out what only atoll has.

Examples:

  atoll testnet
  atoll testnet --nodes 4 --speed 1,1,2,4 --tokens 1e6
  atoll testnet --nodes 3 --chaos "join @33%%, leave 1 @66%%" --json
  atoll testnet --chaos "kill 1 @20s, start 1 @30s, partition 0,1|2,3 @40s..60s"
  atoll testnet --chaos "kill any every 60s down 10s, pause any every 45s down 20s"
  atoll testnet --chaos random --seed 7
  atoll testnet --baseline dp --link rate=100mbit,delay=40ms --chaos "kill 1 @20s, start 1 @30s"
  atoll testnet --baseline diloco --eta 0.7 --mu 0.9
  atoll join $(cat DIR/link) --dir me      (in a second terminal: takes part in it)`, outer.DefaultH(codec.Int4))
}

// Run is the command.
func (cmd TestnetCmd) Run(ctx context.Context, c *console) error {
	cfg := testnet.Config{
		Nodes: cmd.Nodes, Model: cmd.Model, Data: cmd.Data, Tokens: uint64(cmd.Tokens), Seed: cmd.Seed,
		Speed: cmd.Speed, Chaos: cmd.Chaos, Pace: cmd.Pace, Timeout: cmd.Timeout,
		H: cmd.H, Fragments: cmd.Fragments, Batch: cmd.Batch, Codec: asked(cmd.Codec), Merge: asked(cmd.Merge), Optimizer: cmd.Optimizer, LR: cmd.LR, Window: cmd.Window,
		Baseline: cmd.Baseline, NoOverlap: !cmd.Overlap, Link: cmd.Link, Eta: cmd.Eta, Mu: cmd.Mu,
		Place:   testnet.Place{Dir: cmd.Dir},
		Console: testnet.Console{Out: c.err, Terminal: terminalSize(c.err), Abort: c.abort},
	}
	switch {
	case cmd.Nodes < 1:
		return badUsage("--nodes is %d: use 1 or more", cmd.Nodes)
	case cmd.Tokens < 1:
		return badUsage("--tokens is %d: use 1 or more", cmd.Tokens)
	case cmd.Timeout < 0:
		return badUsage("--timeout is %v: use a duration such as 30m", cmd.Timeout)
	}
	if err := cfg.Validate(); err != nil {
		return badUsage("%v", err)
	}
	report, err := testnet.Run(ctx, cfg)
	if err != nil {
		return err
	}
	if cmd.JSON {
		err = c.json(report)
		c.sayFailed(report.Checks)
	} else {
		err = report.WriteText(c.out)
	}
	if err == nil && !report.Passed() {
		err = errSilent
	}
	return err
}

// sayFailed tells of the checks that failed where the answer is for programs.
func (c *console) sayFailed(checks []testnet.Check) {
	for _, check := range checks {
		if !check.Passed {
			c.say("atoll: check failed: %s: %s", check.Name, check.Detail)
		}
	}
}
