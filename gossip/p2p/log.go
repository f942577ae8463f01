package p2p

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/gologshim"
)

// LibraryLog sends the log of libp2p to handler; otherwise its errors go to
// stderr. It holds for the process, and has to be called before the first New.
// What concerns one host, gossip included, goes to that host's Config.Log.
// Peers have a say in how often libp2p warns, so few lines a minute pass, errors counted apart, unless handler takes all.
func LibraryLog(handler slog.Handler) { gologshim.SetDefaultHandler(seldomLog(handler)) }

// seldomLog is handler with a bound on how many lines pass. A handler that takes lines for debugging has none.
func seldomLog(handler slog.Handler) slog.Handler {
	if handler.Enabled(context.Background(), slog.LevelDebug) {
		return handler
	}
	return fewLines{handler, &lineBudget{}, &lineBudget{}}
}

// fewLines passes on lines while there is a budget for them. Errors have one of their own, so that warnings, which peers
// cause, hide none.
type fewLines struct {
	slog.Handler
	budget, errors *lineBudget
}

// Enabled implements slog.Handler. What libp2p warns of concerns its authors: it tries on, and says each failure in what it returns.
func (f fewLines) Enabled(ctx context.Context, level slog.Level) bool {
	if level == slog.LevelWarn {
		level = slog.LevelInfo
	}
	return f.Handler.Enabled(ctx, level)
}

// Handle implements slog.Handler.
func (f fewLines) Handle(ctx context.Context, r slog.Record) error {
	budget := f.budget
	if r.Level >= slog.LevelError {
		budget = f.errors
	}
	passes, left := budget.spend(r.Time)
	if !passes {
		return nil
	}
	if left > 0 {
		r = r.Clone()
		r.AddAttrs(slog.Int("lines_left_out", left))
	}
	return f.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (f fewLines) WithAttrs(attrs []slog.Attr) slog.Handler {
	return fewLines{f.Handler.WithAttrs(attrs), f.budget, f.errors}
}

// WithGroup implements slog.Handler.
func (f fewLines) WithGroup(name string) slog.Handler {
	return fewLines{f.Handler.WithGroup(name), f.budget, f.errors}
}

// lineBudget is some lines for each minute.
type lineBudget struct {
	mu     sync.Mutex
	minute time.Time // when the present one began
	passed int       // in it
	left   int       // out, since a line passed
}

// spend says whether a line passes at this time, and how many did not since the last.
func (b *lineBudget) spend(now time.Time) (passes bool, left int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if now.Sub(b.minute) >= time.Minute {
		b.minute, b.passed = now, 0
	}
	if b.passed >= libraryLines {
		b.left++
		return false, 0
	}
	b.passed++
	left, b.left = b.left, 0
	return true, left
}
