package peers

import (
	"fmt"
	"math"
	"slices"

	"atoll/gossip/effect"
	"atoll/gossip/hello"
	"atoll/gossip/wire"
)

// The set of live peers changes seldom, and is asked for several times a second. So it
// looks at all peers in two cases only. One is a change: a heartbeat of another state or
// period, a peer heard again, a peer given up. The other is that the peer heard longest
// ago may have fallen quiet or silent. In a run of a thousand that is a few times a
// minute, not at each tick.

// lookCache says when such a look is due. They are memory of the kind that changes
// nothing but the time that it takes.
type lookCache struct {
	changes uint64      // counts what changes who is live, except time
	watched uint64      // changes, at the last watch
	watchAt effect.Time // before it no peer falls quiet or silent
}

// ownPeriod works out the time between two heartbeats of this node in ms. With every node
// its share of what a node receives grows. Peers further away hear no more from more
// heartbeats. A thin uplink is for deltas.
func (b *Heartbeats) ownPeriod() int64 {
	period := max(b.Config.HeartbeatMinMs, int64(b.Table.Others+1)*HeartbeatMsPerPeer, HeartbeatWays*b.usualWay())
	if b.self.Full {
		period = max(period, int64(float64(b.copied())/(HeartbeatShare*b.self.Upload)*1000))
	}
	return min(period, wire.MaxPeriodMs)
}

// copied is how many bytes leave for a heartbeat like the last own one, in all its copies; 0 before the first.
func (b *Heartbeats) copied() int { return b.size * max(1, min(len(b.Table.Linked), HeartbeatCopies)) }

// Fit is how many heartbeats like the last own one take all that the uplink carries in a second, all copies counted, and
// the bytes of one. Both are zero where that is not known.
func (b *Heartbeats) Fit() (perSecond float64, bytes int) {
	if !b.self.Full || b.size == 0 {
		return 0, 0
	}
	return b.self.Upload / float64(b.copied()), b.size
}

// HeartbeatPeriod is the time between two heartbeats of the run as this node sees it: its own, or
// that of half of its live peers whose deltas were folded, if that is longer. A few
// liars, and keys that cost nothing, lengthen it for nobody.
func (t *Table) HeartbeatPeriod() int64 { return max(t.Period, t.usual) }

// PeriodOf is the time between two heartbeats of p in ms: what it says, once it has said
// something. One that is shorter than heartbeats of the run are apart would have p fall silent and
// be heard again several times a second.
func (t *Table) PeriodOf(p *Peer) int64 {
	if p.Heartbeat == nil || p.Heartbeat.PeriodMs == 0 {
		return t.HeartbeatPeriod()
	}
	return max(int64(p.Heartbeat.PeriodMs), t.Config.HeartbeatMinMs)
}

func (t *Table) heardLately(p *Peer) bool {
	return p.EverHeard && t.Now < t.silentFrom(p)
}

// Hear notes a sign of life.
func (t *Table) Hear(p *Peer) {
	if p.Silent || p.Quiet || !t.heardLately(p) {
		t.cache.changes++
	}
	p.EverHeard, p.Heard, p.Quiet = true, t.Now, false
	t.cache.watchAt = min(t.cache.watchAt, t.quietFrom(p))
	if p.Silent {
		p.Silent = false
		t.Event(effect.EventHeard, p.ID, "heard again")
	}
}

// watch marks the peers that fell quiet or silent, and counts those whose heartbeats share
// this node's downlink.
func (t *Table) watch() {
	if t.cache.watched == t.cache.changes && t.Now < t.cache.watchAt {
		return
	}
	t.cache.watched = t.cache.changes
	t.Others, t.cache.watchAt = 0, never
	var periods []int64
	newcomers, came := 0, map[wire.PeerID]uint32{}
	for _, p := range t.List {
		if !p.EverHeard {
			continue
		}
		if p.Heard+SilentHeartbeats*t.HeartbeatPeriod() >= t.Now {
			switch {
			case !p.peerList.founder && !t.Known(p.ID):
				newcomers++
			case t.Counts(p, came):
				t.Others++
			}
		}
		t.look(p)
		if p.Heartbeat != nil && !p.Silent && t.Contributed(p) {
			periods = append(periods, t.PeriodOf(p))
		}
	}
	t.Others += min(newcomers, max(t.Others+1, LeastNewcomers))
	t.usual = LowerMedian(periods)
}

// Counts reports whether a peer is one more node of the run. No more count by one invite than it is meant for, as no
// more of their heartbeats pass (Limiter): keys of a leaked invite make nobody send heartbeats less often. came has how
// many were met of each.
func (t *Table) Counts(p *Peer, came map[wire.PeerID]uint32) bool {
	invite, uses := t.Config.Members.Bound(p.ID)
	if uses == 0 {
		return true
	}
	came[invite]++
	return came[invite] <= uses
}

// look marks a peer that fell quiet or silent, and notes when one may that has not.
func (t *Table) look(p *Peer) {
	switch quiet, silent := t.quietFrom(p), t.silentFrom(p); {
	case t.Now < quiet:
		t.cache.watchAt = min(t.cache.watchAt, quiet)
	case t.Now < silent:
		t.cache.watchAt = min(t.cache.watchAt, silent)
	}
	if quiet := t.Now >= t.quietFrom(p); quiet != p.Quiet {
		p.Quiet = quiet
		t.cache.changes++
	}
	if t.Now >= t.silentFrom(p) && !p.Silent {
		t.silence(p)
	}
}

// silence marks a peer that fell silent.
func (t *Table) silence(p *Peer) {
	p.Silent = true
	t.cache.changes++
	if p.Heartbeat == nil || p.Heartbeat.State != wire.Leaving { // that one said so
		t.Event(effect.EventSilent, p.ID, fmt.Sprintf("silent for %d ms", t.Now-p.Heard))
	}
}

// quietFrom and silentFrom are when p falls quiet, and silent, if nothing more is heard
// of it.
func (t *Table) quietFrom(p *Peer) effect.Time { return p.Heard + QuietHeartbeats*t.PeriodOf(p) + 1 }

func (t *Table) silentFrom(p *Peer) effect.Time { return p.Heard + SilentHeartbeats*t.PeriodOf(p) + 1 }

// never is after every time.
const never effect.Time = math.MaxInt64

// Live reports whether p takes part: heard recently, and neither still joining
// nor leaving nor paused.
func (t *Table) Live(p *Peer) bool {
	return t.heardLately(p) && t.takesPart(p)
}

// takesPart reports whether p was neither still joining nor leaving nor paused in its last heartbeat.
func (t *Table) takesPart(p *Peer) bool {
	return p.Heartbeat != nil && !p.Pauses() && p.Heartbeat.State != wire.Joining && p.Heartbeat.State != wire.Leaving
}

// Pauses reports whether the owner of p has it paused, as its newest heartbeat says.
func (p *Peer) Pauses() bool { return p.Heartbeat != nil && p.Heartbeat.Paused }

// learners are the live peers that train or have stopped at the budget, those that are
// expected to, and when to look for them again.
type learners struct {
	*Table
	ids     []wire.PeerID // sorted
	version uint64        // counts the changes of ids
	made    bool
	changes uint64      // of the table of peers, when they were made
	until   effect.Time // one of them may fall silent then
}

// expected reports whether p is a learner with a session that has yet to send a heartbeat: gossip takes
// a moment to reach it. Without it a run would begin with rounds of one delta each, and the
// deltas of the others would all be late.
func (t *Table) expected(p *Peer) bool {
	return p.Connected && p.Heartbeat == nil && t.heardLately(p) && p.peerList.record.Role == hello.Learner
}

// current returns the learners of this moment. The slice is never changed.
func (l *learners) current() []wire.PeerID {
	changes := l.Table.cache.changes
	if l.made && l.changes == changes && l.Now < l.until {
		return l.ids
	}
	l.made, l.changes, l.until = true, changes, never
	var ids []wire.PeerID
	for _, p := range l.Table.List {
		if l.Live(p) && (p.Heartbeat.State == wire.Training || p.Heartbeat.State == wire.Stopped) || l.expected(p) {
			ids = append(ids, p.ID)
			l.until = min(l.until, l.silentFrom(p))
		}
	}
	if !slices.Equal(ids, l.ids) {
		l.ids = ids
		l.version++
	}
	return l.ids
}
