package node

import (
	"context"
	"sync"
	"time"

	"atoll/node/core"
)

// instant is a moment by the two clocks that a machine has, since one start.
type instant struct {
	wall time.Duration // time of day: goes on in a suspend, and may be set
	mono time.Duration // monotonic: on Linux and macOS it stands still in a suspend
}

// sleepGap is the time between two looks that counts as a sleep. It is far
// above what a busy machine keeps a goroutine waiting, and far below ten heartbeats
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

// clock is the time of a node: wall time at the start, and since then the time
// that it was awake. Any goroutine may read it, and whichever is the first to do
// so after a sleep finds out about it.
type clock struct {
	start time.Time

	mu    sync.Mutex
	watch sleepwatch
	told  time.Duration // of the sleep, what news has said
}

func newClock() *clock { return &clock{start: time.Now()} }

// read takes the present and returns the time awake and asleep since the start.
func (c *clock) read() (awake, asleep time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := time.Now()
	c.watch.look(instant{wall: at.Round(0).Sub(c.start.Round(0)), mono: at.Sub(c.start)})
	return c.watch.awake, c.watch.asleep
}

// awake is the time awake since the start.
func (c *clock) awake() time.Duration {
	awake, _ := c.read()
	return awake
}

// now is what the machine counts by: it stands still while the node sleeps.
func (c *clock) now() core.Time { return c.start.UnixMilli() + c.awake().Milliseconds() }

// news is the sleep since news last said so.
func (c *clock) news() time.Duration {
	_, asleep := c.read()
	c.mu.Lock()
	defer c.mu.Unlock()
	slept := asleep - c.told
	c.told = asleep
	return slept
}

// lookEvery is how exact the moment is at which a sleep began.
const lookEvery = 100 * time.Millisecond

// look reads the clock regularly until ctx ends, so that a loop or a step that
// takes long is not taken for a sleep.
func (c *clock) look(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			c.read()
		}
	}
}
