package main

import (
	"context"
	"fmt"

	"atoll/testnet/bench"
)

const benchGemmHelp = `
Times matrix products M x K times K x N, the last of them of the sizes that training tiny multiplies, beside the peak of the same threads: multiply-adds on registers alone. In the form NT the second operand is transposed, in TN the first.

    atoll bench gemm
    atoll bench gemm --threads 1,2,4 --json`

// BenchGemmCmd is `atoll bench gemm`.
type BenchGemmCmd struct {
	Threads []int   `help:"Threads to multiply with, commas between. Default: 1, and one per core." placeholder:"N"`
	Seconds float64 `help:"How long to measure each product." default:"0.3"`
	JSON    bool    `name:"json" help:"Answer with one JSON object per line."`
}

// Help implements kong.HelpProvider.
func (*BenchGemmCmd) Help() string { return benchGemmHelp }

// Run times the products.
func (c *BenchGemmCmd) Run(ctx context.Context, out *console) error {
	return benchmark(ctx, out, c.JSON, c.Seconds, c.measure)
}

func (c *BenchGemmCmd) measure(ctx context.Context, r *benchRun) error {
	counts, err := threadCounts(c.Threads, 1)
	if err != nil {
		return err
	}
	for _, threads := range counts {
		if err := r.gemms(ctx, threads); err != nil {
			return err
		}
	}
	return nil
}

// gemms measures and shows the products of so many threads.
func (r *benchRun) gemms(ctx context.Context, threads int) error {
	r.meter.Note("peak, " + threadsText(threads))
	peak, err := bench.MeasurePeak(ctx, threads)
	if err == nil {
		err = peak.MeasureCopy(ctx)
	}
	if err != nil {
		return err
	}
	if r.json {
		if err := r.out.json(peak); err != nil {
			return err
		}
	}
	results, err := bench.Gemms(ctx, r.meter, peak, bench.Products)
	if err != nil {
		return err
	}
	title := fmt.Sprintf("Matrix products, %s, %s: peak %.0f GFLOP/s, copy %.1f GB/s",
		peak.Kernel, threadsText(peak.Threads), peak.GFLOPPerS, peak.CopyGBPerS)
	return show(r, title, []string{"M x K x N", "FORM", "GFLOP/S", "OF PEAK", "SPREAD", "BEST"}, results, func(g bench.Gemm) []string {
		shape := fmt.Sprintf("%d x %d x %d", g.M, g.K, g.N)
		return []string{shape, g.Form, fmt.Sprintf("%.1f", g.GFLOPPerS), share(g.OfPeak), share(g.Spread), fmt.Sprintf("%.1f", g.Best)}
	})
}
