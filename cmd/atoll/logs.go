package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"atoll/cmd/atoll/internal/cli"
	"atoll/cmd/atoll/internal/statustext"
	"atoll/node/status"
)

const logsHelp = `
Shows the events of a node, running or not, over its restarts: who connected, what was refused, what was repaired, when it paused. The folder keeps the newest, one to two MiB of them.

    atoll logs first
    atoll logs first --follow
    atoll logs first --last 20 --json`

// LogsCmd is `atoll logs`.
type LogsCmd struct {
	dirArg
	Follow bool `help:"Go on with what happens, until Ctrl-C."`
	Last   int  `help:"Begin with so many of the newest; 0 for all." default:"0" placeholder:"N"`
	cli.LinesFlag
}

// Help implements kong.HelpProvider.
func (*LogsCmd) Help() string { return logsHelp }

// followEvery is the time between two looks for new events.
const followEvery = 500 * time.Millisecond

// Run shows the events.
func (c *LogsCmd) Run(ctx context.Context, out *cli.Console) error {
	if c.Last < 0 {
		return cli.BadUsage("--last is %d; use 1 or more, or 0 for all", c.Last)
	}
	dir, err := c.folder(out)
	if err != nil {
		return err
	}
	reader := status.ReadEvents(dir)
	events, err := reader.Next()
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s: no node has left a record of events here; start one with `atoll join %s`, or type another folder", dir, status.ShellWord(dir))
	}
	if c.Last > 0 {
		events = events[max(0, len(events)-c.Last):]
	}
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	for {
		if err != nil {
			return err
		}
		if err := c.print(out, events, labelsOf(ctx, dir)); err != nil || !c.Follow {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			events, err = reader.Next()
		}
	}
}

func (c *LogsCmd) print(out *cli.Console, events []status.Event, labels status.Labels) error {
	for _, e := range events {
		if c.JSON {
			if err := out.JSON(e); err != nil {
				return err
			}
			continue
		}
		if _, err := fmt.Fprintf(out.Out, "%s %s\n", e.At.Local().Format(time.DateOnly), statustext.EventLine(e, labels)); err != nil {
			return err
		}
	}
	return nil
}
