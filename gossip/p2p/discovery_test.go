package p2p

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	pb "github.com/libp2p/go-libp2p-kad-dht/pb"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
	"pgregory.net/rapid"

	"atoll/gossip/p2p/address"
	"atoll/gossip/wire"
	"atoll/gossip/wire/spectest"
)

// inRun is a host of the internet in another run, public or behind a firewall.
func (w *world) inRun(seed byte, run wire.RunID, public bool) *Host {
	p := newPerson(seed)
	p.record.Run = run
	c := p.config()
	c.Profile, c.Public = WAN, public
	return w.hostWith(c, func(h *Host) {
		alone(h)
		if open := h.openUDP; !public {
			h.openUDP = func(nw string, addr *net.UDPAddr) (net.PacketConn, error) {
				c, err := open(nw, addr)
				return &firewall{PacketConn: c, sent: map[string]bool{}}, err
			}
		}
	})
}

// publicAddr is where a host of the world listens.
func publicAddr(h *Host) string { return h.Listening()[0] + "/p2p/" + h.pid.String() }

// A relay of other runs leads a newcomer to members behind a firewall, who are announced there
// through a relay of their own. It keeps no connection for that.
func TestMeetAtRelayOfOtherRuns(t *testing.T) {
	inWorld(t, rate, delay, func(t *testing.T, w *world) {
		other := w.inRun(1, wire.RunID{9}, true)
		a := w.inRun(2, testRun, true)
		b := w.inRun(3, testRun, false)
		c := w.inRun(4, testRun, false)
		join(t, b, a)
		placed(t, a, b)
		b.Discover([]string{publicAddr(other)}) // as a node does that has nobody: from now on it knows this one
		time.Sleep(2 * announceFirst)
		c.Discover([]string{publicAddr(other)})
		hint := next[Hint](t, c)
		if hint.ID != b.ID() && hint.ID != a.ID() || hint.Near || len(hint.Addrs) == 0 {
			t.Fatalf("hint %+v", hint)
		}
		if err := c.DialPeer(t.Context(), hint.ID, hint.Addrs); err != nil {
			t.Errorf("dial %v: %v", hint.Addrs, err)
		}
		time.Sleep(helloTimeout)
		for _, h := range []*Host{a, b, c} {
			if conns := h.host.Network().ConnsToPeer(other.pid); len(conns) > 0 {
				t.Errorf("keeps %v", conns)
			}
		}
		if conns := other.host.Network().Conns(); len(conns) > 0 {
			t.Errorf("the relay keeps %v", conns)
		}
	})
}

// Who is behind a firewall answers nobody, and nobody is found where nobody was announced.
func TestDiscoverNobody(t *testing.T) {
	inWorld(t, rate, delay, func(t *testing.T, w *world) {
		b, c := w.inRun(1, testRun, false), w.inRun(2, testRun, false)
		other := w.inRun(3, wire.RunID{9}, true)
		c.Discover([]string{publicAddr(other), publicAddr(b), publicAddr(c), "nonsense"})
		time.Sleep(2 * searchTimeout)
		for _, e := range drain(c) {
			if hint, ok := e.(Hint); ok {
				t.Errorf("hint %+v", hint)
			}
		}
		if slices.Contains(b.host.Mux().Protocols(), dhtProtocol) {
			t.Error("a node that others do not reach takes part in the DHT as a server")
		}
	})
}

// What a node that is alone with its run sends in an hour because of the DHT.
func TestMeetIdle(t *testing.T) {
	inWorld(t, rate, delay, func(t *testing.T, w *world) {
		other := w.inRun(1, wire.RunID{9}, true)
		a := w.inRun(2, testRun, true)
		a.Discover([]string{publicAddr(other)})
		time.Sleep(time.Minute)
		before := a.Stats()
		time.Sleep(time.Hour)
		after := a.Stats()
		sent, received := after.Sent-before.Sent, after.Received-before.Received
		t.Logf("an hour of the DHT: %d bytes sent, %d received", sent, received)
		if sent == 0 || sent+received > 64<<10 {
			t.Errorf("%d bytes sent and %d received in an hour in which nothing happens", sent, received)
		}
	})
}

// Records are bounded, whoever says what, and newest first.
func TestRecordsAreBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := NewRecords()
		for range rapid.IntRange(1, 300).Draw(t, "records") {
			key := fmt.Appendf(nil, "%d", rapid.IntRange(0, 3*maxRuns).Draw(t, "run"))
			p := peer.AddrInfo{ID: peer.ID(fmt.Sprint(rapid.IntRange(0, 40).Draw(t, "peer")))}
			for range rapid.IntRange(0, 10).Draw(t, "addresses") {
				p.Addrs = append(p.Addrs, ma.StringCast("/ip4/5.0.0.1/tcp/1"))
			}
			if err := r.AddProvider(t.Context(), key, p); err != nil {
				t.Fatal(err)
			}
			got, err := r.GetProviders(t.Context(), key)
			if err != nil || len(got) == 0 || got[0].ID != p.ID || len(got) > maxMembers || len(got[0].Addrs) > maxMemberAddrs {
				t.Fatalf("%v, %v", got, err)
			}
		}
		if len(r.runs) > maxRuns {
			t.Errorf("%d runs", len(r.runs))
		}
	})
	synctest.Test(t, func(t *testing.T) {
		r := NewRecords()
		for i := range maxRuns + 1 {
			if err := r.AddProvider(t.Context(), fmt.Appendf(nil, "%d", i), peer.AddrInfo{ID: "p"}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		if old, err := r.GetProviders(t.Context(), []byte("0")); err != nil || len(old) != 0 {
			t.Errorf("keeps %v, %v", old, err)
		}
		if new, err := r.GetProviders(t.Context(), []byte("1")); err != nil || len(new) != 1 {
			t.Errorf("keeps %v, %v", new, err)
		}
		time.Sleep(recordsFor)
		if old, err := r.GetProviders(t.Context(), []byte("1")); err != nil || len(old) != 0 {
			t.Errorf("believes %v, %v after their time", old, err)
		}
	})
}

// An announcement leads to the machine that it comes from, or through relays, and nowhere else.
func specAnnouncement(t *testing.T, _ *spectest.Spec) {
	mine, relayed, others := "/ip4/5.0.0.1/tcp/1", "/ip4/5.0.0.9/tcp/1/p2p/"+address.PeerText(newPersonID(7))+"/p2p-circuit", "/ip4/5.0.0.2/tcp/1"
	var p pb.Message_Peer
	for _, a := range []string{mine, relayed, others} {
		p.Addrs = append(p.Addrs, ma.StringCast(a).Bytes())
	}
	p.Addrs = append(p.Addrs, []byte("nonsense"))
	m := &pb.Message{Type: pb.Message_ADD_PROVIDER, ProviderPeers: []*pb.Message_Peer{&p}}
	onlyOwnAddrs(t.Context(), streamFrom{conn: connFrom{at: ma.StringCast("/ip4/5.0.0.1/tcp/999")}}, m)
	var left []string
	for _, b := range p.Addrs {
		a, err := ma.NewMultiaddrBytes(b)
		if err != nil {
			t.Fatal(err)
		}
		left = append(left, a.String())
	}
	if !slices.Equal(left, []string{mine, relayed}) {
		t.Errorf("keeps %v", left)
	}
}

type connFrom struct {
	network.Conn
	at ma.Multiaddr
}

func (c connFrom) RemoteMultiaddr() ma.Multiaddr { return c.at }

type streamFrom struct {
	network.Stream
	conn network.Conn
	r    io.Reader
}

func (s streamFrom) Conn() network.Conn         { return s.conn }
func (s streamFrom) Read(p []byte) (int, error) { return s.r.Read(p) }

// Messages come through whole, and one that says that it is too long ends the stream before any
// room is made for it.
func FuzzBounded(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{3, 1, 2, 3})
	f.Add([]byte{48})
	f.Add(binary.AppendUvarint(nil, maxDiscoveryMessage+1))
	f.Add(append(binary.AppendUvarint(nil, 2), 1))
	f.Add(bytes.Repeat([]byte{0xff}, 12))
	f.Fuzz(func(t *testing.T, in []byte) {
		out, err := io.ReadAll(&bounded{Stream: streamFrom{r: bytes.NewReader(in)}})
		// What came out is whole messages.
		for rest := out; len(rest) > 0; {
			size, n := binary.Uvarint(rest)
			if n <= 0 || size > maxDiscoveryMessage || uint64(len(rest)-n) < size {
				t.Fatalf("%x of %x", out, in)
			}
			rest = rest[n+int(size):]
		}
		if err == nil && binaryLength(in) != binaryLength(out) {
			t.Errorf("%x became %x without an error", in, out)
		}
	})
}

// binaryLength is the number of bytes that messages have, without their lengths.
func binaryLength(b []byte) (sum int) {
	for len(b) > 0 {
		size, n := binary.Uvarint(b)
		if n <= 0 {
			return sum
		}
		sum += int(size)
		b = b[min(len(b), n+int(size)):]
	}
	return sum
}

// What is heard on a network leads to machines on it alone.
func TestHeardNearby(t *testing.T) {
	h := start(t, newPerson(1).config())
	var own string
	for _, w := range ownNetworks() {
		if w.IP.To4() != nil {
			own = w.IP.String()
		}
	}
	if own == "" {
		t.Skip("this machine is on no network")
	}
	far, near := ma.StringCast("/ip4/5.0.0.1/tcp/1"), ma.StringCast("/ip4/"+own+"/tcp/1")
	p := pidOf(newPersonID(2))
	n := nearby{h, newHintLimit()}
	n.HandlePeerFound(peer.AddrInfo{ID: p, Addrs: []ma.Multiaddr{far}})
	n.HandlePeerFound(peer.AddrInfo{ID: p, Addrs: []ma.Multiaddr{far, near, ma.StringCast("/ip4/" + own + "/udp/1")}})
	got := next[Hint](t, h)
	if !got.Near || got.ID != newPersonID(2) || len(got.Addrs) != 1 || !strings.HasPrefix(got.Addrs[0], near.String()+"/p2p/") {
		t.Errorf("hint %+v", got)
	}
	for range 10 * maxHintsAtOnce {
		n.HandlePeerFound(peer.AddrInfo{ID: p, Addrs: []ma.Multiaddr{near}})
	}
	many := 0
	for more := true; more; {
		select {
		case e := <-h.Events():
			if _, ok := e.(Hint); ok {
				many++
			}
		case <-time.After(100 * time.Millisecond):
			more = false
		}
	}
	if many > maxHintsAtOnce {
		t.Errorf("%d hints at once", many)
	}
}

func specMDNS(t *testing.T, s *spectest.Spec) {
	if got, want := mdnsName(wire.RunID(s.Hex(t, "run"))), s.Text(t, "mdns"); got != want {
		t.Errorf("%s, the text says %s", got, want)
	}
}

func specMeeting(t *testing.T, s *spectest.Spec) {
	if got, err := discoveryKey(wire.RunID(s.Hex(t, "run"))); err != nil || got.String() != s.Text(t, "discovery") {
		t.Errorf("%s, %v, the text says %s", got, err, s.Text(t, "discovery"))
	}
}

// A stranger's question is answered, and its connection ends when it is.
func specMeetingServed(t *testing.T, _ *spectest.Spec) {
	inWorld(t, rate, delay, func(t *testing.T, w *world) {
		relay, asker := w.inRun(1, wire.RunID{9}, true), w.inRun(2, testRun, false)
		place, _, err := address.Parse(publicAddr(relay))
		if err != nil {
			t.Fatal(err)
		}
		asker.host.Peerstore().AddAddr(relay.pid, place, time.Hour)
		if err := asker.discovery.dht.Ping(t.Context(), relay.pid); err != nil {
			t.Error(err)
		}
		time.Sleep(helloTimeout)
		if n := len(relay.host.Network().Conns()); n != 0 {
			t.Errorf("%d connections stay", n)
		}
	})
}

func specClock(t *testing.T, _ *spectest.Spec) {
	inWorld(t, rate, delay, func(t *testing.T, w *world) {
		hosts := w.hosts(2)
		join(t, hosts[0], hosts[1])
		ahead, within, err := hosts[0].ClockAhead(t.Context(), hosts[1].ID())
		if err != nil || ahead.Abs() > within+time.Millisecond || within > 5*delay {
			t.Errorf("%v ahead within %v, %v", ahead, within, err)
		}
		if err := hosts[0].Echo(t.Context(), hosts[1].ID()); err != nil {
			t.Error(err)
		}
		if hosts[0].Echo(t.Context(), newPersonID(9)) == nil {
			t.Error("has an echo of a peer that is not there")
		}
		if _, _, err := hosts[0].ClockAhead(t.Context(), newPersonID(9)); err == nil {
			t.Error("has the time of a peer that is not there")
		}
	})
}
