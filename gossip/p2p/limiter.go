package p2p

import (
	"context"
	"time"

	"github.com/libp2p/go-libp2p/core/protocol"
	ratelimit "golang.org/x/time/rate"
)

// caps are what a node may send and receive at most.
type caps struct{ up, down *limiter }

func newCaps(cfg Config) caps {
	return caps{up: newLimiter(cfg.UploadBytesPerSecond), down: newLimiter(cfg.DownloadBytesPerSecond)}
}

// limiter is a token bucket of bytes; nil lets all pass.
type limiter struct{ bucket *ratelimit.Limiter }

// newLimiter returns a bucket that lets bytes of streams pass so that sockets carry a rate,
// with bursts of limitBurst; 0 lets all pass.
func newLimiter(bytesPerSecond int64) *limiter {
	if bytesPerSecond == 0 {
		return nil
	}
	return &limiter{ratelimit.NewLimiter(ratelimit.Limit(float64(bytesPerSecond)*(1-limitFraming)), limitBurst)}
}

// wait waits until n bytes may pass, at most limitBurst.
func (l *limiter) wait(ctx context.Context, n int) error {
	if l == nil || n == 0 {
		return nil
	}
	return l.bucket.WaitN(ctx, n)
}

// passed takes out of the bucket what passed without waiting: whatever is no request
// and no answer. What waits gives way to it, within limitDebt.
func (l *limiter) passed(id protocol.ID, n int64, now time.Time) {
	if l == nil || id == rpcProtocol {
		return
	}
	most := -limitDebt.Seconds() * float64(l.bucket.Limit())
	for n > 0 && l.bucket.TokensAt(now) > most {
		part := min(n, limitBurst)
		l.bucket.ReserveN(now, int(part))
		n -= part
	}
}
