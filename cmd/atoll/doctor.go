package main

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	"github.com/alecthomas/kong"

	"atoll/cmd/atoll/internal/cli"
	"atoll/cmd/atoll/internal/settings"
	"atoll/gossip/p2p"
	"atoll/node"
	"atoll/node/inspect"
	"atoll/node/joinlink"
	"atoll/node/preflight"
)

const doctorHelp = `
With a join link, before joining: does the link lead into its run, and how will others reach this machine? It dials the link, asks the peer to dial back, asks the router what it does with ports (UPnP), and compares clocks. It says in plain words: reachable; behind a router that will work; or behind a symmetric or carrier-grade NAT, so that the node will be relayed. It says what to do, such as which port to forward. It takes up to a minute, keeps nothing and joins nothing: no node remembers it, and an invite has as many uses as before.

With a folder: is the folder whole, does the disk work and have room, does the model fit into memory, how long does a round take here and how much of the link, at which addresses can peers reach the node? The node may be running. With --fix, a damaged index is set aside; nothing is deleted. The node then fetches the run from its peers again and keeps its key. Damaged headers of old rounds are set aside as well, and the node goes on without them.

With --learner and --try: is a learner's program fit for a run? Authors of learners use it as their test. It measures steps, flush and load, and says what is wrong or too slow. For a built-in model it compares the first loss and the first step with those of the built-in trainer. A program in bf16 may differ by 2 % of the loss.

Each line says what was found, and what to do. Exit code 0 if nothing is wrong, 1 otherwise.

    atoll doctor LINK
    atoll doctor first
    atoll doctor first --fix
    atoll doctor --learner "torch --device cuda"     are Python, PyTorch and the device there?
    atoll doctor --learner torch --try               and does it all that a run asks? hf, jax, mlx and idle come with atoll too
    atoll doctor --learner "torchrun:2 --fsdp" --try two processes that are one learner, with torch or hf
    atoll doctor my-run --learner "python3 mine.py" --try --init model
    atoll doctor --learner "python3 mine.py" --try --steps 0    one that trains in its own way
    atoll doctor first --json`

// DoctorCmd is `atoll doctor`.
type DoctorCmd struct {
	Dir     string `arg:"" optional:"" help:"The node's folder, or a join link to try from this machine. Default: the only folder here, which is the current one or one directly in it."`
	Fix     bool   `help:"Set a damaged index aside."`
	Learner string `help:"Program that trains, as for atoll join: are it, its framework and its device there? Without a node's folder nothing else is looked at. Default: what the node trained with before." placeholder:"CMD"`
	trial
	Listen   []string `help:"With a link: addresses that the node will listen on. Default: port 27182." placeholder:"MULTIADDR"`
	NoMDNS   bool     `name:"no-mdns" help:"With a link: look for nobody on this network by multicast."`
	LogLevel string   `help:"What to log on stderr: ${enum}." enum:"debug,info,warn,error" default:"error"`
	cli.JSONFlag
}

// Help implements kong.HelpProvider.
func (*DoctorCmd) Help() string { return doctorHelp }

// Run looks and tells.
func (c *DoctorCmd) Run(ctx context.Context, out *cli.Console, parsed *kong.Context) error {
	if c.Try {
		return c.try(ctx, out)
	}
	found, err := c.look(ctx, out, parsed)
	if err != nil {
		return err
	}
	if c.JSON {
		err = out.JSON(found)
	} else {
		err = printCheckup(out, found)
	}
	if err == nil && !found.OK {
		return errSilent
	}
	return err
}

func (c *DoctorCmd) look(ctx context.Context, out *cli.Console, parsed *kong.Context) (inspect.Checkup, error) {
	if joinlink.Is(c.Dir) {
		return c.tryLink(ctx, out)
	}
	dir, err := dirArg{c.Dir}.folder(out)
	switch {
	case err != nil && c.Learner != "" && c.Dir == "":
		return inspect.DoctorOfLearner(ctx, c.Learner), nil
	case err != nil:
		return inspect.Checkup{}, err
	}
	found, err := inspect.Doctor(ctx, dir, c.Fix, c.Learner)
	if err == nil {
		lookAtStart(&found, dir, parsed)
	}
	return found, err
}

// lookAtStart finds what would refuse the next start, in files that join reads before there is a node.
func lookAtStart(found *inspect.Checkup, dir string, parsed *kong.Context) {
	bad := func(name string, err error) {
		found.OK = false
		found.Findings = append(found.Findings, inspect.Finding{Name: name, Text: err.Error(), Remedy: "do what it says, before the next `atoll join`"})
	}
	if err := keptSettings(dir, parsed.Model.Node); err != nil {
		bad("settings", err)
	}
	if g, err := inspect.FolderGenesis(dir); err == nil {
		if err := node.CheckAdmission(dir, g); err != nil {
			bad("invite", err)
		}
	}
}

// keptSettings reads what a folder keeps as join would, and returns why it cannot.
func keptSettings(dir string, app *kong.Node) error {
	i := slices.IndexFunc(app.Children, func(n *kong.Node) bool { return n.Name == "join" })
	join := app.Children[i]
	if err := settings.Read(dir, join); err != nil {
		return err
	}
	if err := join.Target.Addr().Interface().(*JoinCmd).nodeFlags.check(); err != nil {
		return settings.Fault(dir, err)
	}
	return nil
}

func (c *DoctorCmd) tryLink(ctx context.Context, out *cli.Console) (inspect.Checkup, error) {
	link, err := joinlink.Parse(c.Dir)
	if err != nil {
		return inspect.Checkup{}, cli.BadUsage("%v", err)
	}
	if c.Fix || c.Learner != "" {
		return inspect.Checkup{}, cli.BadUsage("--fix and --learner are not for a link; leave the link out")
	}
	if err := p2p.CheckListen(c.Listen); err != nil {
		return inspect.Checkup{}, cli.BadUsage("--listen: %v", err)
	}
	handler, err := logHandler(out, c.LogLevel)
	if err != nil {
		return inspect.Checkup{}, err
	}
	out.Say("trying the link from this machine; this takes up to a minute")
	facts, err := preflight.Check(ctx, preflight.Config{Link: link, Listen: c.Listen, NoMDNS: c.NoMDNS, Agent: node.Agent, Log: slog.New(handler)})
	if err != nil {
		return inspect.Checkup{}, err
	}
	found := inspect.CheckupOf(facts.Findings())
	found.Reach = facts.Reach()
	return found, nil
}

func printCheckup(out *cli.Console, found inspect.Checkup) error {
	rows := [][]string{{"CHECK", "", "FOUND"}}
	for _, f := range found.Findings {
		state := "ok"
		if !f.OK {
			state = "WRONG"
		}
		rows = append(rows, []string{f.Name, state, found.Labels.In(f.Text)})
		if f.Remedy != "" {
			rows = append(rows, []string{"", "", "do: " + found.Labels.In(f.Remedy)})
		}
	}
	if err := cli.Table(out.Out, rows...); err != nil {
		return err
	}
	out.Answer("%s", checkupEnd(found))
	return nil
}

// checkupEnd is the last line.
func checkupEnd(found inspect.Checkup) string {
	wrong := 0
	for _, f := range found.Findings {
		if !f.OK {
			wrong++
		}
	}
	if wrong > 0 {
		return fmt.Sprintf("%s attention", cli.Plural(wrong, "thing needs", "things need"))
	}
	return wellText(found)
}

// wellText is the last line where nothing is wrong. All is well only if others reach the node.
func wellText(found inspect.Checkup) string {
	switch {
	case found.Reach == inspect.ReachHelped:
		return "nothing is wrong; others reach this machine through a relay, or when both sides try at once"
	case found.Reach == inspect.ReachNear:
		return "nothing is wrong; only this node's own machine or network reaches it"
	case found.Reach == inspect.ReachUnknown && found.Dir != "" && !found.Running:
		return "nothing is wrong; whether others reach the node shows when it runs: start it and ask again"
	case found.Reach == inspect.ReachUnknown:
		return "nothing is wrong; whether others reach this machine is not known"
	}
	return "all is well"
}
