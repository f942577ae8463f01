package main

import (
	"context"
	"fmt"

	"atoll/testnet/lab/bench"
)

const benchFoldHelp = `
Times the fold of 1, 4, 8 and 16 encoded deltas of a million parameters, beside decoding each of them once. Then times how a learner adopts a tip that folded its own delta.

    lab bench fold
    lab bench fold --json`

// BenchFoldCmd is `lab bench fold`.
type BenchFoldCmd struct {
	Seconds float64 `help:"Seconds to measure each number of deltas." default:"0.5"`
	linesFlag
}

// Help implements kong.HelpProvider.
func (*BenchFoldCmd) Help() string { return benchFoldHelp }

// Run times the folds.
func (c *BenchFoldCmd) Run(ctx context.Context, out *console) error {
	return benchmark(ctx, out, c.JSON, c.Seconds, measureFolds)
}

func measureFolds(ctx context.Context, r *benchRun) error {
	folds, err := bench.Folds(ctx, r.meter, bench.FoldSizes)
	if err != nil {
		return err
	}
	header := []string{"DELTAS", "MS/FOLD", "SPREAD", "MS TO DECODE", "OVER DECODE"}
	title := fmt.Sprintf("Fold of a fragment of %s parameters, %s, one core", big(float64(folds[0].Params)), folds[0].Codec)
	err = show(r, title, header, folds, func(f bench.Fold) []string {
		return []string{
			fmt.Sprint(f.Deltas), fmt.Sprintf("%.1f", f.MsPerFold), share(f.FoldSpread),
			fmt.Sprintf("%.1f", f.MsDecode), fmt.Sprintf("%.2f", f.OverDecode),
		}
	})
	if err != nil {
		return err
	}
	adopt, err := bench.Adoptions(ctx, r.meter)
	if err != nil {
		return err
	}
	return r.adoption(adopt)
}

// adoption shows a result that has no table.
func (r *benchRun) adoption(a bench.Adopt) error {
	if r.json {
		return r.out.json(a)
	}
	r.out.answer("adopt: %.1f ms, %.3f Gparam/s (spread %s)", a.MsPerAdopt, a.PerS, share(a.Spread))
	return nil
}
