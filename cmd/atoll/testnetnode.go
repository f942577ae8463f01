package main

import (
	"context"

	"atoll/node"
	"atoll/node/status"
	"atoll/testnet/labnode"
)

// TestnetNodeCmd is `atoll testnet-node`, a node of a testnet. It is hidden: `atoll testnet` starts such processes.
type TestnetNodeCmd struct {
	JoinCmd
	Shape string `help:"Make the node's link as slow and far as this, like up=20mbit,down=100mbit,delay=40ms,jitter=10ms,loss=0.1%. A node that meets such nodes, and is not slow itself, needs rate=none." placeholder:"SHAPE"`
}

// Help implements kong.HelpProvider.
func (*TestnetNodeCmd) Help() string {
	return `
Takes part in the run of an atoll testnet as atoll join does, on this machine alone. The testnet can cut it off from peers, slow it down, have it lie and damage its memory. With --link each node of a testnet has a shape, so one that joins by hand has one too:

    atoll testnet-node $(cat DIR/link) --dir me --shape rate=none`
}

// Run takes part in the run.
func (c *TestnetNodeCmd) Run(ctx context.Context, out *console) error {
	link, err := shapeOf(c.Shape)
	if err != nil {
		return badUsage("--shape: %v", err)
	}
	return c.takePart(ctx, out, func(ctx context.Context, cfg node.Config) (status.Snapshot, error) {
		return labnode.Run(ctx, cfg, link)
	})
}
