package bulk

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"atoll/testnet/shaping"
)

// bore is what a pipe can carry.
type bore struct {
	rate  float64       // bytes/s
	burst float64       // bytes that a token bucket lets pass at once
	delay time.Duration // there and back
}

// pipe is a link with an endless buffer: what bulk must not fill.
type pipe struct {
	bore
	mu   sync.Mutex // guards rate and free
	free time.Time  // when all that was sent will have left
}

func (p *pipe) setRate(rate float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rate = rate
}

// send returns when n bytes sent at now are acknowledged, and how long they
// wait behind others.
func (p *pipe) send(n int, now time.Time) (acked time.Time, queued time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if full := now.Add(-seconds(p.burst / p.rate)); p.free.Before(full) {
		p.free = full
	}
	queued = max(p.free.Sub(now), 0)
	p.free = p.free.Add(seconds(float64(n) / p.rate))
	return latest(now, p.free).Add(p.delay), queued
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// path is a pipe to one peer, whose clock began at another time.
type path struct {
	*pipe
	pace *pacer
	far  time.Duration // beyond the pipe, there and back
	born time.Time
	busy atomic.Int64 // transfers under way
	tcp  *connection  // nil: no congestion window holds back what the pacer lets go
}

// connection is a congestion window before a pipe.
type connection struct {
	turn   chan struct{} // whose turn it is; a mutex would stop the clock of a synctest bubble
	sender shaping.Sender
}

func newConnection() *connection {
	return &connection{turn: make(chan struct{}, 1), sender: shaping.NewSender()}
}

// send sends n bytes through the pipe as the window lets them, and returns when they are
// acknowledged. Parts of a path leave in the order in which they came.
func (c *connection) send(p *path, n int) (acked time.Time, queued time.Duration) {
	c.turn <- struct{}{}
	defer func() { <-c.turn }()
	for n > 0 {
		now := time.Now()
		c.sender.Advance(now)
		room := min(c.sender.Room(n, now), shaping.Segment)
		if room == 0 {
			time.Sleep(time.Until(c.sender.Wakes()))
			continue
		}
		at := c.sender.Send(room, nil, now)
		acked, queued = p.pipe.send(room, now)
		c.sender.Acked(at, acked.Add(p.far))
		n -= room
	}
	return acked, queued
}

func newPath(p *pipe, u *Uplink, far time.Duration) *path {
	return &path{pipe: p, pace: newPacer(u), far: far, born: time.Now().Add(-far * 12345)}
}

// send sends one part as soon as the pacer lets it, and returns how long it waits
// in the pipe.
func (p *path) send(t *testing.T, n int) (queued time.Duration) {
	d, err := p.pace.acquire(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	if p.tcp != nil {
		go func() {
			acked, _ := p.tcp.send(p, n)
			p.ack(d, acked)
		}()
		return 0
	}
	acked, queued := p.pipe.send(n, d.at)
	p.ack(d, acked)
	return queued
}

// ack acknowledges a part to the pacer.
func (p *path) ack(d departure, acked time.Time) {
	back := (p.delay + p.far) / 2
	acked = acked.Add(p.far)
	time.AfterFunc(time.Until(acked), func() { p.pace.acked(d, stampOf(acked.Add(-back), p.born), time.Now()) })
}

// stream sends n segments through the pipe as fast as the pacer lets it, and
// returns the longest queue after the first second and the time it took.
func stream(t *testing.T, b bore, n int) (worst, took time.Duration) {
	p := newPath(&pipe{bore: b}, NewUplink(0), 0)
	start := time.Now()
	for range n {
		queued := p.send(t, Segment)
		if time.Since(start) > time.Second {
			worst = max(worst, queued)
		}
	}
	if _, err := p.pace.acquire(t.Context(), p.pace.window); err != nil {
		t.Fatal(err)
	}
	return worst, time.Since(start)
}

func TestPacerFillsLinksWithoutQueues(t *testing.T) {
	for _, link := range []bore{
		{rate: 0.25e6, delay: 80 * time.Millisecond},
		{rate: 1.25e6, delay: 2 * time.Millisecond},
		{rate: 1.25e6, delay: 80 * time.Millisecond},
		{rate: 12.5e6, delay: 80 * time.Millisecond},
		{rate: 125e6, delay: 200 * time.Microsecond},
		{rate: 125e6, delay: 40 * time.Millisecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			seconds := 20.0
			n := int(seconds * link.rate / Segment)
			worst, took := stream(t, link, n)
			used := float64(n*Segment) / took.Seconds() / link.rate
			t.Logf("%.2f MB/s, %v: queue up to %v, %.2f of the rate", link.rate/1e6, link.delay, worst, used)
			if slack := time.Duration(MinWindow / link.rate * float64(time.Second)); worst > 2*QueueTarget+slack {
				t.Errorf("%.2f MB/s, %v: queue of %v", link.rate/1e6, link.delay, worst)
			}
			if used < 0.85 {
				t.Errorf("%.2f MB/s, %v: only %.2f of the rate", link.rate/1e6, link.delay, used)
			}
		})
	}
}

func TestPacerLeavesWhenTheLinkGetsSlower(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slowed := &pipe{bore: bore{rate: 12.5e6, delay: 40 * time.Millisecond}}
		worst := time.Duration(0)
		p, start := newPath(slowed, NewUplink(0), 0), time.Now()
		for time.Since(start) < 20*time.Second {
			if time.Since(start) > 5*time.Second {
				slowed.setRate(1.25e6)
			}
			queued := p.send(t, Segment)
			if time.Since(start) > 10*time.Second {
				worst = max(worst, queued)
			}
		}
		if worst > 2*QueueTarget {
			t.Errorf("five seconds after the link became slower the queue is still %v", worst)
		}
		time.Sleep(time.Minute)
	})
}

func TestPacerWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPacer(NewUplink(0))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		for range MinWindow / Segment {
			if _, err := p.acquire(ctx, Segment); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := p.acquire(ctx, Segment); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("over the window: %v", err)
		}
		p.lost(Segment)
		if _, err := p.acquire(t.Context(), Segment); err != nil {
			t.Error(err)
		}
	})
}
