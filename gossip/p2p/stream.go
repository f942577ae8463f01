package p2p

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/protocol"

	"atoll/gossip/p2p/address"
	"atoll/gossip/wire"
)

// streamPrefix begins the protocol of every service that is made of streams: see
// Open.
const streamPrefix = "/atoll/stream/"

// Stream is a stream of bytes each way between two nodes. One goroutine may read
// while another one writes. What arrives is at the reader's mercy: it sets
// deadlines and checks lengths itself. A writer whose peer does not read blocks
// once the muxer's window is full, until its deadline.
type Stream interface {
	io.ReadWriter
	SetReadDeadline(t time.Time) error
	SetWriteDeadline(t time.Time) error
	Close() error // in order: what was written still arrives
	Reset() error // at once, both ways
}

// Open opens a stream of a service to a peer. The peer must be connected; Open
// never dials. Bulk on a stream is not paced: what opens one for bulk and gossips
// on the same connection has heartbeats that come late.
func (h *Host) Open(ctx context.Context, to wire.PeerID, service string) (Stream, error) {
	pid := pidOf(to)
	if !h.tasks.enter() {
		return nil, fmt.Errorf("open stream to %v: %w", to, ErrClosed)
	}
	defer h.tasks.leave()
	ctx, cancel := h.within(ctx)
	defer cancel()
	if h.peers.up(pid) == nil {
		return nil, fmt.Errorf("open stream to %v: %w", to, h.whyEnded(ctx, h.whyNot(pid)))
	}
	s, err := h.host.NewStream(network.WithNoDial(ctx, service), pid, streamPrefix+protocol.ID(service))
	if err != nil {
		return nil, fmt.Errorf("open stream to %v: %w", to, h.whyEnded(ctx, oneLine{err}))
	}
	return s, nil
}

// Accept has f take every stream of a service that peers open after the
// handshake. f runs on a goroutine of its own. Close resets the streams and
// waits for it. The stream is f's to close, and how many of them one peer may
// have is f's to bound, below what the resource manager allows.
func (h *Host) Accept(service string, f func(from wire.PeerID, s Stream)) {
	h.host.SetStreamHandler(streamPrefix+protocol.ID(service), h.guarded(func(s network.Stream) {
		from, err := address.PeerID(string(s.Conn().RemotePeer()))
		if err != nil {
			s.Reset()
			return
		}
		f(from, s)
	}))
}
