package p2p

import (
	"context"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
)

// gatedHost is the libp2p host as gossip sees it: streams in either direction
// wait until the peer has passed the handshake, and none causes a dial.
type gatedHost struct {
	host.Host
	h *Host
}

// SetStreamHandler guards f.
func (g gatedHost) SetStreamHandler(id protocol.ID, f network.StreamHandler) {
	g.Host.SetStreamHandler(id, g.h.guarded(f))
}

// NewStream opens a stream to a peer that passes the handshake in time. Gossip
// tries once for each connection and never again, so on the internet it is told of the peer
// again where that fails. Close waits for it.
func (g gatedHost) NewStream(ctx context.Context, p peer.ID, ids ...protocol.ID) (network.Stream, error) {
	if !g.h.tasks.enter() {
		return nil, ErrClosed
	}
	defer g.h.tasks.leave()
	s, err := g.open(ctx, p, ids)
	if err != nil && g.h.cfg.Profile == WAN {
		g.h.regain(p)
	}
	return s, err
}

func (g gatedHost) open(ctx context.Context, p peer.ID, ids []protocol.ID) (network.Stream, error) {
	ctx, cancel := context.WithTimeout(ctx, helloTimeout)
	defer cancel()
	if err := g.h.peers.expect(ctx, p, g.h.host.Network()); err != nil {
		return nil, err
	}
	if err := g.h.await(ctx, p); err != nil {
		return nil, err
	}
	return g.Host.NewStream(network.WithNoDial(ctx, "gossip"), p, ids...)
}

// guarded resets streams of peers that do not pass the handshake in time, and
// lets Close wait for f.
func (h *Host) guarded(f network.StreamHandler) network.StreamHandler {
	return func(s network.Stream) {
		if !h.tasks.enter() {
			s.Reset()
			return
		}
		defer h.tasks.leave()
		ctx, cancel := context.WithTimeout(h.ctx, helloTimeout)
		err := h.await(ctx, s.Conn().RemotePeer())
		cancel()
		if err != nil {
			h.log.Debug("stream before handshake", "peer", s.Conn().RemotePeer(), "protocol", s.Protocol(), "err", err)
			s.Reset()
			return
		}
		f(s)
	}
}
