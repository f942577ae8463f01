// Package joinlink reads and writes the text by which a newcomer finds a run.
package joinlink

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"atoll/gossip"
	"atoll/gossip/member"
	"atoll/gossip/p2p/address"
	"atoll/gossip/wire"
)

// Scheme begins every join link.
const Scheme = "atoll:"

// Is tells a join link, whether it can be read or not, from other words.
func Is(word string) bool { return strings.HasPrefix(plain(word), Scheme) }

// MaxPeers bounds the addresses in one link: those that a node remembers fit.
const MaxPeers = gossip.MaxContacts

// Link is what a newcomer needs to join: the run, some peers' addresses, and an invite where the run
// asks for one. As text: atoll:RUNID,ADDR,ADDR#INVITE with RunID in hex and multiaddrs that end in
// /p2p/ID. It holds no character that a shell would touch.
type Link struct {
	Run    wire.RunID
	Peers  []string
	Invite *member.Pass // nil for none
}

// inviteMark stands before the invite, as before the part of a web address that stays with the
// reader: whoever has it can join.
const inviteMark = "#"

// String is the inverse of Parse.
func (l Link) String() string {
	text := Scheme + strings.Join(append([]string{hex.EncodeToString(l.Run[:])}, l.Peers...), ",")
	if l.Invite != nil {
		text += inviteMark + l.Invite.String()
	}
	return text
}

// PartError says that a part of a join link cannot be read. The invite is no such part, as whoever has it can join.
type PartError struct {
	error
	Part string // the first one that is wrong
}

// plain takes away what mail programs and people put into a link and around it: blanks, ends of lines, quotes and brackets.
func plain(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return -1
		}
		return r
	}, text)
	return strings.Trim(text, "\"'`<>()[]")
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
	var l Link
	s = plain(s)
	if l.Run.UnmarshalText([]byte(s)) == nil {
		return l, nil
	}
	text, invite, invited := strings.Cut(s, inviteMark)
	parts := strings.Split(text, ",")
	run, ok := strings.CutPrefix(parts[0], Scheme)
	if !ok {
		return Link{}, PartError{fmt.Errorf("join link %q does not begin with %q; copy it whole, as `atoll new` or DIR/link shows it", Shown(s), Scheme), parts[0]}
	}
	if err := l.Run.UnmarshalText([]byte(run)); err != nil {
		return Link{}, PartError{fmt.Errorf("join link %q: %w", Shown(s), err), parts[0]}
	}
	for i, p := range parts[1:] {
		if i == MaxPeers {
			return Link{}, PartError{fmt.Errorf("join link names %d peers; use at most %d", len(parts)-1, MaxPeers), p}
		}
		if err := CheckPeer(p); err != nil {
			return Link{}, PartError{fmt.Errorf("join link: %w", err), p}
		}
		l.Peers = append(l.Peers, p)
	}
	if !invited {
		return l, nil
	}
	pass, err := member.ParsePass(invite)
	if err == nil {
		err = pass.Check(l.Run)
	}
	if err != nil {
		return Link{}, fmt.Errorf("join link: %w", err)
	}
	l.Invite = &pass
	return l, nil
}

// mostShown is how many bytes of a text a message quotes: enough to recognise it.
const mostShown = 16

// Shown is what a message may quote of a text that is no join link: its beginning. Behind the mark, or alone, it
// may be an invite, and whoever has that can join.
func Shown(text string) string {
	text, _, _ = strings.Cut(text, inviteMark)
	if len(text) <= mostShown {
		return text
	}
	return text[:mostShown] + "..."
}

// CheckPeer makes sure that a peer's address can be dialled.
func CheckPeer(addr string) error {
	if _, err := address.PeerIDOf(addr); err != nil {
		return fmt.Errorf("peer %.80q is not a multiaddr that ends in /p2p/ID, like /ip4/192.0.2.1/tcp/4001/p2p/12D3...: %w", addr, err)
	}
	return nil
}
