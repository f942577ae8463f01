package p2p

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/libp2p/go-libp2p/p2p/transport/quicreuse"
	"github.com/marcopolo/simnet"
	ma "github.com/multiformats/go-multiaddr"

	"atoll/gossip/hello"
	"atoll/gossip/wire"
)

func TestMain(m *testing.M) {
	LibraryLog(slog.DiscardHandler)
	os.Exit(m.Run())
}

var testRun = wire.RunID{1, 2, 3}

// person is a node to be: a key and the record that it presents.
type person struct {
	key    ed25519.PrivateKey
	record hello.Record
	seq    atomic.Uint64
}

func newPerson(seed byte) *person {
	p := &person{
		key: ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize)),
		record: hello.Record{
			Protocol: hello.Protocol, Run: testRun, Role: hello.Learner, Trainer: hello.Builtin,
			Precision: "f32", Agent: "atoll/test", StartedMs: 1000,
		},
	}
	p.seq.Store(1)
	return p
}

func (p *person) sign() hello.Signed {
	r := p.record
	r.Seq = p.seq.Load()
	s, err := hello.Sign(p.key, r)
	if err != nil {
		panic(err)
	}
	return s
}

var errBad = errors.New("bad message")

// config accepts gossip messages that do not begin with "bad".
func (p *person) config() Config {
	return Config{
		Key: p.key, Run: p.record.Run, Profile: Local, Record: p.sign,
		Check: func(_ wire.PeerID, raw []byte) error {
			if bytes.HasPrefix(raw, []byte("bad")) {
				return errBad
			}
			return nil
		},
	}
}

// start runs a host on loopback for the length of the test.
func start(t *testing.T, c Config) *Host {
	t.Helper()
	h, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeHost(t, h) })
	return h
}

func closeHost(t *testing.T, h *Host) {
	if err := h.Close(); err != nil {
		t.Error(err)
	}
}

// world is a network in virtual time. All of it lives in a synctest bubble,
// which also proves that every goroutine ends: the bubble fails otherwise.
type world struct {
	t    *testing.T
	net  *simnet.Simnet
	link simnet.NodeBiDiLinkSettings
	all  []*Host
}

// inWorld runs f in a network whose links have this rate (bits/s, each way) and
// delay (one way), and closes its hosts.
func inWorld(t *testing.T, rate int, delay time.Duration, f func(t *testing.T, w *world)) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, net: &simnet.Simnet{LatencyFunc: simnet.StaticLatency(delay), Logger: slog.New(slog.DiscardHandler)}}
		w.link.Uplink.BitsPerSecond = rate
		w.link.Downlink.BitsPerSecond = rate
		w.net.Start()
		defer w.net.Close()
		defer func() {
			for _, h := range w.all {
				closeHost(t, h)
			}
		}()
		f(t, w)
	})
}

// source answers quicreuse's question with the host's only address.
type source struct{ ip net.IP }

func (s source) PreferredSourceIPForDestination(*net.UDPAddr) (net.IP, error) { return s.ip, nil }

// host starts a host at an address of its own.
func (w *world) host(c Config) *Host { return w.hostWith(c, func(*Host) {}) }

// hostWith is host with more to replace.
func (w *world) hostWith(c Config, change func(*Host)) *Host {
	w.t.Helper()
	return w.hostAt(simnet.IntToPublicIPv4(len(w.all)+1), 8000, c, change)
}

// near starts hosts at one address, behind one router so to speak.
func (w *world) near(router int) func(c Config) *Host {
	return func(c Config) *Host {
		return w.hostAt(simnet.IntToPublicIPv4(10_000+router), 8000+len(w.all), c, func(*Host) {})
	}
}

func (w *world) hostAt(ip net.IP, port int, c Config, change func(*Host)) *Host {
	w.t.Helper()
	c.Listen = []string{fmt.Sprintf("/ip4/%s/udp/%d/quic-v1", ip, port)}
	h, err := newHost(c, func(h *Host) {
		h.openUDP = func(_ string, addr *net.UDPAddr) (net.PacketConn, error) {
			return w.net.NewEndpoint(addr, w.link), nil
		}
		h.portFree = func(ma.Multiaddr) error { return nil }
		h.quicOptions = []quicreuse.Option{
			quicreuse.OverrideSourceIPSelector(func() (quicreuse.SourceIPSelector, error) { return source{ip}, nil }),
		}
		change(h)
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.all = append(w.all, h)
	return h
}

// hosts starts n hosts of persons 1..n.
func (w *world) hosts(n int) (hosts []*Host) {
	for i := range n {
		hosts = append(hosts, w.host(newPerson(byte(i+1)).config()))
	}
	return hosts
}

// next returns the next event of type E, skipping others. It fails the test
// after a minute.
func next[E Event](t *testing.T, h *Host) E {
	t.Helper()
	timeout := time.NewTimer(time.Minute)
	defer timeout.Stop()
	for {
		select {
		case e, ok := <-h.Events():
			if !ok {
				t.Fatal("events closed")
			}
			if want, ok := e.(E); ok {
				return want
			}
		case <-timeout.C:
			var want E
			t.Fatalf("no %T within a minute", want)
		}
	}
}

// join dials b from a and waits until both say that the other is up.
func join(t *testing.T, a, b *Host) {
	t.Helper()
	dial(t, a, b)
	next[PeerUp](t, a)
	next[PeerUp](t, b)
}

func dial(t *testing.T, a, b *Host) {
	t.Helper()
	id, err := a.Dial(t.Context(), b.Addrs()[0])
	if err != nil {
		t.Fatal(err)
	}
	if id != b.ID() {
		t.Fatalf("dialled %v, want %v", id, b.ID())
	}
}

// echo answers every request with OK and the request.
func echo(_ context.Context, _ wire.PeerID, request []byte) []byte {
	return append([]byte{byte(wire.OK)}, request...)
}

// newPersonN is newPerson for more than 255 of them.
func newPersonN(n int) *person {
	p := newPerson(0)
	seed := make([]byte, ed25519.SeedSize)
	seed[0], seed[1] = byte(n), byte(n>>8)
	p.key = ed25519.NewKeyFromSeed(seed)
	return p
}
