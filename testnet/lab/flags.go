package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/alecthomas/kong"

	"atoll/testnet/lab/program"
)

// flaggedLine are the commands whose flags kong reads.
type flaggedLine struct {
	Bench       BenchCmd       `cmd:"" help:"Measure the parts of this machine."`
	Goodput     GoodputCmd     `cmd:"" help:"Simulate up to millions of chips that fail: what share of their work counts."`
	Bandwidth   BandwidthCmd   `cmd:"" help:"Say what links training methods need."`
	Aggregation AggregationCmd `cmd:"" help:"Simulate how deltas reach thousands of learners: all, some in turns, or merged in groups."`
}

// flagged is what the command of this name does.
func flagged(name string) func(context.Context, []string, io.Writer, io.Writer) error {
	return func(ctx context.Context, args []string, out, log io.Writer) error {
		var line flaggedLine
		helped := false
		parser, err := kong.New(&line, kong.Name("lab"), kong.Writers(out, log), kong.Exit(func(int) { helped = true }),
			kong.ConfigureHelp(kong.HelpOptions{Compact: true}), kong.BindTo(ctx, (*context.Context)(nil)), kong.Bind(&console{out, log}))
		if err != nil {
			return err
		}
		parsed, err := parser.Parse(append([]string{name}, args...))
		var wrong *kong.ParseError
		switch {
		case helped:
			return flag.ErrHelp
		case errors.As(err, &wrong):
			return badUsage("%v", err)
		case err != nil:
			return err
		}
		return parsed.Run()
	}
}

// badUsage is an error of what was typed.
func badUsage(format string, args ...any) error {
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), program.ErrUsage)
}

// jsonFlag is of commands that report one thing.
type jsonFlag struct {
	JSON bool `name:"json" help:"Answer with one JSON object."`
}

// linesFlag is of commands that report several.
type linesFlag struct {
	JSON bool `name:"json" help:"Answer with one JSON object per line."`
}

// checkCount refuses a whole number below zero, or above the most if there is one. Zero is what leaving it out is.
func checkCount(name string, n, most int) error {
	switch {
	case n < 0 && most == 0:
		return badUsage("%s is %d; use 1 or more, or leave it out", name, n)
	case n < 0 || most > 0 && n > most:
		return badUsage("%s is %d; use 1 to %d, or leave it out", name, n, most)
	}
	return nil
}

// amount is a whole number that may be typed as 3000000 or 3e6.
type amount uint64

// maxAmount is the largest amount: up to it a float64 holds every whole number.
const maxAmount = 1 << 53

// UnmarshalText implements encoding.TextUnmarshaler.
func (a *amount) UnmarshalText(text []byte) error {
	x, err := strconv.ParseFloat(string(text), 64)
	if err != nil || x != math.Trunc(x) || x < 0 || x > maxAmount {
		return fmt.Errorf("%q is not a whole number; write it like 3e6 or 3000000", text)
	}
	*a = amount(x)
	return nil
}
