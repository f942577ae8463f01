package main

import (
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"atoll/cmd/atoll/internal/cli"
	"atoll/gossip/wire"
	"atoll/node/status"
	"atoll/node/trace"
)

const traceHelp = `
Shows where the time of deltas goes, from their author's draft to the models of other nodes. It reads what nodes wrote with --trace: the folder of a node or a testnet, or trace.jsonl of several machines. Times between two machines are as right as their clocks agree.

    atoll testnet world --trace && atoll trace world
    atoll trace here/trace.jsonl there/trace.jsonl --out both.jsonl
    atoll trace world --author lab

A line of trace.jsonl is one delta at one node, or a round that it closed and why; go doc atoll/node/trace has its fields.`

// TraceCmd is `atoll trace`.
type TraceCmd struct {
	Path   []string `arg:"" optional:"" help:"Folders or files with traces. Default: the only atoll folder here."`
	Author string   `help:"Only deltas of this learner: its name, or the first digits of its id." placeholder:"NAME"`
	Node   string   `help:"Only what happened to deltas at this node: its name, or the first digits of its id." placeholder:"NAME"`
	Out    string   `help:"Write the merged lines to this file." placeholder:"FILE"`
	cli.JSONFlag
}

// Help implements kong.HelpProvider.
func (*TraceCmd) Help() string { return traceHelp }

// Run merges traces and says what they come to.
func (c *TraceCmd) Run(ctx context.Context, out *cli.Console) error {
	if len(c.Path) == 0 {
		dir, err := dirArg{}.worldOrFolder(out)
		if err != nil {
			return err
		}
		c.Path = []string{dir}
	}
	var all trace.Trace
	for _, path := range c.Path {
		if err := all.ReadPath(path); err != nil {
			return err
		}
	}
	merged := all.Merge()
	whose, err := c.pick(&merged, machinesBeside(ctx, c.Path))
	if err != nil {
		return err
	}
	if len(merged.Lines) == 0 {
		return fmt.Errorf("no delta%s is traced there: wait until one is adopted", whose)
	}
	if c.Out != "" {
		if err := trace.WriteFile(c.Out, merged); err != nil {
			return err
		}
	}
	shares := trace.Sum(merged)
	if c.JSON {
		return out.JSON(shares)
	}
	out.Answer("%s\n", shares.Text(whose))
	return shares.WriteText(out.Out)
}

// machinesBeside are the machines that the nodes know whose traces these are: of those that left a status, by their names.
func machinesBeside(ctx context.Context, paths []string) (machines []status.Peer) {
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil && !info.IsDir() {
			path = filepath.Dir(path)
		}
		below, _ := filepath.Glob(filepath.Join(path, "*")) // its only error is of the pattern
		for _, dir := range append(below, path) {
			if s, _, err := snapshot(ctx, dir); err == nil {
				machines = append(machines, s.Peers...)
			}
		}
	}
	return machines
}

// pick leaves out what was not asked for, and says whose deltas are left; rounds have no author.
func (c *TraceCmd) pick(t *trace.Trace, machines []status.Peer) (whose string, err error) {
	for _, l := range t.Lines {
		machines = append(machines, status.Peer{ID: hex.EncodeToString(l.Author[:])}, status.Peer{ID: hex.EncodeToString(l.Node[:])})
	}
	machines = slices.CompactFunc(slices.SortedStableFunc(slices.Values(machines), func(a, b status.Peer) int {
		return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(b.Name, a.Name)) // one with a name first
	}), func(a, b status.Peer) bool { return a.ID == b.ID })
	status.Label(machines)
	author, byAuthor, err := meant("author", c.Author, machines)
	if err != nil {
		return "", err
	}
	at, byNode, err := meant("node", c.Node, machines)
	if err != nil {
		return "", err
	}
	t.Lines = slices.DeleteFunc(t.Lines, func(l trace.Line) bool { return !author(l.Author) || !at(l.Node) })
	t.Closes = slices.DeleteFunc(t.Closes, func(r trace.Close) bool { return c.Author != "" || !at(r.Node) })
	if byAuthor != "" {
		whose = " of " + byAuthor
	}
	if byNode != "" {
		whose += " at " + byNode
	}
	return whose, nil
}

// meant tells the machine that a flag asks for from others, and says what it is called; without the flag all are.
func meant(flag, word string, machines []status.Peer) (is func(wire.PeerID) bool, called string, err error) {
	if word == "" {
		return func(wire.PeerID) bool { return true }, "", nil
	}
	id, err := status.One(machines, word)
	if err != nil {
		return nil, "", cli.BadUsage("--%s %v: leave it out for all, or take a name or an id of `atoll peers`", flag, err)
	}
	return func(other wire.PeerID) bool { return hex.EncodeToString(other[:]) == id }, status.LabelsOf(machines).Of(id), nil
}
