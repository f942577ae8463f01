package p2p

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/protocol/holepunch"
	ma "github.com/multiformats/go-multiaddr"

	"atoll/gossip/wire"
	"atoll/gossip/wire/spectest"
)

// firewall lets in packets from where packets went before, and nothing else.
type firewall struct {
	net.PacketConn
	mu   sync.Mutex
	sent map[string]bool
}

func (f *firewall) WriteTo(b []byte, to net.Addr) (int, error) {
	f.mu.Lock()
	f.sent[to.String()] = true
	f.mu.Unlock()
	return f.PacketConn.WriteTo(b, to)
}

func (f *firewall) ReadFrom(b []byte) (int, net.Addr, error) {
	for {
		n, from, err := f.PacketConn.ReadFrom(b)
		if err != nil {
			return n, from, err
		}
		f.mu.Lock()
		ok := f.sent[from.String()]
		f.mu.Unlock()
		if ok {
			return n, from, nil
		}
	}
}

// firewalled opens sockets behind a firewall.
func firewalled(open func(string, *net.UDPAddr) (net.PacketConn, error)) func(string, *net.UDPAddr) (net.PacketConn, error) {
	return func(nw string, addr *net.UDPAddr) (net.PacketConn, error) {
		c, err := open(nw, addr)
		return &firewall{PacketConn: c, sent: map[string]bool{}}, err
	}
}

// alone keeps a host to the network in virtual time.
func alone(h *Host) { h.alone = true }

func noPunching(h *Host) { h.noPunching = true }

// abroad is a host with the profile of the internet, behind a firewall or not.
func (w *world) abroad(seed byte, walled bool, changes ...func(*Host)) *Host {
	c := newPerson(seed).config()
	c.Profile = WAN
	return w.hostWith(c, func(h *Host) {
		alone(h)
		for _, change := range changes {
			change(h)
		}
		if walled {
			h.openUDP = firewalled(h.openUDP)
		}
	})
}

// placed reserves at a for b, and returns b's address there.
func placed(t *testing.T, a, b *Host) string {
	t.Helper()
	b.Reserve(a.ID())
	if e := next[Reserved](t, b); e.ID != a.ID() || e.Err != nil {
		t.Fatalf("reserved %+v", e)
	}
	at := slices.IndexFunc(b.Reach().Outside, func(addr string) bool { return strings.Contains(addr, "/p2p-circuit/") })
	if at < 0 {
		t.Fatalf("has a slot at a relay, and tells %v", b.Reach().Outside)
	}
	return b.Reach().Outside[at]
}

// Who gets a connection from a stranger outside is public and relays; two behind firewalls meet
// there, punch a hole, and everything moves to the direct connection.
func specRelayCarriesAll(t *testing.T, _ *spectest.Spec) {
	inWorld(t, rate, delay, func(t *testing.T, w *world) {
		a, b, c := w.abroad(1, false), w.abroad(2, true), w.abroad(3, true)
		join(t, b, a)
		time.Sleep(time.Second)
		if got := a.Reach(); !got.Public {
			t.Errorf("after a stranger came in: %+v", got)
		}
		join(t, c, a)
		if b.Reach().Public || c.Reach().Public {
			t.Error("a node behind a firewall takes itself for public")
		}
		through := placed(t, a, b)
		b.Handle(echo)
		if _, err := c.Dial(t.Context(), through); err != nil {
			t.Fatal(err)
		}
		path, ok := c.Path(b.ID())
		if !ok || path.Relay != fmt.Sprintf("%x", [32]byte(a.ID())) {
			t.Fatalf("path %+v, %v: want one through the relay", path, ok)
		}
		next[PeerUp](t, b)
		if _, err := c.Call(t.Context(), b.ID(), []byte("hello"), 64); err != nil {
			t.Errorf("a call through the relay: %v", err)
		}
		checkGossip(t, b, c)
		for range 60 {
			time.Sleep(time.Second)
			drain(b)
			drain(c)
			if relayed, direct := c.conns(b.pid); direct != nil && relayed == nil {
				break
			}
		}
		for _, h := range []*Host{b, c} {
			other := map[*Host]*Host{b: c, c: b}[h]
			relayed, direct := h.conns(other.pid)
			if direct == nil || relayed != nil {
				t.Errorf("after a minute: direct %v, relayed %v", direct, relayed)
			}
		}
		checkGossip(t, b, c)
		a.Close()
		if _, err := c.Call(t.Context(), b.ID(), []byte("hello"), 64); err != nil {
			t.Errorf("a call once the relay is gone: %v", err)
		}
		checkGossip(t, b, c)
	})
}

// Two behind firewalls that lost each other meet again without anybody's help: each was told no
// address of the other that helps, and knows where it was.
func TestMeetAgainWithoutRelay(t *testing.T) {
	inWorld(t, rate, delay, func(t *testing.T, w *world) {
		a, b, c := w.abroad(1, false), w.abroad(2, true), w.abroad(3, true)
		join(t, b, a)
		join(t, c, a)
		if _, err := c.Dial(t.Context(), placed(t, a, b)); err != nil {
			t.Fatal(err)
		}
		keepDrained(t, a, b, c)
		time.Sleep(10 * time.Minute)
		a.Close()
		for _, h := range []*Host{b, c} {
			h.host.Peerstore().ClearAddrs(map[*Host]*Host{b: c, c: b}[h].pid) // behind routers they tell none
		}
		b.disconnect(c.pid)
		time.Sleep(time.Second)
		errs := make(chan error, 2)
		go func() { errs <- b.DialPeer(t.Context(), c.ID(), nil) }()
		go func() { errs <- c.DialPeer(t.Context(), b.ID(), nil) }()
		if err := errors.Join(<-errs, <-errs); err != nil {
			t.Error(err)
		}
	})
}

// keepDrained reads the events of hosts until the test ends.
func keepDrained(t *testing.T, hosts ...*Host) {
	for _, h := range hosts {
		go func() {
			for {
				select {
				case _, open := <-h.Events():
					if !open {
						return
					}
				case <-t.Context().Done():
					return
				}
			}
		}()
	}
}

// A relay gives slots to peers of its run alone, and drops the slot of one that is gone.
func specRelayServesMembers(t *testing.T, _ *spectest.Spec) {
	inWorld(t, rate, delay, func(t *testing.T, w *world) {
		a, b := w.abroad(1, false), w.abroad(2, true)
		p := newPerson(3)
		p.record.Run = wire.RunID{9}
		cfg := p.config()
		cfg.Profile = WAN
		stranger := w.hostWith(cfg, alone)
		join(t, b, a)
		placed(t, a, b)
		if err := stranger.host.Connect(t.Context(), peer.AddrInfo{ID: a.pid, Addrs: a.host.Addrs()}); err != nil {
			t.Fatal(err)
		}
		stranger.Reserve(a.ID())
		time.Sleep(helloTimeout)
		for _, e := range drain(stranger) {
			if e, ok := e.(Reserved); ok && e.Err == nil {
				t.Error("a peer of another run has a slot")
			}
		}
		b.disconnect(a.pid)
		for range 10 {
			time.Sleep(time.Second)
			drain(b)
		}
		if got := b.Reach().Outside; slices.ContainsFunc(got, func(s string) bool { return strings.Contains(s, "p2p-circuit") }) {
			t.Errorf("tells %v without a connection to the relay", got)
		}
	})
}

// A peer that was reached through a hole by one transport is dialled by both, where it was met and
// nowhere else.
func TestHolesAreRemembered(t *testing.T) {
	inWorld(t, rate, delay, func(t *testing.T, w *world) {
		h := w.abroad(1, true)
		traces := func(p peer.ID, success bool, addrs ...string) {
			h.punches.Trace(&holepunch.Event{Remote: p, Type: holepunch.StartHolePunchEvtT, Evt: &holepunch.StartHolePunchEvt{RemoteAddrs: addrs}})
			if !h.punches.running(p) {
				t.Error("an attempt does not run")
			}
			h.punches.Trace(&holepunch.Event{Remote: p, Type: holepunch.EndHolePunchEvtT, Evt: &holepunch.EndHolePunchEvt{Success: success}})
			if h.punches.running(p) {
				t.Error("an attempt that ended runs")
			}
		}
		const tcp, quic = "/ip4/5.0.0.13/tcp/27182", "/ip4/5.0.0.13/udp/27182/quic-v1"
		met := func(p peer.ID) { h.host.Peerstore().AddAddr(p, ma.StringCast(tcp), time.Hour) }
		for _, p := range []peer.ID{"open", "shut"} {
			met(p)
			traces(p, p == "open", tcp, quic, "/ip4/5.0.0.99/udp/53/quic-v1", "nonsense", tcp+"/p2p-circuit")
		}
		traces("elsewhere", true, quic)
		if got := fmt.Sprint(h.holesTo("open")); got != fmt.Sprintf("[%s %s]", tcp, quic) {
			t.Errorf("dials %v", got)
		}
		if got := append(h.holesTo("shut"), h.holesTo("elsewhere")...); len(got) > 0 {
			t.Errorf("where no hole was, or it never was, dials %v", got)
		}
		for i := range maxOpened + 10 {
			traces(peer.ID(fmt.Sprint(i)), true, slices.Repeat([]string{tcp}, 2*maxHintAddrs)...)
		}
		last := peer.ID(fmt.Sprint(maxOpened + 9))
		met(last)
		if len(h.punches.opened) != maxOpened || len(h.holesTo(last)) != maxHintAddrs {
			t.Errorf("remembers %d peers, and %d addresses of the last", len(h.punches.opened), len(h.holesTo(last)))
		}
	})
}

// What passes through a relay keeps to its budget, whoever it is for.
func TestRelayKeepsToItsBudget(t *testing.T) {
	const budget = 1 << 20
	inWorld(t, rate, delay, func(t *testing.T, w *world) {
		c := newPerson(1).config()
		c.Profile, c.RelayBytesPerSecond = WAN, budget
		a := w.hostWith(c, alone)
		b, d := w.abroad(2, true, noPunching), w.abroad(3, true, noPunching)
		join(t, b, a)
		join(t, d, a)
		through := placed(t, a, b)
		keepDrained(t, b)
		const size = 4 << 20
		b.Handle(func(context.Context, wire.PeerID, []byte) []byte {
			return append([]byte{byte(wire.OK)}, make([]byte, size)...)
		})
		if _, err := d.Dial(t.Context(), through); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if _, err := d.Call(t.Context(), b.ID(), []byte("x"), 2*size); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began).Seconds(); took < size/budget*0.95 || took > size/budget*1.5 {
			t.Errorf("%d bytes took %.1f s through a relay with %d bytes a second", size, took, budget)
		}
		if got := a.Stats().Relayed; got < size {
			t.Errorf("counts %d relayed bytes", got)
		}
	})
}

// The addresses of a network are for those on it: here one peer has a public address, and one
// is on the same machine.
func specNearRecords(t *testing.T, _ *spectest.Spec) {
	near := newPerson(2)
	near.record.Near, near.record.Addrs = true, []string{"/ip4/192.168.1.2/tcp/1"}
	shown := func(t *testing.T, a, b *Host) bool {
		t.Helper()
		join(t, b, a)
		return b.peers.up(a.pid).record.Near
	}
	c := newPerson(2).config()
	c.Near = near.sign
	if !shown(t, start(t, c), start(t, newPerson(3).config())) {
		t.Error("a peer on the same machine is not told the addresses here")
	}
	inWorld(t, rate, delay, func(t *testing.T, w *world) {
		c := newPerson(2).config()
		c.Near = near.sign
		if shown(t, w.host(c), w.host(newPerson(3).config())) {
			t.Error("a peer outside is told addresses of the network here")
		}
	})
}
