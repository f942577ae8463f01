package main

import (
	"context"
	"fmt"

	"atoll/testnet/bench"
)

const benchStateHelp = `
Allocates what a learner of a model keeps and prints the bytes for each parameter, without outer momentum and with: parameters, gradients and the moments of AdamW; anchors, outer momentum and the buffers of the outer loop. Activations come on top; atoll bench step shows the memory of a process that trains.

    atoll bench state
    atoll bench state --model tiny,small,base --json`

// BenchStateCmd is `atoll bench state`.
type BenchStateCmd struct {
	Model []string `help:"tiny, small, base, or a JSON file of sizes; several with commas between; all is the three." default:"tiny"`
	JSON  bool     `name:"json" help:"Answer with one JSON object per line."`
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
