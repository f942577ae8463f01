package p2p

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"atoll/gossip/wire"
)

// Callers are told why their context ended, not how a stream took it; that the host closed
// goes before all, and a refusal before what a caller may try again after.
func TestWhyEnded(t *testing.T) {
	h := start(t, newPerson(1).config())
	broken, refused := errors.New("stream reset"), fmt.Errorf("%w: another run", ErrRefusedByPeer)
	running, cancel := h.within(t.Context())
	defer cancel()
	timeout := errors.New("the caller's timeout")
	impatient, give := context.WithCancelCause(t.Context())
	give(timeout)
	ended, cancel := h.within(impatient)
	defer cancel()
	for _, c := range []struct {
		name           string
		ctx            context.Context
		err, want, too error // too is what it is on a host that closed
	}{
		{"nothing ended", running, broken, broken, ErrClosed},
		{"the caller gave up", ended, broken, timeout, ErrClosed},
		{"refused, and the caller gave up", ended, refused, refused, ErrClosed},
		{"no connection, and the caller gave up", ended, ErrNotConnected, timeout, ErrClosed},
	} {
		if got := h.whyEnded(c.ctx, c.err); !errors.Is(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
		defer func() {
			if got := h.whyEnded(c.ctx, c.err); !errors.Is(got, c.too) {
				t.Errorf("%s, closed: %v, want %v", c.name, got, c.too)
			}
		}()
	}
	closeHost(t, h)
}

// What waits for the network when the host closes ends at once, and says why.
func TestCloseEndsWhatWaits(t *testing.T) {
	inWorld(t, rate, delay, func(t *testing.T, w *world) {
		hosts := w.hosts(3)
		a, b, nobody := hosts[0], hosts[1], hosts[2]
		join(t, a, b)
		addr := nobody.Addrs()[0]
		closeHost(t, nobody)
		answers := make(chan error, 2)
		go func() {
			_, err := a.Dial(context.Background(), addr)
			answers <- err
		}()
		b.Handle(func(ctx context.Context, _ wire.PeerID, _ []byte) []byte { <-ctx.Done(); return nil })
		go func() {
			_, err := a.Call(context.Background(), b.ID(), []byte("park"), 10)
			answers <- err
		}()
		synctest.Wait()
		select {
		case err := <-answers:
			t.Fatalf("answered before the host closed: %v", err)
		default:
		}
		closeHost(t, a)
		for range 2 {
			if err := <-answers; !errors.Is(err, ErrClosed) {
				t.Error(err)
			}
		}
	})
}

// Close waits for the streams that gossip is about to open.
func TestCloseWaitsForGossip(t *testing.T) {
	inPair(t, rate, func(t *testing.T, b, a *Host) {
		synctest.Wait()
		_, opened := openBeforeNotice(a, b)
		closed := make(chan struct{})
		go func() {
			closeHost(t, a)
			close(closed)
		}()
		<-closed
		synctest.Wait() // NewStream has left, and is about to say so
		select {
		case err := <-opened:
			if err == nil {
				t.Error("a stream of a host that closes")
			}
		default:
			t.Error("Close did not wait")
		}
		if _, err := (gatedHost{a.host, a}).NewStream(t.Context(), b.pid, rpcProtocol); !errors.Is(err, ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	})
}
