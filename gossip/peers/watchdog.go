package peers

import (
	"fmt"

	"atoll/gossip/effect"
	"atoll/gossip/wire"
)

// watchPeer is what the watchdog knows of a peer.
type watchPeer struct {
	asked   bool        // for something but genesis, so it runs
	unheard bool        // connected and without a heartbeat
	started int64       // of the process that shook hands, unix ms
	since   effect.Time // connected, or first known to run, without a heartbeat
	after   effect.Time // no connection anew before
	pauseMs int64       // the last pause
}

// watchdog connects a peer anew from which no heartbeat comes. Something lost the gossip between
// the two while requests still flow, so both would train side by side as if alone. It is
// no fault of the peer, and is tried less and less often.
func (b *Heartbeats) watchdog() {
	if b.said == nil {
		return // who says nothing itself has no claim to hear something
	}
	for _, p := range b.Table.Linked {
		since, deaf := b.deafSince(p)
		if !deaf || b.Now < max(since+DeafHeartbeats*b.PeriodOf(p), p.watch.after) {
			continue
		}
		if b.Config.Bulk(p) {
			continue // it must not begin again
		}
		p.watch.pauseMs = min(max(2*p.watch.pauseMs, DeafHeartbeats*b.PeriodOf(p)), ReconnectPauseMaxMs)
		p.watch.after = b.Now + p.watch.pauseMs
		b.Event(effect.EventSilent, p.ID, fmt.Sprintf("connected, and no heartbeat came for %d ms: connects anew. If that goes on, `atoll doctor LINK` tells whether the way to it loses large packets", b.Now-since))
		b.Emit(effect.Reconnect{Peer: p.ID})
	}
}

// deafSince is since when no heartbeat of a connected peer came, if one is due. A peer that asked for
// nothing but genesis may still be starting: it has nothing to say yet, and its way in must
// not be cut. Where addresses change, others may have brought the heartbeats of a peer while no
// gossip flowed with itself: that shows when those others are gone.
func (b *Heartbeats) deafSince(p *Peer) (since effect.Time, deaf bool) {
	if p.watch.unheard {
		return p.watch.since, p.watch.asked
	}
	return p.HeartbeatAt, b.moves && p.Heartbeat != nil && p.Heartbeat.State != wire.Leaving
}

// awaitHeartbeat notes that a process of p is connected from which no heartbeat came yet.
func (t *Table) awaitHeartbeat(p *Peer, started int64) {
	p.watch.unheard, p.watch.since, p.watch.started = true, t.Now, started
}

// awaits reports whether no heartbeat came yet of the process that started then.
func (w *watchPeer) awaits(started int64) bool { return w.unheard && w.started == started }

// gossips notes that a heartbeat came.
func (w *watchPeer) gossips() { w.unheard, w.pauseMs, w.after = false, 0, 0 }

// Runs notes a request now by which the peer is known to run.
func (p *Peer) Runs(now effect.Time) {
	if w := &p.watch; !w.asked {
		w.asked, w.since = true, now
	}
}
