package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"atoll/cmd/atoll/internal/cli"
	"atoll/node/status"
)

const leaveHelp = `
Asks the node of a folder to leave in order: it publishes what is unpublished, tells its peers, saves and ends. The command returns when the node has ended.

    atoll leave first`

// LeaveCmd is `atoll leave`.
type LeaveCmd struct {
	dirArg
	Timeout time.Duration `help:"How long to wait for the node to end." default:"30s"`
}

// Help implements kong.HelpProvider.
func (*LeaveCmd) Help() string { return leaveHelp }

// pollEvery is the time between two looks whether a node has ended.
const pollEvery = 100 * time.Millisecond

// Run makes the node leave.
func (c *LeaveCmd) Run(ctx context.Context, out *cli.Console) error {
	if err := checkTimeout(c.Timeout); err != nil {
		return err
	}
	dir, err := c.folder(out)
	if err != nil {
		return err
	}
	client, err := dialRunning(dir)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	if err := client.Leave(ctx); err != nil {
		return err
	}
	for {
		if _, err := client.Snapshot(ctx); errors.Is(err, status.ErrNotRunning) {
			out.Answer("left")
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the node on %s has not ended within %s: %w", dir, status.Duration(c.Timeout), ctx.Err())
		case <-time.After(pollEvery):
		}
	}
}
