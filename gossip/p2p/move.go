package p2p

import (
	"strings"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"

	"atoll/gossip/wire"
)

// move takes what goes to a peer through a relay to a direct connection, once there is one
// whose handshake passed. Requests choose the direct one by themselves. Gossip keeps its
// stream until that ends: it is ended here, and gossip opens another. Then the
// relayed connection has until moveTimeout to finish its requests.
//
// A relayed connection that is the newer one says that its other end may have lost the direct one
// without a sign: that has to show that it lives.
func (h *Host) move(p peer.ID) {
	if relayed, direct := h.conns(p); relayed != nil && direct != nil && relayed.Stat().Opened.After(direct.Stat().Opened) {
		if err := h.answers(direct); err != nil {
			h.log.Debug("a direct connection is dead", "peer", p, "err", err)
			direct.Close()
			return
		}
	}
	for waited := time.Duration(0); ; waited += movePause {
		relayed, direct := h.conns(p)
		if relayed == nil || direct == nil || !h.peers.passedOn(direct) {
			return
		}
		busy := 0
		for _, s := range relayed.GetStreams() {
			switch {
			case strings.HasPrefix(string(s.Protocol()), gossipPrefix):
				if h.leads(p) {
					s.Reset()
				}
			case s.Protocol() == rpcProtocol:
				busy++
			}
		}
		if waited >= movePause && busy == 0 || waited >= moveTimeout {
			relayed.Close()
			continue
		}
		select {
		case <-time.After(movePause):
		case <-h.ctx.Done():
			return
		}
	}
}

// leads reports whether this side ends streams of gossip with p, in both directions. If both
// sides did, each a little later than the other, one would forget what the other has
// just said on its new stream.
func (h *Host) leads(p peer.ID) bool { return h.pid < p }

// passedOn reports whether the handshake passed on a connection.
func (ps *peers) passedOn(c network.Conn) bool {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	l := ps.links[c.RemotePeer()]
	return l != nil && l.conns[c] != 0
}

// Path is how a connected peer is reached.
type Path struct {
	Relay    string // peer id of the relay that everything goes through, in hex; empty if none
	Punching bool   // an attempt at a direct connection is under way
	Addr     string // of the connection
}

// Path says how a peer is reached now; ok is false if it is not connected.
func (h *Host) Path(id wire.PeerID) (path Path, ok bool) {
	p := pidOf(id)
	relayed, direct := h.conns(p)
	switch {
	case h.peers.up(p) == nil:
		return Path{}, false
	case direct != nil:
		return Path{Addr: fullAddr(direct)}, true
	case relayed != nil:
		return Path{Relay: relayID(relayed), Punching: h.punches.running(p), Addr: fullAddr(relayed)}, true
	}
	return Path{}, false
}
