package p2p

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"

	"atoll/gossip/hello"
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
	dial(t, friend, h)
	over := make(chan struct{})
	defer close(over)
	near := w.near(1)
	for i := range connsAddress - 1 {
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
	if most := strangersAddress + 8; held > most { // those of the member beside
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

// room has bounds on strangers without a network. A peer's first byte names its address.
type room struct {
	*strangers
	t        *testing.T
	dropped  []peer.ID
	accepted map[peer.ID]bool
}

func newRoom(t *testing.T) *room {
	inner, err := newResources()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { inner.Close() })
	r := &room{t: t, accepted: map[peer.ID]bool{}}
	r.strangers = &strangers{
		ResourceManager: inner,
		accepted:        func(p peer.ID) bool { return r.accepted[p] },
		origin:          func(p peer.ID) netip.Prefix { return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, p[0], p[1]}), 32) },
		drop:            func(p peer.ID) { r.dropped = append(r.dropped, p) },
	}
	return r
}

// at is a peer of an address.
func at(address, n int) peer.ID {
	return peer.ID([]byte{byte(address >> 8), byte(address), byte(n >> 8), byte(n)})
}

// names are peers as at was told of them.
func names(peers []peer.ID) (names []string) {
	for _, p := range peers {
		names = append(names, fmt.Sprintf("%d/%d", int(p[0])<<8|int(p[1]), int(p[2])<<8|int(p[3])))
	}
	return names
}

// open opens a stream, and reports whether it fits.
func (r *room) open(p peer.ID) (network.StreamManagementScope, bool) {
	r.t.Helper()
	s, err := r.OpenStream(p, network.DirInbound)
	if err != nil && !errors.Is(err, network.ErrResourceLimitExceeded) {
		r.t.Fatal(err)
	}
	return s, err == nil
}

// opens opens n streams that fit.
func (r *room) opens(p peer.ID, n int) (scopes []network.StreamManagementScope) {
	r.t.Helper()
	for i := range n {
		s, fits := r.open(p)
		if !fits {
			r.t.Fatalf("stream %d of %v does not fit", i, names([]peer.ID{p}))
		}
		scopes = append(scopes, s)
	}
	return scopes
}

// drops checks who lost its connections since it was called last.
func (r *room) drops(want ...peer.ID) {
	r.t.Helper()
	if !slices.Equal(r.dropped, want) {
		r.t.Errorf("dropped %v, want %v", names(r.dropped), names(want))
	}
	r.dropped = nil
}

// A stranger has few streams. Who tries more again and again loses its connections, and who does
// so now and then does not.
func TestStreamsOfOneStranger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(t)
		p := at(1, 1)
		ends := r.opens(p, strangerStreams)
		for range 10 {
			for range strangerRefused / 2 {
				if _, fits := r.open(p); fits {
					t.Fatal("one too many fits")
				}
			}
			time.Sleep(helloTimeout)
		}
		r.drops()
		for range strangerRefused {
			r.open(p)
		}
		r.drops()
		r.open(p)
		r.drops(p)
		for _, s := range ends { // when its connections end
			s.Done()
			s.Done()
		}
		if r.count != 0 || len(r.known) != 0 || len(r.from) != 0 {
			t.Errorf("%d streams, %d strangers of %d addresses are left", r.count, len(r.known), len(r.from))
		}
	})
}

// An address has a bound. Within it the greediest makes room for who has less, and who is modest for nobody; other addresses
// have nothing to do with it.
func TestStreamsOfOneAddress(t *testing.T) {
	r := newRoom(t)
	r.opens(at(2, 1), strangerStreams)
	for left := strangersAddress; left > 0; left -= strangerStreams {
		r.opens(at(1, left), min(left, strangerStreams))
	}
	if _, fits := r.open(at(1, strangersAddress)); fits {
		t.Error("one too many fits")
	}
	r.drops()
	r.opens(at(1, 1000), greedyStreams-1)
	r.drops(at(1, strangersAddress)) // of those that have as much the one that came first
	for n := range strangersAddress - greedyStreams + 1 {
		r.opens(at(1, 2000+n), 1)
	}
	if want := strangersAddress/strangerStreams - 1; len(r.dropped) != want {
		t.Errorf("%d greedy ones are dropped, want %d", len(r.dropped), want)
	}
	r.dropped = nil
	if _, fits := r.open(at(1, 9000)); fits {
		t.Error("fits where nobody is greedy")
	}
	r.drops()
	r.opens(at(2, 2), 1)
}

// A herd of joiners from everywhere finds room for all connections that there may be. Greedy ones make room, first those of
// the address that has the most, and not for an address that has more.
func TestRoomForAHerd(t *testing.T) {
	r := newRoom(t)
	for n := range connsSystem {
		r.opens(at(n, 0), greedyStreams-1)
	}
	r.drops()
	if _, fits := r.open(at(1000, 0)); fits {
		t.Error("one too many fits")
	}
	r.accepted[at(7, 0)] = true
	r.admit(at(7, 0))
	r.opens(at(1000, 0), greedyStreams-1)
	r.opens(at(7, 0), 2*strangerStreams) // those of who is accepted do not count
	r.drops()

	r = newRoom(t)
	for n := range strangersStreams / greedyStreams {
		r.opens(at(n/10, n%10), greedyStreams) // forty of each address
	}
	r.opens(at(900, 0), greedyStreams)
	r.drops(at(0, 0))
	r.opens(at(901, 0), 1)
	r.drops(at(1, 0)) // the address of the one before has fewer by now
	r.opens(at(901, 0), strangerStreams-1)
	r.drops(at(2, 0), at(3, 0), at(4, 0))
	r.opens(at(902, 0), 1)
	r.drops(at(5, 0)) // not who has the most itself, at an address of few
	for n := 0; r.count < strangersStreams; n++ {
		r.opens(at(910+n, 0), 1)
	}
	if _, fits := r.open(at(30, 5)); fits {
		t.Error("others make room for an address that has as much")
	}
	r.drops()
	r.opens(at(30, 100), 1)
	r.drops(at(30, 0))
}

// Askers of the DHT never shake hands, and take no slot of joiners. Streams of other protocols do.
func TestAskersTakeNoSlot(t *testing.T) {
	r := newRoom(t)
	for id, want := range map[protocol.ID]int{dhtProtocol: 0, rpcProtocol: 1} {
		for _, s := range r.opens(at(1, 1), 1) {
			if err := s.SetProtocol(id); err != nil {
				t.Fatal(err)
			}
			if r.count != want {
				t.Errorf("%s: %d slots are taken, want %d", id, r.count, want)
			}
			s.Done()
		}
		if r.count != 0 || len(r.known) != 0 {
			t.Errorf("%s: %d slots are taken at the end", id, r.count)
		}
	}
}

// Who is accepted while its stream is counted is no stranger.
func TestAcceptedMeanwhile(t *testing.T) {
	r := newRoom(t)
	asked := 0
	r.strangers.accepted = func(p peer.ID) bool {
		if asked++; asked == 1 {
			r.admit(p) // right after this
			return false
		}
		return true
	}
	if r.opens(at(1, 1), 1); r.count != 0 || len(r.known) != 0 {
		t.Errorf("%d streams of strangers", r.count)
	}
}

// Who was refused and is gone is forgotten.
func TestStrangersAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(t)
		for n := range connsAddress {
			r.opens(at(1, n), greedyStreams-1)
		}
		for range 3 {
			for n := range 100 {
				if _, fits := r.open(at(1, 1000+n)); fits {
					t.Fatal("one too many fits")
				}
			}
			time.Sleep(helloTimeout)
		}
		r.open(at(1, 2000))
		if n := len(r.known); n != connsAddress+1 {
			t.Errorf("%d strangers are known, want %d", n, connsAddress+1)
		}
	})
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
		info, _, err := parseDial(publicAddr(h))
		if err != nil {
			t.Fatal(err)
		}
		asker.host.Peerstore().AddAddrs(info.ID, info.Addrs, time.Hour)
		if err := asker.discovery.dht.Ping(t.Context(), h.pid); err != nil {
			t.Errorf("an asker from elsewhere: %v", err)
		}
		dial(t, w.host(newPersonN(1000).config()), h)
	})
}
