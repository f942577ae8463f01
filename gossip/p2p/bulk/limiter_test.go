package bulk

import (
	"context"
	"errors"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestLimiterKeepsItsRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLimiter(100_000)
		start := time.Now()
		for range 100 {
			if err := l.Wait(t.Context(), 10_000); err != nil {
				t.Fatal(err)
			}
		}
		want := (1e6 - Burst) / (100_000 * (1 - limitFraming))
		if got := time.Since(start).Seconds(); math.Abs(got-want) > 0.01 {
			t.Errorf("1 MB at 100 kB/s took %.2f s, want %.2f", got, want)
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Millisecond, cancel)
		if err := l.Wait(ctx, 10_000); !errors.Is(err, context.Canceled) {
			t.Errorf("with an ended context: %v", err)
		}
		if err := NewLimiter(0).Wait(t.Context(), 1<<30); err != nil {
			t.Errorf("no limit: %v", err)
		}
	})
}

// A bucket that is set keeps its new rate from then on, also from and to none.
func TestLimiterIsSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLimiter(0)
		for _, c := range []struct{ rate, want float64 }{{0, 0}, {100_000, 10.3}, {0, 0}, {1_000_000, 1.03}, {100_000, 10.3}} {
			if l.Set(int64(c.rate)); l.Rate() != int64(c.rate) {
				t.Errorf("set to %.0f, it is %d", c.rate, l.Rate())
			}
			l.Passed(1<<20, time.Now())
			if err := l.Wait(t.Context(), 1); err != nil { // what was saved up, or is owed, is gone
				t.Fatal(err)
			}
			start := time.Now()
			for range 100 {
				if err := l.Wait(t.Context(), 10_000); err != nil {
					t.Fatal(err)
				}
			}
			if took := time.Since(start).Seconds(); math.Abs(took-c.want) > 0.02*c.want {
				t.Errorf("1 MB at %.0f bytes/s took %.2f s, want %.2f", c.rate, took, c.want)
			}
		}
	})
}

// Who waits when a bucket is set waits as the new rate wants, not as that of before.
func TestLimiterWakesWhoWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct{ to, most float64 }{{1e6, 3}, {0, 0.1}} {
			l := NewLimiter(1000)
			l.Passed(Burst, time.Now())
			var all sync.WaitGroup
			for range 3 {
				all.Go(func() {
					if err := l.Wait(t.Context(), Burst); err != nil {
						t.Error(err)
					}
				})
			}
			time.Sleep(time.Second)
			start := time.Now()
			l.Set(int64(c.to))
			if all.Wait(); time.Since(start).Seconds() > c.most {
				t.Errorf("set to %.0f, three bursts took %v", c.to, time.Since(start))
			}
		}
	})
}

// Gossip passes without waiting and is taken off what bulk may have, within limitDebt: more
// gossip than a cap allows slows bulk down and never stops it.
func TestGossipComesBeforeBulk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const rate = 100_000
		const streams = rate * (1 - limitFraming)
		for _, c := range []struct{ gossip, bulk float64 }{{0, streams}, {30_000, streams - 30_000}, {80_000, streams - 80_000}, {10 * rate, 1}} {
			l := NewLimiter(rate)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			var gossip sync.WaitGroup
			gossip.Go(func() {
				for ctx.Err() == nil {
					l.Passed(int64(c.gossip/10), time.Now())
					time.Sleep(100 * time.Millisecond)
				}
			})
			bulk := 0
			for l.Wait(ctx, 1000) == nil {
				bulk += 1000
			}
			cancel()
			if got := float64(bulk) / 60; got < 0.9*c.bulk || c.bulk > 1 && got > 1.1*c.bulk+Burst/60 {
				t.Errorf("beside %.0f bytes/s of gossip bulk has %.0f, want %.0f", c.gossip, got, c.bulk)
			}
			gossip.Wait()
		}
		var none *Limiter
		none.Passed(1<<40, time.Now())
		if err := none.Wait(t.Context(), 1<<40); err != nil {
			t.Error(err)
		}
	})
}
