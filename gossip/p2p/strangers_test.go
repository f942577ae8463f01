package p2p

import (
	"io"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/protocol"

	"atoll/gossip/hello"
	"atoll/gossip/p2p/address"
	"atoll/gossip/p2p/guard"
	"atoll/gossip/wire"
	"atoll/gossip/wire/spectest"
)

// As many keys as may connect from one address open all the streams that they can, and never shake hands. A member is
// answered all the same, whoever comes new gets in, from there too, and few streams are held.
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
	keepDrained(t, h)
	dial(t, friend, h)
	over := make(chan struct{})
	defer close(over)
	near := w.near(1)
	for i := range guard.ConnsAddress - 1 {
		o := silent(near, i+1, over)
		connect(t, o, h)
		openAll(t, o, h, id)
	}
	time.Sleep(time.Second)
	if _, err := friend.Call(t.Context(), h.ID(), []byte("hi"), 10); err != nil {
		t.Errorf("a member gets no answer: %v", err)
	}
	held := inbound(h.host.Network().Conns())
	t.Logf("%d streams are held", held)
	if most := guard.StrangersAddress + 8; held > most { // those of the member beside
		t.Errorf("%d streams are held, want at most %d", held, most)
	}
	for i, late := range []*Host{w.host(newPersonN(1002).config()), near(newPersonN(1003).config())} {
		dial(t, late, h)
		if _, err := late.Call(t.Context(), h.ID(), []byte("hi"), 10); err != nil {
			t.Errorf("%d: who comes new gets no answer: %v", i, err)
		}
	}
}

// silent is a host that never says who it is, until over is closed.
func silent(start func(Config) *Host, n int, over <-chan struct{}) *Host {
	c := newPersonN(n).config()
	show := c.Record
	c.Record = func() hello.Signed { <-over; return show() }
	return start(c)
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
		h, early := w.host(newPersonN(1000).config()), silent(w.host, 1, over)
		connect(t, early, h)
		for range most + 10 { // it may not have many more itself
			openOne(t, early, h, rpcProtocol)
		}
		time.Sleep(time.Second)
		if held := inbound(h.host.Network().ConnsToPeer(early.pid)); held != most {
			t.Errorf("%d streams are held, want %d", held, most)
		}
		for range 10 * most {
			if s := openOne(t, early, h, rpcProtocol); s != nil {
				s.Reset()
			}
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

// openOne opens a stream on each connection, if that can be done.
func openOne(t *testing.T, o, h *Host, id protocol.ID) (s network.Stream) {
	t.Helper()
	for _, c := range o.host.Network().ConnsToPeer(h.host.ID()) {
		var err error
		if s, err = c.NewStream(t.Context()); err != nil {
			return nil
		}
		said := []byte{19} // the length of a name that never comes
		if name := string(id) + "\n"; id != "" {
			said = append([]byte("\x13/multistream/1.0.0\n"), byte(len(name)))
			said = append(said, name...)
		}
		s.Write(said) // it may be reset by now
	}
	return s
}

// A node that has our verdict, and whose own comes late, asks for all that it may at once. All is answered.
func TestVerdictThatComesLate(t *testing.T) {
	inWorld(t, 10*rate, delay, func(t *testing.T, w *world) {
		h := w.host(newPerson(2).config())
		h.Handle(echo)
		keepDrained(t, h)
		answered := make(chan int, 1)
		var early *Host
		early = w.stranger(1, func(s network.Stream) {
			_ = wire.WriteFrame(s, ownRecord(), 4096)
			_, _ = wire.ReadFrame(s, 4096)
			if verdict, err := wire.ReadFrame(s, 512); err != nil || len(verdict) > 0 {
				t.Errorf("verdict %q, %v", verdict, err)
			}
			asks := askAll(t, early, h)
			time.Sleep(time.Second)
			_ = wire.WriteFrame(s, nil, 512)
			s.Close()
			n := 0
			for _, ask := range asks {
				if got, err := io.ReadAll(ask); err == nil && len(got) == 6 {
					n++
				}
			}
			answered <- n
		})
		dial(t, h, early)
		if n := <-answered; n != servePeer {
			t.Errorf("%d of %d requests are answered", n, servePeer)
		}
	})
}

// askAll has a node send another as many requests as that may serve at once.
func askAll(t *testing.T, from, to *Host) (asks []network.Stream) {
	for range servePeer {
		s, err := from.host.NewStream(t.Context(), to.host.ID(), rpcProtocol)
		if err != nil {
			t.Error(err)
			return asks
		}
		s.Write(one)
		asks = append(asks, s)
	}
	return asks
}

// One address that holds as many streams of the DHT as it can keeps no other asker out, and no joiner.
func TestAskersOfOneAddress(t *testing.T) {
	inWorld(t, 10*rate, delay, func(t *testing.T, w *world) {
		over := make(chan struct{})
		defer close(over)
		h, asker := w.inRun(1, testRun, true), w.inRun(2, wire.RunID{9}, false)
		near := w.near(1)
		for n := range 16 {
			o := silent(near, 100+n, over)
			connect(t, o, h)
			for range 8 {
				openOne(t, o, h, dhtProtocol)
			}
		}
		time.Sleep(time.Second)
		if n := inbound(h.host.Network().Conns()); n < maxDiscoveryStreams/discoveryAddresses || n > maxDiscoveryStreams/2 {
			t.Errorf("%d streams are held", n)
		}
		place, _, err := address.Parse(publicAddr(h))
		if err != nil {
			t.Fatal(err)
		}
		asker.host.Peerstore().AddAddr(h.pid, place, time.Hour)
		if err := asker.discovery.dht.Ping(t.Context(), h.pid); err != nil {
			t.Errorf("an asker from elsewhere: %v", err)
		}
		dial(t, w.host(newPersonN(1000).config()), h)
	})
}
