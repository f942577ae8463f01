package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"atoll/cmd/atoll/internal/cli"
	"atoll/node/inspect"
	"atoll/node/status"
)

const benchHelp = `
Measures what this machine does for a run of a model: training steps in the faster precision, the encoding of a delta on one core, the fold of a round on all, and synced writes. Every figure is a median. Links are measured in a run: atoll status shows what each carries.

    atoll bench
    atoll bench me --model base --seconds 10 --json`

// BenchCmd is `atoll bench`.
type BenchCmd struct {
	Dir     string  `arg:"" optional:"" help:"Folder on the disk to measure. Default: the current folder." default:"."`
	Model   string  `help:"Size of the model: tiny, small, base, or a JSON file of sizes." default:"small"`
	Seconds float64 `help:"Seconds to measure each thing." default:"1"`
	cli.ThreadsFlag
	cli.JSONFlag
}

// Help implements kong.HelpProvider.
func (*BenchCmd) Help() string { return benchHelp }

// maxSeconds bounds a measurement to a day.
const maxSeconds = 86400

// Run measures.
func (c *BenchCmd) Run(ctx context.Context, out *cli.Console) error {
	if !(c.Seconds >= 0 && c.Seconds <= maxSeconds) {
		return cli.BadUsage("--seconds is %v; use 0 to %d", c.Seconds, maxSeconds)
	}
	if err := c.ThreadsFlag.Check(); err != nil {
		return err
	}
	b, err := inspect.Measure(ctx, c.Model, c.Dir, c.Threads, time.Duration(c.Seconds*float64(time.Second)))
	if err != nil && ctx.Err() != nil {
		return errors.New("interrupted: nothing was measured to the end")
	}
	if err != nil || c.JSON {
		if err == nil {
			err = out.JSON(b)
		}
		return err
	}
	return cli.Table(out.Out,
		[]string{"steps", fmt.Sprintf("%.0f tokens/s", b.TokensPerS), fmt.Sprintf("%s (%s parameters), %s, %v, %s, %s", b.Model, status.Count(float64(b.Params)), b.Optimizer, b.Precision, b.Kernel, cli.Plural(b.Threads, "thread", "threads"))},
		[]string{"encoding", status.Count(b.EncodePerS) + " values/s", b.Codec},
		[]string{"folding", status.Count(b.FoldPerS) + " values/s", fmt.Sprintf("rounds of %d deltas", b.Deltas)},
		[]string{"disk", fmt.Sprintf("%.0f MB/s", b.MBPerS), fmt.Sprintf("16 MiB, then a sync; a page and a sync take %.3g ms", b.MsPerWrite)},
	)
}
