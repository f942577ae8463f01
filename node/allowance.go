package node

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"atoll/node/core"
	"atoll/node/limits"
	"atoll/node/status"
	"atoll/node/store"
)

// Limits are what the owner of a node lets it cost. The zero value is no limit.
type Limits struct {
	Up, Down int64        // bytes per second that it may send and receive; 0 = as the link carries
	Quota    limits.Quota // bytes, sent and received, of each month or day
	Hours    limits.Hours // when it may work; it is paused outside of them
	Battery  bool         // pause while the machine runs on its battery
}

// allowance is what a node has used of its limits, and whether it is paused for one of them.
type allowance struct {
	asked     bool           // to pause, by its owner
	onBattery bool           // as of the last look
	traffic   limits.Traffic // of all processes on this folder
	carried   limits.Bytes   // by the sockets of this process, as far as it is counted in traffic
	saved     time.Time      // when traffic was last written
	why       []string       // it is paused; none if it is not
	opens     time.Time      // when the hours open again, while they are closed
}

// saveTrafficEvery is the time between two writings of what was sent and received: so much of
// a quota a crash can give back.
const saveTrafficEvery = 20 * time.Second

// recallTraffic reads what earlier processes on this folder sent and received.
func (n *node) recallTraffic() error {
	if !n.cfg.Limits.Quota.Limited() {
		return nil
	}
	b, err := store.LoadTraffic(n.cfg.Dir)
	if err != nil {
		return store.Explain(fmt.Errorf("read the use of the quota: %w", err), n.cfg.Dir)
	}
	if b == nil {
		return nil
	}
	traffic, err := limits.DecodeTraffic(b)
	if err != nil {
		return fmt.Errorf("%s in %s is damaged (%w), so nobody can say what is used of the quota; delete the file to count from now on, or leave --quota out", store.TrafficFile, n.cfg.Dir, err)
	}
	n.traffic = *traffic
	return nil
}

// powerEvery is the time between two looks at where power comes from.
const powerEvery = 10 * time.Second

// watchPower looks now and then whether the machine runs on its battery, if that matters.
func (n *node) watchPower(ctx context.Context) error {
	if !n.cfg.Limits.Battery {
		return nil
	}
	on, err := n.cfg.power(ctx)
	if err != nil {
		n.view.event(n, "battery", "", fmt.Sprintf("%v: --battery pause changes nothing here", err))
		return nil
	}
	n.onBattery = on
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
				n.post(func(core.Time) { n.onBattery = on })
			}
		}
	})
	return nil
}

// limit counts what was sent and received, and pauses the node or lets it go on.
func (n *node) limit(at time.Time) {
	n.countTraffic(at)
	why := n.reasons(at)
	was := len(n.why) > 0
	if n.train != nil && (was || len(why) > 0) {
		n.train.setPaused(len(why) > 0)
	}
	if slices.Equal(why, n.why) {
		return
	}
	n.why = why
	n.machine.Pause(n.clock.Now(), len(why) > 0)
	switch {
	case len(why) > 0:
		n.view.event(n, "paused", "", strings.Join(why, "; "))
	case was:
		n.view.event(n, "goes on", "", "nothing keeps this node paused any more")
	}
}

// reasons are why the node has to pause at a time, for people; none if it need not.
func (n *node) reasons(at time.Time) (why []string) {
	l := n.cfg.Limits
	if n.asked {
		why = append(why, "asked by its owner, until `atoll resume`")
	}
	if !l.Hours.Open(at) {
		if !n.opens.After(at) {
			n.opens, _ = l.Hours.Next(at)
		}
		why = append(why, fmt.Sprintf("outside of --hours %v, until %s", l.Hours, n.opens.Format("Mon 15:04")))
	}
	if l.Battery && n.onBattery {
		why = append(why, "this machine runs on its battery")
	}
	if q := l.Quota; q.Limited() && n.traffic.Used(q.Period, at).Sum() >= q.Bulk() {
		why = append(why, fmt.Sprintf("the quota of %s a %s is used up, until %s", status.Traffic(float64(q.Bytes)), q.Period, q.Period.Ends(at).Format("2 January 15:04")))
	}
	return why
}

// countTraffic books what the sockets carried since it last did. The file follows now and
// then.
func (n *node) countTraffic(at time.Time) {
	if !n.cfg.Limits.Quota.Limited() || n.host == nil {
		return
	}
	n.bookCarried(at)
	if b := n.due(at); b != nil {
		n.work.disk.put(func() { n.check("count traffic", n.cfg.disk.SaveTraffic(n.cfg.Dir, b)) })
	}
}

// bookCarried books what the sockets carried until now.
func (n *node) bookCarried(at time.Time) {
	sent, received := n.host.Carried()
	n.book(at, limits.Bytes{Sent: sent, Received: received})
}

// book takes what the sockets of this process carried so far.
func (a *allowance) book(at time.Time, carried limits.Bytes) {
	a.traffic.Count(at, limits.Bytes{Sent: carried.Sent - a.carried.Sent, Received: carried.Received - a.carried.Received})
	a.carried = carried
}

// due is the file of traffic, if it is to be written. Clocks that go back make it due.
func (a *allowance) due(at time.Time) []byte {
	if at.Sub(a.saved).Abs() < saveTrafficEvery {
		return nil
	}
	a.saved = at
	return a.traffic.Encode()
}

// keepTraffic writes what was sent and received, at the end of a process.
func (n *node) keepTraffic() {
	if !n.cfg.Limits.Quota.Limited() || n.host == nil {
		return
	}
	n.bookCarried(time.Now())
	n.check("count traffic", n.cfg.disk.SaveTraffic(n.cfg.Dir, n.traffic.Encode()))
}

// allowed waits, before there is a machine to pause, until the node may do something heavy.
func (n *node) allowed(ctx context.Context) error {
	for {
		n.countTraffic(time.Now())
		if n.cfg.Limits.Battery {
			on, err := n.cfg.power(ctx)
			n.onBattery = on && err == nil
		}
		why := n.reasons(time.Now())
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

// limitsStatus says what this node may cost, and what of it is used.
func (n *node) limitsStatus(at time.Time) status.Limits {
	l := n.cfg.Limits
	s := status.Limits{
		Asked: n.asked, Why: n.why, Resting: n.machine.View().Resting(),
		UpPerS: float64(l.Up), DownPerS: float64(l.Down), Hours: l.Hours.String(),
	}
	if l.Battery {
		s.OnBattery = "pause"
	}
	if q := l.Quota; q.Limited() {
		used := n.traffic.Used(q.Period, at).Sum()
		s.Quota = &status.Quota{Bytes: q.Bytes, Period: string(q.Period), Used: used, Left: q.Bytes - min(used, q.Bytes), Ends: q.Period.Ends(at)}
	}
	return s
}
