package node

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"atoll/node/status"
)

// A node whose end hangs is given up in time; one that ends in order is not.
func TestAwaitGivesUpOnWhatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failure := errors.New("disk")
		for _, c := range []struct {
			name         string
			leave, after time.Duration // 0 = never
			inTime       bool
			want         time.Duration
		}{
			{"the run is over", 0, time.Hour, true, time.Hour},
			{"left in order", time.Minute, time.Minute + time.Second, true, time.Minute + time.Second},
			{"hangs", time.Minute, 0, false, time.Minute + goneWithin},
		} {
			n := newNode(Config{})
			n.work.goRun(n.clock.Look)
			ctx, leave := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			began := time.Now()
			if c.leave > 0 {
				time.AfterFunc(c.leave, leave)
			}
			if c.after > 0 {
				time.AfterFunc(c.after, func() { ended <- failure })
			}
			inTime, err := n.await(ctx, ended)
			if took := time.Since(began); inTime != c.inTime || inTime && !errors.Is(err, failure) || took != c.want {
				t.Errorf("%s: in time %v with %v, after %v", c.name, inTime, err, took)
			}
			leave()
			n.work.stop()
		}
	})
}

func TestAbandonedSaysWhatIsSafe(t *testing.T) {
	n := newNode(Config{Dir: "here"})
	defer n.work.stop()
	if s, err := n.abandoned(); err != nil || s.State != "joining" {
		t.Errorf("while it joins: %+v, %v", s, err)
	}
	n.latest.Store(&status.Snapshot{Identity: status.Identity{State: "leaving"}})
	if s, err := n.abandoned(); !errors.Is(err, ErrHung) || !strings.Contains(err.Error(), "here is safe") || s.State != "leaving" {
		t.Errorf("in the run: %+v, %v", s, err)
	}
	n.safe.Store(true)
	if _, err := n.abandoned(); err != nil {
		t.Errorf("all is kept: %v", err)
	}
}
