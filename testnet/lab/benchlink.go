package main

import (
	"context"
	"fmt"

	"atoll/node/status"
	"atoll/testnet/lab/bench"
)

const benchLinkHelp = `
Times requests between two nodes in this process, over TCP on the loopback device, encrypted and paced as between machines: the most that this machine's processor lets a link carry. Links between machines are measured in a run: atoll status shows what each carries.

    lab bench link
    lab bench link --json`

// BenchLinkCmd is `lab bench link`.
type BenchLinkCmd struct {
	Seconds float64 `help:"Seconds to measure each kind of request." default:"1"`
	linesFlag
}

// Help implements kong.HelpProvider.
func (*BenchLinkCmd) Help() string { return benchLinkHelp }

// Run times the requests.
func (c *BenchLinkCmd) Run(ctx context.Context, out *console) error {
	return benchmark(ctx, out, c.JSON, c.Seconds, measureLinks)
}

func measureLinks(ctx context.Context, r *benchRun) error {
	results, err := bench.Links(ctx, r.meter, bench.Transfers)
	if err != nil {
		return err
	}
	header := []string{"ANSWER", "AT ONCE", "MB/S", "MS", "SPREAD"}
	return show(r, "Requests over TCP on the loopback device, both ends on this machine", header, results, func(l bench.Link) []string {
		return []string{
			status.Bytes(float64(l.ResponseBytes)), fmt.Sprint(l.Streams),
			ms(l.MBPerS), ms(l.MsPerCall), share(l.Spread),
		}
	})
}
