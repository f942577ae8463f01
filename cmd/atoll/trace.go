package main

import (
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"atoll/cmd/atoll/internal/cli"
	"atoll/gossip/wire"
	"atoll/node/trace"
)

const traceHelp = `
Shows where the time of deltas goes, from their author's draft to the models of other nodes. It reads what nodes wrote with --trace: the folder of a node or a testnet, or trace.jsonl of several machines. Times between two machines are as right as their clocks agree.

    atoll testnet world --trace && atoll trace world --svg trace.svg
    atoll trace here/trace.jsonl there/trace.jsonl --out both.jsonl
    atoll trace world --author 3f2a

A line of trace.jsonl is one delta at one node, or a round that it closed and why; go doc atoll/node/trace has its fields.`

// TraceCmd is `atoll trace`.
type TraceCmd struct {
	Path   []string `arg:"" optional:"" help:"Folders or files with traces. Default: the only atoll folder here."`
	Author string   `help:"Only deltas of this learner: its name, or the first digits of its id." placeholder:"NAME"`
	Node   string   `help:"Only what happened to deltas at this node: its name, or the first digits of its id." placeholder:"NAME"`
	SVG    string   `name:"svg" help:"Draw them into this file." placeholder:"FILE"`
	Out    string   `help:"Write the merged lines to this file." placeholder:"FILE"`
	cli.JSONFlag
}

// Help implements kong.HelpProvider.
func (*TraceCmd) Help() string { return traceHelp }

// Run merges traces and says what they come to.
func (c *TraceCmd) Run(out *cli.Console) error {
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
	merged := c.pick(all.Merge())
	if len(merged.Lines) == 0 {
		return errNoLines
	}
	if err := c.write(merged); err != nil {
		return err
	}
	shares := trace.Sum(merged)
	if c.JSON {
		return out.JSON(shares)
	}
	out.Answer("%s\n", shares.Text())
	return shares.WriteText(out.Out)
}

// errNoLines says that there is nothing to tell of.
var errNoLines = errors.New("no delta is traced there: wait until one is adopted, or look at --author and --node, which are ids as atoll peers shows them")

// pick leaves out what was not asked for. Rounds have no author.
func (c *TraceCmd) pick(t trace.Trace) trace.Trace {
	t.Lines = slices.DeleteFunc(t.Lines, func(l trace.Line) bool {
		return !isOf(c.Author, l.Author) || !isOf(c.Node, l.Node)
	})
	t.Closes = slices.DeleteFunc(t.Closes, func(r trace.Close) bool {
		return c.Author != "" || !isOf(c.Node, r.Node)
	})
	return t
}

// isOf says whether an id begins so.
func isOf(begin string, id wire.PeerID) bool {
	return strings.HasPrefix(hex.EncodeToString(id[:]), strings.ToLower(begin))
}

// write writes the files that were asked for.
func (c *TraceCmd) write(t trace.Trace) error {
	if c.SVG != "" {
		if err := os.WriteFile(c.SVG, []byte(trace.SVG(t.Lines)), 0o644); err != nil {
			return fmt.Errorf("draw the trace: %w", err)
		}
	}
	if c.Out != "" {
		return trace.WriteFile(c.Out, t)
	}
	return nil
}
