package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"atoll/node/inspect"
	"atoll/node/status"
	"atoll/optimizer/trainer"
)

// meter says on stderr how far long work is and how long the rest takes. Short work is silent.
type meter struct {
	out         *console
	what        string // such as "replaying rounds"
	now         func() time.Time
	begun, said time.Time
}

func newMeter(out *console, what string) *meter {
	m := &meter{out: out, what: what, now: time.Now}
	m.begun = m.now()
	m.said = m.begun
	return m
}

// at says so much of all is done, unless it said so a moment ago.
func (m *meter) at(done, all float64) {
	now := m.now()
	if now.Sub(m.said) < lineEvery || all <= 0 {
		return
	}
	m.said = now
	m.out.say("%s", meterLine(m.what, done, all, now.Sub(m.begun)))
}

// meterLine is the state of work that took so long until now.
func meterLine(what string, done, all float64, took time.Duration) string {
	text := fmt.Sprintf("%s: %.0f %%", what, 100*done/all)
	if done > 0 && done < all {
		text += ", " + seconds(took.Seconds()*(all-done)/done) + " left"
	}
	return text
}

// replaying is a context in which a ledger is replayed with progress.
func replaying(ctx context.Context, out *console, what string) context.Context {
	m := newMeter(out, what)
	return inspect.WithProgress(ctx, func(done, all uint64) { m.at(float64(done), float64(all)) })
}

// scoring is one in which text is scored with progress.
func scoring(ctx context.Context, out *console, what string) context.Context {
	m := newMeter(out, what)
	return trainer.WithProgress(ctx, func(done, all int) { m.at(float64(done), float64(all)) })
}

// writing says how far the writing of a folder is, of so many bytes, until stop is called.
func writing(out *console, dir string, all int64) (stop func()) {
	m := newMeter(out, fmt.Sprintf("writing %s to %s", status.Bytes(float64(all)), dir))
	tick := time.NewTicker(lineEvery)
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		defer tick.Stop()
		for {
			select {
			case <-end:
				return
			case <-tick.C:
				m.at(float64(sizeOf(dir)), float64(all))
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
