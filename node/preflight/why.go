package preflight

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"atoll/gossip/hello"
	"atoll/gossip/member"
	"atoll/gossip/p2p"
)

// WhyNot says in a sentence why a dial led nowhere, and what to do. It is told if a peer said
// so itself: then there is nothing to wait for.
func WhyNot(t Tried) (text, remedy string, told bool) {
	at := shown(t.Addr)
	if refusal := (*hello.Refusal)(nil); errors.As(t.Err, &refusal) {
		text, remedy = refused(at, refusal)
		return text, remedy, true
	}
	if text, remedy, is := notLetIn(at, t.Err.Error()); is {
		return text, remedy, true
	}
	says := func(part string) bool { return strings.Contains(t.Err.Error(), part) }
	switch {
	case errors.Is(t.Err, p2p.ErrRefusedByPeer) || errors.Is(t.Err, p2p.ErrHandshake):
		return fmt.Sprintf("the peer at %s refuses: %v", at, t.Err), "install one version of atoll on both; if it is the same, ask its owner", true
	case errors.Is(t.Err, p2p.ErrNoHandshake):
		return fmt.Sprintf("a node answers at %s, and the handshake with it does not end: the way to it may lose large packets", at), "`atoll doctor LINK` finds how large they may be; look at a VPN or firewall between, and lower the MTU of this machine", false
	case says("peer id mismatch"):
		return fmt.Sprintf("another node than the link names answers at %s", at), "the link is old or mistyped: ask a member for a new one", true
	case says("protocols not supported"):
		return fmt.Sprintf("what answers at %s is no node of atoll", at), "ask a member for a new link", true
	case errors.Is(t.Err, syscall.ECONNREFUSED) || says("connection refused"):
		return fmt.Sprintf("no node runs at %s any more", at), "", false
	case errors.Is(t.Err, p2p.ErrNoWay) && strings.HasPrefix(t.Addr, "/dns"):
		return fmt.Sprintf("this machine cannot look up the name in %s", at), "look whether its DNS works, or ask a member for a link with addresses in numbers", false
	case (errors.Is(t.Err, p2p.ErrNoWay) || errors.Is(t.Err, syscall.EADDRNOTAVAIL) || errors.Is(t.Err, syscall.EAFNOSUPPORT)) && strings.HasPrefix(t.Addr, "/ip6"):
		return fmt.Sprintf("this machine has no IPv6, so no way to %s", at), "ask a member for a link with an address of IPv4, or have a relay between", false
	case errors.Is(t.Err, p2p.ErrNoWay) || errors.Is(t.Err, syscall.ENETUNREACH) || errors.Is(t.Err, syscall.EHOSTUNREACH) || says("unreachable") || says("no route"):
		return fmt.Sprintf("this machine has no way to %s", at), "", false
	case errors.Is(t.Err, context.DeadlineExceeded) || errors.Is(t.Err, os.ErrDeadlineExceeded) || says("timeout") || says("deadline"):
		return fmt.Sprintf("nothing answers at %s", at), "", false
	}
	return fmt.Sprintf("%s does not let this machine in (%s)", at, cause(t.Err)), "", false
}

// notLetIn says why a run that admits by invitation does not admit, in the peer's words: an invite that has expired, is used up or revoked, or none.
func notLetIn(at, refusal string) (text, remedy string, is bool) {
	_, why, is := strings.Cut(refusal, p2p.ErrNotAdmitted.Error()+": ")
	if !is {
		return "", "", false
	}
	why, remedy, _ = strings.Cut(member.Shown(why), "; ")
	return fmt.Sprintf("the peer at %s does not let this machine in: %s", at, why), remedy, true
}

// Plain is an error about a peer at an address in words: a chain of dials as WhyNot says it, and
// anything else as it is.
func Plain(addr string, err error) string {
	if !strings.Contains(err.Error(), dialChain) && !strings.Contains(err.Error(), p2p.ErrNotAdmitted.Error()) && !errors.Is(err, p2p.ErrNoHandshake) {
		return err.Error()
	}
	text, _, _ := WhyNot(Tried{Addr: addr, Err: err})
	return text
}

// dialChain is in the text of libp2p's errors that list what was dialled.
const dialChain = "failed to dial"

// cause is the last link of the chain of an error: what a library tried first and how often helps
// nobody. Where several addresses were tried it is the error of the first.
func cause(err error) string {
	text := err.Error()
	if _, tried, several := strings.Cut(text, "\n  * ["); several {
		_, text, _ = strings.Cut(tried, "] ")
	}
	text, _, _ = strings.Cut(text, "\n")
	if at := strings.LastIndex(text, ": "); at >= 0 {
		text = text[at+2:]
	}
	return text
}

// refused explains what two nodes differ in.
func refused(at string, r *hello.Refusal) (text, remedy string) {
	switch r.Field {
	case hello.FieldRun:
		return fmt.Sprintf("the peer at %s is in another run than the link names", at), "the link is mistyped, or the address has got another owner: ask a member for a new link"
	case hello.FieldProtocol:
		if r.Ahead < 0 {
			return fmt.Sprintf("this atoll is too old for the run: it speaks protocol %s, the peer at %s %s", r.Ours, at, r.Theirs), "install the newest version of atoll here"
		}
		return fmt.Sprintf("the run is of an older atoll: this one speaks protocol %s, the peer at %s %s", r.Ours, at, r.Theirs), "install the version here that the run's members have"
	case hello.FieldAuthor:
		return fmt.Sprintf("the peer at %s has the key of this node", at), "a folder was copied: give this node another folder"
	}
	return fmt.Sprintf("the peer at %s and this machine do not fit together: %v", at, r), "install one version of atoll on both"
}

// shown is an address for people: the machine and port, by which transport, and whether through
// a relay.
func shown(addr string) string {
	parts := strings.Split(strings.TrimPrefix(addr, "/"), "/")
	if len(parts) < 4 {
		return addr
	}
	text := parts[1] + ":" + parts[3]
	if strings.Contains(parts[1], ":") {
		text = "[" + parts[1] + "]:" + parts[3]
	}
	switch {
	case strings.Contains(addr, "/p2p-circuit"):
		return "the relay " + text
	case strings.Contains(addr, "/ws"):
		return text + " (WebSocket)"
	case parts[2] == "udp":
		return text + " (QUIC)"
	}
	return text
}

// Alone says why a node that looks for its run may have found nobody yet, and what to do: the words
// of a check, as far as it knows.
func (f Facts) Alone() string {
	var parts []string
	for _, x := range f.Findings() {
		if x.OK && x.Remedy == "" && x.Name != "router" {
			continue
		}
		text := x.Text
		if x.Remedy != "" {
			text += "; " + x.Remedy
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ". ")
}
