package main

import (
	"cmp"
	"context"
	"fmt"

	"atoll/optimizer/outer"
	"atoll/tensor/codec"
	"atoll/testnet/lab/bench"
)

const benchOuterHelp = `
Times a learner's training steps with the outer loop and without, in turn, H steps each. With the loop, every fragment is drafted, folded with payloads of peers (digests and checks included), and adopted. RATIO is the median over neighbouring pairs. BEST follows from the shortest step, draft, fold and adoption, as on a machine without other work. Disk and network are left out; lab bench disk and lab bench link measure them.

    lab bench outer
    lab bench outer --model small --threads 2 --deltas 8 --seconds 60
    lab bench outer --json`

// BenchOuterCmd is `lab bench outer`.
type BenchOuterCmd struct {
	Model     string  `help:"Size of the model: tiny, small, base, or a JSON file of sizes." default:"tiny"`
	Threads   int     `help:"Threads to compute with. Default: one per core." placeholder:"N"`
	Batch     int     `help:"Rows of text in one step. Default: by the model's size." placeholder:"ROWS"`
	H         int     `name:"h" help:"Steps between two deltas of a fragment. Default: 24, or 4 with --codec sparse." placeholder:"STEPS"`
	Fragments int     `help:"Parts of the model, each with rounds of its own. Default: by the model's size." placeholder:"N"`
	Deltas    int     `help:"Deltas of a round, the learner's own among them." default:"8"`
	Codec     string  `help:"Encoding of deltas: ${enum}." enum:"f32,int4,sparse8,sparse" default:"int4"`
	Seconds   float64 `help:"Seconds to measure." default:"10"`
	jsonFlag
}

// Help implements kong.HelpProvider.
func (*BenchOuterCmd) Help() string { return benchOuterHelp }

// maxDeltas bounds the payloads that are made, and maxBatch the rows of a step as atoll does.
const (
	maxDeltas = 1024
	maxBatch  = 1 << 12
)

// Run times the steps.
func (c *BenchOuterCmd) Run(ctx context.Context, out *console) error {
	return benchmark(ctx, out, c.JSON, c.Seconds, c.measure)
}

func (c *BenchOuterCmd) measure(ctx context.Context, r *benchRun) error {
	if err := c.check(); err != nil {
		return err
	}
	kind, err := codec.Parse(c.Codec)
	if err != nil {
		return err
	}
	o, err := bench.MeasureOuter(ctx, r.meter, bench.OuterConfig{
		Model: c.Model, Threads: c.Threads, Batch: c.Batch, H: c.H, Fragments: c.Fragments, Deltas: c.Deltas, Codec: kind,
	})
	if err != nil {
		return err
	}
	return r.outer(o)
}

// check refuses flags that no learner can have.
func (c *BenchOuterCmd) check() error {
	if c.Deltas < 1 || c.Deltas > maxDeltas {
		return badUsage("--deltas is %d; use 1 to %d", c.Deltas, maxDeltas)
	}
	return cmp.Or(checkCount("--threads", c.Threads, 0), checkCount("--batch", c.Batch, maxBatch), checkCount("--h", c.H, outer.MaxH), checkCount("--fragments", c.Fragments, 0))
}

func (r *benchRun) outer(o bench.Outer) error {
	title := fmt.Sprintf("A learner of %s, %s, batch %d: rounds of %s in %s, %s, every %s",
		o.Model, threadsText(o.Threads), o.Batch, plural(o.Deltas, "delta", "deltas"), o.Codec, plural(o.Fragments, "fragment", "fragments"), plural(o.H, "step", "steps"))
	header := []string{"TOKENS/S", "WITHOUT", "RATIO", "MIN..MAX", "BEST", "PAIRS", "MS/DRAFT", "MS/FOLD", "MS/ADOPT", "MEMORY"}
	return show(r, title, header, []bench.Outer{o}, func(o bench.Outer) []string {
		return []string{
			fmt.Sprintf("%.0f", o.TokensPerS), fmt.Sprintf("%.0f", o.AlonePerS), fmt.Sprintf("%.3f", o.Ratio),
			fmt.Sprintf("%.3f..%.3f", o.RatioMin, o.RatioMax),
			fmt.Sprintf("%.3f", o.RatioBest), fmt.Sprint(o.Pairs),
			fmt.Sprintf("%.2f", o.MsDraft), fmt.Sprintf("%.2f", o.MsFold), fmt.Sprintf("%.2f", o.MsAdopt), memoryText(o.RSSBytes),
		}
	})
}
