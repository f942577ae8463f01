package node

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A disk that takes three seconds for a state is written to a fiftieth of the time, the learner
// steps meanwhile, and there is one copy of the state at most.
func TestSlowDiskIsSparedBySaver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := makeBench(t, 100*time.Millisecond, 0)
		b.learns()
		var copies, meanwhile atomic.Int64
		b.saver.state = func() ([]byte, error) {
			if copies.Add(1) > 1 {
				t.Error("a copy while another is written")
			}
			return nil, nil
		}
		b.saver.write = func([]byte) {
			before := b.told.Load()
			time.Sleep(3 * time.Second)
			meanwhile.Store(b.told.Load() - before)
			copies.Add(-1)
			b.saves.Add(1)
		}
		b.start(t)
		b.setMay(true)
		b.after(400 * time.Second)
		if got := b.saves.Load(); got != 3 { // after 10 s, and then every 153 s
			t.Errorf("%d saves in 400 s", got)
		}
		if got := meanwhile.Load(); got < 25 {
			t.Errorf("%d steps in the three seconds of a write", got)
		}
		b.stop(t)
	})
}

// A state that cannot be had is said, and tried again.
func TestSaverWithoutAState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := makeBench(t, 100*time.Millisecond, 0)
		b.learns()
		gone := errors.New("gone")
		var told atomic.Int64
		b.saver.state = func() ([]byte, error) { return nil, gone }
		b.saver.tell = func(what string, err error) {
			told.Add(1)
			if what != "inner optimizer state" || err != gone {
				t.Errorf("told %s: %v", what, err)
			}
		}
		b.start(t)
		b.setMay(true)
		b.after(25 * time.Second)
		if told.Load() != 2 || b.saves.Load() != 0 {
			t.Errorf("told %d times, %d saves", told.Load(), b.saves.Load())
		}
		b.stop(t)
	})
}
