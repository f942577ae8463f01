// Package joinlink reads and writes the text by which a newcomer finds a run.
package joinlink

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"time"

	"atoll/gossip"
	"atoll/gossip/member"
	"atoll/gossip/p2p/address"
	"atoll/gossip/wire"
)

// Scheme begins every join link.
const Scheme = "atoll:"

// MaxPeers bounds the addresses in one link: those that a node remembers fit.
const MaxPeers = gossip.MaxContacts

// Link is what a newcomer needs to join: the run, some peers' addresses, and an invite where the run
// asks for one. As text it is atoll: and one word of base64, which no shell or mail program touches: a byte with the number of
// addresses, and whether there is an invite; the run; the addresses; the invite; a checksum.
type Link struct {
	Run    wire.RunID
	Peers  []string
	Invite *member.Pass // nil for none
}

const (
	domainLink = "atoll link 1"
	sumSize    = 3
	withInvite = 1 << 7 // of the first byte
)

// sum tells a link that was cut or mistyped.
func sum(b []byte) []byte {
	d := wire.Sum(append([]byte(domainLink), b...))
	return d[:sumSize]
}

// String is the inverse of Parse. Addresses that CheckPeer refuses are left out.
func (l Link) String() string {
	peers := slices.DeleteFunc(slices.Clone(l.Peers), func(a string) bool { return CheckPeer(a) != nil })
	b := append([]byte{byte(len(peers))}, l.Run[:]...)
	b, err := address.AppendCompact(b, peers)
	if err != nil {
		panic("encode join link: " + err.Error()) // CheckPeer took them
	}
	if l.Invite != nil {
		b[0] |= withInvite
		b = append(b, l.Invite.Encode()...)
	}
	return Scheme + base64.RawURLEncoding.EncodeToString(append(b, sum(b)...))
}

// Is tells a join link, whether it can be read or not, from other words.
func Is(word string) bool {
	_, is := cut(word)
	return is
}

// around is what stands around a link in a text.
const around = " \t\r\n\"'`<>()[]{}\u00a0\u2018\u2019\u201c\u201d\u201e\u00ab\u00bb*_,;.|"

// cut is what is behind the scheme of a join link, in whatever a text or a mail program put around it.
func cut(text string) (behind string, is bool) {
	text = strings.TrimLeft(text, around)
	if len(text) < len(Scheme) || !strings.EqualFold(text[:len(Scheme)], Scheme) {
		return "", false
	}
	return text[len(Scheme):], true
}

// plain leaves of a text what can be of base64: what else there is, quotes, ends of lines and what stands before a quoted one, mail programs put in.
func plain(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_':
			return r
		}
		return -1
	}, text)
}

// With is a link with what another one of the same run has: more addresses, and an invite where this one has none.
func (l Link) With(other Link) (Link, error) {
	if l.Run != other.Run {
		return l, fmt.Errorf("the links are of two runs, %v and %v", l.Run, other.Run)
	}
	for _, p := range other.Peers {
		if !slices.Contains(l.Peers, p) && len(l.Peers) < MaxPeers {
			l.Peers = append(l.Peers, p)
		}
	}
	if l.Invite == nil || l.Invite.Invite.Guests && other.Invite != nil {
		l.Invite = other.Invite
	}
	return l, nil
}

// Parse reads a join link. A run alone, as 64 digits, is one that names no peer.
func Parse(s string) (Link, error) {
	text, is := cut(s)
	if l := (Link{}); l.Run.UnmarshalText([]byte(plain(s))) == nil || is && l.Run.UnmarshalText([]byte(plain(text))) == nil {
		return l, nil
	}
	if !is {
		return Link{}, fmt.Errorf("join link %q does not begin with %q; copy it whole, as `atoll new` or DIR/link shows it", Shown(s), Scheme)
	}
	b, err := base64.RawURLEncoding.DecodeString(plain(text))
	var run wire.RunID
	if err != nil || len(b) < 1+len(run)+sumSize || !bytes.Equal(sum(b[:len(b)-sumSize]), b[len(b)-sumSize:]) {
		return Link{}, fmt.Errorf("the join link %q is cut or mistyped, or of another version of atoll: copy it whole", Shown(s))
	}
	b = b[:len(b)-sumSize]
	l, n := Link{Run: wire.RunID(b[1 : 1+len(run)])}, int(b[0]&^withInvite)
	if n > MaxPeers {
		return Link{}, fmt.Errorf("join link names %d peers; use at most %d", n, MaxPeers)
	}
	peers, rest, err := address.Compact(b[1+len(run):], n)
	l.Peers = peers
	switch {
	case err != nil:
	case b[0]&withInvite != 0:
		var pass member.Pass
		pass, err = member.DecodePass(rest)
		l.Invite = &pass
	case len(rest) > 0:
		err = fmt.Errorf("%d bytes too many", len(rest))
	}
	if err != nil {
		return Link{}, fmt.Errorf("join link: %w", err)
	}
	return l, nil
}

// LetsIn says whom the invite of a link lets in, as what, and until when; "" where it has none.
func (l Link) LetsIn() string {
	if l.Invite == nil {
		return ""
	}
	v := l.Invite.Invite
	whom, as, until := "any number of machines", "members", "as long as the run lasts"
	switch {
	case v.Alone:
		whom, as = "one machine alone", "a member"
	case v.Uses == 1:
		whom, as = "1 machine", "a member"
	case v.Uses > 0:
		whom = fmt.Sprintf("%d machines", v.Uses)
	}
	if v.Guests {
		as = "guests, whose work counts a little"
	}
	if v.ExpiresMs > 0 {
		until = "until " + time.UnixMilli(v.ExpiresMs).Format("2006-01-02 15:04")
	}
	return fmt.Sprintf("for %s as %s, %s", whom, as, until)
}

// Whole puts together the words of a command line that a terminal made of one link, where that is one.
func Whole(words []string) (whole []string) {
	for i := 0; i < len(words); i++ {
		whole = append(whole, words[i])
		if _, err := Parse(words[i]); !Is(words[i]) || err == nil {
			continue
		}
		for k := i + 1; k < len(words) && !Is(words[k]); k++ {
			link := strings.Join(words[i:k+1], "")
			if _, err := Parse(link); err == nil {
				whole[len(whole)-1], i = link, k
				break
			}
		}
	}
	return whole
}

// mostShown is how many characters of a text a message quotes behind the scheme: enough to recognise it, and little of a part that may be a secret.
const mostShown = 8

// Shown is what a message may quote of a text that is no join link: its beginning. It may be of an invite, and whoever has that can join.
func Shown(text string) string {
	most := mostShown
	if Is(text) {
		most += len(Scheme)
	}
	if len(text) <= most {
		return text
	}
	return text[:most] + "..."
}

// CheckPeer makes sure that a peer's address can be dialled.
func CheckPeer(addr string) error {
	if _, err := address.PeerIDOf(addr); err != nil {
		return fmt.Errorf("peer %.80q is not a multiaddr that ends in /p2p/ID, like /ip4/192.0.2.1/tcp/4001/p2p/12D3...: %w", addr, err)
	}
	return nil
}
