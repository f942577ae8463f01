package node

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"atoll/node/allowance"
	"atoll/node/core"
	"atoll/node/genesis"
	"atoll/node/status"
	"atoll/optimizer/outer"
)

// serveControl starts the local control API.
func (n *node) serveControl() (err error) {
	n.control, err = status.Serve(n.cfg.Dir, status.Handlers{
		Snapshot: func() (status.Snapshot, bool) { return n.lastStatus(), n.latest.Load() != nil },
		Tips: func() (io.WriterTo, bool) {
			t := n.latestTips.Load()
			if t == nil {
				return nil, false
			}
			return genesis.TipStream(*t), true
		},
		Lend: func() ([]byte, func(), error) {
			if n.latest.Load() == nil {
				return nil, nil, status.ErrStarting
			}
			return n.store.Lend()
		},
		Members: n.memberRows,
		Revoke:  n.publishRevocation,
		Pause: func(on bool) {
			n.post(func(core.Time) {
				n.allowance.Ask(on)
				n.limit(time.Now())
				n.publishStatus()
			})
		},
		Set:   n.set,
		Leave: n.quit,
	})
	return err
}

// Change is what a running node is told in place of what its Config says, by status.Client.Set.
type Change struct {
	Names    []string // of the settings that change; the others stay, wherever the node has them from
	Limits   allowance.Limits
	Pace     time.Duration
	Settings []status.Setting // all that are not the default then
}

// limits are those that a node has after the change.
func (c Change) limits(l allowance.Limits) allowance.Limits {
	for _, name := range c.Names {
		switch name {
		case "up":
			l.Up = c.Limits.Up
		case "down":
			l.Down = c.Limits.Down
		case "quota":
			l.Quota = c.Limits.Quota
		case "hours":
			l.Hours = c.Limits.Hours
		case "battery":
			l.Battery = c.Limits.Battery
		}
	}
	return l
}

// set takes a change. A node that still starts takes it when its loop begins. The note is what a change does not do here.
func (n *node) set(ctx context.Context, b []byte) (note string, err error) {
	var c Change
	if err := json.Unmarshal(b, &c); err != nil {
		return "", fmt.Errorf("settings: %w", err)
	}
	if err := (Config{Dir: n.cfg.Dir, Limits: c.Limits, Pace: c.Pace}).validate(); err != nil {
		return "", err
	}
	n.settings.Store(&c.Settings)
	done := make(chan string, 1)
	n.post(func(core.Time) { done <- n.change(c) })
	if n.latest.Load() == nil {
		return "the node still starts: it takes this as soon as it has what it starts with", nil
	}
	select {
	case note := <-done:
		return note, nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// change runs on the loop.
func (n *node) change(c Change) (note string) {
	l := c.limits(n.allowance.Limits())
	n.allowance.Change(l)
	n.host.Cap(l.Up, l.Down)
	n.machine.SetDown(downMs(l))
	if n.train != nil && slices.Contains(c.Names, "pace") {
		n.train.SetPace(c.Pace)
	}
	if err := n.watchPower(n.work.ctx); err != nil {
		note = err.Error()
	}
	n.limit(time.Now())
	n.publishStatus()
	return note
}

func (n *node) tipList() []*outer.Tip {
	tips := make([]*outer.Tip, len(n.plan))
	for p := range tips {
		tips[p] = n.machine.Rounds().Fragment(p).Tip()
	}
	return tips
}
