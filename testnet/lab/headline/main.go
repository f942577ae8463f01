// Package headline measures what atoll promises of thin links, of nodes that die, of unequal machines and of newcomers,
// each beside what people would use instead. A row is one question and one command. It starts real processes, both sides
// on the same work, and plays them in turn. It stores what came of it with the machine.
//
// The first table of testnet/lab/RESULTS.md is made of the stored files, and a test compares the two. So nothing stands
// there that no row has shown.
package headline

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"atoll/testnet/lab/program"
)

const usage = `usage, from the top of the repository:

  go run -C testnet/lab . headline [flags] ROW...
      play rows with real processes, print both sides with the ratio and the least that is asked, and store the result of
      each in testnet/lab/headline/results. Exit code 1 if less came out than is asked.
  go run -C testnet/lab . headline --table [--write]
      print the first table of RESULTS.md from what is stored, or put it there, and its sentences into HEADLINES.md.
  go run -C testnet/lab . headline --plots
      draw the pictures beside the results again.

rows, with what a turn takes on two idle cores, as paces, tokens and links let expect:
%s
flags:
  --quick        a short form, to see that a row works: its figures are not those that are asked about
  --runs N       turns of each row; figures are medians over them. Default: 3, and 1 with --quick
  --more         add turns to what is stored of a row, with its pace and further seeds; as many as lack of 3, or --runs
  --scale X      of the tokens of each run: 0.5 is half as many
  --pace TIME    least time of a step; otherwise what the row needs, or what its first run is calibrated to
  --seed N       of the first turn; each further turn has the next. Default: 5
  --atoll PATH   program to run; otherwise the source here is built
  --python PATH  Python with PyTorch, for the rows that need one. Default: python3
  --out DIR      folder of results
  --trials FILE  what has been played. It is not played again, so a row goes on after an interruption. Default: headline.jsonl
  --only "WORLD;..."  play these worlds of the row and print what they came to; nothing is stored
  --keep         leave the folders of runs
`

// What errors of this program wrap.
var errUsage, errMissed = program.ErrUsage, program.ErrMissed

// Usage is what there is to type.
func Usage() string { return fmt.Sprintf(usage, rowList()) }

// rowList is the list of rows in the help text.
func rowList() string {
	var b strings.Builder
	for _, r := range rows {
		fmt.Fprintf(&b, "  %-9s %s. A turn: %s; --quick: %s", r.Name, r.About, r.Takes, r.TakesQuick)
		if r.Torch {
			b.WriteString(". Needs --python")
		}
		b.WriteString("\n")
	}
	return b.String()
}

// typed is what was typed.
type typed struct {
	Settings
	rows         []Row
	more         bool // turns are added
	table, write bool
	plots        bool
}

// Main does what was typed.
func Main(ctx context.Context, args []string, out, log io.Writer) error {
	t, err := parse(args)
	if err != nil {
		return err
	}
	t.Log = log
	switch {
	case t.table:
		return t.showTable(out)
	case t.plots:
		return t.drawPlots(out)
	}
	return t.play(ctx, out)
}

func parse(args []string) (t typed, err error) {
	f := flag.NewFlagSet("headline", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.BoolVar(&t.Quick, "quick", false, "")
	f.IntVar(&t.Runs, "runs", 0, "")
	f.BoolVar(&t.more, "more", false, "")
	f.Float64Var(&t.Scale, "scale", 1, "")
	f.DurationVar(&t.Pace, "pace", 0, "")
	f.Uint64Var(&t.Seed, "seed", 5, "")
	f.StringVar(&t.Atoll, "atoll", "", "")
	f.StringVar(&t.Python, "python", "python3", "")
	f.StringVar(&t.Out, "out", resultsDir, "")
	f.StringVar(&t.Trials, "trials", "headline.jsonl", "")
	f.BoolVar(&t.Keep, "keep", false, "")
	f.BoolVar(&t.table, "table", false, "")
	f.BoolVar(&t.write, "write", false, "")
	f.BoolVar(&t.plots, "plots", false, "")
	only := f.String("only", "", "")
	if err := f.Parse(args); errors.Is(err, flag.ErrHelp) {
		return t, err
	} else if err != nil {
		return t, fmt.Errorf("%v: %w", err, errUsage)
	}
	t.Only = strings.FieldsFunc(*only, func(r rune) bool { return r == ';' })
	if t.more {
		err = moreAlone(f)
	} else if t.Runs == 0 {
		t.Runs = usualRuns
		if t.Quick {
			t.Runs = 1
		}
	}
	if err != nil {
		return t, err
	}
	if t.rows, err = rowsNamed(f.Args()); err != nil {
		return t, err
	}
	return t, t.check()
}

// moreAlone refuses what --more takes from the turns that are stored.
func moreAlone(f *flag.FlagSet) (err error) {
	f.Visit(func(typed *flag.Flag) {
		if slices.Contains([]string{"quick", "scale", "pace", "seed", "only"}, typed.Name) {
			err = fmt.Errorf("--%s does not go with --more, which plays what is stored once more: leave it out: %w", typed.Name, errUsage)
		}
	})
	return err
}

// usualRuns is how often a row is played.
const usualRuns = 3

// Limits on what is typed: beyond them a row takes days.
const (
	mostRuns  = 100
	mostScale = 100
	leastPace = time.Millisecond
)

func (t typed) check() error {
	switch {
	case t.table && t.plots:
		return fmt.Errorf("--table and --plots are two commands: use one: %w", errUsage)
	case t.write && !t.table:
		return fmt.Errorf("--write goes with --table: %w", errUsage)
	case (t.table || t.plots) && t.more:
		return fmt.Errorf("--more adds turns to a row, and --table and --plots play none: use one: %w", errUsage)
	case (t.table || t.plots) && len(t.rows) > 0:
		return fmt.Errorf("--table and --plots take no row, and %q is one: %w", t.rows[0].Name, errUsage)
	case !t.table && !t.plots && len(t.rows) == 0:
		return fmt.Errorf("name a row to play, such as %s: %w", rows[0].Name, errUsage)
	case t.Runs < 1 && !t.more || t.Runs < 0 || t.Runs > mostRuns:
		return fmt.Errorf("--runs is %d: use 1 to %d: %w", t.Runs, mostRuns, errUsage)
	case !(t.Scale > 0 && t.Scale <= mostScale):
		return fmt.Errorf("--scale is %v: use a number above 0, at most %d: %w", t.Scale, mostScale, errUsage)
	case t.Pace != 0 && t.Pace < leastPace:
		return fmt.Errorf("--pace is %v: use %v or more, or leave it out: %w", t.Pace, leastPace, errUsage)
	}
	return nil
}
