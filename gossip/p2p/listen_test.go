package p2p

import (
	"errors"
	"net"
	"strings"
	"syscall"
	"testing"

	ma "github.com/multiformats/go-multiaddr"

	"atoll/gossip/p2p/address"
)

func TestListenStrings(t *testing.T) {
	for _, good := range []string{"/ip4/0.0.0.0/tcp/0", "/ip6/::/tcp/4001", "/ip4/127.0.0.1/udp/9/quic-v1", "/ip4/0.0.0.0/tcp/443/ws"} {
		if _, err := parseListen([]string{good}); err != nil {
			t.Error(err)
		}
	}
	for _, bad := range []string{"", ":4001", "/tcp/4001", "/ip4/0.0.0.0", "/ip4/0.0.0.0/udp/1", "/ip4/0.0.0.0/tcp/1/wss", "/ip4/0.0.0.0/udp/1/ws", "/dns4/example.com/tcp/1", "/ip4/1.2.3.4/tcp/1/p2p-circuit"} {
		if _, err := parseListen([]string{bad}); err == nil || !strings.Contains(err.Error(), bad) || !strings.Contains(err.Error(), "want something like") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func FuzzParseListen(f *testing.F) {
	f.Add("/ip4/0.0.0.0/tcp/4001")
	f.Add("/p2p-circuit")
	f.Fuzz(func(_ *testing.T, addr string) { parseListen([]string{addr}) })
}

func TestPortInUse(t *testing.T) {
	a := start(t, newPerson(1).config())
	for _, addr := range []string{tcpAddr(t, a), udpInUse(t)} {
		c := newPerson(2).config()
		c.Listen = []string{"/ip4/127.0.0.1/tcp/0", addr}
		h, err := New(c)
		if err == nil {
			closeHost(t, h)
			t.Fatalf("two hosts listen on %s", addr)
		}
		for _, want := range []string{addr, "port in use", "choose another"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("error %q lacks %q", err, want)
			}
		}
		if !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("%v is no EADDRINUSE", err)
		}
	}
}

func tcpAddr(t *testing.T, h *Host) string {
	t.Helper()
	addr, _, _ := strings.Cut(h.Addrs()[0], "/p2p/")
	return addr
}

func udpInUse(t *testing.T) string {
	t.Helper()
	c, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	_, port, _ := net.SplitHostPort(c.LocalAddr().String())
	return "/ip4/127.0.0.1/udp/" + port + "/quic-v1"
}

func TestConfigErrors(t *testing.T) {
	for field, change := range map[string]func(*Config){
		"Key":                    func(c *Config) { c.Key = nil },
		"Record":                 func(c *Config) { c.Record = nil },
		"Check":                  func(c *Config) { c.Check = nil },
		"Profile":                func(c *Config) { c.Profile = "moon" },
		"Inbox":                  func(c *Config) { c.Inbox = -1 },
		"DownloadBytesPerSecond": func(c *Config) { c.DownloadBytesPerSecond = -1 },
		"UploadBytesPerSecond":   func(c *Config) { c.UploadBytesPerSecond = -1 },
	} {
		c := newPerson(1).config()
		change(&c)
		if _, err := New(c); err == nil || !strings.Contains(err.Error(), "config "+field) {
			t.Errorf("%s: %v", field, err)
		}
	}
}

func TestProfilesStart(t *testing.T) {
	for _, profile := range []string{Local, LAN, WAN} {
		c := newPerson(1).config()
		c.Profile = profile
		c.Listen = []string{"/ip4/127.0.0.1/tcp/0", "/ip4/127.0.0.1/udp/0/quic-v1"}
		h, err := New(c)
		if err != nil {
			t.Fatalf("%s: %v", profile, err)
		}
		if n := len(h.Addrs()); n < 2 {
			t.Errorf("%s: addresses %v", profile, h.Addrs())
		}
		for _, a := range h.Addrs() {
			if strings.HasPrefix(a, "/p2p-circuit") {
				t.Errorf("%s: %s names no relay", profile, a)
			}
		}
		closeHost(t, h)
	}
}

func TestTCPIsDialledFirst(t *testing.T) {
	ranked := tcpFirst([]ma.Multiaddr{
		ma.StringCast("/ip4/192.0.2.1/udp/1/quic-v1"),
		ma.StringCast("/ip4/192.0.2.1/tcp/1"),
		ma.StringCast("/ip4/192.0.2.1/tcp/1/p2p/" + address.PeerText(newPersonID(1)) + "/p2p-circuit"),
	})
	if quic, tcp, relay := ranked[0].Delay, ranked[1].Delay, ranked[2].Delay; tcp != 0 || quic <= tcp || relay <= quic {
		t.Errorf("delays: tcp %v, quic %v, relay %v", tcp, quic, relay)
	}
}
