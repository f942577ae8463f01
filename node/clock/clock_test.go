package clock

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

func TestSleepwatch(t *testing.T) {
	const s = time.Second
	for _, c := range []struct {
		name          string
		looks         []instant
		awake, asleep time.Duration
	}{
		{"awake", []instant{{s, s}, {2 * s, 2 * s}}, 2 * s, 0},
		{"a busy machine", []instant{{4 * s, 4 * s}, {8 * s, 8 * s}}, 8 * s, 0},
		{"stopped by a signal", []instant{{s, s}, {134 * s, 134 * s}, {135 * s, 135 * s}}, 2 * s, 133 * s},
		{"suspended", []instant{{s, s}, {3601 * s, s}, {3602 * s, 2 * s}}, 2 * s, 3600 * s},
		{"time of day set forward", []instant{{s, s}, {62 * s, 2 * s}, {63 * s, 3 * s}}, 2 * s, 61 * s},
		{"time of day set back", []instant{{s, s}, {-60 * s, 2 * s}, {-59 * s, 3 * s}}, 3 * s, 0},
		{"set back, then suspended", []instant{{s, s}, {-60 * s, s}, {-50 * s, s}}, s, 10 * s},
		{"twice", []instant{{10 * s, 10 * s}, {20 * s, 20 * s}}, 0, 20 * s},
	} {
		var w sleepwatch
		for _, at := range c.looks {
			w.look(at)
		}
		if w.awake != c.awake || w.asleep != c.asleep {
			t.Errorf("%s: awake %v, asleep %v; want %v, %v", c.name, w.awake, w.asleep, c.awake, c.asleep)
		}
	}
}

// However the clocks behave, time awake never goes back, and while both agree no
// time is lost.
func TestSleepwatchAddsUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var w sleepwatch
		var at instant
		agree := true
		for range rapid.IntRange(1, 30).Draw(t, "looks") {
			before := w
			mono := time.Duration(rapid.Int64Range(0, 20_000).Draw(t, "ms")) * time.Millisecond
			step := time.Duration(rapid.SampledFrom([]int64{0, 0, 3600, -3600}).Draw(t, "set by")) * time.Second
			agree = agree && step == 0
			at.mono += mono
			at.wall += mono + step
			w.look(at)
			if w.awake < before.awake || w.asleep < before.asleep {
				t.Fatalf("goes back: %+v after %+v", w, before)
			}
		}
		if agree && w.awake+w.asleep != at.mono {
			t.Fatalf("awake %v and asleep %v are not %v", w.awake, w.asleep, at.mono)
		}
	})
}

func TestClockStandsStillAsleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New()
		began := c.Now()
		time.Sleep(time.Second)
		if got := c.Now() - began; got != 1000 || c.News() != 0 {
			t.Errorf("after a second awake: %d ms", got)
		}
		time.Sleep(2 * time.Minute) // nobody looks
		if got := c.Now() - began; got != 1000 {
			t.Errorf("after a sleep: %d ms", got)
		}
		if first, again := c.News(), c.News(); first != 2*time.Minute || again != 0 {
			t.Errorf("slept %v, and then %v", first, again)
		}
	})
}

// While somebody looks regularly, a long step is not taken for a sleep.
func TestClockIsWatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New()
		watched, stop := context.WithCancel(t.Context())
		var watch sync.WaitGroup
		watch.Go(func() { c.Look(watched) })
		time.Sleep(time.Minute)
		if awake, asleep := c.Read(); awake != time.Minute || asleep != 0 {
			t.Errorf("awake %v, asleep %v", awake, asleep)
		}
		stop()
		watch.Wait()
	})
}
