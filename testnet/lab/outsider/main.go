// Package outsider measures what a machine without an invite can do to a run that admits by invitation.
//
// It starts four real nodes on this machine, and attacks them over real sockets from another address of it: 127.0.0.66. The
// outsider knows genesis and where the nodes are. It has no certificate that a node takes. Each attack runs by itself, beside
// runs that nobody attacks, in turns. A listener with a certificate hears all that the nodes pass on, and another one, which has
// to do with nobody, counts who dials it.
package outsider

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"runtime"
	"strings"
	"time"

	"atoll/testnet/lab/program"
)

const usage = `usage, from the top of the repository:

  go run -C testnet/lab . outsider [flags] [ATTACK...]
      play the attacks, all of them unless some are named, beside calm runs, and print for each what the nodes did. Exit code 1
      if nodes kept less of their speed than is asked, or passed on what the outsider said.

attacks, with what the outsider does to each node:
%s
flags:
  --quick        one turn and short runs, to see that it works: its figures are not those that are asked about
  --runs N       turns; figures are medians over them. Default: 2, and 1 with --quick
  --for TIME     how long a run is measured. Default: 18s, and 8s with --quick
  --nodes N      nodes of a run. Default: 4
  --pace TIME    least time of a node's step, so that cores are not full. Default: 250ms
  --atoll PATH   program to run; otherwise the source here is built
  --trials FILE  what has been played, a line each. It is not played again, so a measurement goes on after an interruption
  --keep         leave the folders of runs

All attacks in two turns take 12 minutes. It needs Linux, where every address 127.x.x.x is this machine's, and where /proc says
what processes take.
`

// What errors of this program wrap.
var errUsage, errMissed = program.ErrUsage, program.ErrMissed

// Usage is what there is to type.
func Usage() string { return fmt.Sprintf(usage, attackList()) }

// attackList is the list of attacks in the help text.
func attackList() string {
	var b strings.Builder
	for _, a := range attacks {
		fmt.Fprintf(&b, "  %-12s %s\n", a.name, a.about)
	}
	return b.String()
}

// settings are what was typed.
type settings struct {
	attacks []attack
	quick   bool
	runs    int
	span    time.Duration
	nodes   int
	pace    time.Duration
	atoll   string
	trials  string
	keep    bool
	log     io.Writer
}

// What is usual, and limits on what is typed.
const (
	usualRuns, quickRuns = 2, 1
	usualSpan, quickSpan = 18 * time.Second, 8 * time.Second
	leastSpan            = 2 * time.Second // below it a step more or less is a hundredth
	mostRuns             = 100
	leastNodes           = 2 // one has nobody to pass anything on to
	mostNodes            = 16
)

func parse(args []string) (s settings, err error) {
	f := flag.NewFlagSet("outsider", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.BoolVar(&s.quick, "quick", false, "")
	f.IntVar(&s.runs, "runs", 0, "")
	f.DurationVar(&s.span, "for", 0, "")
	f.IntVar(&s.nodes, "nodes", 4, "")
	f.DurationVar(&s.pace, "pace", 250*time.Millisecond, "")
	f.StringVar(&s.atoll, "atoll", "", "")
	f.StringVar(&s.trials, "trials", "", "")
	f.BoolVar(&s.keep, "keep", false, "")
	if err := f.Parse(args); errors.Is(err, flag.ErrHelp) {
		return s, err
	} else if err != nil {
		return s, fmt.Errorf("%v: %w", err, errUsage)
	}
	if s.runs == 0 {
		s.runs = usualRuns
		if s.quick {
			s.runs = quickRuns
		}
	}
	if s.span == 0 {
		s.span = usualSpan
		if s.quick {
			s.span = quickSpan
		}
	}
	if s.attacks, err = attacksNamed(f.Args()); err != nil {
		return s, err
	}
	return s, s.check()
}

func (s settings) check() error {
	switch {
	case s.runs < 1 || s.runs > mostRuns:
		return fmt.Errorf("--runs is %d: use 1 to %d: %w", s.runs, mostRuns, errUsage)
	case s.span < leastSpan:
		return fmt.Errorf("--for is %v: use %v or more: %w", s.span, leastSpan, errUsage)
	case s.nodes < leastNodes || s.nodes > mostNodes:
		return fmt.Errorf("--nodes is %d: use %d to %d: %w", s.nodes, leastNodes, mostNodes, errUsage)
	case s.pace <= 0:
		return fmt.Errorf("--pace is %v: use a time above 0, so that cores are not full: %w", s.pace, errUsage)
	}
	return nil
}

// attacksNamed are the attacks of these names, all of them for none.
func attacksNamed(names []string) (named []attack, err error) {
	if len(names) == 0 {
		return attacks, nil
	}
	for _, name := range names {
		a, ok := attackNamed(name)
		if !ok {
			return nil, fmt.Errorf("there is no attack %q: %w", name, errUsage)
		}
		named = append(named, a)
	}
	return named, nil
}

// Main does what was typed.
func Main(ctx context.Context, args []string, out, log io.Writer) error {
	s, err := parse(args)
	if err != nil {
		return err
	}
	if runtime.GOOS != "linux" {
		return fmt.Errorf("this system is %s: the outsider needs Linux, for its addresses and for /proc", runtime.GOOS)
	}
	s.log = log
	return s.play(ctx, out)
}
