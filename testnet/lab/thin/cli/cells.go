package cli

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"time"

	"atoll/testnet/lab/thin"
)

func cells(ctx context.Context, args []string, out io.Writer) error {
	f := flag.NewFlagSet("cells", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	lab := thin.Usual()
	nodes, mbit, delay := f.Int("nodes", 0, ""), f.Float64("mbit", 0, ""), f.Duration("delay", 0, "")
	asJSON := f.Bool("json", false, "")
	f.IntVar(&lab.Rounds, "rounds", lab.Rounds, "")
	f.IntVar(&lab.H, "h", 0, "")
	f.DurationVar(&lab.Step, "step", lab.Step, "")
	f.Uint64Var(&lab.Seed, "seed", lab.Seed, "")
	switch err := f.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return err
	case err != nil:
		return fmt.Errorf("cells: %v: %w", err, errUsage)
	case f.NArg() > 0:
		return fmt.Errorf("cells takes no %q: %w", f.Arg(0), errUsage)
	case lab.Rounds < 1 || lab.Step < time.Millisecond:
		return fmt.Errorf("--rounds is %d and --step %v: use at least 1 and 1ms: %w", lab.Rounds, lab.Step, errUsage)
	}
	wanted := slices.DeleteFunc(thin.CellsOf(), func(c thin.Cell) bool {
		return *nodes != 0 && c.Nodes != *nodes || *mbit != 0 && c.Mbit != *mbit || *delay != 0 && c.DelayMs != delay.Milliseconds()
	})
	if len(wanted) == 0 {
		return fmt.Errorf("there is no such cell: %w", errUsage)
	}
	text := out
	if *asJSON {
		text = io.Discard
	}
	played, err := lab.Cells(ctx, wanted, text)
	if *asJSON {
		err = errors.Join(err, json.NewEncoder(out).Encode(played))
	}
	if err == nil && slices.ContainsFunc(played, func(c thin.Cell) bool { return len(c.Missed()) > 0 }) {
		err = errMissed
	}
	return err
}
