package main

import (
	"context"

	"atoll/cmd/atoll/internal/cli"
	"atoll/node"
	"atoll/node/status"
	"atoll/testnet/labnode"
	"atoll/testnet/shaping"
)

// TestnetNodeCmd is `atoll testnet-node`, a node of a testnet, which can cut it off, slow it down, have it lie and
// damage its memory. It is hidden: `atoll testnet` starts such processes.
type TestnetNodeCmd struct {
	JoinCmd
	Shape *shaping.Link `help:"Make the node's link as slow and far as this, like up=20mbit,down=100mbit,delay=40ms,jitter=10ms,loss=0.1%. A node that meets such nodes, and is not slow itself, needs rate=none." placeholder:"SHAPE"`
}

// Run takes part in the run, on this machine alone.
func (c *TestnetNodeCmd) Run(ctx context.Context, out *cli.Console) error {
	return c.takePart(ctx, out, func(ctx context.Context, cfg node.Config) (status.Snapshot, error) {
		return labnode.Run(ctx, cfg, c.Shape)
	})
}
