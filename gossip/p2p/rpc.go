package p2p

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"

	"atoll/gossip/wire"
)

// rpcProtocol carries requests: a stream each, on which the asker sends a
// frame with the request and gets a frame with the response. For every segment
// of a frame that has a whole one (head included) it sends back a stamp of two
// bytes, by which the server paces itself. The asker closes when it has all; that it resets the
// stream before tells the server to stop.
const rpcProtocol = protocol.ID("/atoll/rpc/2")

// rpcService is the name under which the resource manager accounts requests.
const rpcService = "atoll.rpc"

// memoryPriority lets responses use up to 60 % of a scope's memory, so that
// bulk leaves room for the windows of gossip's streams.
const memoryPriority = network.ReservationPriorityMedium

// Handler answers one request, on a goroutine of its own. The response begins
// with a wire.Status. ctx ends when the stream does. context.Cause is ErrSent
// if the whole response has left. It is another error if the asker went away,
// the handler took too long or the transfer failed. A handler that parks has to
// watch it; one that wants to know what became of its response can use
// context.AfterFunc.
type Handler func(ctx context.Context, from wire.PeerID, request []byte) (response []byte)

var (
	// ErrSent is how the context of a Handler ends when the last byte of its
	// response was written. The asker of a response of a segment or more has
	// also acknowledged every segment, or closed because it has everything.
	ErrSent = errors.New("response sent")

	errGone = errors.New("asker is gone")
	errSlow = errors.New("handler is too slow")
)

// Handle sets what answers requests; before, askers are told that this node is
// busy. At most servePeer requests of one peer are served at once, serveTotal
// in all; beyond that askers get wire.Busy.
//
// The context of f ends with the cause ErrSent only if its response was sent
// to the last byte.
func (h *Host) Handle(f Handler) { h.handler.Store(&f) }

// Call sends a request and returns the response, at most maxResponse bytes. The
// peer must be connected; Call never dials. When ctx ends the stream is reset,
// and the peer's handler sees the end of its own context. A response that was
// here by then is returned all the same.
func (h *Host) Call(ctx context.Context, to wire.PeerID, request []byte, maxResponse int) ([]byte, error) {
	if len(request) > wire.MaxRequest {
		return nil, fmt.Errorf("call %v: request: %w: %d bytes, at most %d", to, wire.ErrSize, len(request), wire.MaxRequest)
	}
	pid := pidOf(to)
	if !h.tasks.enter() {
		return nil, fmt.Errorf("call %v: %w", to, ErrClosed)
	}
	defer h.tasks.leave()
	ctx, cancel := h.within(ctx)
	defer cancel()
	response, err := h.call(ctx, pid, request, maxResponse)
	if err != nil {
		return nil, fmt.Errorf("call %v: %w", to, h.whyEnded(ctx, err))
	}
	return response, nil
}

// within is ctx, ended when the host closes.
func (h *Host) within(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(h.ctx, func() { cancel(ErrClosed) })
	return ctx, func() { stop(); cancel(nil) }
}

// whyEnded returns why ctx, made by within, has ended. err is only how a stream or
// a dial took that. It returns err if ctx has not ended, or if the peer was
// refused: no other try would change that. A host that closes may break
// connections before ctx has heard of it.
func (h *Host) whyEnded(ctx context.Context, err error) error {
	switch {
	case h.ctx.Err() != nil:
		return ErrClosed
	case ctx.Err() != nil && !isRefusal(err) && !errors.Is(err, ErrNoHandshake):
		return context.Cause(ctx)
	}
	return err
}

func (h *Host) call(ctx context.Context, pid peer.ID, request []byte, maxResponse int) ([]byte, error) {
	l := h.peers.up(pid)
	if l == nil {
		return nil, h.whyNot(pid)
	}
	s, err := h.host.NewStream(network.WithNoDial(ctx, "call"), pid, rpcProtocol)
	if err != nil {
		return nil, fmt.Errorf("open stream: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { s.Reset() })
	defer stop()
	response, err := h.ask(ctx, s, l, request, maxResponse)
	if err != nil {
		s.Reset()
		return nil, err
	}
	s.Close() // its error says only that the server was the first to close
	return response, nil
}

// ask sends the request and reads the response.
func (h *Host) ask(ctx context.Context, s network.Stream, l *link, request []byte, maxResponse int) ([]byte, error) {
	if err := s.Scope().SetService(rpcService); err != nil {
		return nil, err
	}
	if err := s.SetWriteDeadline(time.Now().Add(requestTimeout)); err != nil {
		return nil, err
	}
	if err := wire.WriteFrame(s, request, wire.MaxRequest); err != nil {
		return nil, err
	}
	if err := s.SetReadDeadline(time.Now().Add(requestTimeout + handleTimeout)); err != nil {
		return nil, err
	}
	reserve := func(bytes int) error { return s.Scope().ReserveMemory(bytes, memoryPriority) }
	response, first, last, err := l.bulk.Receive(ctx, s, h.caps.down, reserve, maxResponse)
	if err == nil {
		*arrivalOf(ctx) = Arrival{first, last}
	}
	return response, err
}

// serveRPC answers the request on a stream that a peer opened.
func (h *Host) serveRPC(s network.Stream) {
	if err := h.answer(s); err != nil {
		s.Reset()
		h.log.Debug("request failed", "peer", s.Conn().RemotePeer(), "err", err)
	}
}

func (h *Host) answer(s network.Stream) error {
	if err := s.Scope().SetService(rpcService); err != nil {
		return err
	}
	if err := s.SetReadDeadline(time.Now().Add(requestTimeout)); err != nil {
		return err
	}
	h.reading.begin(s.Conn().RemotePeer(), s)
	request, err := wire.ReadFrame(s, wire.MaxRequest)
	h.reading.end(s.Conn().RemotePeer(), s)
	if err != nil {
		return fmt.Errorf("read request: %w", err)
	}
	f := h.handler.Load()
	l := h.admit(s.Conn().RemotePeer())
	if l == nil {
		h.busy.Add(1)
		return h.sayBusy(s)
	}
	defer h.release(l)
	if f == nil {
		return h.sayBusy(s)
	}
	return h.respond(s, l, *f, request)
}

// respond has f answer and sends the response. The asker is listened to all
// the while.
func (h *Host) respond(s network.Stream, l *link, f Handler, request []byte) (err error) {
	if err := s.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	ctx, gone := context.WithCancel(h.ctx)
	defer gone()
	t := l.bulk.Begin(ctx, s, h.caps.up, gone)
	hook := new(leftHook)
	handling, over := context.WithCancelCause(context.WithValue(context.Background(), leftKey{}, hook))
	outcome := ErrSent
	defer func() {
		t.End(err)
		over(cmp.Or(err, outcome))
	}()
	response, err := handle(ctx, handling, over, func() []byte {
		select {
		case <-l.told: // who answers knows first who asks
			return f(handling, l.id, request)
		case <-handling.Done():
			return nil
		}
	})
	if err != nil {
		return err
	}
	if err := s.Scope().ReserveMemory(len(response), memoryPriority); err != nil {
		outcome = fmt.Errorf("response of %d bytes: %w", len(response), err)
		response = []byte{byte(wire.Busy)}
	}
	return t.Send(response, hook.call)
}

// leftKey is the key of a leftHook in the context of a Handler.
type leftKey struct{}

// leftHook is what is called when the last byte of a response was written.
type leftHook struct{ f func() }

func (h *leftHook) call() {
	if h.f != nil {
		h.f()
	}
}

// AfterLeft has f called once the last byte of the response is on its way, a
// round trip or more before the asker has acknowledged it. It is for a Handler,
// with the context that it got, before it returns; f must not block. It is not
// called if the response does not leave whole.
func AfterLeft(ctx context.Context, f func()) {
	if h, ok := ctx.Value(leftKey{}).(*leftHook); ok {
		h.f = f
	}
}

// handle runs f, which has to end when handling does: when the asker is gone,
// which is the end of ctx, or after handleTimeout. Once f has returned, neither
// ends handling: an asker closes when it has all.
func handle(ctx, handling context.Context, over context.CancelCauseFunc, f func() []byte) ([]byte, error) {
	defer context.AfterFunc(ctx, func() { over(errGone) })()
	defer time.AfterFunc(handleTimeout, func() { over(errSlow) }).Stop()
	response := f()
	if handling.Err() != nil {
		return nil, context.Cause(handling)
	}
	return response, nil
}

// sayBusy answers without a handler. Its Close waits for nobody.
func (h *Host) sayBusy(s network.Stream) error {
	if err := s.SetWriteDeadline(time.Now().Add(requestTimeout)); err != nil {
		return err
	}
	if err := wire.WriteFrame(s, []byte{byte(wire.Busy)}, 1); err != nil {
		return err
	}
	return s.Close()
}

// admit counts a request in, or returns nil when there are too many. The last slots are for peers
// that have none.
func (h *Host) admit(p peer.ID) *link {
	h.peers.mu.Lock()
	defer h.peers.mu.Unlock()
	l := h.peers.links[p]
	if l == nil || !l.passed || l.serving >= servePeer || h.peers.serving >= serveTotal || l.serving > 0 && h.peers.serving >= serveTotal-connsHigh {
		return nil
	}
	l.serving++
	h.peers.serving++
	return l
}

func (h *Host) release(l *link) {
	h.peers.mu.Lock()
	defer h.peers.mu.Unlock()
	l.serving--
	h.peers.serving--
}
