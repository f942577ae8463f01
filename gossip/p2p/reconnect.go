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

// Reconnect closes all connections to a peer and dials it again where it was met
// before, as no gossip flows between the two. Nobody is to blame: nothing is
// remembered against the peer. It returns at once; success is a PeerUp.
//
// On the internet a connection may be through a hole that nobody can punch again. So the first
// call has gossip open its streams anew, and one that follows soon closes the connection.
func (h *Host) Reconnect(id wire.PeerID) {
	p, err := libp2pID(id)
	if err != nil {
		return // no such peer was ever connected
	}
	if h.cfg.Profile == WAN && h.refreshes.due(p, time.Now()) {
		h.refreshGossip(p)
		h.regain(p)
		return
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
	if h.blocked.has(p) || h.refusals.get(p) != nil {
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
