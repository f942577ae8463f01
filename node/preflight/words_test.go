package preflight

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"atoll/gossip/hello"
	"atoll/gossip/p2p"
	"atoll/gossip/wire"
)

const (
	direct  = "/ip4/5.0.0.1/tcp/27182/p2p/12D3KooWK99VoVxNE7XzyBwXEzW7xhK7Gpv85r9F3V3fyKSUKPH5"
	web     = "/ip4/5.0.0.1/tcp/443/ws/p2p/12D3KooWK99VoVxNE7XzyBwXEzW7xhK7Gpv85r9F3V3fyKSUKPH5"
	relayed = "/ip4/5.0.0.8/tcp/27182/p2p/12D3KooWK99VoVxNE7XzyBwXEzW7xhK7Gpv85r9F3V3fyKSUKPH5/p2p-circuit/p2p/12D3KooWK99VoVxNE7XzyBwXEzW7xhK7Gpv85r9F3V3fyKSUKPH5"
)

var (
	home    = netip.MustParseAddr("192.168.1.5")
	mobile  = netip.MustParseAddr("100.64.3.4")
	rented  = netip.MustParseAddr("5.0.0.9")
	outside = netip.MustParseAddr("5.0.0.3")
)

// seen is what a peer outside sees of UDP and TCP, UDP from a port, 0 for none.
func seen(by byte, port uint16) []p2p.Seen {
	s := []p2p.Seen{{By: wire.PeerID{by}, At: netip.AddrPortFrom(outside, 40000), Outside: true}}
	if port != 0 {
		s = append(s, p2p.Seen{By: wire.PeerID{by}, At: netip.AddrPortFrom(outside, port), UDP: true, Outside: true})
	}
	return s
}

func yes(b bool) *bool { return &b }

// in is what a machine at home sees where all is well.
func in(change func(*Facts)) Facts {
	f := Facts{
		Networks: []netip.Addr{home}, Reached: direct, Run: &Run{Name: "tiny (tiny)", Budget: 1000, Folded: 100},
		Clock: &Clock{Ahead: time.Second}, Port: 27182, Seen: seen(1, 27182), Router: yes(false),
		Back: []Back{{Addr: "/ip4/5.0.0.3/tcp/27182"}, {Addr: "/ip4/5.0.0.3/udp/27182/quic-v1"}},
	}
	change(&f)
	return f
}

func failed(err error) func(*Facts) {
	return func(f *Facts) {
		*f = Facts{Networks: f.Networks, Port: f.Port, Router: f.Router, Tried: []Tried{{direct, err}}}
	}
}

// What is said of each trouble is one sentence that names it, and a remedy.
func TestWords(t *testing.T) {
	dialled := func(text string) error { return fmt.Errorf("dial %s: %w", direct, errors.New(text)) }
	for _, c := range []struct {
		trouble            string
		facts              Facts
		name, text, remedy string
		ok                 bool
	}{
		{"no network", Facts{}, "network", "this machine is on no network", "connect it", false},
		{"a dead link", in(failed(fmt.Errorf("dial: %w", syscall.ECONNREFUSED))), "link", "the link leads to nobody: no node runs at 5.0.0.1:27182 any more", "ask a member for a new link", false},
		{"a silent link", in(failed(context.DeadlineExceeded)), "link", "the link leads to nobody: nothing answers at 5.0.0.1:27182", "ask a member for a new link", false},
		{"no way there", in(failed(dialled("connect: network is unreachable"))), "link", "this machine has no way to 5.0.0.1:27182", "ask a member", false},
		{"no DNS", in(func(f *Facts) {
			f.Run, f.Reached, f.Tried = nil, "", []Tried{{"/dns4/a.example/tcp/1/p2p/X", fmt.Errorf("dial: %w", p2p.ErrNoWay)}}
		}), "link", "cannot look up the name in a.example:1", "DNS", false},
		{"no IPv6", in(func(f *Facts) {
			f.Run, f.Reached, f.Tried = nil, "", []Tried{{"/ip6/2001:db8::1/tcp/1/p2p/X", fmt.Errorf("dial: %w", syscall.EADDRNOTAVAIL)}}
		}), "link", "this machine has no IPv6, so no way to [2001:db8::1]:1", "IPv4", false},
		{"a chain of causes", in(failed(dialled("failed to dial: failed to dial 12D3KooW: all dials failed\n  * [/ip4/5.0.0.1/tcp/27182] dial tcp4 0.0.0.0:27182->5.0.0.1:27182: connect: no buffer space available\n  * [/ip6/::1/tcp/1] dial backoff"))), "link", "5.0.0.1:27182 does not let this machine in (no buffer space available)", "ask a member", false},
		{"a link without addresses", in(func(f *Facts) { *f = Facts{Networks: f.Networks} }), "link", "names no address, and no member of the run is on this network", "ask a member for a link", false},
		{"the link of another run", in(failed(&hello.Refusal{Field: hello.FieldRun, Ours: "a", Theirs: "b"})), "link", "is in another run than the link names", "ask a member for a new link", false},
		{"another node at the address", in(failed(dialled("failed to negotiate security protocol: peer id mismatch: expected x"))), "link", "another node than the link names answers at 5.0.0.1:27182", "old or mistyped", false},
		{"another program at the address", in(failed(dialled("failed to negotiate protocol: protocols not supported: [/atoll/hello/1]"))), "link", "is no node of atoll", "new link", false},
		{"a version that is too old", in(failed(&hello.Refusal{Field: hello.FieldProtocol, Ours: "2 (atoll/1)", Theirs: "10 (atoll/9)", Ahead: -1})), "link", "this atoll is too old for the run: it speaks protocol 2 (atoll/1), the peer at 5.0.0.1:27182 10 (atoll/9)", "install the newest version", false},
		{"a run that is too old", in(failed(&hello.Refusal{Field: hello.FieldProtocol, Ours: "2", Theirs: "1", Ahead: 1})), "link", "the run is of an older atoll", "install the version", false},
		{"the key of another", in(failed(&hello.Refusal{Field: hello.FieldAuthor})), "link", "has the key of this node", "another folder", false},
		{"a refusal", in(failed(fmt.Errorf("%w: no", p2p.ErrRefusedByPeer))), "link", "refuses", "version", false},
		{"a run that is over", in(func(f *Facts) { f.Run.Over = true }), "run", "the run tiny (tiny) is over: its 1000 tokens are folded", "join another one", false},
		{"a clock ahead", in(func(f *Facts) { f.Clock.Ahead = time.Hour + 10*time.Millisecond }), "clock", "this machine's clock is 1h0m0s ahead of the peer's", "NTP", false},
		{"a clock behind", in(func(f *Facts) { f.Clock.Ahead = -time.Hour }), "clock", "1h0m0s behind the peer's", "NTP", false},
		{"a taken port", in(func(f *Facts) { f.PortTaken, f.Port = 27182, 40001 }), "port", "port 27182 of this machine is taken", "--listen", false},

		{"a good link", in(func(*Facts) {}), "link", "answers at 5.0.0.1:27182", "", true},
		{"a good link through a relay", in(func(f *Facts) { f.Reached = relayed }), "link", "answers at the relay 5.0.0.8:27182", "", true},
		{"a member on this network", in(func(f *Facts) { f.Elsewhere = true }), "link", "on this network, at 5.0.0.1:27182; nobody answers at the addresses of the link", "", true},
		{"large packets lost", in(func(f *Facts) { f.Packets = &Packets{direct, 1260, 1100, false} }), "packets", "the way to 5.0.0.1:27182 loses packets of 1260 bytes without a word, and those of 1100 pass", "1100 bytes", false},
		{"large packets lost before anybody let it in", in(func(f *Facts) {
			failed(p2p.ErrNoHandshake)(f)
			f.Packets = &Packets{direct, 1260, 576, false}
		}), "packets", "those of 576 pass", "MTU", false},
		{"large packets lost on IPv6", in(func(f *Facts) { f.Packets = &Packets{"/ip6/2001:db8::1/tcp/27182", 1260, 1100, false} }), "packets", "loses packets of 1280 bytes without a word, and those of 1120 pass", "no MTU below that helps", false},
		{"a slow way", in(func(f *Facts) { f.Packets = &Packets{Addr: direct, Slow: true} }), "packets", "5.0.0.1:27182 does not send back in time", "carry less", false},
		{"large packets pass", in(func(f *Facts) { f.Packets = &Packets{Addr: direct} }), "packets", "large packets pass", "", true},
		{"a handshake that does not end", in(failed(p2p.ErrNoHandshake)), "link", "a node answers at 5.0.0.1:27182, and the handshake with it does not end", "MTU", false},
		{"a run", in(func(*Facts) {}), "run", "10 % of 1000 tokens are folded", "", true},
		{"a clock that is right", in(func(*Facts) {}), "clock", "within 1s of the peer's", "", true},
		{"a clock of which the way hides a minute", in(func(f *Facts) { f.Clock = &Clock{70 * time.Second, 15 * time.Second} }), "clock", "within 1m10s", "", true},
		{"public", in(func(f *Facts) {
			f.Networks, f.Back = []netip.Addr{rented}, []Back{{Addr: "/ip4/5.0.0.9/tcp/27182", Through: true}}
		}), "reach", "others reach this machine: a peer dialled it at 5.0.0.9:27182", "", true},
		{"a firewall", in(func(f *Facts) { f.Networks = []netip.Addr{rented} }), "reach", "a firewall keeps others out", "let TCP and UDP port 27182 through", true},
		{"port-keeping", in(func(*Facts) {}), "reach", "behind a router that will work", "forward TCP and UDP port 27182 on the router to 192.168.1.5", true},
		{"another port, but the same for all", in(func(f *Facts) { f.Seen = append(seen(1, 5000), seen(2, 5000)...) }), "reach", "behind a router that will work", "forward", true},
		{"scrambling, by one witness", in(func(f *Facts) { f.Seen = seen(1, 5000) }), "reach", "symmetric or carrier-grade NAT", "forward", true},
		{"scrambling, by two", in(func(f *Facts) { f.Seen = append(seen(1, 27182), seen(2, 5000)...) }), "reach", "this machine will be relayed", "forward", true},
		{"a shared address", in(func(f *Facts) { f.Networks = []netip.Addr{mobile} }), "reach", "behind a router that will work", "ask it for a public address or for IPv6", true},
		{"the web only", in(func(f *Facts) { f.Seen, f.Reached = seen(1, 0), web }), "reach", "lets out the web only", "let TCP and UDP out", true},
		{"no UDP", in(func(f *Facts) { f.Seen = seen(1, 0) }), "reach", "lets no UDP out", "let UDP out", true},
		{"one network", in(func(f *Facts) { f.Seen = nil }), "reach", "is not known", "", true},
		{"no UPnP", in(func(*Facts) {}), "router", "no router answers UPnP", "", true},
		{"UPnP", in(func(f *Facts) {
			f.Router, f.Mapped, f.Back = yes(true), []string{"/ip4/5.0.0.3/tcp/27182"}, []Back{{Addr: "/ip4/5.0.0.3/tcp/27182", Through: true}}
		}), "router", "forwards 5.0.0.3:27182 to this machine by UPnP", "", true},
		{"UPnP that opens nothing", in(func(f *Facts) { f.Router = yes(true) }), "router", "forwards no port", "look whether", true},
		{"UPnP behind the provider's router", in(func(f *Facts) { f.Router, f.Mapped = yes(true), []string{"/ip4/100.64.0.7/tcp/27182"} }), "router", "the provider has another router in front", "", true},
	} {
		found := false
		for _, x := range c.facts.Findings() {
			if strings.Contains(x.Text, "failed to dial") || strings.Contains(x.Text, "\n") {
				t.Errorf("%s: a chain of causes: %s", c.trouble, x.Text)
			}
			if strings.Count(x.Text, ". ") > 0 || strings.HasSuffix(x.Text, ".") {
				t.Errorf("%s: more than one sentence: %s", c.trouble, x.Text)
			}
			if x.Name != c.name {
				continue
			}
			found = true
			if x.OK != c.ok || !strings.Contains(x.Text, c.text) || !strings.Contains(x.Remedy, c.remedy) {
				t.Errorf("%s: %+v, want %q and %q", c.trouble, x, c.text, c.remedy)
			}
		}
		if !found {
			t.Errorf("%s: no finding about the %s in %+v", c.trouble, c.name, c.facts.Findings())
		}
	}
}

// Without a network nothing else is said, and the provider's router is named in the remedy.
func TestWordsSayWhatMatters(t *testing.T) {
	if got := (Facts{Port: 1}).Findings(); len(got) != 1 {
		t.Errorf("%+v", got)
	}
	f := in(func(f *Facts) { f.Router, f.Mapped = yes(true), []string{"/ip4/100.64.0.7/tcp/27182"} })
	for _, x := range f.Findings() {
		if x.Name == "reach" && !strings.Contains(x.Remedy, "forwarding a port does not help") {
			t.Errorf("%+v", x)
		}
	}
}

func TestPlain(t *testing.T) {
	chain := errors.New("dial 12D3KooW: failed to dial: failed to dial 12D3KooW: all dials failed\n  * [/ip4/5.0.0.1/tcp/27182] dial tcp4 5.0.0.1:27182: connect: connection refused")
	if got, want := Plain(direct, chain), "no node runs at 5.0.0.1:27182 any more"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := Plain(direct, errors.New("the genesis has another hash")); got != "the genesis has another hash" {
		t.Error(got)
	}
}

// All is well is for machines that somebody outside reached.
func TestReach(t *testing.T) {
	for want, change := range map[string]func(*Facts){
		"helped":  func(*Facts) {},
		"open":    func(f *Facts) { f.Back = []Back{{Addr: direct, Through: true}} },
		"unknown": func(f *Facts) { f.Seen = nil },
	} {
		if got := in(change).Reach(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	if got := in(failed(context.DeadlineExceeded)).Reach(); got != "unknown" {
		t.Errorf("nobody answers: %s", got)
	}
}

// A node that is alone says the same words.
func TestAlone(t *testing.T) {
	f := in(failed(fmt.Errorf("dial: %w", syscall.ECONNREFUSED)))
	if got := f.Alone(); !strings.Contains(got, "no node runs at 5.0.0.1:27182 any more") || !strings.Contains(got, "ask a member for a new link") || !strings.Contains(got, "no router answers UPnP") {
		t.Error(got)
	}
	if got := (Facts{}).Alone(); !strings.Contains(got, "on no network") {
		t.Error(got)
	}
}
