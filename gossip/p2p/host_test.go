package p2p

import (
	"bytes"
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/libp2p/go-libp2p/core/network"

	"atoll/gossip/p2p/address"
	"atoll/gossip/wire"
)

const (
	rate  = 100e6                 // bits/s of the links in most tests
	delay = 10 * time.Millisecond // one way
)

// drain returns the events that are waiting, once nothing moves any more.
func drain(h *Host) []Event {
	var events []Event
	for {
		synctest.Wait()
		select {
		case e := <-h.Events():
			events = append(events, e)
		default:
			return events
		}
	}
}

func count[E Event](events []Event) int {
	n := 0
	for _, e := range events {
		if _, ok := e.(E); ok {
			n++
		}
	}
	return n
}

func TestLoopbackTCP(t *testing.T) {
	a, b := start(t, newPerson(1).config()), start(t, newPerson(2).config())
	b.Handle(echo)
	join(t, a, b)
	got, err := a.Call(t.Context(), b.ID(), []byte("hi"), 10)
	if err != nil || string(got[1:]) != "hi" {
		t.Fatalf("call: %q, %v", got, err)
	}
	s := a.Stats()
	if rpc := s.Protocols[string(rpcProtocol)]; rpc.Sent == 0 || rpc.Received == 0 {
		t.Errorf("rpc traffic: %+v", rpc)
	}
	if p, ok := s.Peers[b.ID()]; !ok || p.Sent == 0 || p.ReceivedPerSecond == 0 {
		t.Errorf("peer traffic: %+v", s.Peers)
	}
	var streams uint64
	for _, p := range s.Protocols {
		streams += p.Sent
	}
	if s.Sent <= streams {
		t.Errorf("sockets sent %d bytes, streams %d: overhead is missing", s.Sent, streams)
	}
}

func TestPeerUpOnceForManyConnections(t *testing.T) {
	inWorld(t, rate, delay, func(t *testing.T, w *world) {
		hosts := w.hosts(2)
		a, b := hosts[0], hosts[1]
		var both sync.WaitGroup
		both.Go(func() { dial(t, a, b) })
		both.Go(func() { dial(t, b, a) })
		both.Wait()
		dial(t, a, b)
		for _, h := range hosts {
			time.Sleep(time.Second)
			events := drain(h)
			if n := count[PeerUp](events); n != 1 || len(events) != 1 {
				t.Errorf("events %v, want one PeerUp", events)
			}
			if n := len(h.Connected()); n != 1 {
				t.Errorf("%d peers connected, want 1", n)
			}
		}
		t.Log("connections:", len(a.host.Network().Conns()))
		closeHost(t, b)
		if down := next[PeerDown](t, a); down.ID != b.ID() {
			t.Errorf("down: %v, want %v", down.ID, b.ID())
		}
		if n := len(a.Connected()); n != 0 {
			t.Errorf("%d peers connected, want 0", n)
		}
	})
}

func TestPeerUpTells(t *testing.T) {
	inWorld(t, rate, delay, func(t *testing.T, w *world) {
		hosts := w.hosts(2)
		dial(t, hosts[0], hosts[1])
		up := next[PeerUp](t, hosts[0])
		if up.ID != hosts[1].ID() || up.Record.Author != up.ID {
			t.Errorf("%+v", up)
		}
		if up.Addr != hosts[1].Addrs()[0] {
			t.Errorf("addr %s, want %s", up.Addr, hosts[1].Addrs()[0])
		}
		if r, err := up.Signed.Open(); err != nil || r.Author != up.ID {
			t.Errorf("signed record: %v, %v", r, err)
		}
	})
}

func TestDialErrors(t *testing.T) {
	inWorld(t, rate, delay, func(t *testing.T, w *world) {
		hosts := w.hosts(2)
		a, b := hosts[0], hosts[1]
		transport, _, _ := strings.Cut(b.Addrs()[0], "/p2p/")
		impostor := transport + "/p2p/" + address.PeerText(newPersonID(7))
		for addr, want := range map[string]string{
			"nonsense":   "want something like",
			transport:    "has to end in /p2p/",
			a.Addrs()[0]: "own address",
			impostor:     "peer",
			"/ip4/1.0.0.99/udp/8000/quic-v1/p2p/" + address.PeerText(b.ID()): "1.0.0.99",
		} {
			_, err := a.Dial(t.Context(), addr)
			if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("dial %s: %v, want one line with %q", addr, err, want)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := a.Dial(ctx, b.Addrs()[0]); !errors.Is(err, context.Canceled) {
			t.Errorf("dial with an ended context: %v", err)
		}
	})
}

func TestRenew(t *testing.T) {
	inWorld(t, rate, delay, func(t *testing.T, w *world) {
		pa, pb := newPerson(1), newPerson(2)
		a, b := w.host(pa.config()), w.host(pb.config())
		join(t, a, b)
		pa.seq.Store(2)
		a.Renew()
		if e := next[RecordChanged](t, b); e.ID != a.ID() || e.Record.Seq != 2 {
			t.Errorf("%+v", e)
		}
		a.Renew()
		time.Sleep(time.Second)
		if events := append(drain(a), drain(b)...); len(events) != 0 {
			t.Errorf("events after an equal record: %v", events)
		}
	})
}

func TestDrop(t *testing.T) {
	inPair(t, rate, func(t *testing.T, a, b *Host) {
		a.Drop(b.ID(), "sent nonsense")
		next[PeerDown](t, a)
		next[PeerDown](t, b)
		if _, err := a.Dial(t.Context(), b.Addrs()[0]); !errors.Is(err, ErrDropped) || !strings.Contains(err.Error(), "sent nonsense") {
			t.Errorf("dial of a dropped peer: %v", err)
		}
		if _, err := b.Dial(t.Context(), a.Addrs()[0]); !errors.Is(err, ErrRefusedByPeer) || !strings.Contains(err.Error(), "sent nonsense") {
			t.Errorf("dial by a dropped peer: %v", err)
		}
		time.Sleep(droppedMemory)
		dial(t, b, a)
	})
}

func TestCloseEndsEverything(t *testing.T) {
	a, err := New(newPerson(1).config())
	if err != nil {
		t.Fatal(err)
	}
	b := start(t, newPerson(2).config())
	join(t, a, b)
	parked := make(chan struct{})
	b.Handle(func(ctx context.Context, _ wire.PeerID, _ []byte) []byte { close(parked); <-ctx.Done(); return nil })
	called := make(chan error)
	go func() {
		_, err := a.Call(context.Background(), b.ID(), []byte("park"), 10)
		called <- err
	}()
	<-parked
	closeHost(t, a)
	if err := <-called; !errors.Is(err, ErrClosed) {
		t.Errorf("call: %v", err)
	}
	closeHost(t, a)
	for range a.Events() {
	}
	if _, err := a.Dial(t.Context(), b.Addrs()[0]); !errors.Is(err, ErrClosed) {
		t.Errorf("dial: %v", err)
	}
	if err := a.Publish([]byte("x")); !errors.Is(err, ErrClosed) {
		t.Errorf("publish: %v", err)
	}
	if a.host.Network().Connectedness(b.host.ID()) == network.Connected {
		t.Error("still connected")
	}
	closeHost(t, b)
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	for _, g := range bytes.Split(stacks, []byte("\n\n"))[1:] {
		if bytes.Contains(g, []byte("p2p.(*Host).")) || bytes.Contains(g, []byte("p2p.(*transfer).")) {
			t.Errorf("goroutine left:\n%s", g)
		}
	}
}
