package main

import (
	"context"
	"fmt"

	"atoll/testnet/lab/bench"
)

const benchCodecHelp = `
Times every codec on a million normal values: how fast one core encodes them, and how fast it decodes them and adds them to a sum. BEST is the best of all measurements, as on a machine without other work.

    lab bench codec
    lab bench codec --json`

// BenchCodecCmd is `lab bench codec`.
type BenchCodecCmd struct {
	Seconds float64 `help:"Seconds to measure each codec and direction." default:"0.5"`
	linesFlag
}

// Help implements kong.HelpProvider.
func (*BenchCodecCmd) Help() string { return benchCodecHelp }

// Run times the codecs.
func (c *BenchCodecCmd) Run(ctx context.Context, out *console) error {
	return benchmark(ctx, out, c.JSON, c.Seconds, measureCodecs)
}

func measureCodecs(ctx context.Context, r *benchRun) error {
	results, err := bench.Codecs(ctx, r.meter)
	if err != nil {
		return err
	}
	header := []string{"CODEC", "BYTES/PARAM", "ENCODE", "BEST", "SPREAD", "DECODE AND ADD", "BEST", "SPREAD"}
	return show(r, "Codecs, Gparam/s on one core, normal values", header, results, func(c bench.Codec) []string {
		return []string{
			c.Codec, fmt.Sprintf("%.3f", c.BytesPerParam),
			fmt.Sprintf("%.3f", c.EncodePerS), fmt.Sprintf("%.3f", c.EncodeBest), share(c.EncodeSpread),
			fmt.Sprintf("%.3f", c.DecodePerS), fmt.Sprintf("%.3f", c.DecodeBest), share(c.DecodeSpread),
		}
	})
}
