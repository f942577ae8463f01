package p2p

import (
	"context"
	"time"
)

// Arrival says when the first and the last byte of the response to a Call came.
// They stay zero where none came whole.
type Arrival struct{ First, Last time.Time }

// TookMs is the time from the first byte to the last in milliseconds, at least 1; 0 where
// no response came whole.
func (a Arrival) TookMs() int64 {
	if a.First.IsZero() {
		return 0
	}
	return max(a.Last.Sub(a.First).Milliseconds(), 1)
}

// arrivalKey is the key of an Arrival in the context of a Call.
type arrivalKey struct{}

// WithArrival returns the context for a Call that fills in a.
func WithArrival(ctx context.Context, a *Arrival) context.Context {
	return context.WithValue(ctx, arrivalKey{}, a)
}

// arrivalOf is what a Call fills in, for its caller or for nobody.
func arrivalOf(ctx context.Context) *Arrival {
	if a, ok := ctx.Value(arrivalKey{}).(*Arrival); ok {
		return a
	}
	return new(Arrival)
}
