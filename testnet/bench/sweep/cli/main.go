// Command cli runs sweeps and shows what came of them; package sweep says what a
// sweep is, and usage what there is to type.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"

	"atoll/testnet/bench/sweep"
)

const usage = `usage, from the top of the repository:

  go run ./testnet/bench/sweep/cli run --out TRIALS.jsonl PLAN...
      run what of the plans is not yet in the file of trials
  go run ./testnet/bench/sweep/cli table [--where NAME=VALUE,...] [--ref NAME=VALUE,...] [--same NAME,...] TRIALS.jsonl...
      one row for each setting: mean, standard deviation, and the difference to the best
      setting that --ref selects among those with equal values of --same
  go run ./testnet/bench/sweep/cli curves [--where ...] [--by NAME,...] --out PLOT.svg TRIALS.jsonl...
      bits per byte against tokens
  go run ./testnet/bench/sweep/cli frontier [--where ...] [--by NAME,...] --out PLOT.svg TRIALS.jsonl...
      bits per byte against bytes per token
`

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "sweep:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 {
		return errors.New("say what to do\n" + usage)
	}
	verbs := map[string]func([]string) error{"run": play}
	do, ok := verbs[args[0]]
	if !ok {
		return fmt.Errorf("there is no %q\n%s", args[0], usage)
	}
	return do(args[1:])
}

// newFlags returns flags that show usage where they are wrong.
func newFlags(verb string) *flag.FlagSet {
	f := flag.NewFlagSet(verb, flag.ContinueOnError)
	f.Usage = func() { fmt.Fprint(os.Stderr, usage) }
	return f
}

func play(args []string) error {
	f := newFlags("run")
	out := f.String("out", "", "file of trials")
	if err := f.Parse(args); err != nil {
		return err
	}
	if *out == "" || f.NArg() == 0 {
		return errors.New("run needs --out and a plan\n" + usage)
	}
	var plan []sweep.Entry
	for _, name := range f.Args() {
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		entries, err := sweep.ParsePlan(string(text))
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		plan = append(plan, entries...)
	}
	return sweep.NewLab().Play(plan, *out, os.Stderr)
}
