package p2p

import (
	"errors"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"

	"atoll/gossip/hello"
	"atoll/gossip/wire/spectest"
)

// As many keys as may connect from one address open all the streams that they can, and never shake hands. A member is
// answered all the same, whoever comes new gets in, and few streams are held.
func TestStreamsOfStrangersKeepNobodyOut(t *testing.T) {
	for name, id := range map[string]protocol.ID{"gossip": "/meshsub/1.2.0", "none": ""} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, 10*rate, delay, func(t *testing.T, w *world) { testStreamsOfStrangers(t, w, id) })
		})
	}
}

func testStreamsOfStrangers(t *testing.T, w *world, id protocol.ID) {
	h, friend := w.host(newPersonN(1000).config()), w.host(newPersonN(1001).config())
	h.Handle(echo)
	dial(t, friend, h)
	over := make(chan struct{})
	defer close(over)
	for i := range connsAddress {
		o := w.silent(i+1, over)
		connect(t, o, h)
		openAll(t, o, h, id)
	}
	time.Sleep(time.Second)
	if _, err := friend.Call(t.Context(), h.ID(), []byte("hi"), 10); err != nil {
		t.Errorf("a member gets no answer: %v", err)
	}
	held := inbound(h.host.Network().Conns())
	t.Logf("%d streams are held", held)
	if most := strangersStreams + 8; held > most { // those of the member beside
		t.Errorf("%d streams are held, want at most %d", held, most)
	}
	late := w.host(newPersonN(1002).config())
	dial(t, late, h)
	if _, err := late.Call(t.Context(), h.ID(), []byte("hi"), 10); err != nil {
		t.Errorf("who comes new gets no answer: %v", err)
	}
}

// silent is a host that never says who it is, until over is closed.
func (w *world) silent(n int, over <-chan struct{}) *Host {
	c := newPersonN(n).config()
	show := c.Record
	c.Record = func() hello.Signed { <-over; return show() }
	return w.host(c)
}

// inbound counts the streams that the other sides of connections have open.
func inbound(conns []network.Conn) (n int) {
	for _, c := range conns {
		for _, s := range c.GetStreams() {
			if s.Stat().Direction == network.DirInbound {
				n++
			}
		}
	}
	return n
}

func specEarlyStreams(t *testing.T, s *spectest.Spec) {
	most := int(s.Number(t, "connections", "early streams"))
	inWorld(t, 10*rate, delay, func(t *testing.T, w *world) {
		over := make(chan struct{})
		defer close(over)
		h, early := w.host(newPersonN(1000).config()), w.silent(1, over)
		connect(t, early, h)
		for range 2 * most {
			openOne(t, early, h, rpcProtocol)
		}
		time.Sleep(time.Second)
		if held := inbound(h.host.Network().ConnsToPeer(early.pid)); held != most {
			t.Errorf("%d streams are held, want %d", held, most)
		}
		for range 10 * most {
			openOne(t, early, h, rpcProtocol)
		}
		time.Sleep(time.Second)
		if n := len(h.host.Network().ConnsToPeer(early.pid)); n != 0 {
			t.Errorf("a peer that goes on has %d connections", n)
		}
	})
}

// openAll opens streams until the peer or this side has enough, and says nothing on them.
func openAll(t *testing.T, o, h *Host, id protocol.ID) {
	t.Helper()
	for range streamsPeer {
		openOne(t, o, h, id)
	}
}

// openOne opens a stream, if that can be done.
func openOne(t *testing.T, o, h *Host, id protocol.ID) {
	t.Helper()
	for _, c := range o.host.Network().ConnsToPeer(h.host.ID()) {
		s, err := c.NewStream(t.Context())
		if err != nil {
			return
		}
		said := []byte{19} // the length of a name that never comes
		if name := string(id) + "\n"; id != "" {
			said = append([]byte("\x13/multistream/1.0.0\n"), byte(len(name)))
			said = append(said, name...)
		}
		s.Write(said) // it may be reset by now
	}
}

// Who has the most streams gives way, and the oldest of equals. Who passes the handshake counts no more.
func TestRoomOfStrangers(t *testing.T) {
	inner, err := newResources()
	if err != nil {
		t.Fatal(err)
	}
	defer inner.Close()
	passed, dropped := map[peer.ID]bool{}, []peer.ID{}
	r := &strangers{ResourceManager: inner, passed: func(p peer.ID) bool { return passed[p] }, drop: func(p peer.ID) { dropped = append(dropped, p) }}
	open := func(p peer.ID) (network.StreamManagementScope, error) { return r.OpenStream(p, network.DirInbound) }
	var ends []network.StreamManagementScope
	for range strangerStreams {
		s, err := open("greedy")
		if err != nil {
			t.Fatal(err)
		}
		ends = append(ends, s)
	}
	if _, err := open("greedy"); !errors.Is(err, network.ErrResourceLimitExceeded) {
		t.Errorf("one too many of a peer: %v", err)
	}
	for range strangerRefused {
		open("mad") // as many as it may
	}
	for range strangerStreams {
		if _, err := open("mad"); !errors.Is(err, network.ErrResourceLimitExceeded) || len(dropped) > 0 {
			t.Errorf("one more of who tries again and again: %v, dropped %q", err, dropped)
		}
	}
	if open("mad"); len(dropped) != 1 || dropped[0] != "mad" {
		t.Errorf("dropped %q: want who tries again and again", dropped)
	}
	dropped = nil
	if _, err := r.OpenStream("greedy", network.DirOutbound); err != nil {
		t.Errorf("a stream to it: %v", err)
	}
	modest := func(i int) peer.ID { return peer.ID([]byte{'m', byte(i)}) }
	for i := range strangersStreams - strangerStreams {
		if _, err := open(modest(i)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := open("late"); err != nil || len(dropped) != 1 || dropped[0] != "greedy" {
		t.Errorf("%v, dropped %q: want who has the most", err, dropped)
	}
	for _, s := range ends { // end when its connections do
		s.Done()
		s.Done()
	}
	for i := range strangerStreams - 1 {
		if _, err := open(modest(1000 + i)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := open(modest(1)); !errors.Is(err, network.ErrResourceLimitExceeded) {
		t.Errorf("one more of who has as many as any: %v", err)
	}
	if _, err := open("new"); !errors.Is(err, network.ErrResourceLimitExceeded) || len(dropped) != 1 {
		t.Errorf("%v, dropped %q: nobody has more than a handshake takes", err, dropped)
	}
	passed[modest(2)] = true
	r.admit(modest(2))
	if _, err := open("newer"); err != nil || len(dropped) != 1 {
		t.Errorf("%v, dropped %q: who passed left room", err, dropped)
	}
	for range strangerStreams + 1 {
		if _, err := open(modest(2)); err != nil {
			t.Errorf("a stream of who passed: %v", err)
		}
	}
}
