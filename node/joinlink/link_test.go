package joinlink

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

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
	owner, secret := ed25519.NewKeyFromSeed(make([]byte, 32)), ed25519.NewKeyFromSeed(append(make([]byte, 31), 1))
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
		if rapid.Bool().Draw(t, "invite") {
			pass := member.Issue(owner, l.Run, member.Invite{Uses: rapid.Uint32().Draw(t, "uses")}, secret)
			l.Invite = &pass
		}
		s := l.String()
		back, err := Parse(" " + s + "\n")
		if err != nil || !reflect.DeepEqual(back, l) {
			t.Fatalf("%s: read back %+v, %v", s, back, err)
		}
		if plain(s[len(Scheme):]) != s[len(Scheme):] {
			t.Fatalf("a shell or a mail program would touch %s", s)
		}
	})
}

// A link is one word that a person can paste and a camera can read.
func TestLengthOfLinks(t *testing.T) {
	pass, err := member.New(ed25519.NewKeyFromSeed(make([]byte, 32)), wire.RunID{1}, member.Invite{Uses: 4, ExpiresMs: 1_893_456_000_000})
	if err != nil {
		t.Fatal(err)
	}
	const relay4, relay6 = "/ip4/203.0.113.200/tcp/27182", "/ip6/2001:db8:1234:5678:9abc:def0:1234:5678/tcp/27182"
	for _, c := range []struct {
		name  string
		link  Link
		bound int
	}{
		{"the run", Link{}, 60},
		{"no invite", Link{Peers: []string{peerAddr(1, relay4)}}, 110},
		{"one address", Link{Peers: []string{peerAddr(1, relay4)}, Invite: &pass}, 225},
		{"both families", Link{Peers: []string{peerAddr(1, relay4), peerAddr(1, relay6)}, Invite: &pass}, 250},
		{"behind a relay of both families", Link{Peers: []string{peerAddr(1, peerAddr(2, relay4)+"/p2p-circuit"), peerAddr(1, peerAddr(2, relay6)+"/p2p-circuit")}, Invite: &pass}, 300},
		{"both families, and a relay", Link{Peers: []string{peerAddr(1, relay4), peerAddr(1, relay6), peerAddr(2, relay4)}, Invite: &pass}, 300},
	} {
		if text := c.link.String(); len(text) > c.bound {
			t.Errorf("%s: %d characters, at most %d: %s", c.name, len(text), c.bound, text)
		} else {
			t.Logf("%s: %d characters", c.name, len(text))
		}
	}
}

// What was changed or lost on the way is told from what another machine refuses.
func TestMistypedLinks(t *testing.T) {
	text := Link{Run: wire.RunID{1}, Peers: []string{peerAddr(1, "/ip4/127.0.0.1/tcp/1")}}.String()
	rapid.Check(t, func(t *rapid.T) {
		at := rapid.IntRange(len(Scheme), len(text)-1).Draw(t, "at")
		wrong := text[:at] + string(rapid.SampledFrom([]rune("abcXYZ09-_")).Draw(t, "in place")) + text[at+1:]
		if rapid.Bool().Draw(t, "lost") {
			wrong = text[:at] + text[at+1:]
		}
		if l, err := Parse(wrong); err == nil && l.String() != text {
			t.Fatalf("%s is taken for %s", wrong, text)
		}
	})
}

func TestParseLinkErrors(t *testing.T) {
	framed := func(b ...byte) string { return Scheme + base64.RawURLEncoding.EncodeToString(append(b, sum(b)...)) }
	run := make([]byte, 32)
	for _, c := range []struct{ link, want string }{
		{"", "copy it whole"},
		{"http://example.org", `"http://e..." does not begin with "atoll:"`},
		{"atoll:", "cut or mistyped"},
		{"atoll:abcd", `"atoll:abcd" is cut or mistyped`},
		{"atoll:" + strings.Repeat("zz", 32), "cut or mistyped"},
		{framed(append([]byte{MaxPeers + 1}, run...)...), "at most 32"},
		{framed(append([]byte{1}, run...)...), "join link"},
		{framed(append(append([]byte{0}, run...), 7)...), "too many"},
		{framed(append(append([]byte{withInvite}, run...), 7)...), "invite is cut"},
		{strings.Repeat("x", 1<<16), `xxx..." does not begin`},
	} {
		_, err := Parse(c.link)
		if err == nil || !strings.Contains(err.Error(), c.want) || len(err.Error()) > 1000 {
			t.Errorf("%.80q: error %v, want one with %q", c.link, err, c.want)
		}
	}
}

func FuzzParseLink(f *testing.F) {
	for _, l := range []Link{{}, {Run: wire.RunID{1}}, {Peers: []string{peerAddr(3, "/ip4/127.0.0.1/tcp/1")}}} {
		b, _ := base64.RawURLEncoding.DecodeString(l.String()[len(Scheme):])
		f.Add(b[:len(b)-sumSize])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		s := Scheme + base64.RawURLEncoding.EncodeToString(append(b, sum(b)...))
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
	for _, sent := range []string{
		" " + text + "\n", "<" + text + ">", "\"" + text + "\"", text[:76] + "\r\n" + text[76:], text[:30] + "\n\t " + text[30:], "`" + text + "`",
		"> " + text[:40] + "\n> " + text[40:], "\u201c" + text + "\u201d", "\u00ab" + text + "\u00bb", text + ".", text + ",", "ATOLL:" + text[len(Scheme):],
		text[:50] + "=\n" + text[50:], "Atoll: " + text[len(Scheme):],
	} {
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

// A terminal that breaks a link makes several words of it: they are one again, and what is no part of it stays.
func TestWhole(t *testing.T) {
	link := Link{Run: wire.RunID{1, 2, 3}, Peers: []string{}}.String()
	for name, words := range map[string][]string{
		"whole": {"join", link, "dir"}, "in two": {"join", link[:20], link[20:], "dir"}, "in three": {"join", link[:9], link[9:30], link[30:], "dir"},
	} {
		if got := Whole(words); !slices.Equal(got, []string{"join", link, "dir"}) {
			t.Errorf("%s: %q", name, got)
		}
	}
	for _, words := range [][]string{nil, {"join", "dir"}, {"join", link[:20], "dir"}, {"join", link[:20], link}} {
		if got := Whole(words); !slices.Equal(got, words) {
			t.Errorf("%q becomes %q", words, got)
		}
	}
}

func TestLetsIn(t *testing.T) {
	for want, v := range map[string]member.Invite{
		"for any number of machines as members, as long as the run lasts":                                                {},
		"for 1 machine as a member, as long as the run lasts":                                                            {Uses: 1},
		"for one machine alone as a member, as long as the run lasts":                                                    {Alone: true},
		"for 3 machines as guests, whose work counts a little, until " + time.UnixMilli(1e12).Format("2006-01-02 15:04"): {Uses: 3, Guests: true, ExpiresMs: 1e12},
	} {
		if got := (Link{Invite: &member.Pass{Invite: v}}).LetsIn(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
