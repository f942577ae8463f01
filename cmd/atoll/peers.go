package main

import (
	"context"
	"errors"

	"atoll/cmd/atoll/internal/cli"
	"atoll/cmd/atoll/internal/statustext"
	"atoll/node/inspect"
	"atoll/node/store"
)

const peersHelp = `
Lists the nodes of a run as one of them sees it: who is here, and who trained and is not: left in order, or gone without a word, with since when, for 24 hours. Who never trained is on no list once it is not here. Shown are hardware and speed (from each node's capability record), and why a peer is refused, or this node is paused. SHARE is the node's part of the folded tokens that count for the budget, WEIGHT its mean part of the last folds. A guest's tokens do not count, so its SHARE is 0, and its WEIGHT is small. MBIT/S is what the uplink carries, as the node measured itself. HEARD is the time since a peer's last message, or when that came if the node of this folder does not run. Notes below the table name peers that count for less because their deltas have little in common with others, peers behind a relay, and guests.

In a run that admits by invitation, INVITE, in place of PRECISION and STEPS, is the invite of each: "own" if it is for that node alone. Notes give the limits of invites, and name who was admitted and trained nothing. A guest joined by an invite for guests: its work counts a little, it decides nothing, and atoll invite --for makes it a member. atoll revoke takes the name of a node or of an invite. --json has more: ids in full, role, measured speed, addresses, traffic.

    atoll peers first
    atoll peers first --json`

// PeersCmd is `atoll peers`.
type PeersCmd struct {
	dirArg
	JSON bool `name:"json" help:"Answer with a JSON array."`
}

// Help implements kong.HelpProvider.
func (*PeersCmd) Help() string { return peersHelp }

// Run lists the peers.
func (c *PeersCmd) Run(ctx context.Context, out *cli.Console) error {
	dir, err := c.folder(out)
	if err != nil {
		return err
	}
	s, running, err := snapshot(ctx, dir)
	if err != nil {
		return err
	}
	if !running {
		sayStopped(out, dir, s)
	}
	members, err := inspect.Members(ctx, dir)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	rows := statustext.Members(s.Peers, members)
	if c.JSON {
		return out.JSON(rows)
	}
	return statustext.PrintMembers(out.Out, rows, statustext.StoppedAt(s, running))
}
