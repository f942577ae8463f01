package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"atoll/cmd/atoll/internal/cli"
	"atoll/node/status"
	"atoll/node/trace"
	"atoll/testnet/fault"
	"atoll/testnet/sim"
)

const simHelp = `
Runs whole nodes in virtual time, with the cores of real nodes and under faults, and checks every promise of the protocol at every event. A seed always gives the same history, so its digest is the same each time.

Without --nodes the seed decides everything: nodes, links, faults. The same command replays a seed that fails. --shrink makes its scenario smaller, --save writes it, and --scenario plays what was written. Exit code 1 if a promise is broken.

--thin draws schedules in which payloads take a good share of what the links carry. --link gives --nodes such a link, in the words of atoll testnet --link; then they run to their budget, --payload says how long a delta of every fragment is, and --delta-time how long a learner takes between two.

--script plays a script: words that say what happens to a world and what is expected of it. testnet/scenario/testdata has examples, and the documentation of package testnet/scenario has the grammar. A script decides everything, so --seed and --nodes do not go with it.

    atoll sim --seed 7
    atoll sim --seed 7 --seeds 100
    atoll sim --seed 7 --shrink 200 --save small.json
    atoll sim --nodes 5 --faults "partition 0,1 @5s..20s, kill 2 @8s for 1s, disk-full 0 @9s for 3s"
    atoll sim --nodes 4 --link rate=20mbit,delay=40ms --payload 1.2MB --delta-time 5s --json
    atoll sim --nodes 1000 --rounds 20 --json
    atoll sim --script testnet/scenario/testdata/old-fork.txt`

// SimCmd is `atoll sim`.
type SimCmd struct {
	Seed      uint64        `help:"Seed of all random draws." default:"1"`
	Seeds     int           `help:"Run this many seeds, beginning with --seed, and stop at the first that fails." default:"1"`
	Nodes     int           `help:"Number of learners. Default: drawn by the seed." placeholder:"N"`
	Rounds    uint32        `help:"Rounds after which a world of --nodes ends." default:"20"`
	Faults    string        `help:"Faults of --nodes: VERB NODES @TIME, with commas between; the documentation of package testnet/fault has all verbs." placeholder:"SPEC"`
	Thin      bool          `help:"Draw schedules over thin links."`
	Link      []string      `help:"What the links of --nodes are like, as atoll testnet has it, such as rate=20mbit,delay=40ms: rate= or up= and down=, delay=, jitter=, loss=. NODES:LINK is for these nodes alone, and the last that names a node wins." sep:"none" placeholder:"LINK"`
	Payload   string        `help:"With --link: size of a delta of every fragment, such as 1.2MB." default:"100kB"`
	DeltaTime time.Duration `help:"With --link: time that a learner takes for the steps of a delta." default:"5s"`
	Scenario  string        `help:"Play the scenario in this file." placeholder:"FILE"`
	Script    string        `help:"Play the script in this file and check what it expects." placeholder:"FILE"`
	Save      string        `help:"Write the scenario to this file, after --shrink." placeholder:"FILE"`
	Shrink    int           `help:"Make a failing scenario smaller, in at most this many trials." placeholder:"TRIALS"`
	TraceOut  string        `help:"Write the life of every delta to this file, for atoll trace." placeholder:"FILE"`
	JSON      bool          `name:"json" help:"Answer with one JSON object per seed."`
}

// Help implements kong.HelpProvider.
func (*SimCmd) Help() string { return simHelp }

// simResult is the answer of `atoll sim --json`.
type simResult struct {
	sim.Result
	WallS float64 `json:"wall_s"`
}

// Run plays one scenario for each seed.
func (c *SimCmd) Run(ctx context.Context, out *cli.Console) error {
	if c.Script != "" {
		if c.Nodes != 0 || c.Thin || len(c.Link) > 0 || c.Faults != "" || c.Scenario != "" || c.Shrink != 0 || c.Seeds > 1 {
			return cli.BadUsage("--script describes the whole world; only --save, --trace-out and --json go with it")
		}
		return c.playScript(out)
	}
	if err := c.check(); err != nil {
		return err
	}
	for i := range c.Seeds {
		if ctx.Err() != nil {
			return errUnfinished
		}
		s, err := c.scenario(c.Seed + uint64(i))
		if err != nil {
			return err
		}
		if err := c.play(ctx, s, out); err != nil {
			return err
		}
	}
	return nil
}

// errUnfinished ends worlds that somebody interrupts.
var errUnfinished = errors.New("interrupted: an unfinished world has no result; the same command plays the same history again")

// check refuses flags that describe no world.
func (c *SimCmd) check() error {
	switch {
	case c.Seeds < 1:
		return cli.BadUsage("--seeds is %d; use 1 or more", c.Seeds)
	case c.Nodes < 0:
		return cli.BadUsage("--nodes is %d; use 1 or more, or leave it out for what the seed draws", c.Nodes)
	case c.TraceOut != "" && c.Seeds > 1:
		return cli.BadUsage("--trace-out is of one world: leave --seeds out")
	case c.Nodes > 0 && c.Thin:
		return cli.BadUsage("--thin draws the nodes; use it without --nodes, or --link with it")
	case c.Rounds < 1:
		return cli.BadUsage("--rounds is %d; use 1 or more", c.Rounds)
	}
	return nil
}

// scenario is what the flags describe.
func (c *SimCmd) scenario(seed uint64) (s sim.Scenario, err error) {
	switch {
	case c.Scenario != "":
		var b []byte
		if b, err = os.ReadFile(c.Scenario); err != nil {
			return s, fmt.Errorf("read the scenario: %w: pass a file that --save wrote", err)
		}
		if err = json.Unmarshal(b, &s); err != nil {
			return s, fmt.Errorf("read the scenario: %s: %w: pass a file that --save wrote", c.Scenario, err)
		}
		return s, nil
	case c.Nodes > 0:
		return c.named(seed)
	case c.Faults != "":
		return s, cli.BadUsage("--faults needs --nodes: without it the seed draws the faults")
	case len(c.Link) > 0:
		return s, cli.BadUsage("--link needs --nodes: without it the seed draws the links; --thin draws thin ones")
	case c.Thin:
		return sim.ExploreThin(seed), nil
	}
	return sim.Explore(seed), nil
}

// named is a world of --nodes: with links or faults one that runs to its budget, else a
// large one.
func (c *SimCmd) named(seed uint64) (sim.Scenario, error) {
	if c.Faults == "" && len(c.Link) == 0 {
		return sim.Large(c.Nodes, c.Rounds, seed), nil
	}
	faults, err := sim.ParseFaults(c.Faults, c.Nodes)
	if err != nil {
		return sim.Scenario{}, cli.BadUsage("--faults: %v", err)
	}
	if len(c.Link) == 0 {
		return sim.Small(c.Nodes, c.Rounds, faults, seed), nil
	}
	links, err := sim.ParseLinks(c.Link, c.Nodes)
	if err != nil {
		return sim.Scenario{}, cli.BadUsage("--link: %v", err)
	}
	payload, ok := fault.ParseBytes(c.Payload)
	if !ok {
		return sim.Scenario{}, cli.BadUsage("--payload %q: write an amount such as 100kB or 1.2MB", c.Payload)
	}
	return sim.OnLinks(links, c.Rounds, payload, c.DeltaTime.Milliseconds(), faults, seed), nil
}

func (c *SimCmd) play(ctx context.Context, s sim.Scenario, out *cli.Console) error {
	began := time.Now()
	s.Trace = c.TraceOut != ""
	r, err := sim.RunContext(ctx, s)
	if ctx.Err() != nil {
		return errUnfinished
	}
	if err != nil {
		return cli.BadUsage("%v", err)
	}
	took := time.Since(began).Seconds()
	if r.Err != nil && c.Shrink > 0 {
		s, r = sim.Shrink(s, c.Shrink)
	}
	if err := c.keep(s, r); err != nil {
		return err
	}
	if err := c.print(simResult{r, took}, out); err != nil {
		return err
	}
	if r.Err != nil {
		return errSilent
	}
	return nil
}

// keep writes the files that were asked for.
func (c *SimCmd) keep(s sim.Scenario, r sim.Result) error {
	if c.Save != "" {
		if err := saveScenario(c.Save, s); err != nil {
			return err
		}
	}
	if c.TraceOut != "" {
		return trace.WriteFile(c.TraceOut, r.Trace)
	}
	return nil
}

func saveScenario(path string, s sim.Scenario) error {
	b, err := json.MarshalIndent(s, "", "  ")
	if err == nil {
		err = os.WriteFile(path, append(b, '\n'), 0o644)
	}
	if err != nil {
		return fmt.Errorf("save the scenario: %w", err)
	}
	return nil
}

func (c *SimCmd) print(r simResult, out *cli.Console) error {
	if c.JSON {
		return out.JSON(r)
	}
	faults := 0
	for _, n := range r.Counts.Faults {
		faults += n
	}
	rows := [][]string{
		{"seed", fmt.Sprint(r.Seed)},
		{"nodes", fmt.Sprint(r.Nodes)},
		{"rounds closed", fmt.Sprint(r.Rounds)},
		{"virtual time", cli.Seconds(float64(r.VirtualMs) / 1000)},
		{"wall time", fmt.Sprintf("%.1f s, %s events", r.WallS, status.Count(float64(r.Counts.Events)))},
		{"faults", fmt.Sprintf("%d, and %s gossip messages lost", faults, status.Count(float64(r.Counts.MessagesLost)))},
		{"tokens folded", status.Count(float64(r.Tokens))},
		{"loss", fmt.Sprintf("%.3f of %.3f at the start", r.Loss, r.LossStart)},
		{"deltas", fmt.Sprintf("%d published, %d refolds, %d returned, %d discarded", r.Counts.Deltas, r.Did.Refolds, r.Did.Returns, r.Did.Discards)},
		{"bytes per node and round", status.Count(float64(r.BytesIn) / float64(max(r.Nodes, 1)) / float64(max(r.Rounds, 1)))},
		{"late, discarded, over budget", fmt.Sprintf("%.1f %%, %.1f %%, %.1f %%", 100*r.Fit.Late, 100*r.Fit.Discarded, 100*r.Fit.Over)},
		{"idle at the end", cli.Seconds(float64(r.Fit.EndMs) / 1000)},
		{"one chain after", fmt.Sprintf("%d rounds, %s", r.AgreedIn, cli.Seconds(float64(r.AgreedMs)/1000))},
		{"chain, state", status.ShortID(r.Chain) + " " + status.ShortID(r.State)},
		{"history", r.History},
	}
	if r.Error != "" {
		rows = append(rows, []string{"BROKEN", r.Error})
	} else {
		rows = append(rows, []string{"promises", "all kept"})
	}
	return cli.Table(out.Out, rows...)
}
