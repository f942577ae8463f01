package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"atoll/cmd/atoll/internal/cli"
	"atoll/testnet/baseline"
	"atoll/testnet/shaping"
)

// BaselineCmd is `atoll baseline`, a member of a baseline such as dp. It is hidden: `atoll testnet --baseline`
// starts such processes, and the coordinator that they need.
type BaselineCmd struct {
	Dir         string        `arg:"" help:"The member's folder."`
	Kind        string        `help:"Which one: ${enum}." enum:"dp,diloco,local" required:""`
	Genesis     string        `help:"Genesis file." required:"" placeholder:"FILE"`
	Coordinator string        `help:"Address of the coordinator, with /p2p/ID." required:"" placeholder:"MULTIADDR"`
	Data        string        `help:"Text to train on: a file, a folder or goroot." placeholder:"PATH"`
	Threads     int           `help:"Threads to train with. Default: one per core." placeholder:"N"`
	Pace        time.Duration `help:"Least time of a step." placeholder:"TIME"`
	Overlap     bool          `help:"Send gradients while others are still being computed." negatable:"" default:"true"`
	Shape       *shaping.Link `help:"Make the member's link as slow and far as this, like up=20mbit,down=100mbit,delay=40ms,jitter=10ms,loss=0.1%." placeholder:"SHAPE"`
	StandIn     bool          `name:"standin" help:"Compute nothing and touch every value: --pace is the time of a step."`
	LogLevel    string        `help:"What to log on stderr: ${enum}." enum:"debug,info,warn,error" default:"warn"`
}

// Run takes part until the run is over, or until it is interrupted: then the member ends
// its round with the others.
func (cmd BaselineCmd) Run(ctx context.Context, c *cli.Console) error {
	collectEarly()
	handler, err := logHandler(c, cmd.LogLevel)
	if err != nil {
		return err
	}
	genesis, err := os.ReadFile(cmd.Genesis)
	if err != nil {
		return fmt.Errorf("genesis: %w", err)
	}
	return baseline.Run(ctx, baseline.Config{
		Kind: cmd.Kind, Genesis: genesis, Dir: cmd.Dir, Coordinator: cmd.Coordinator, Data: cmd.Data,
		Threads: cmd.Threads, Pace: cmd.Pace, Overlap: cmd.Overlap, Link: cmd.Shape, StandIn: cmd.StandIn, Log: slog.New(handler),
	})
}
