// Package cli shows what thin links do to runs; package thin says how, and usage what there is to type.
package cli

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"

	"atoll/testnet/lab/program"
	"atoll/testnet/lab/thin"
)

const usage = `usage, from the top of the repository:

  go run -C testnet/lab . thin run [--only ROW,...] [--runs 3] [--scale 0.25] [--out thin.jsonl] [--json]
      play rows with real processes, each beside its reference, and say which targets are met. What is in the file
      of --out is not played again. Exit code 1 if a target is missed.
      rows: %s

  go run -C testnet/lab . thin cells [--nodes 4] [--mbit 20] [--delay 40ms] [--rounds 16] [--step 320ms] [--h 24] [--json]
      play what atoll new --bandwidth chooses in the simulator: 4 and 8 nodes, 100 to 5 Mbit/s, 10 to 150 ms, or some
      of them. All take a few minutes. --h plays another H, with int4. Exit code 1 if a target is missed.

flags of run:
  --atoll PATH    program to run; otherwise the source here is built
  --before PATH   an earlier version, for the row before
  --only ROW,...  some of the rows
  --runs N        turns of each row; figures are medians over them
  --scale X       of tokens and times; 0.25 is a quick look whose figures are not those of the targets
  --pace TIME     least time of a step; otherwise what the first run of each row is calibrated to
  --model, --data, --seed   as for atoll testnet
  --keep          leave the folders of runs
  --json          print each row as one line of JSON
`

// errUsage is wrapped by errors of what was typed; errMissed says that a target was missed.
var errUsage, errMissed = program.ErrUsage, program.ErrMissed

// Usage is what there is to type.
func Usage() string { return fmt.Sprintf(usage, strings.Join(thin.Groups(), ", ")) }

// Main does what was typed.
func Main(ctx context.Context, args []string, out, log io.Writer) error {
	if len(args) == 0 {
		return fmt.Errorf("say what to do: %w", errUsage)
	}
	switch args[0] {
	case "help", "-h", "--help":
		return flag.ErrHelp
	case "run":
		return play(ctx, args[1:], out, log)
	case "cells":
		return cells(ctx, args[1:], out)
	}
	return fmt.Errorf("there is no %q: %w", args[0], errUsage)
}

func play(ctx context.Context, args []string, out, log io.Writer) error {
	s, asJSON, err := settings(args)
	if err != nil {
		return err
	}
	s.Log = log
	met := true
	err = thin.Run(ctx, s, func(r thin.Result) {
		met = met && r.Met()
		if asJSON {
			json.NewEncoder(out).Encode(r)
			return
		}
		fmt.Fprint(out, r.Text())
	})
	if err == nil && !met {
		err = errMissed
	}
	return err
}

func settings(args []string) (s thin.Settings, asJSON bool, err error) {
	f := flag.NewFlagSet("run", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.StringVar(&s.Atoll, "atoll", "", "")
	f.StringVar(&s.Before, "before", "", "")
	f.StringVar(&s.Out, "out", "thin.jsonl", "")
	f.IntVar(&s.Runs, "runs", 3, "")
	f.Float64Var(&s.Scale, "scale", 1, "")
	f.DurationVar(&s.Pace, "pace", 0, "")
	f.StringVar(&s.Model, "model", "small", "")
	f.StringVar(&s.Data, "data", "goroot", "")
	f.Uint64Var(&s.Seed, "seed", 5, "")
	f.BoolVar(&s.Keep, "keep", false, "")
	f.BoolVar(&asJSON, "json", false, "")
	only := f.String("only", "", "")
	err = f.Parse(args)
	s.Only = strings.FieldsFunc(*only, func(r rune) bool { return r == ',' })
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		err = fmt.Errorf("run: %v: %w", err, errUsage)
	case f.NArg() > 0:
		err = fmt.Errorf("run takes no %q: %w", f.Arg(0), errUsage)
	case s.Runs < 1 || !(s.Scale > 0):
		err = fmt.Errorf("--runs is %d and --scale %v: use numbers above 0: %w", s.Runs, s.Scale, errUsage)
	}
	return s, asJSON, err
}
