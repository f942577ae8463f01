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

// reconnects keeps when peers were last connected anew for want of gossip.
type reconnects struct {
	mu   sync.Mutex
	last map[peer.ID]time.Time
}

// due reports whether p may be connected anew, and notes it if so.
func (r *reconnects) due(p peer.ID, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for other, at := range r.last {
		if now.Sub(at) >= reconnectPause {
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
func (h *Host) Reconnect(id wire.PeerID) {
	p, err := libp2pID(id)
	if err != nil {
		return // no such peer was ever connected
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
// told its subscriptions once, on a stream that stays. Only a new connection makes
// both begin anew. It must not block.
func (h *Host) gossipLost(p peer.ID) {
	if h.cfg.Profile == WAN {
		h.tasks.start(func() { h.regain(p) })
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

// regain connects anew unless gossip comes back by itself. It mostly does where a relayed
// connection ended beside a direct one, which may have taken a hole to be punched. If
// not, streams are opened anew before that connection is given up.
func (h *Host) regain(p peer.ID) {
	for range regainTries {
		select {
		case <-time.After(regainPause):
		case <-h.ctx.Done():
			return
		}
		if slices.Contains(h.topic.ListPeers(), p) {
			return
		}
		if !h.refreshGossip(p) {
			break
		}
	}
	h.connectAnew(p)
}
