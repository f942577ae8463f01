package p2p

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"atoll/gossip/p2p/bulk"
	"atoll/gossip/wire"
)

// random is n bytes that do not compress, beginning with a status.
func random(n int) []byte {
	b := make([]byte, n)
	rand.NewChaCha8([32]byte{1}).Read(b)
	b[0] = byte(wire.OK)
	return b
}

// inPair runs f with two hosts that are up.
func inPair(t *testing.T, bits int, f func(t *testing.T, a, b *Host)) {
	inWorld(t, bits, delay, func(t *testing.T, w *world) {
		hosts := w.hosts(2)
		join(t, hosts[0], hosts[1])
		f(t, hosts[0], hosts[1])
	})
}

// Whoever answers has the PeerUp of a peer before its first request.
func TestNobodyAsksBeforeItIsUp(t *testing.T) {
	inWorld(t, rate, delay, func(t *testing.T, w *world) {
		hosts := w.hosts(2)
		a, b := hosts[0], hosts[1]
		b.Handle(echo)
		dial(t, a, b)
		answered := make(chan error, 1)
		go func() {
			_, err := a.Call(t.Context(), b.ID(), []byte("hi"), 10)
			answered <- err
		}()
		time.Sleep(time.Second)
		select {
		case err := <-answered:
			t.Fatalf("answered before the peer is up: %v", err)
		default:
		}
		next[PeerUp](t, b)
		if err := <-answered; err != nil {
			t.Error(err)
		}
	})
}

func TestCallSizes(t *testing.T) {
	inPair(t, rate, func(t *testing.T, a, b *Host) {
		b.Handle(func(_ context.Context, from wire.PeerID, request []byte) []byte {
			if from != a.ID() {
				t.Errorf("request from %v", from)
			}
			return random(int(binary.BigEndian.Uint32(request)))
		})
		for _, n := range []int{1, 100, bulk.Segment - 5, bulk.Segment - 4, bulk.Segment - 3, bulk.Segment, bulk.Segment + 1, 3*bulk.Segment - 4, 1 << 20, 4<<20 + 7} {
			request := binary.BigEndian.AppendUint32(nil, uint32(n))
			began, came := time.Now(), new(Arrival)
			got, err := a.Call(WithArrival(t.Context(), came), b.ID(), request, n)
			if err != nil || !bytes.Equal(got, random(n)) {
				t.Errorf("%d bytes: got %d, %v", n, len(got), err)
			}
			took := time.Duration(came.TookMs()) * time.Millisecond
			if came.First.Before(began) || came.Last.Before(came.First) || took < time.Duration(n-bulk.Segment)*time.Second/rate*8 {
				t.Errorf("%d bytes: asked at %v, came from %v to %v", n, began, came.First, came.Last)
			}
			if _, err := a.Call(t.Context(), b.ID(), request, n-1); !errors.Is(err, wire.ErrSize) {
				t.Errorf("%d bytes with limit %d: %v", n, n-1, err)
			}
		}
		up, down := b.Stats().Peers[a.ID()].UpBytesPerSecond, a.Stats().Peers[b.ID()].DownBytesPerSecond
		if up < rate/8/10 || up > rate/8 || down < rate/8/10 || down > rate/8 {
			t.Errorf("measured %.0f bytes/s up, %.0f down, of %.0f", up, down, rate/8)
		}
		checkIdle(t, b, a)
	})
}

// checkIdle checks that h has given back all that it counted out for peer.
func checkIdle(t *testing.T, h, peer *Host) {
	t.Helper()
	time.Sleep(time.Second)
	l := h.peers.up(peer.host.ID())
	if l == nil {
		t.Fatal("not connected")
	}
	h.peers.mu.Lock()
	defer h.peers.mu.Unlock()
	if n := l.bulk.InFlight(); n != 0 || l.serving != 0 || h.peers.serving != 0 {
		t.Errorf("left over: %d bytes in flight, %d and %d requests", n, l.serving, h.peers.serving)
	}
}

func TestCallErrors(t *testing.T) {
	inPair(t, rate, func(t *testing.T, a, b *Host) {
		if got, err := a.Call(t.Context(), b.ID(), []byte("hi"), 10); err != nil || wire.Status(got[0]) != wire.Busy {
			t.Errorf("without a handler: %v, %v; want busy", got, err)
		}
		if _, err := a.Call(t.Context(), newPersonID(7), nil, 10); !errors.Is(err, ErrNotConnected) {
			t.Errorf("call of a stranger: %v", err)
		}
		if _, err := a.Call(t.Context(), b.ID(), make([]byte, wire.MaxRequest+1), 10); !errors.Is(err, wire.ErrSize) {
			t.Errorf("request too large: %v", err)
		}
		b.Handle(func(ctx context.Context, _ wire.PeerID, _ []byte) []byte { <-ctx.Done(); return nil })
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := a.Call(ctx, b.ID(), nil, 10); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("call of a handler that hangs: %v", err)
		}
		checkIdle(t, b, a) // the asker's end reached the handler
	})
}

func newPersonID(seed byte) wire.PeerID { return wire.PeerIDOf(newPerson(seed).key) }

func TestCallEndsWithTheConnection(t *testing.T) {
	inPair(t, rate, func(t *testing.T, a, b *Host) {
		b.Handle(func(ctx context.Context, _ wire.PeerID, _ []byte) []byte { <-ctx.Done(); return nil })
		time.AfterFunc(time.Second, func() { b.Drop(a.ID(), "test") })
		if _, err := a.Call(t.Context(), b.ID(), nil, 10); err == nil {
			t.Error("call succeeded")
		}
	})
}

// The last byte is on its way at least a round trip before the asker's receipt.
// A response that does not leave whole says nothing.
func TestAfterLeft(t *testing.T) {
	inPair(t, 8e6, func(t *testing.T, a, b *Host) {
		left, ended := make(chan time.Time, 2), make(chan time.Time, 2)
		b.Handle(func(ctx context.Context, _ wire.PeerID, _ []byte) []byte {
			AfterLeft(ctx, func() { left <- time.Now() })
			context.AfterFunc(ctx, func() { ended <- time.Now() })
			return random(1 << 20)
		})
		if _, err := a.Call(t.Context(), b.ID(), nil, 1<<20); err != nil {
			t.Fatal(err)
		}
		if d := (<-ended).Sub(<-left); d < 2*delay {
			t.Errorf("left %v before the receipt, a round trip takes %v", d, 2*delay)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		if _, err := a.Call(ctx, b.ID(), nil, 1<<20); err == nil {
			t.Fatal("1 MiB at 1 MB/s arrived within 200 ms")
		}
		if <-ended; len(left) > 0 {
			t.Error("a response that was cut off has left")
		}
	})
	AfterLeft(context.Background(), func() { t.Error("called without a response") })
}

// How the handler's context ends tells a transfer that arrived from one that
// failed, whichever side closes first.
func TestHandlerContextTellsTheOutcome(t *testing.T) {
	inPair(t, 8e6, func(t *testing.T, a, b *Host) {
		ended := make(chan error, 1)
		serve := func(n int) {
			b.Handle(func(ctx context.Context, _ wire.PeerID, _ []byte) []byte {
				context.AfterFunc(ctx, func() { ended <- context.Cause(ctx) })
				return random(n)
			})
		}
		for _, n := range []int{1, 1000, bulk.Segment, 1 << 20} {
			serve(n)
			if _, err := a.Call(t.Context(), b.ID(), nil, n); err != nil {
				t.Fatal(err)
			}
			if cause := <-ended; !errors.Is(cause, ErrSent) {
				t.Errorf("%d bytes that arrived: %v", n, cause)
			}
		}
		serve(4 << 20)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := a.Call(ctx, b.ID(), nil, 4<<20); err == nil {
			t.Fatal("4 MiB at 1 MB/s arrived within a second")
		}
		if cause := <-ended; cause == nil || errors.Is(cause, ErrSent) {
			t.Errorf("the asker left in the middle: %v", cause)
		}
		serve(1 << 20)
		if _, err := a.Call(t.Context(), b.ID(), nil, 1<<10); err == nil {
			t.Fatal("a response over the asker's limit was taken")
		}
		if cause := <-ended; errors.Is(cause, ErrSent) {
			t.Errorf("the asker refused the length: %v", cause)
		}
		checkIdle(t, b, a)
	})
}

// A transfer may take longer than a handler.
func TestSlowTransferIsNoSlowHandler(t *testing.T) {
	const bits = 1e6
	inPair(t, bits, func(t *testing.T, a, b *Host) {
		size := int(2 * handleTimeout.Seconds() * bits / 8)
		ended := make(chan error, 1)
		b.Handle(func(ctx context.Context, _ wire.PeerID, _ []byte) []byte {
			context.AfterFunc(ctx, func() { ended <- context.Cause(ctx) })
			return random(size)
		})
		if _, err := a.Call(t.Context(), b.ID(), nil, size); err != nil {
			t.Fatal(err)
		}
		if cause := <-ended; !errors.Is(cause, ErrSent) {
			t.Errorf("%d bytes that arrived: %v", size, cause)
		}
	})
}

func TestUploadLimit(t *testing.T) {
	inWorld(t, rate, delay, func(t *testing.T, w *world) {
		slow := newPerson(1).config()
		slow.UploadBytesPerSecond = 1e6
		a, b, c := w.host(slow), w.host(newPerson(2).config()), w.host(newPerson(3).config())
		a.Handle(func(context.Context, wire.PeerID, []byte) []byte { return random(2e6) })
		join(t, b, a)
		join(t, c, a)
		start := time.Now()
		var both sync.WaitGroup
		for _, h := range []*Host{b, c} {
			both.Go(func() {
				if _, err := h.Call(t.Context(), a.ID(), nil, 2e6); err != nil {
					t.Error(err)
				}
			})
		}
		both.Wait()
		if d := time.Since(start).Seconds(); d < 3.9 || d > 4.5 {
			t.Errorf("4 MB to two peers at 1 MB/s took %.2f s, want 4", d)
		}
	})
}

// Heartbeats share connections with bulk, and must arrive soon all the same.
func TestBulkDoesNotStarveGossip(t *testing.T) {
	const bits = 10e6
	inPair(t, bits, func(t *testing.T, a, b *Host) {
		const size = 8 << 20
		b.Handle(func(context.Context, wire.PeerID, []byte) []byte { return random(size) })
		time.Sleep(2 * time.Second)
		start := time.Now()
		done := make(chan time.Duration)
		go func() {
			if _, err := a.Call(t.Context(), b.ID(), nil, size); err != nil {
				t.Error(err)
			}
			done <- time.Since(start)
		}()
		var worst time.Duration
		for i := 0; ; i++ {
			sent := time.Now()
			if err := b.Publish([]byte(fmt.Sprint("heartbeat ", i))); err != nil {
				t.Fatal(err)
			}
			next[Message](t, a)
			worst = max(worst, time.Since(sent))
			select {
			case d := <-done:
				ideal := time.Duration(size * 8 / bits * float64(time.Second))
				t.Logf("%d heartbeats, the slowest after %v; bulk took %v of %v", i+1, worst, d, ideal)
				if worst > 3*bulk.QueueTarget {
					t.Errorf("a heartbeat took %v", worst)
				}
				if d > 2*ideal {
					t.Errorf("bulk took %v, at best %v", d, ideal)
				}
				return
			case <-time.After(50 * time.Millisecond):
			}
		}
	})
}
