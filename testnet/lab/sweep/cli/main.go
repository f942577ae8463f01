// Package cli runs sweeps and shows what came of them; package sweep says what a
// sweep is, and usage what there is to type.
package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"

	"atoll/testnet/lab/program"
	"atoll/testnet/lab/sweep"
)

const usage = `usage, from the top of the repository:

  go run -C testnet/lab . sweep run --out TRIALS.jsonl PLAN...
      run what of the plans is not yet in the file of trials
  go run -C testnet/lab . sweep table [--where NAME=VALUE,...] [--ref NAME=VALUE,...] [--same NAME,...] TRIALS.jsonl...
      one row for each setting: mean, standard deviation, and the difference to the best
      setting that --ref selects among those with equal values of --same
  go run -C testnet/lab . sweep curves [--where ...] [--by NAME,...] [--title TEXT] --out PLOT.svg TRIALS.jsonl...
      bits per byte against tokens; --by names what distinguishes a line, --title what stands above
  go run -C testnet/lab . sweep frontier [--where ...] [--by NAME,...] [--title TEXT] --out PLOT.svg TRIALS.jsonl...
      bits per byte against bytes per token
`

// errUsage is wrapped by errors of what was typed.
var errUsage = program.ErrUsage

// Usage is what there is to type.
func Usage() string { return usage }

// Main does what was typed.
func Main(_ context.Context, args []string, out, _ io.Writer) error { return run(args, out) }

// verbs are what there is to do. Answers go to the writer.
var verbs = map[string]func([]string, io.Writer) error{"run": play, "table": table, "curves": curves, "frontier": frontier}

func run(args []string, out io.Writer) error {
	if len(args) == 0 {
		return fmt.Errorf("say what to do: %w", errUsage)
	}
	if slices.Contains([]string{"help", "-h", "--help"}, args[0]) {
		return flag.ErrHelp
	}
	do, ok := verbs[args[0]]
	if !ok {
		return fmt.Errorf("there is no %q: %w", args[0], errUsage)
	}
	return do(args[1:], out)
}

// newFlags returns flags that leave it to main to say what is wrong.
func newFlags(verb string) *flag.FlagSet {
	f := flag.NewFlagSet(verb, flag.ContinueOnError)
	f.SetOutput(io.Discard)
	return f
}

func parse(f *flag.FlagSet, args []string) error {
	if err := f.Parse(args); errors.Is(err, flag.ErrHelp) {
		return err
	} else if err != nil {
		return fmt.Errorf("%s: %v: %w", f.Name(), err, errUsage)
	}
	return nil
}

func play(args []string, _ io.Writer) error {
	f := newFlags("run")
	out := f.String("out", "", "file of trials")
	if err := parse(f, args); err != nil {
		return err
	}
	if *out == "" || f.NArg() == 0 {
		return fmt.Errorf("run needs --out and a plan: %w", errUsage)
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

// shown is what the flags that all views have in common select.
type shown struct {
	flags *flag.FlagSet
	where *string
}

func newShown(verb string) shown {
	f := newFlags(verb)
	return shown{f, f.String("where", "", "which settings")}
}

// groups reads the files of trials, and selects.
func (s shown) groups(args []string) (selected, all []*sweep.Group, err error) {
	if err := parse(s.flags, args); err != nil {
		return nil, nil, err
	}
	if s.flags.NArg() == 0 {
		return nil, nil, fmt.Errorf("%s needs a file of trials: %w", s.flags.Name(), errUsage)
	}
	where, err := sweep.ParseFilter(*s.where)
	if err != nil {
		return nil, nil, err
	}
	var trials []sweep.Trial
	for _, name := range s.flags.Args() {
		if _, err := os.Stat(name); err != nil { // which would be no trials yet to one who runs them
			return nil, nil, fmt.Errorf("read trials: %w; run makes such a file, with --out", err)
		}
		t, err := sweep.ReadTrials(name)
		if err != nil {
			return nil, nil, err
		}
		trials = append(trials, t...)
	}
	all = sweep.Groups(trials)
	selected = where.Select(all)
	if len(selected) == 0 {
		return nil, nil, fmt.Errorf("no trial has %q", *s.where)
	}
	return selected, all, nil
}

func table(args []string, out io.Writer) error {
	s := newShown("table")
	refText := s.flags.String("ref", "", "the reference")
	sameText := s.flags.String("same", "", "fields in which the reference equals the row")
	selected, all, err := s.groups(args)
	if err != nil {
		return err
	}
	same, err := sweep.ParseNames(*sameText)
	if err != nil {
		return err
	}
	var ref sweep.Filter
	if *refText != "" {
		if ref, err = sweep.ParseFilter(*refText); err != nil {
			return err
		}
	}
	_, err = fmt.Fprint(out, sweep.Table(selected, all, ref, same))
	return err
}

func curves(args []string, _ io.Writer) error   { return draw("curves", sweep.Curves, args) }
func frontier(args []string, _ io.Writer) error { return draw("frontier", sweep.Frontier, args) }

func draw(verb string, plot func([]*sweep.Group, []string) sweep.Plot, args []string) error {
	s := newShown(verb)
	byText := s.flags.String("by", "arm", "what names a line")
	out := s.flags.String("out", "", "SVG file")
	title := s.flags.String("title", "", "what stands above")
	selected, _, err := s.groups(args)
	if err != nil {
		return err
	}
	by, err := sweep.ParseNames(*byText)
	if err != nil {
		return err
	}
	if *out == "" {
		return fmt.Errorf("%s needs --out: %w", verb, errUsage)
	}
	p := plot(selected, by)
	if *title != "" {
		p.Title = *title
	}
	return os.WriteFile(*out, []byte(p.SVG()), 0o644)
}
