// Package allowance is what the owner of a node lets it cost: what is used of its limits, and why it has to pause now. It is told times
// and counts, and neither looks at a clock nor pauses anything: package node does.
package allowance

import (
	"fmt"
	"slices"
	"time"

	"atoll/node/limits"
	"atoll/node/status"
)

// Limits are what the owner of a node lets it cost. The zero value is no limit.
type Limits struct {
	Up, Down int64        // bytes per second that it may send and receive; 0 = as the link carries
	Quota    limits.Quota // bytes, sent and received, of each month or day
	Hours    limits.Hours // when it may work; it is paused outside of them
	Battery  bool         // pause while the machine runs on its battery
}

// Allowance is what a node has used of its limits, and whether it is paused for one of them.
type Allowance struct {
	limits    Limits
	asked     bool           // to pause, by its owner
	onBattery bool           // as of the last look
	traffic   limits.Traffic // of all processes on this folder
	carried   limits.Bytes   // by the sockets of this process, as far as it is counted in traffic
	saved     time.Time      // when traffic was last written
	why       []string       // it is paused; none if it is not
	opens     time.Time      // when the hours open again, while they are closed
}

// New is an allowance of which nothing is used.
func New(l Limits) Allowance { return Allowance{limits: l} }

// Limits are what its owner lets the node cost now.
func (a *Allowance) Limits() Limits { return a.limits }

// Change takes other limits. What was counted stays, so a quota of another size has used as much.
func (a *Allowance) Change(l Limits) { a.limits, a.opens = l, time.Time{} }

// saveTrafficEvery is the time between two writings of what was sent and received: so much of
// a quota a crash can give back.
const saveTrafficEvery = 20 * time.Second

// Recall takes what earlier processes on this folder sent and received, as Traffic wrote it.
func (a *Allowance) Recall(file []byte) error {
	traffic, err := limits.DecodeTraffic(file)
	if err == nil {
		a.traffic = *traffic
	}
	return err
}

// Traffic is what all processes on this folder sent and received, as a file.
func (a *Allowance) Traffic() []byte { return a.traffic.Encode() }

// Ask takes whether its owner wants the node paused.
func (a *Allowance) Ask(pause bool) { a.asked = pause }

// Power takes whether the machine runs on its battery.
func (a *Allowance) Power(onBattery bool) { a.onBattery = onBattery }

// Look finds out whether the node has to pause at a time, and returns whether it does so for other reasons than before.
func (a *Allowance) Look(at time.Time) (changed bool) {
	why := a.Reasons(at)
	if slices.Equal(why, a.why) {
		return false
	}
	a.why = why
	return true
}

// Why are the reasons for which the node is paused since the last Look, for people; none if it is not.
func (a *Allowance) Why() []string { return a.why }

// Paused is whether there are any.
func (a *Allowance) Paused() bool { return len(a.why) > 0 }

// Reasons are why the node has to pause at a time, for people; none if it need not.
func (a *Allowance) Reasons(at time.Time) (why []string) {
	l := a.limits
	if a.asked {
		why = append(why, "asked by its owner, until `atoll resume`")
	}
	if !l.Hours.Open(at) {
		if !a.opens.After(at) {
			a.opens, _ = l.Hours.Next(at)
		}
		why = append(why, fmt.Sprintf("outside of --hours %v, until %s", l.Hours, a.opens.Format("Mon 15:04")))
	}
	if l.Battery && a.onBattery {
		why = append(why, "this machine runs on its battery")
	}
	if q := l.Quota; q.Limited() && a.traffic.Used(q.Period, at).Sum() >= q.Bulk() {
		why = append(why, fmt.Sprintf("the quota of %s a %s is used up, until %s", status.Traffic(float64(q.Bytes)), q.Period, q.Period.Ends(at).Format("2 January 15:04")))
	}
	return why
}

// Carried takes what the sockets of this process carried so far.
func (a *Allowance) Carried(at time.Time, carried limits.Bytes) {
	a.Count(at, limits.Bytes{Sent: carried.Sent - a.carried.Sent, Received: carried.Received - a.carried.Received})
	a.carried = carried
}

// Count adds what was sent and received.
func (a *Allowance) Count(at time.Time, b limits.Bytes) { a.traffic.Count(at, b) }

// Due is Traffic, if it is to be written. Clocks that go back make it due.
func (a *Allowance) Due(at time.Time) []byte {
	if at.Sub(a.saved).Abs() < saveTrafficEvery {
		return nil
	}
	a.saved = at
	return a.Traffic()
}

// Status says what the node may cost, and what of it is used. resting is whether its pause has begun for others as well.
func (a *Allowance) Status(at time.Time, resting bool) status.Limits {
	l := a.limits
	s := status.Limits{
		Asked: a.asked, Why: a.why, Resting: resting,
		UpPerS: float64(l.Up), DownPerS: float64(l.Down), Hours: l.Hours.String(),
	}
	if l.Battery {
		s.OnBattery = "pause"
	}
	if q := l.Quota; q.Limited() {
		used := a.traffic.Used(q.Period, at).Sum()
		s.Quota = &status.Quota{Bytes: q.Bytes, Period: string(q.Period), Used: used, Left: q.Bytes - min(used, q.Bytes), Ends: q.Period.Ends(at)}
	}
	return s
}
