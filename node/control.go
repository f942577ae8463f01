package node

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"atoll/node/allowance"
	"atoll/node/core"
	"atoll/node/genesis"
	"atoll/node/inspect"
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
		Members: func() []status.Member { return inspect.MembersOf(n.members) },
		Revoke:  n.publishRevocation,
		Pause: func(on bool) {
			n.post(func(core.Time) {
				n.allowance.Ask(on)
				n.limit(time.Now())
				n.publishStatus()
			})
		},
		Set: n.set,
		Leave: func() {
			n.post(func(core.Time) {
				if n.leaving.IsZero() {
					n.leave()
				}
			})
		},
	})
	return err
}

// Change is what a running node is told in place of what its Config says, by status.Client.Set.
type Change struct {
	Limits   allowance.Limits
	Pace     time.Duration
	Settings []status.Setting
}

// set takes a change.
func (n *node) set(ctx context.Context, b []byte) error {
	var c Change
	if err := json.Unmarshal(b, &c); err != nil {
		return fmt.Errorf("settings: %w", err)
	}
	if err := (Config{Dir: n.cfg.Dir, Limits: c.Limits, Pace: c.Pace}).validate(); err != nil {
		return err
	}
	done := make(chan error, 1)
	n.post(func(core.Time) { done <- n.change(c) })
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// change runs on the loop.
func (n *node) change(c Change) error {
	n.allowance.Change(c.Limits)
	n.settings = c.Settings
	n.host.Cap(c.Limits.Up, c.Limits.Down)
	if n.train != nil {
		n.train.SetPace(c.Pace)
	}
	err := n.watchPower(n.work.ctx)
	n.limit(time.Now())
	n.publishStatus()
	return err
}

func (n *node) tipList() []*outer.Tip {
	tips := make([]*outer.Tip, len(n.plan))
	for p := range tips {
		tips[p] = n.machine.Rounds().Fragment(p).Tip()
	}
	return tips
}
