package p2p

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/peerstore"
	"github.com/libp2p/go-libp2p/core/protocol"

	"atoll/gossip/hello"
	"atoll/gossip/member"
	"atoll/gossip/p2p/address"
	"atoll/gossip/wire"
)

// helloProtocol carries the handshake. Each side sends a frame with its signed
// record and, having read the other's, a frame with its verdict: empty, or the
// reason of the refusal as text. So both know that both accepted before
// anything else is said.
const helloProtocol = protocol.ID("/atoll/hello/1")

// connected is libp2p's notice of a new connection. It must not block.
func (h *Host) connected(_ network.Network, c network.Conn) {
	if c.Stat().Limited {
		return // through a relay: good for hole punching only
	}
	if h.blocked.Has(c.RemotePeer()) || !h.peers.add(c) { // blocked while it came to be
		h.tasks.start(func() { c.Close() })
		return
	}
	h.traffic.Track(c.RemotePeer())
	h.tasks.start(func() { h.greet(c) })
	if h.cfg.Profile == WAN {
		h.tasks.start(func() { h.recordConn(c) })
	}
	if viaRelay(c) && c.Stat().Direction == network.DirInbound {
		h.tasks.start(func() { h.keepPunching(c.RemotePeer()) })
	}
}

// disconnected is libp2p's notice of a connection's end. It must not block.
func (h *Host) disconnected(_ network.Network, c network.Conn) {
	if h.cfg.Profile == WAN && !viaRelay(c) && h.peers.passedOn(c) {
		// This may be the only address where a peer behind a router can be reached again, while
		// the routers remember: both sides dial, and each opens the way for the other.
		h.host.Peerstore().AddAddr(c.RemotePeer(), c.RemoteMultiaddr(), peerstore.RecentlyConnectedAddrTTL)
	}
	h.peers.remove(c, func(l *link) { h.inbox.put(PeerDown{ID: l.id}) })
	if h.peers.get(c.RemotePeer()) == nil {
		h.traffic.Leave(c.RemotePeer())
		h.tasks.start(func() { h.leaveRelay(c.RemotePeer()) })
	}
}

// greet sees to it that the handshake happens on a new connection: the side
// that dialled begins it, the other gives it a time.
func (h *Host) greet(c network.Conn) {
	ctx, cancel := context.WithTimeout(h.ctx, helloTimeout)
	defer cancel()
	var err error
	if c.Stat().Direction == network.DirOutbound {
		err = h.sayHello(ctx, c.RemotePeer())
	} else {
		err = h.await(ctx, c.RemotePeer())
	}
	if err != nil && h.peers.up(c.RemotePeer()) == nil {
		h.log.Debug("handshake failed", "peer", c.RemotePeer(), "addr", c.RemoteMultiaddr(), "err", err)
		c.Close()
	}
}

// sayHello begins a handshake.
func (h *Host) sayHello(ctx context.Context, p peer.ID) error {
	s, err := h.host.NewStream(network.WithNoDial(ctx, "handshake"), p, helloProtocol)
	if err != nil {
		return fmt.Errorf("open handshake with %s: %w", p, err)
	}
	return h.shake(s)
}

// serveHello takes part in a handshake that the peer begins.
func (h *Host) serveHello(s network.Stream) {
	if !h.tasks.enter() {
		s.Reset()
		return
	}
	defer h.tasks.leave()
	if err := h.shake(s); err != nil {
		h.log.Debug("handshake failed", "peer", s.Conn().RemotePeer(), "err", err)
	}
}

// shake runs the handshake on s and acts on what comes of it.
func (h *Host) shake(s network.Stream) error {
	defer s.Close()
	if err := s.SetDeadline(time.Now().Add(helloTimeout)); err != nil {
		return err
	}
	err := h.exchange(s)
	same := (*duplicateKeyError)(nil)
	switch {
	case errors.As(err, &same):
		h.refuseConn(s, err)
	case isRefusal(err):
		h.refuse(s, err)
	case err != nil:
		s.Reset()
	default:
		awaitEnd(s)
	}
	return err
}

// exchange sends and reads records and verdicts. The verdicts are exchanged
// even when this side refuses: the peer's tells that it has read ours, so that
// the connection may be closed without losing it.
func (h *Host) exchange(s network.Stream) error {
	ours := h.recordFor(s.Conn())
	if err := wire.WriteFrame(s, ours.Encode(), maxHello); err != nil {
		return fmt.Errorf("send record: %w", err)
	}
	theirs, err := readFrame(s, maxHello)
	if err != nil {
		return fmt.Errorf("read record: %w", err)
	}
	signed, record, refused := h.judge(s.Conn().RemotePeer(), ours, theirs)
	if refused == nil {
		refused = h.duplicateKey(s.Conn(), record)
	}
	if refused != nil {
		s.SetDeadline(time.Now().Add(verdictTimeout))
	} else {
		h.admitStreams(s.Conn().RemotePeer())
	}
	if err := wire.WriteFrame(s, verdict(refused), maxVerdict); err != nil {
		return errors.Join(refused, err)
	}
	answer, err := readFrame(s, maxVerdict)
	switch {
	case refused != nil:
		return refused
	case err != nil:
		return fmt.Errorf("read verdict: %w", err)
	case len(answer) > 0:
		return refusedAs(answer)
	}
	h.refusals.Clear(s.Conn().RemotePeer())
	if err := h.accept(s.Conn(), signed, record); err != nil {
		return err
	}
	if h.cfg.Profile == WAN {
		h.tasks.start(func() { h.move(s.Conn().RemotePeer()) })
	}
	return nil
}

// recordFor is the record that the other end of a connection is shown.
func (h *Host) recordFor(c network.Conn) hello.Signed {
	if h.cfg.Near != nil && near(c) {
		return h.cfg.Near()
	}
	return h.cfg.Record()
}

// awaitEnd waits, until the stream's deadline, for the peer to end the stream.
// The peer does so when it has read the verdict. A connection that closes
// earlier may lose why it is refused. And where a stream of QUIC closes before its end was read, the other
// side's write may still be under way: it fails then, though all of it was read.
func awaitEnd(s network.Stream) {
	if s.CloseWrite() == nil {
		_, _ = s.Read(make([]byte, 1))
	}
}

// readFrame reads a frame; one that is too long is a broken handshake.
func readFrame(s network.Stream, limit int) ([]byte, error) {
	b, err := wire.ReadFrame(s, limit)
	if errors.Is(err, wire.ErrSize) {
		return nil, fmt.Errorf("%w: %w", ErrHandshake, err)
	}
	return b, err
}

// judge decides about the peer's record. Its error is a refusal.
func (h *Host) judge(p peer.ID, ours hello.Signed, frame []byte) (hello.Signed, hello.Record, error) {
	fail := func(err error) (hello.Signed, hello.Record, error) {
		return hello.Signed{}, hello.Record{}, err
	}
	if err := h.dropped(p); err != nil {
		return fail(err)
	}
	signed, err := hello.Parse(frame)
	if err != nil {
		return fail(fmt.Errorf("%w: %w", ErrHandshake, err))
	}
	theirs, err := signed.Open()
	if err != nil {
		return fail(fmt.Errorf("%w: %w", ErrHandshake, err))
	}
	if id, err := address.PeerID(string(p)); err != nil || id != theirs.Author {
		return fail(fmt.Errorf("%w: record of %v on a connection to %v", ErrHandshake, theirs.Author, id))
	}
	mine, err := ours.Open()
	if err != nil {
		return fail(fmt.Errorf("own record: %w", err))
	}
	if err = hello.Negotiate(mine, theirs); err == nil && h.cfg.Admit != nil {
		if err = h.cfg.Admit(theirs); err != nil {
			err = fmt.Errorf("%w: %w", ErrNotAdmitted, err)
		}
	}
	if err != nil && theirs.Visits {
		err = visitRefused{err}
	}
	return signed, theirs, err
}

// visitRefused is the refusal of one that only looks: it hears of it, and nobody here does.
type visitRefused struct{ error }

func (v visitRefused) Unwrap() error { return v.error }

// refuse ends all connections to a peer, remembers why, and says so.
func (h *Host) refuse(s network.Stream, reason error) {
	c := s.Conn()
	h.refusals.Put(c.RemotePeer(), reason, refusedMemory)
	if id, err := address.PeerID(string(c.RemotePeer())); err == nil && !errors.As(reason, new(visitRefused)) {
		h.inbox.put(Refused{ID: id, Addr: fullAddr(c), Reason: reason})
	}
	h.log.Info("refused", "peer", c.RemotePeer(), "addr", c.RemoteMultiaddr(), "reason", member.Shown(reason.Error()))
	awaitEnd(s)
	h.disconnect(c.RemotePeer())
}

// refuseConn ends one connection of a peer whose others stay, and then says so: a call
// of who hears of it takes one of the others.
func (h *Host) refuseConn(s network.Stream, reason error) {
	c := s.Conn()
	awaitEnd(s)
	c.Close()
	if id, err := address.PeerID(string(c.RemotePeer())); err == nil {
		h.inbox.put(Refused{ID: id, Addr: fullAddr(c), Reason: reason})
	}
}

// verdict is the frame that tells the peer what was decided.
func verdict(refused error) []byte {
	if refused == nil {
		return nil
	}
	text := refused.Error()
	return []byte(text[:min(len(text), maxVerdict)])
}

// printable keeps of a peer's text what is safe to show on one line.
func printable(text []byte) string {
	return strings.Map(func(r rune) rune {
		if r == unicode.ReplacementChar || !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, string(text))
}

// Renew sends this node's newest record to all connected peers, and takes
// theirs. It returns at once.
func (h *Host) Renew() {
	h.peers.each(func(p peer.ID, _ *link) {
		h.tasks.start(func() {
			ctx, cancel := context.WithTimeout(h.ctx, helloTimeout)
			defer cancel()
			if err := h.sayHello(ctx, p); err != nil {
				h.log.Debug("renew record", "peer", p, "err", err)
			}
		})
	})
}

// Probe makes sure that the connected peers are still there, by a handshake with
// each. One that does not take part in time loses its connections, so that it
// can be dialled anew. It returns at once.
func (h *Host) Probe() {
	h.peers.each(func(p peer.ID, _ *link) { h.tasks.start(func() { h.probe(p) }) })
}

func (h *Host) probe(p peer.ID) {
	ctx, cancel := context.WithTimeout(h.ctx, probeTimeout)
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			h.disconnect(p) // ends the handshake as well
		}
	})()
	if err := h.sayHello(ctx, p); err != nil {
		h.log.Debug("no answer to a probe", "peer", p, "err", err)
		h.disconnect(p)
	}
}
