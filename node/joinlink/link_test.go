package joinlink

import (
	"bytes"
	"crypto/ed25519"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"atoll/gossip/member"
	"atoll/gossip/p2p/address"
	"atoll/gossip/wire"

	"pgregory.net/rapid"
)

// peerAddr is the address of a peer that does not exist.
func peerAddr(seed byte, transport string) string {
	key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize))
	return transport + "/p2p/" + address.PeerText(wire.PeerIDOf(key))
}

func TestLinkRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l Link
		copy(l.Run[:], rapid.SliceOfN(rapid.Byte(), len(l.Run), len(l.Run)).Draw(t, "run"))
		for range rapid.IntRange(0, MaxPeers).Draw(t, "peers") {
			transport := fmt.Sprintf("/ip4/10.0.0.%d/tcp/%d", rapid.IntRange(0, 255).Draw(t, "host"), rapid.IntRange(0, 65535).Draw(t, "port"))
			if rapid.Bool().Draw(t, "quic") {
				transport = "/ip6/2001:db8::1/udp/4001/quic-v1"
			}
			l.Peers = append(l.Peers, peerAddr(rapid.Byte().Draw(t, "key"), transport))
		}
		s := l.String()
		back, err := Parse(" " + s + "\n")
		if err != nil || !reflect.DeepEqual(back, l) {
			t.Fatalf("%s: read back %+v, %v", s, back, err)
		}
		if strings.ContainsAny(s, " \t\n'\"$&|;<>()*?[]{}~#!\\`") {
			t.Fatalf("a shell would touch %s", s)
		}
	})
}

func TestParseLinkErrors(t *testing.T) {
	run := strings.Repeat("ab", 32)
	good := peerAddr(1, "/ip4/127.0.0.1/tcp/1")
	for _, c := range []struct{ link, want string }{
		{"", "copy it whole"},
		{"http://example.org", `does not begin with "atoll:"`},
		{"atoll:", "join link"},
		{"atoll:abcd", "join link"},
		{"atoll:" + strings.Repeat("zz", 32), "join link"},
		{"atoll:" + run + ",", "multiaddr that ends in /p2p/ID"},
		{"atoll:" + run + ",localhost:4001", `peer "localhost:4001"`},
		{"atoll:" + run + ",/ip4/127.0.0.1/tcp/1", "multiaddr that ends in /p2p/ID"},
		{"atoll:" + run + ",/ip4/127.0.0.1/tcp/1/p2p/nobody", "multiaddr that ends in /p2p/ID"},
		{"atoll:" + run + strings.Repeat(","+good, MaxPeers+1), "at most 32"},
		{strings.Repeat("x", 1<<16), `xxx..." does not begin`},
	} {
		_, err := Parse(c.link)
		if err == nil || !strings.Contains(err.Error(), c.want) || len(err.Error()) > 1000 {
			t.Errorf("%.80q: error %v, want one with %q", c.link, err, c.want)
		}
	}
}

func FuzzParseLink(f *testing.F) {
	run := strings.Repeat("0f", 32)
	for _, s := range []string{"", "atoll:", "atoll:" + run, "atoll:" + run + "," + peerAddr(3, "/ip4/127.0.0.1/tcp/1"), "atoll:" + run + ",/p2p/"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		l, err := Parse(s)
		if err != nil {
			return
		}
		if back, err := Parse(l.String()); err != nil || !reflect.DeepEqual(back, l) {
			t.Errorf("%q: read %+v, back %+v, %v", s, l, back, err)
		}
		for _, p := range l.Peers {
			if _, err := address.PeerIDOf(p); err != nil {
				t.Errorf("%q: peer %q cannot be dialled: %v", s, p, err)
			}
		}
	})
}

// What mail programs and people put into a link and around it is taken away.
func TestLinksThatWentThroughMail(t *testing.T) {
	link := Link{Run: wire.RunID{1}, Peers: []string{"/ip4/192.0.2.1/tcp/4001/p2p/12D3KooWGzXPg3pLGLXzRAVHBrWF7qP2jiUqCTPkJY4vhzcZzLxB"}}
	text := link.String()
	for _, sent := range []string{" " + text + "\n", "<" + text + ">", "\"" + text + "\"", text[:76] + "\r\n" + text[76:], text[:30] + "\n\t " + text[30:], "`" + text + "`"} {
		if got, err := Parse(sent); err != nil || !Is(sent) || got.String() != text {
			t.Errorf("%q: %v, %v", sent, got, err)
		}
	}
}

// An old link with an invite and one that says where a member is now make one that leads in.
func TestTwoLinksOfOneRun(t *testing.T) {
	owner, secret := ed25519.NewKeyFromSeed(make([]byte, 32)), ed25519.NewKeyFromSeed(append(make([]byte, 31), 1))
	run := wire.RunID{1}
	pass, guests := member.Issue(owner, run, member.Invite{}, secret), member.Issue(owner, run, member.Invite{Guests: true}, secret)
	old, now := Link{Run: run, Peers: []string{"a", "b"}, Invite: &pass}, Link{Run: run, Peers: []string{"c", "b"}}
	both, err := now.With(old)
	if err != nil || !slices.Equal(both.Peers, []string{"c", "b", "a"}) || both.Invite != &pass {
		t.Errorf("%+v, %v", both, err)
	}
	now.Invite = &guests
	if both, err = now.With(old); err != nil || both.Invite != &pass {
		t.Errorf("the invite for guests goes before the other: %+v, %v", both, err)
	}
	if _, err := now.With(Link{Run: wire.RunID{2}}); err == nil {
		t.Error("links of two runs make one")
	}
}
