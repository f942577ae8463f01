package p2p

import (
	"time"

	ratelimit "golang.org/x/time/rate"
)

// limiter is a token bucket of bytes.
type limiter = ratelimit.Limiter

// newLimiter returns a bucket that lets bytes pass at a rate, with bursts of
// limitBurst; 0 lets all pass.
func newLimiter(bytesPerSecond int64) *limiter {
	if bytesPerSecond == 0 {
		return ratelimit.NewLimiter(ratelimit.Inf, 0)
	}
	return ratelimit.NewLimiter(ratelimit.Limit(bytesPerSecond), limitBurst)
}

// reserve takes n bytes out of a bucket and returns how long to wait for them.
// The bucket gives a burst at a time, and a connection may write more.
func reserve(l *limiter, n int) (wait time.Duration) {
	for now := time.Now(); n > 0; n -= limitBurst {
		wait = l.ReserveN(now, min(n, limitBurst)).DelayFrom(now)
	}
	return wait
}
