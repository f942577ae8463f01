package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"atoll/cmd/atoll/internal/cli"
	"atoll/node/inspect"
	"atoll/node/status"
	"atoll/optimizer/trainer"
)

// replaying is a context in which a ledger is replayed with progress.
func replaying(ctx context.Context, out *cli.Console, what string) context.Context {
	m := cli.NewMeter(out, what)
	return inspect.WithProgress(ctx, func(done, all uint64) { m.At(float64(done), float64(all)) })
}

// scoring is one in which text is scored with progress.
func scoring(ctx context.Context, out *cli.Console, what string) context.Context {
	m := cli.NewMeter(out, what)
	return trainer.WithProgress(ctx, func(done, all int) { m.At(float64(done), float64(all)) })
}

// writing says how far the writing of a folder is, of so many bytes, until stop is called.
func writing(out *cli.Console, dir string, all int64) (stop func()) {
	m := cli.NewMeter(out, fmt.Sprintf("writing %s to %s", status.Bytes(float64(all)), dir))
	tick := time.NewTicker(cli.LineEvery)
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		defer tick.Stop()
		for {
			select {
			case <-end:
				return
			case <-tick.C:
				m.At(float64(sizeOf(dir)), float64(all))
			}
		}
	}()
	return func() {
		close(end)
		<-ended
	}
}

// sizeOf is the bytes of the files in a folder, 0 if it is not there.
func sizeOf(dir string) (sum int64) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if info, err := os.Stat(filepath.Join(dir, e.Name())); err == nil {
			sum += info.Size()
		}
	}
	return sum
}
