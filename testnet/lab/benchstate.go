package main

import (
	"context"
	"fmt"

	"atoll/testnet/lab/bench"
)

const benchStateHelp = `
Allocates what a learner keeps and prints the bytes per parameter, without outer momentum and with it. The trainer keeps parameters, gradients and the moments of AdamW. The outer loop keeps global parameters, outer momentum and buffers. Activations come on top; lab bench step shows the memory of a process that trains.

    lab bench state
    lab bench state --model tiny,small,base --json`

// BenchStateCmd is `lab bench state`.
type BenchStateCmd struct {
	Model []string `help:"Models, with commas between: tiny, small, base, JSON files of sizes, or all for the three with a name." default:"tiny"`
	linesFlag
}

// Help implements kong.HelpProvider.
func (*BenchStateCmd) Help() string { return benchStateHelp }

// Run allocates.
func (c *BenchStateCmd) Run(ctx context.Context, out *console) error {
	return benchmark(ctx, out, c.JSON, 0, c.measure)
}

func (c *BenchStateCmd) measure(ctx context.Context, r *benchRun) error {
	var results []bench.State
	for _, model := range modelNames(c.Model) {
		for _, momentum := range []bool{false, true} {
			s, err := bench.MeasureState(ctx, r.meter, model, momentum)
			if err != nil {
				return err
			}
			results = append(results, s)
		}
	}
	header := []string{"MODEL", "PARAMS", "OUTER MOMENTUM", "BYTES/PARAM", "TRAINER", "OUTER LOOP"}
	return show(r, "Memory of training for each parameter", header, results, func(s bench.State) []string {
		with := "no"
		if s.Momentum {
			with = "yes"
		}
		return []string{
			s.Model, big(float64(s.Params)), with, fmt.Sprintf("%.1f", s.Training),
			fmt.Sprintf("%.1f", s.Trainer), fmt.Sprintf("%.1f", s.Outer),
		}
	})
}
