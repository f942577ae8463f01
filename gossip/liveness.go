package gossip

import (
	"fmt"
	"math"
	"slices"

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
	changes uint64 // counts what changes who is live, except time
	watched uint64 // changes, at the last watch
	watchAt Time   // before it no peer falls quiet or silent
}

// ownPeriod works out the time between two heartbeats of this node in ms. With every node
// its share of what a node receives grows. Peers further away hear no more from more
// heartbeats. A thin uplink is for deltas.
func (b *heartbeats) ownPeriod() int64 {
	period := max(b.cfg.HeartbeatMinMs, int64(b.peers.others+1)*heartbeatMsPerPeer, heartbeatWays*b.usualWay())
	if b.self.Full {
		period = max(period, int64(float64(b.copied())/(heartbeatShare*b.self.Upload)*1000))
	}
	return min(period, wire.MaxPeriodMs)
}

// copied is how many bytes leave for a heartbeat like the last own one, in all its copies; 0 before the first.
func (b *heartbeats) copied() int { return b.size * max(1, min(len(b.peers.linked), heartbeatCopies)) }

// fit is how many such heartbeats in a second take all that the uplink carries.
func (b *heartbeats) fit() Fit {
	if !b.self.Full || b.size == 0 {
		return Fit{}
	}
	return Fit{Heartbeats: b.self.Upload / float64(b.copied()), Bytes: b.size}
}

// heartbeatPeriod is the time between two heartbeats of the run as this node sees it: its own, or
// that of half of its live peers whose deltas were folded, if that is longer. A few
// liars, and keys that cost nothing, lengthen it for nobody.
func (t *peers) heartbeatPeriod() int64 { return max(t.period, t.usual) }

// periodOf is the time between two heartbeats of p in ms: what it says, once it has said
// something. One that is shorter than heartbeats of the run are apart would have p fall silent and
// be heard again several times a second.
func (t *peers) periodOf(p *peer) int64 {
	if p.heartbeat == nil || p.heartbeat.PeriodMs == 0 {
		return t.heartbeatPeriod()
	}
	return max(int64(p.heartbeat.PeriodMs), t.cfg.HeartbeatMinMs)
}

func (t *peers) heardLately(p *peer) bool {
	return p.everHeard && t.Now < t.silentFrom(p)
}

// hear notes a sign of life.
func (t *peers) hear(p *peer) {
	if p.silent || p.quiet || !t.heardLately(p) {
		t.cache.changes++
	}
	p.everHeard, p.heard, p.quiet = true, t.Now, false
	t.cache.watchAt = min(t.cache.watchAt, t.quietFrom(p))
	if p.silent {
		p.silent = false
		t.Event(EventHeard, p.id, "heard again")
	}
}

// watch marks the peers that fell quiet or silent, and counts those whose heartbeats share
// this node's downlink.
func (t *peers) watch() {
	if t.cache.watched == t.cache.changes && t.Now < t.cache.watchAt {
		return
	}
	t.cache.watched = t.cache.changes
	t.others, t.cache.watchAt = 0, never
	var periods []int64
	newcomers, came := 0, map[wire.PeerID]uint32{}
	for _, p := range t.list {
		if !p.everHeard {
			continue
		}
		if p.heard+silentHeartbeats*t.heartbeatPeriod() >= t.Now {
			switch {
			case !p.peerList.founder && !t.known(p.id):
				newcomers++
			case t.counts(p, came):
				t.others++
			}
		}
		t.look(p)
		if p.heartbeat != nil && !p.silent && t.contributed(p) {
			periods = append(periods, t.periodOf(p))
		}
	}
	t.others += min(newcomers, max(t.others+1, leastNewcomers))
	t.usual = lowerMedian(periods)
}

// counts reports whether a peer is one more node of the run. No more count by one invite than it is meant for, as no
// more of their heartbeats pass (Limiter): keys of a leaked invite make nobody send heartbeats less often. came has how
// many were met of each.
func (t *peers) counts(p *peer, came map[wire.PeerID]uint32) bool {
	invite, uses := t.cfg.Members.Bound(p.id)
	if uses == 0 {
		return true
	}
	came[invite]++
	return came[invite] <= uses
}

// look marks a peer that fell quiet or silent, and notes when one may that has not.
func (t *peers) look(p *peer) {
	switch quiet, silent := t.quietFrom(p), t.silentFrom(p); {
	case t.Now < quiet:
		t.cache.watchAt = min(t.cache.watchAt, quiet)
	case t.Now < silent:
		t.cache.watchAt = min(t.cache.watchAt, silent)
	}
	if quiet := t.Now >= t.quietFrom(p); quiet != p.quiet {
		p.quiet = quiet
		t.cache.changes++
	}
	if t.Now >= t.silentFrom(p) && !p.silent {
		t.silence(p)
	}
}

// silence marks a peer that fell silent.
func (t *peers) silence(p *peer) {
	p.silent = true
	t.cache.changes++
	if p.heartbeat == nil || p.heartbeat.State != wire.Leaving { // that one said so
		t.Event(EventSilent, p.id, fmt.Sprintf("silent for %d ms", t.Now-p.heard))
	}
}

// quietFrom and silentFrom are when p falls quiet, and silent, if nothing more is heard
// of it.
func (t *peers) quietFrom(p *peer) Time { return p.heard + quietHeartbeats*t.periodOf(p) + 1 }

func (t *peers) silentFrom(p *peer) Time { return p.heard + silentHeartbeats*t.periodOf(p) + 1 }

// never is after every time.
const never Time = math.MaxInt64

// live reports whether p takes part: heard recently, and neither still joining
// nor leaving nor paused.
func (t *peers) live(p *peer) bool {
	return t.heardLately(p) && t.takesPart(p)
}

// takesPart reports whether p was neither still joining nor leaving nor paused in its last heartbeat.
func (t *peers) takesPart(p *peer) bool {
	return p.heartbeat != nil && !p.pauses() && p.heartbeat.State != wire.Joining && p.heartbeat.State != wire.Leaving
}

// pauses reports whether the owner of p has it paused, as its newest heartbeat says.
func (p *peer) pauses() bool { return p.heartbeat != nil && p.heartbeat.Paused }

// learners are the live peers that train or have stopped at the budget, those that are
// expected to, and when to look for them again.
type learners struct {
	*peers
	ids     []wire.PeerID // sorted
	version uint64        // counts the changes of ids
	made    bool
	changes uint64 // of the table of peers, when they were made
	until   Time   // one of them may fall silent then
}

// expected reports whether p is a learner with a session that has yet to send a heartbeat: gossip takes
// a moment to reach it. Without it a run would begin with rounds of one delta each, and the
// deltas of the others would all be late.
func (t *peers) expected(p *peer) bool {
	return p.connected && p.heartbeat == nil && t.heardLately(p) && p.peerList.record.Role == hello.Learner
}

// current returns the learners of this moment. The slice is never changed.
func (l *learners) current() []wire.PeerID {
	changes := l.peers.cache.changes
	if l.made && l.changes == changes && l.Now < l.until {
		return l.ids
	}
	l.made, l.changes, l.until = true, changes, never
	var ids []wire.PeerID
	for _, p := range l.peers.list {
		if l.live(p) && (p.heartbeat.State == wire.Training || p.heartbeat.State == wire.Stopped) || l.expected(p) {
			ids = append(ids, p.id)
			l.until = min(l.until, l.silentFrom(p))
		}
	}
	if !slices.Equal(ids, l.ids) {
		l.ids = ids
		l.version++
	}
	return l.ids
}
