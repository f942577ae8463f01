package p2p

import (
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
