package gossip

import (
	"fmt"
	"math"
	"slices"

	"atoll/gossip/wire"
)

// The set of live peers changes seldom, and is asked for several times a second. So it
// looks at all peers in two cases only. One is a change: a beat of another state, a peer
// heard again, a peer given up, another beat period. The other is that the peer heard
// longest ago may have fallen silent. In a run of a thousand that is a few times a
// minute, not at each tick.

// lookCache says when such a look is due. They are memory of the kind that changes
// nothing but the time that it takes.
type lookCache struct {
	changes uint64 // counts what changes who is live, except time
	watched uint64 // changes, at the last watch
	watchAt Time   // before it no peer falls silent
}

// beatPeriod is the time between two beats in ms, for the run as this node
// sees it: all peers heard of late, and itself.
func (e *env) beatPeriod() int64 {
	return max(e.cfg.BeatMinMs, int64(e.peers.live+1)*beatMsPerPeer)
}

func (e *env) heardLately(p *peer) bool {
	return p.everHeard && e.now-p.heard <= silentBeats*e.beatPeriod()
}

// hear notes a sign of life.
func (e *env) hear(p *peer) {
	if p.silent || !e.heardLately(p) {
		e.peers.cache.changes++
	}
	p.everHeard, p.heard = true, e.now
	if p.silent {
		p.silent = false
		e.event(EventHeard, p.id, "heard again")
	}
}

// watch marks the peers that fell silent and counts the live ones.
func (e *env) watch() {
	t := &e.peers
	if t.cache.watched == t.cache.changes && e.now < t.cache.watchAt {
		return
	}
	t.cache.watched = t.cache.changes
	live, next := 0, never
	for _, p := range t.list {
		if e.heardLately(p) {
			live++
			next = min(next, e.silentFrom(p))
		} else if p.everHeard && !p.silent {
			e.silence(p)
		}
	}
	t.cache.watchAt = next
	if live != t.live {
		t.live = live
		t.cache.changes++ // the beat period follows, and with it what silence is
	}
}

// silence marks a peer that fell silent.
func (e *env) silence(p *peer) {
	p.silent = true
	e.peers.cache.changes++
	if p.beat == nil || p.beat.State != wire.Leaving { // that one said so
		e.event(EventSilent, p.id, fmt.Sprintf("silent for %d ms", e.now-p.heard))
	}
}

// silentFrom is when p falls silent if nothing more is heard of it.
func (e *env) silentFrom(p *peer) Time {
	return p.heard + silentBeats*e.beatPeriod() + 1
}

// never is after every time.
const never Time = math.MaxInt64

// live reports whether p takes part: heard of late, and neither still joining
// nor leaving.
func (e *env) live(p *peer) bool {
	if !e.heardLately(p) || p.beat == nil {
		return false
	}
	return p.beat.State != wire.Joining && p.beat.State != wire.Leaving
}

// learners are the live peers that train or have stopped at the budget, and when
// to look for them again.
type learners struct {
	*env
	ids     []wire.PeerID // sorted
	version uint64        // counts the changes of ids
	made    bool
	changes uint64 // of the table of peers, when they were made
	until   Time   // one of them may fall silent then
}

// current returns the learners of this moment. The slice is never changed.
func (l *learners) current() []wire.PeerID {
	changes := l.peers.cache.changes
	if l.made && l.changes == changes && l.now < l.until {
		return l.ids
	}
	l.made, l.changes, l.until = true, changes, never
	var ids []wire.PeerID
	for _, p := range l.peers.list {
		if l.live(p) && (p.beat.State == wire.Training || p.beat.State == wire.Stopped) {
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
