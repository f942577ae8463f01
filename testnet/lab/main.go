// Command lab measures atoll: its parts on this machine, whole runs beside what people would use instead, and methods of
// training by arithmetic. It is a module of its own, so that nobody who uses atoll builds it.
//
// From the top of the repository: go run -C testnet/lab . COMMAND. Paths that are typed begin at the top, wherever it is
// started. RESULTS.md says what was measured, each figure with its command.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"

	"atoll/testnet/lab/headline"
	"atoll/testnet/lab/ledger"
	"atoll/testnet/lab/link"
	"atoll/testnet/lab/outsider"
	"atoll/testnet/lab/program"
	"atoll/testnet/lab/size"
	sweep "atoll/testnet/lab/sweep/cli"
	thin "atoll/testnet/lab/thin/cli"
	"atoll/testnet/lab/tokenizers"
	"atoll/testnet/lab/torch"
)

// command is one of lab's.
type command struct {
	name, about string
	run         func(ctx context.Context, args []string, out, log io.Writer) error
	usage       func() string // nil where run prints it
}

var commands = []command{
	{"headline", "rows of real processes, each beside what people would use instead; the tables of RESULTS.md", headline.Main, headline.Usage},
	{"sweep", "settings of the outer loop, in virtual time: trains for real, shows tables and curves", sweep.Main, sweep.Usage},
	{"thin", "runs over thin links, with processes and in the simulator", thin.Main, thin.Usage},
	{"outsider", "what a machine without an invite can do to a run", outsider.Main, outsider.Usage},
	{"tokenizers", "models of bytes beside models of a BPE", tokenizers.Main, tokenizers.Usage},
	{"torch", "the losses of atoll's trainer beside PyTorch's", torch.Main, nil},
	{"bench", "parts of this machine: products, steps, codecs, folds, disk, links, the outer loop", flagged("bench"), nil},
	{"link", "bulk and heartbeats on shaped links", link.Main, link.Usage},
	{"ledger", "ledgers of a million rounds", ledger.Main, ledger.Usage},
	{"size", "what one fragment of a large model costs", size.Main, size.Usage},
	{"goodput", "up to millions of chips that fail: what share of their work counts", flagged("goodput"), nil},
	{"bandwidth", "what links training methods need", flagged("bandwidth"), nil},
	{"aggregation", "how deltas reach thousands of learners", flagged("aggregation"), nil},
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := program.AtTop()
	if err == nil {
		err = run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "lab:", err)
		os.Exit(1)
	}
}

// run does what was typed. Answers go to out, everything else to log.
func run(ctx context.Context, args []string, out, log io.Writer) error {
	if len(args) == 0 || slices.Contains([]string{"help", "-h", "--help"}, args[0]) {
		_, err := fmt.Fprint(out, help())
		return err
	}
	i := slices.IndexFunc(commands, func(c command) bool { return c.name == args[0] })
	if i < 0 {
		return fmt.Errorf("there is no command %q: go run -C testnet/lab . help lists all", args[0])
	}
	c := commands[i]
	err := c.run(ctx, args[1:], out, log)
	switch {
	case errors.Is(err, flag.ErrHelp) && c.usage != nil:
		_, err = fmt.Fprint(out, c.usage())
	case errors.Is(err, flag.ErrHelp):
		err = nil
	case errors.Is(err, program.ErrUsage):
		err = fmt.Errorf("%s: %w; go run -C testnet/lab . %s --help says what there is to type", c.name, err, c.name)
	case err != nil:
		err = fmt.Errorf("%s: %w", c.name, err)
	}
	return err
}

func help() string {
	var b strings.Builder
	b.WriteString("usage, from the top of the repository:\n\n  go run -C testnet/lab . COMMAND --help\n\nlab in examples stands for go run -C testnet/lab . in front of a command. Paths begin at the top.\n\ncommands:\n")
	for _, c := range commands {
		fmt.Fprintf(&b, "  %-12s %s\n", c.name, c.about)
	}
	return b.String()
}
