package bulk

import (
	"context"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	ratelimit "golang.org/x/time/rate"
)

// Limits of a Limiter.
const (
	// Burst is what a Limiter lets pass at once.
	Burst = 2 * Segment
	// limitFraming is the part of a cap that is left to what transports add to streams:
	// measured with QUIC, headers of packets and their acknowledgements are 3 to 5 %, and
	// TCP with noise and yamux adds less.
	limitFraming = 0.03
	// limitDebt is the time by which gossip, which does not wait, may be ahead of a
	// cap: bulk gives way to it for so long, and is never starved by more of it.
	limitDebt = time.Second
)

// Limiter is a token bucket of bytes; nil lets all pass.
type Limiter struct {
	bucket  *ratelimit.Limiter
	changed atomic.Pointer[chan struct{}] // closed by the next Set
}

// NewLimiter returns a bucket that lets bytes of streams pass so that sockets carry a rate,
// with bursts of Burst; 0 lets all pass.
func NewLimiter(bytesPerSecond int64) *Limiter {
	l := &Limiter{bucket: ratelimit.NewLimiter(limitOf(bytesPerSecond), Burst)}
	changed := make(chan struct{})
	l.changed.Store(&changed)
	return l
}

// Set has the bucket keep another rate from now on, for those that wait already too.
func (l *Limiter) Set(bytesPerSecond int64) {
	next := make(chan struct{})
	l.bucket.SetLimit(limitOf(bytesPerSecond))
	close(*l.changed.Swap(&next))
}

// Rate is what sockets may carry, in bytes per second; 0 lets all pass.
func (l *Limiter) Rate() int64 {
	if l.bucket.Limit() == ratelimit.Inf {
		return 0
	}
	return int64(math.Round(float64(l.bucket.Limit()) / (1 - limitFraming)))
}

func limitOf(bytesPerSecond int64) ratelimit.Limit {
	if bytesPerSecond == 0 {
		return ratelimit.Inf
	}
	return ratelimit.Limit(float64(bytesPerSecond) * (1 - limitFraming))
}

// Wait waits until n bytes may pass, at most Burst.
func (l *Limiter) Wait(ctx context.Context, n int) error {
	if l == nil || n == 0 {
		return nil
	}
	for {
		changed, now := *l.changed.Load(), time.Now()
		turn := l.bucket.ReserveN(now, n)
		if !turn.OK() {
			return fmt.Errorf("wait for %d bytes, more than the %d that may pass at once", n, Burst)
		}
		wait := time.NewTimer(turn.DelayFrom(now))
		select {
		case <-wait.C:
			return nil
		case <-ctx.Done():
		case <-changed:
		}
		wait.Stop()
		if turn.Cancel(); ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// Passed takes out of the bucket what passed without waiting. What waits gives way to
// it, within limitDebt.
func (l *Limiter) Passed(n int64, now time.Time) {
	if l == nil || l.bucket.Limit() == ratelimit.Inf {
		return
	}
	most := -limitDebt.Seconds() * float64(l.bucket.Limit())
	for n > 0 && l.bucket.TokensAt(now) > most {
		part := min(n, Burst)
		l.bucket.ReserveN(now, int(part))
		n -= part
	}
}
