package node

import (
	"context"
	"fmt"
	"strings"
	"time"

	"atoll/node/core"
	"atoll/node/limits"
	"atoll/node/store"
)

// recallTraffic reads what earlier processes on this folder sent and received. Without a quota nobody needs it now, and
// `atoll set` may bring one later.
func (n *node) recallTraffic() error {
	b, err := store.LoadTraffic(n.cfg.Dir)
	limited := n.allowance.Limits().Quota.Limited()
	if err != nil && limited {
		return store.Explain(fmt.Errorf("read the use of the quota: %w", err), n.cfg.Dir)
	}
	if b == nil {
		return nil
	}
	if err := n.allowance.Recall(b); err != nil && limited {
		return fmt.Errorf("%s in %s is damaged (%w), so nobody can say what is used of the quota; delete the file to count from now on, or end the quota with `atoll set --reset quota`", store.TrafficFile, n.cfg.Dir, err)
	}
	return nil
}

// powerEvery is the time between two looks at where power comes from.
const powerEvery = 10 * time.Second

// watchPower looks now and then whether the machine runs on its battery, if that matters. The error says that nobody can tell.
func (n *node) watchPower(ctx context.Context) error {
	if !n.allowance.Limits().Battery || n.watchesPower {
		return nil
	}
	on, err := n.cfg.power(ctx)
	if err != nil {
		err = fmt.Errorf("%w: --battery pause changes nothing here", err)
		n.screen.Event("battery", "", err.Error())
		return err
	}
	n.watchesPower = true
	n.allowance.Power(on)
	n.work.goRun(func(ctx context.Context) {
		tick := time.NewTicker(powerEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if on, err := n.cfg.power(ctx); err == nil {
				n.post(func(core.Time) { n.allowance.Power(on) })
			}
		}
	})
	return nil
}

// limit counts what was sent and received, and pauses the node or lets it go on.
func (n *node) limit(at time.Time) {
	n.countTraffic(at)
	was := n.allowance.Paused()
	changed := n.allowance.Look(at)
	paused := n.allowance.Paused()
	if n.train != nil && (was || paused) {
		n.train.SetPaused(paused)
	}
	if !changed {
		return
	}
	n.machine.Pause(n.clock.Now(), paused)
	if paused {
		n.screen.Event("paused", "", strings.Join(n.allowance.Why(), "; "))
	} else {
		n.screen.Event("goes on", "", "nothing keeps this node paused any more")
	}
}

// countTraffic books what the sockets carried since it last did. The file follows now and
// then.
func (n *node) countTraffic(at time.Time) {
	if !n.allowance.Limits().Quota.Limited() || n.host == nil {
		return
	}
	n.bookCarried(at)
	if b := n.allowance.Due(at); b != nil {
		n.work.disk.Put(func() { n.check("count traffic", n.cfg.disk.SaveTraffic(n.cfg.Dir, b)) })
	}
}

// bookCarried books what the sockets carried until now.
func (n *node) bookCarried(at time.Time) {
	sent, received := n.host.Carried()
	n.allowance.Carried(at, limits.Bytes{Sent: sent, Received: received})
}

// keepTraffic writes what was sent and received, at the end of a process.
func (n *node) keepTraffic() {
	if !n.allowance.Limits().Quota.Limited() || n.host == nil {
		return
	}
	n.bookCarried(time.Now())
	n.check("count traffic", n.cfg.disk.SaveTraffic(n.cfg.Dir, n.allowance.Traffic()))
}

// allowed waits, before there is a machine to pause, until the node may do something heavy.
func (n *node) allowed(ctx context.Context) error {
	for {
		n.countTraffic(time.Now())
		if n.allowance.Limits().Battery {
			on, err := n.cfg.power(ctx)
			n.allowance.Power(on && err == nil)
		}
		why := n.allowance.Reasons(time.Now())
		if len(why) == 0 {
			return nil
		}
		n.showStage("paused: " + strings.Join(why, "; "))
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(powerEvery):
		}
	}
}
