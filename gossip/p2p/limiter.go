package p2p

import (
	"context"
	"sync"
	"time"
)

// limiter is a token bucket over all uploads: bytes leave at rate, with bursts
// of limitBurst. A nil limiter lets all pass.
type limiter struct {
	rate float64 // bytes/s

	mu   sync.Mutex
	next time.Time // when the bucket is back at zero
}

func newLimiter(bytesPerSecond int64) *limiter {
	if bytesPerSecond == 0 {
		return nil
	}
	return &limiter{rate: float64(bytesPerSecond)}
}

// take waits until n bytes may leave, or ctx is done.
func (l *limiter) take(ctx context.Context, n int) error {
	if l == nil {
		return nil
	}
	wait := l.reserve(n, time.Now())
	if wait <= 0 {
		return nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// reserve takes n bytes out of the bucket and returns how long to wait for
// them.
func (l *limiter) reserve(n int, now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if full := now.Add(-l.spend(limitBurst)); l.next.Before(full) {
		l.next = full
	}
	l.next = l.next.Add(l.spend(n))
	return l.next.Sub(now)
}

func (l *limiter) spend(n int) time.Duration {
	return time.Duration(float64(n) / l.rate * float64(time.Second))
}
