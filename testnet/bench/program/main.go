package program

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
)

// ErrUsage is wrapped by errors of what was typed, and ErrMissed says that less came out than is asked.
var (
	ErrUsage  = errors.New("it is typed otherwise")
	ErrMissed = errors.New("less came out than is asked")
)

// Main is the main function of a benchmark in testnet/bench of this name: run until an interrupt, with the exit code 1 after an error.
// flag.ErrHelp prints what help returns.
func Main(name string, help func() string, run func(ctx context.Context) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := run(ctx)
	switch {
	case err == nil:
		return
	case errors.Is(err, flag.ErrHelp):
		fmt.Print(help())
		return
	}
	fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
	if errors.Is(err, ErrUsage) {
		fmt.Fprintf(os.Stderr, "%s: go run ./testnet/bench/%s --help says what there is to type\n", name, name)
	}
	os.Exit(1)
}
