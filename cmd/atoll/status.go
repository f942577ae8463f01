package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"atoll/cmd/atoll/internal/cli"
	"atoll/cmd/atoll/internal/statustext"
	"atoll/node/status"
	"atoll/testnet"
)

const statusHelp = `
Shows the whole run as the node of a folder sees it: peers, hardware, shares, rounds, loss, bandwidth, and how others join. The join link may contain an invite, so treat the answer as you would a password. If the node does not run, the answer is what it knew last. Of a testnet's folder it shows a line for each node.

    atoll status first
    atoll status world               all nodes of atoll testnet world
    atoll status first --watch
    atoll status first --json`

// StatusCmd is `atoll status`.
type StatusCmd struct {
	dirArg
	Watch bool `help:"Show it again every two seconds until Ctrl-C."`
	JSON  bool `name:"json" help:"Answer with one JSON object, or with --watch or of a testnet with one per line."`
}

// Help implements kong.HelpProvider.
func (*StatusCmd) Help() string { return statusHelp }

// watchEvery is the time between two answers of --watch.
const watchEvery = 2 * time.Second

// Run shows the status.
func (c *StatusCmd) Run(ctx context.Context, out *cli.Console) error {
	dir, err := c.worldOrFolder(out)
	if err != nil {
		return err
	}
	if testnet.IsWorld(dir) {
		return c.testnetStatus(ctx, out, dir)
	}
	for {
		s, running, err := snapshot(ctx, dir)
		if starts := errors.Is(err, status.ErrStarting); starts && c.Watch {
			out.Say("%v", err)
		} else if err != nil {
			return err
		} else if err := c.print(out, dir, s, running); err != nil || !c.Watch || !running {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(watchEvery):
		}
	}
}

func (c *StatusCmd) print(out *cli.Console, dir string, s status.Snapshot, running bool) error {
	if c.JSON {
		return out.JSON(s)
	}
	if size := terminalSize(out.Out); c.Watch && running && size != nil {
		var text strings.Builder
		s.Link = "" // one that a terminal cuts off misleads
		err := statustext.Print(&text, s, true)
		columns, lines := size()
		fmt.Fprint(out.Out, frame(text.String(), columns, lines))
		return err
	}
	if !running {
		sayStopped(out, dir, s)
	}
	return statustext.Print(out.Out, s, running)
}

// sayStopped says of when a status is where no node runs. One that was killed knew more than it left.
func sayStopped(out *cli.Console, dir string, s status.Snapshot) {
	how := ""
	if status.Died(dir) {
		how = ": it was killed, or its machine lost power"
	}
	out.Say("no node runs on this folder%s; this is what it knew at %s", how, s.At.Format(time.DateTime))
}

// Escape sequences of terminals, as of ECMA-48.
const (
	cursorTop = "\x1b[H"
	clearLine = "\x1b[K"
	clearEnd  = "\x1b[J"
)

// frame puts a text at the top of a terminal and leaves out what does not fit:
// the first lines, which say most, must not scroll away.
func frame(text string, columns, height int) string {
	if columns < 1 || height < 1 {
		columns, height = 80, 24 // the terminal does not tell
	}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if most := max(height-1, 1); len(lines) > most {
		lines = lines[:most]
	}
	for i, l := range lines {
		lines[i] = status.Clip(l, max(columns-1, 1)) + clearLine
	}
	return cursorTop + strings.Join(lines, "\n") + "\n" + clearEnd
}

// snapshot is the newest status of a node: its own answer, or else what it
// left behind.
func snapshot(ctx context.Context, dir string) (s status.Snapshot, running bool, err error) {
	client, err := status.Dial(dir)
	if err == nil {
		ctx, cancel := context.WithTimeout(ctx, askTimeout)
		defer cancel()
		if s, err = client.Snapshot(ctx); err == nil {
			return s, true, nil
		}
	}
	if !errors.Is(err, status.ErrNotRunning) {
		return s, false, err
	}
	s, err = lastStatus(dir)
	return s, false, err
}

// labelsOf are what machines are called, by the node of a folder; none where it has left no status.
func labelsOf(ctx context.Context, dir string) status.Labels {
	s, _, err := snapshot(ctx, dir)
	if err != nil {
		return nil
	}
	return status.LabelsOf(s.Peers)
}

// askTimeout is how long a node on this machine may take to answer.
const askTimeout = 10 * time.Second

// lastStatus reads what a node wrote when it ended.
func lastStatus(dir string) (status.Snapshot, error) {
	s, err := status.ReadFinal(dir)
	if errors.Is(err, os.ErrNotExist) {
		return s, fmt.Errorf("%s: %w, and none has left a status there; start one with `atoll join %s`, or type another folder", dir, status.ErrNotRunning, status.ShellWord(dir))
	}
	return s, err
}
