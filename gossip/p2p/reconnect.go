package p2p

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"

	"atoll/gossip/wire"
)

// seldom keeps when something was last done to peers that is done once in a pause at most.
type seldom struct {
	pause time.Duration
	mu    sync.Mutex
	last  map[peer.ID]time.Time
}

func newSeldom(pause time.Duration) *seldom {
	return &seldom{pause: pause, last: map[peer.ID]time.Time{}}
}

// due reports whether it may be done to p now, and notes it if so.
func (r *seldom) due(p peer.ID, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for other, at := range r.last {
		if now.Sub(at) >= r.pause {
			delete(r.last, other)
		}
	}
	if _, recent := r.last[p]; recent {
		return false
	}
	r.last[p] = now
	return true
}

// since is how long ago it was last done to p; before is false if that is longer than the pause.
func (r *seldom) since(p peer.ID, now time.Time) (d time.Duration, before bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at, known := r.last[p]
	d = now.Sub(at)
	return d, known && d < r.pause
}

// Reconnect closes all connections to a peer and dials it again where it was met
// before, as no gossip flows between the two. Nobody is to blame: nothing is
// remembered against the peer. It returns at once; success is a PeerUp.
//
// On the internet a connection may be through a hole that nobody can punch again, and a peer that
// has just started may take its time. So the first call has gossip open its streams anew. Only
// if it is called again once that has had its time, the connection is closed.
func (h *Host) Reconnect(id wire.PeerID) {
	p := pidOf(id)
	if h.cfg.Profile == WAN {
		since, before := h.refreshes.since(p, time.Now())
		switch {
		case !before && h.refreshes.due(p, time.Now()):
			h.refreshGossip(p)
			h.regain(p)
			return
		case since < refreshTime:
			return
		}
	}
	h.tasks.start(func() { h.reconnect(p) })
}

func (h *Host) reconnect(p peer.ID) {
	h.disconnect(p)
	select {
	case <-time.After(settlePause):
	case <-h.ctx.Done():
		return
	}
	if h.blocked.Has(p) || h.refusals.Get(p) != nil {
		return
	}
	ctx, cancel := context.WithTimeout(h.ctx, dialTimeout)
	defer cancel()
	if err := h.dial(ctx, peer.AddrInfo{ID: p}); err != nil {
		h.log.Debug("dial again", "peer", p, "err", err)
	}
}

// gossipLost notes that gossip has no stream to p any more, and has forgotten what
// p subscribed to. p may still be connected, for instance if its next process came
// before the end of the last one was noticed. Then it will not say so again: it
// told its subscriptions once, on a stream that stays. It must not block.
func (h *Host) gossipLost(p peer.ID) {
	if h.cfg.Profile == WAN {
		h.regain(p)
		return
	}
	h.connectAnew(p)
}

func (h *Host) connectAnew(p peer.ID) {
	open := func(c network.Conn) bool { return !c.IsClosed() && !c.Stat().Limited }
	if !slices.ContainsFunc(h.host.Network().ConnsToPeer(p), open) || !h.reconnects.due(p, time.Now()) {
		return
	}
	h.log.Debug("gossip lost on a connection that stays: connects anew", "peer", p)
	h.tasks.start(func() { h.reconnect(p) })
}
