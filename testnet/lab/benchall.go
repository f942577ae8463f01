package main

import (
	"context"
)

const benchAllHelp = `
Measures products, steps of tiny and small, codecs, the fold, memory, the disk and the link, each for a short time. The other commands of lab bench measure one of them for longer; lab bench outer measures what the outer loop costs.

    lab bench all
    lab bench all --seconds 1 --json`

// BenchAllCmd is `lab bench all`, and `lab bench`.
type BenchAllCmd struct {
	Dir     string  `help:"Folder on the disk to measure. Default: the current folder." default:"." placeholder:"DIR"`
	Seconds float64 `help:"Seconds to measure each thing; training steps take five times as long." default:"0.2"`
	linesFlag
}

// Help implements kong.HelpProvider.
func (*BenchAllCmd) Help() string { return benchAllHelp }

// stepsLonger: steps are long, so that a median needs time.
const stepsLonger = 5

// Run measures everything.
func (c *BenchAllCmd) Run(ctx context.Context, out *console) error {
	return benchmark(ctx, out, c.JSON, c.Seconds, func(ctx context.Context, r *benchRun) error {
		gemm, disk, state := BenchGemmCmd{}, BenchDiskCmd{Dir: c.Dir}, BenchStateCmd{Model: []string{"tiny"}}
		for _, measure := range []func(context.Context, *benchRun) error{
			gemm.measure, c.steps, measureCodecs, measureFolds, state.measure, disk.measure, measureLinks,
		} {
			if err := measure(ctx, r); err != nil {
				return err
			}
		}
		return nil
	})
}

// steps measures the models that do not take minutes, at one thread and at all.
func (c *BenchAllCmd) steps(ctx context.Context, r *benchRun) error {
	counts, err := threadCounts(nil, 1)
	if err != nil {
		return err
	}
	runs, err := (&BenchStepCmd{Model: []string{"tiny", "small"}, Threads: counts}).runs()
	if err != nil {
		return err
	}
	return r.stepsApart(ctx, runs, stepsLonger*c.Seconds)
}
