package inspect

import (
	"context"

	"atoll/optimizer/outer"
)

// progressKey is where a context has the function that WithProgress was given.
type progressKey struct{}

// WithProgress has Verify and LoadModel tell how many of all rounds they have replayed. They call told
// after each round, from their own goroutine.
func WithProgress(ctx context.Context, told func(done, all uint64)) context.Context {
	return context.WithValue(ctx, progressKey{}, told)
}

// reporting is visit with a report of progress before it, as the context has it: a replay that begins from
// these tips.
func (f *folder) reporting(ctx context.Context, start []*outer.Tip, visit func(p int, tip *outer.Tip) error) (func(p int, tip *outer.Tip) error, error) {
	told, ok := ctx.Value(progressKey{}).(func(done, all uint64))
	if !ok {
		return visit, nil
	}
	var done, all uint64
	for p, tip := range start {
		last, err := f.store.LastRound(p)
		if err != nil {
			return nil, err
		}
		all += uint64(last - min(last, tip.Round))
	}
	return func(p int, tip *outer.Tip) error {
		done++
		told(done, max(done, all))
		if visit == nil {
			return ctx.Err()
		}
		return visit(p, tip)
	}, nil
}
