package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"atoll/cmd/atoll/internal/cli"
	"atoll/node/status"
)

const pauseHelp = `
Asks the node of a folder to cost nothing for now: it publishes what is unpublished, takes no more steps, and fetches and serves nothing heavy. It stays connected, and its peers do not wait for it. The command returns when the node has published what it had.

    atoll pause first
    atoll resume first      it goes on

A pause ends with the process. For pauses by the clock, by a quota or on battery see atoll join --help.`

const resumeHelp = `
Lets a node that atoll pause has paused go on. If its hours, its quota or its battery keep it paused as well, the command says so.

    atoll resume first`

// PauseCmd is `atoll pause`.
type PauseCmd struct {
	dirArg
	Timeout time.Duration `help:"How long to wait until the node has published what it had." default:"90s"`
}

// ResumeCmd is `atoll resume`.
type ResumeCmd struct {
	dirArg
	Timeout time.Duration `help:"How long to wait for the node." default:"30s"`
}

// Help implements kong.HelpProvider.
func (*PauseCmd) Help() string { return pauseHelp }

// Help implements kong.HelpProvider.
func (*ResumeCmd) Help() string { return resumeHelp }

// Run makes the node pause.
func (c *PauseCmd) Run(ctx context.Context, out *cli.Console) error {
	_, err := askToPause(ctx, out, c.dirArg, true, c.Timeout, func(s status.Snapshot) bool { return s.Limits.Asked && s.Limits.Resting })
	if err == nil {
		out.Answer("paused")
	}
	return err
}

// Run lets the node go on.
func (c *ResumeCmd) Run(ctx context.Context, out *cli.Console) error {
	s, err := askToPause(ctx, out, c.dirArg, false, c.Timeout, func(s status.Snapshot) bool { return !s.Limits.Asked })
	switch {
	case err != nil:
		return err
	case len(s.Limits.Why) > 0:
		out.Answer("still paused: %s", strings.Join(s.Limits.Why, "; "))
	default:
		out.Answer("goes on")
	}
	return nil
}

// askToPause asks the node of a folder to pause or to go on, and waits until it is done.
func askToPause(ctx context.Context, out *cli.Console, in dirArg, on bool, within time.Duration, done func(status.Snapshot) bool) (s status.Snapshot, err error) {
	if err := checkTimeout(within); err != nil {
		return s, err
	}
	dir, err := in.folder(out)
	if err != nil {
		return s, err
	}
	client, err := dialRunning(dir)
	if err != nil {
		return s, err
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	if err := client.Pause(ctx, on); err != nil {
		return s, err
	}
	for {
		if s, err = client.Snapshot(ctx); err != nil && !errors.Is(err, status.ErrStarting) {
			return s, err
		}
		if err == nil && done(s) {
			return s, nil
		}
		select {
		case <-ctx.Done():
			return s, fmt.Errorf("the node on %s has not done so within %s: %w; look at `atoll status %s`", dir, status.Duration(within), ctx.Err(), dir)
		case <-time.After(pollEvery):
		}
	}
}

// dialRunning is status.Dial for what makes sense with a node that runs.
func dialRunning(dir string) (*status.Client, error) {
	client, err := status.Dial(dir)
	if errors.Is(err, status.ErrNotRunning) {
		err = fmt.Errorf("%w: `atoll join %s` starts it", err, status.ShellWord(dir))
	}
	return client, err
}
