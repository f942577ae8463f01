package main

import (
	"context"
	"fmt"

	"atoll/node/status"
	"atoll/testnet/lab/bench"
)

const benchDiskHelp = `
Times writes on a disk, and what a node's store makes of them. An own delta is synced before it leaves; deltas of other nodes are kept together, hundreds in one commit. It works in a new folder under --dir and removes it.

    lab bench disk
    lab bench disk --dir me --seconds 5 --json`

// BenchDiskCmd is `lab bench disk`.
type BenchDiskCmd struct {
	Dir     string  `help:"Folder on the disk to measure. Default: the current folder." default:"." placeholder:"DIR"`
	Seconds float64 `help:"Seconds to measure each kind of write." default:"1"`
	jsonFlag
}

// Help implements kong.HelpProvider.
func (*BenchDiskCmd) Help() string { return benchDiskHelp }

// Run times the writes.
func (c *BenchDiskCmd) Run(ctx context.Context, out *console) error {
	return benchmark(ctx, out, c.JSON, c.Seconds, c.measure)
}

func (c *BenchDiskCmd) measure(ctx context.Context, r *benchRun) error {
	d, err := bench.Disks(ctx, r.meter, c.Dir)
	if err != nil {
		return err
	}
	if r.json {
		return r.out.json(d)
	}
	delta := status.Bytes(float64(d.DeltaBytes))
	return show(r, "Disk under "+c.Dir, []string{"WRITE", "RATE", "MS EACH", "SPREAD"}, [][]string{
		{"4 KiB, synced", big(d.WritesPerS) + "/s", ms(d.MsPerWrite), share(d.WriteSpread)},
		{"16 MiB, synced at the end", fmt.Sprintf("%.0f MB/s", d.MBPerS), unknown, share(d.MBSpread)},
		{"own delta of " + delta + ", for good", big(1000/d.MsPerOwn) + "/s", ms(d.MsPerOwn), share(d.OwnSpread)},
		{"delta of another node, the same", big(1000/d.MsPerDelta) + "/s", ms(d.MsPerDelta), share(d.DeltaSpread)},
	}, func(row []string) []string { return row })
}

// ms writes milliseconds with three significant digits.
func ms(x float64) string { return fmt.Sprintf("%.3g", x) }
