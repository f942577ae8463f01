package p2p

import (
	"slices"
	"strings"
	"sync"
	"time"

	pubsub "github.com/libp2p/go-libp2p-pubsub"
	"github.com/libp2p/go-libp2p/core/event"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
)

// regains is what this node knows of gossip's streams, and with whom it mends them.
type regains struct {
	mu      sync.Mutex
	speaks  map[peer.ID]bool // gossip has a stream to it
	running map[peer.ID]bool
	known   event.Emitter // tells gossip of a peer; nil if it needs not be told
}

func newRegains() regains {
	return regains{speaks: map[peer.ID]bool{}, running: map[peer.ID]bool{}}
}

// startRegain lets this node tell gossip of a peer again.
func (h *Host) startRegain() (err error) {
	h.regains.known, err = h.host.EventBus().Emitter(new(event.EvtPeerProtocolsUpdated))
	return err
}

func (r *regains) close() error {
	if r.known == nil {
		return nil
	}
	return r.known.Close()
}

// stream notes that gossip has a stream to p, or none any more.
func (r *regains) stream(p peer.ID, open bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if open {
		r.speaks[p] = true
	} else {
		delete(r.speaks, p)
	}
}

func (r *regains) has(p peer.ID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.speaks[p]
}

// begin reports whether nobody mends gossip with p yet, and notes that somebody does.
func (r *regains) begin(p peer.ID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.running[p] {
		return false
	}
	r.running[p] = true
	return true
}

func (r *regains) end(p peer.ID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.running, p)
}

// regain sees to it that gossip flows with a connected peer, unless it comes back by itself.
// It returns at once.
//
// The connection stays, for it may be through a hole that nobody can punch again. Gossip
// itself gives up a peer to which it could open no stream, or whose streams ended a few
// times: it is told of the peer again. And it forgets what the peer subscribed to when its
// own stream ends, even where the peer said so a moment ago: then all streams of the two
// begin anew, in both directions, as each side forgets with its own.
func (h *Host) regain(p peer.ID) {
	if !h.regains.begin(p) {
		return
	}
	h.tasks.start(func() {
		defer h.regains.end(p)
		h.keepRegaining(p)
	})
}

func (h *Host) keepRegaining(p peer.ID) {
	// Where both sides began anew, each a little later than the other, one might forget what
	// the other has just said.
	pause := regainPause
	if !h.leads(p) {
		pause += regainPause / 2
	}
	for range regainTries {
		select {
		case <-time.After(pause):
		case <-h.ctx.Done():
			return
		}
		switch {
		case h.peers.up(p) == nil || slices.Contains(h.topic.ListPeers(), p):
			return
		case h.regains.has(p):
			h.refreshGossip(p)
		default:
			h.notifyGossip(p)
		}
	}
	h.connectAnew(p)
}

// notifyGossip has gossip open a stream to a connected peer to which it has none.
func (h *Host) notifyGossip(p peer.ID) {
	e := event.EvtPeerProtocolsUpdated{Peer: p, Added: []protocol.ID{pubsub.GossipSubID_v11}}
	if err := h.regains.known.Emit(e); err != nil {
		h.log.Debug("tell gossip of a peer", "peer", p, "err", err)
	}
}

// refreshGossip ends the streams of gossip with p, so that both sides open new ones and say
// all again.
func (h *Host) refreshGossip(p peer.ID) {
	for _, c := range h.host.Network().ConnsToPeer(p) {
		for _, s := range c.GetStreams() {
			if strings.HasPrefix(string(s.Protocol()), gossipPrefix) {
				s.Reset()
			}
		}
	}
}
