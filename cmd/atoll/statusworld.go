package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"atoll/cmd/atoll/internal/cli"
	"atoll/cmd/atoll/internal/statustext"
	"atoll/cmd/atoll/internal/top"
	"atoll/node/status"
)

// testnetStatus shows a line for each node of the testnet in a folder.
func (c *StatusCmd) testnetStatus(ctx context.Context, out *cli.Console, dir string) error {
	if c.Watch {
		return cli.BadUsage("%s is a testnet: `atoll top %s` watches all its nodes, or type one of them, such as %s", dir, status.ShellWord(dir), status.ShellWord(filepath.Join(dir, "node0")))
	}
	rows := [][]string{{"NODE", "STATE", "FOLDED", "STEP", "TRAINED", "LIVE PEERS", "STATE DIGEST"}}
	for _, node := range top.Folders(dir, isNodeFolder) {
		s, running, err := snapshot(ctx, node)
		switch {
		case errors.Is(err, status.ErrNotRunning):
			rows = append(rows, []string{node, "left no status"})
			continue
		case err != nil:
			return err
		}
		if c.JSON {
			if err := out.JSON(s); err != nil {
				return err
			}
			continue
		}
		rows = append(rows, nodeRow(node, s, running))
	}
	if c.JSON {
		return nil
	}
	if err := cli.Table(out.Out, statustext.Printable(rows)...); err != nil {
		return err
	}
	out.Answer("\n`atoll status %s` shows more of one node.", status.ShellWord(filepath.Join(dir, "node0")))
	return nil
}

// nodeRow is the line of a node of a testnet.
func nodeRow(dir string, s status.Snapshot, running bool) []string {
	state, live := s.State, fmt.Sprint(status.LivePeers(s.Peers))
	if !running {
		state, live = "stopped", cli.Unknown
	}
	if s.Finished {
		state = "finished"
	}
	folded := fmt.Sprintf("%s (%s)", status.Count(float64(s.TokensFolded)), cli.Percent(float64(s.TokensFolded), float64(s.BudgetTokens)))
	return []string{dir, state, folded, fmt.Sprint(s.Step), status.Count(float64(s.TokensTrained)), live, status.ShortID(s.StateDigest)}
}
