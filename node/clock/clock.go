// Package clock is the time of one process: that in which it was awake. It finds out about a sleep, and decides nothing about it.
package clock

import (
	"context"
	"sync"
	"time"
)

// instant is a moment by the two clocks that a machine has, since one start.
type instant struct {
	wall time.Duration // time of day: goes on in a suspend, and may be set
	mono time.Duration // monotonic: on Linux and macOS it stands still in a suspend
}

// sleepGap is the time between two looks that counts as a sleep. It is far
// above what a busy machine keeps a goroutine waiting, and far below ten heartbeat
// periods, after which peers count as silent.
const sleepGap = 5 * time.Second

// sleepwatch parts the time in which the whole process slept, stopped by a
// signal or with its machine, from the time in which it was awake. It knows a
// sleep by the gap between two looks, and so needs a regular one. A time of day
// that is set forward looks like a sleep, which harms nobody; one that is set
// back changes nothing.
type sleepwatch struct {
	last          instant
	awake, asleep time.Duration // up to last
}

// look takes the present.
func (w *sleepwatch) look(at instant) {
	mono := at.mono - w.last.mono
	gap := max(mono, at.wall-w.last.wall)
	w.last = at
	if gap >= sleepGap {
		w.asleep += gap
		return
	}
	w.awake += mono
}

// Clock is the time of a node: wall time at the start, and since then the time
// that it was awake. Any goroutine may read it, and whichever is the first to do
// so after a sleep finds out about it.
type Clock struct {
	start time.Time

	mu    sync.Mutex
	watch sleepwatch
	told  time.Duration // of the sleep, what News has said
}

// New is a clock that starts now.
func New() *Clock { return &Clock{start: time.Now()} }

// Read takes the present and returns the time awake and asleep since the start.
func (c *Clock) Read() (awake, asleep time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := time.Now()
	c.watch.look(instant{wall: at.Round(0).Sub(c.start.Round(0)), mono: at.Sub(c.start)})
	return c.watch.awake, c.watch.asleep
}

// Awake is the time awake since the start.
func (c *Clock) Awake() time.Duration {
	awake, _ := c.Read()
	return awake
}

// Now is what the machine counts by, in milliseconds: it stands still while the node sleeps.
func (c *Clock) Now() int64 { return c.start.UnixMilli() + c.Awake().Milliseconds() }

// Time is the same as a moment: wall time at the start, and the time awake since.
func (c *Clock) Time() time.Time { return c.start.Add(c.Awake()) }

// News is the sleep since News last said so.
func (c *Clock) News() time.Duration {
	_, asleep := c.Read()
	c.mu.Lock()
	defer c.mu.Unlock()
	slept := asleep - c.told
	c.told = asleep
	return slept
}

// lookEvery is how exact the moment is at which a sleep began.
const lookEvery = 100 * time.Millisecond

// Look reads the clock regularly until ctx ends, so that a loop or a step that
// takes long is not taken for a sleep.
func (c *Clock) Look(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			c.Read()
		}
	}
}
