package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"

	"atoll/cmd/atoll/internal/cli"
	"atoll/cmd/atoll/internal/statustext"
	"atoll/cmd/atoll/internal/top"
	"atoll/node/status"
)

const topHelp = `
Shows a running node, or all the nodes of a testnet, on the full screen: the loss of the model, how far the run is, its peers, the rounds of each fragment, what happens. It works over ssh, from 80 columns and 24 lines on, and without colour if NO_COLOR is set. q or Ctrl-C quits; the node goes on. It ends when the node ends, with exit code 1 if the node died.

    atoll top first
    atoll top world                  all nodes of atoll testnet world
    NO_COLOR=1 atoll top

GOODPUT is the part of the trained tokens that is folded into the model. LAG is the time since a peer's last message. UP/S and DOWN/S are bytes a second, of nodes on this machine. MBIT/S is what a node's uplink carries.`

// TopCmd is `atoll top`.
type TopCmd struct {
	Dir string `arg:"" optional:"" help:"Folder of a node or of a testnet. Default: all nodes' folders here."`
}

// Help implements kong.HelpProvider.
func (*TopCmd) Help() string { return topHelp }

// Run shows the screen.
func (c *TopCmd) Run(ctx context.Context, out *cli.Console) error {
	dir := cmp.Or(c.Dir, ".")
	if err := fullScreen(out, os.Getenv("TERM")); err != nil {
		return err
	}
	list := func() []string { return top.Folders(dir, isNodeFolder) }
	if len(list()) == 0 {
		return cli.BadUsage("there is no atoll folder in %s; type `atoll top DIR` with the one that `atoll join` or `atoll testnet` said it uses", dir)
	}
	source := top.NewSource(list)
	if source.Poll(ctx); source.Idle() {
		return fmt.Errorf("%s: %w; `atoll status %s` shows what it knew last", list()[0], status.ErrNotRunning, list()[0])
	}
	nodes, err := top.Run(ctx, top.Config{Source: source, In: out.In, Out: out.Out, ASCII: !speaksUTF8(os.Getenv)})
	switch {
	case err != nil || ctx.Err() != nil:
		return err
	case top.Ended(nodes):
		text, err := endOf(nodes)
		if err == nil {
			out.Say("%s", text)
		}
		return err
	}
	return nil
}

// fullScreen refuses what cannot show one.
func fullScreen(out *cli.Console, term string) error {
	if !isTerminal(out.Out) {
		return cli.BadUsage("stdout is no terminal; %s", insteadOfTop)
	}
	return terminalFits(term)
}

const insteadOfTop = "use `atoll status --watch` instead"

func terminalFits(term string) error {
	if term == "dumb" || term == "" {
		return cli.BadUsage("a terminal of TERM=%q cannot show a full screen; %s", term, insteadOfTop)
	}
	return nil
}

// speaksUTF8 reads the locale. A terminal without one is taken for a new one, which does.
func speaksUTF8(env func(string) string) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if locale := strings.ToUpper(env(name)); locale != "" {
			return strings.Contains(locale, "UTF-8") || strings.Contains(locale, "UTF8")
		}
	}
	return true
}

// endOf says how it ended: of several nodes as one says that knows the run to be over. It is an
// error if none does, and one has died.
func endOf(nodes []top.Node) (string, error) {
	who, last := "the node has ended", nodes[0].Status
	if len(nodes) > 1 {
		who = fmt.Sprintf("all %d nodes have ended", len(nodes))
	}
	var died []string
	for _, n := range nodes {
		if n.Status.Finished {
			last = n.Status
		}
		if n.Died {
			died = append(died, n.Dir)
		}
	}
	if len(died) == 0 || last.Finished {
		return who + ": " + statustext.EndLine(last), nil
	}
	return "", fmt.Errorf("%s, and died without leaving in order: %s; `atoll logs %[3]s` shows what happened before, and `atoll join %[3]s` goes on from what was published",
		who, strings.Join(died, ", "), status.ShellWord(died[0]))
}
