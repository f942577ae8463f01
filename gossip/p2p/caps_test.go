package p2p

import (
	"context"
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"atoll/gossip/p2p/bulk"
	"atoll/gossip/wire"
)

// A node with caps is asked for bulk by two peers, and asks them, for a minute. What its
// sockets carry is within 5 % of the caps each way, with the gossip that passes meanwhile,
// and messages come as soon as ever.
func TestCapsAreKept(t *testing.T) {
	const size, up, down = 300_000, 2e6 / 8, 3e6 / 8
	inWorld(t, 50e6, delay, func(t *testing.T, w *world) {
		cfg := newPerson(1).config()
		cfg.UploadBytesPerSecond, cfg.DownloadBytesPerSecond = up, down
		a, b, c := w.host(cfg), w.host(newPerson(2).config()), w.host(newPerson(3).config())
		for _, h := range []*Host{a, b, c} {
			h.Handle(func(context.Context, wire.PeerID, []byte) []byte { return random(size) })
		}
		join(t, b, a)
		join(t, c, a)
		time.Sleep(2 * time.Second)
		const minute = time.Minute
		ctx, cancel := context.WithCancel(t.Context())
		var work sync.WaitGroup
		for _, way := range [][2]*Host{{a, b}, {b, a}, {a, c}, {c, a}} {
			work.Go(func() {
				for ctx.Err() == nil {
					if _, err := way[0].Call(ctx, way[1].ID(), nil, size); err != nil && ctx.Err() == nil {
						t.Error(err)
						return
					}
				}
			})
		}
		time.Sleep(5 * time.Second) // the pacers have found the rates
		before, began := a.Stats(), time.Now()
		var worst time.Duration
		for i := 0; time.Since(began) < minute; i++ {
			for _, way := range [][2]*Host{{a, b}, {b, a}} {
				sent := time.Now()
				if err := way[0].Publish(append(random(700), fmt.Sprint(i, way[0].ID())...)); err != nil {
					t.Fatal(err)
				}
				for next[Message](t, way[1]).From != way[0].ID() {
				}
				worst = max(worst, time.Since(sent))
			}
			time.Sleep(100 * time.Millisecond)
		}
		after, took := a.Stats(), time.Since(began).Seconds()
		cancel()
		work.Wait()
		for what, c := range map[string]struct{ got, want float64 }{
			"sends": {float64(after.Sent-before.Sent) / took, up}, "receives": {float64(after.Received-before.Received) / took, down},
		} {
			t.Logf("%s %.0f bytes/s of %.0f, %.1f %%", what, c.got, c.want, 100*c.got/c.want)
			if math.Abs(c.got/c.want-1) > 0.05 {
				t.Errorf("%s %.0f bytes/s with a cap of %.0f", what, c.got, c.want)
			}
		}
		t.Logf("the slowest message came after %v", worst)
		if worst > 3*bulk.QueueTarget {
			t.Errorf("a message took %v", worst)
		}
	})
}

// Many transfers share a thin downlink, and none of them comes to a stop. All together take less
// than bulk.StallTimeout: a server gives up what waits longer for its turn, and nodes ask for less.
func TestManyShareADownloadCap(t *testing.T) {
	const size, down, calls = 64 << 10, 50_000, 16
	inWorld(t, rate, delay, func(t *testing.T, w *world) {
		cfg := newPerson(1).config()
		cfg.DownloadBytesPerSecond = down
		a, b := w.host(cfg), w.host(newPerson(2).config())
		b.Handle(func(context.Context, wire.PeerID, []byte) []byte { return random(size) })
		join(t, a, b)
		start := time.Now()
		var work sync.WaitGroup
		for range calls {
			work.Go(func() {
				if _, err := a.Call(t.Context(), b.ID(), nil, size); err != nil {
					t.Error(err)
				}
			})
		}
		work.Wait()
		if got, want := time.Since(start).Seconds(), float64(calls*size-bulk.Burst)/down; math.Abs(got/want-1) > 0.05 {
			t.Errorf("took %.1f s, want %.1f", got, want)
		}
	})
}
