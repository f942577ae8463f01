package node

import (
	"encoding/hex"
	"fmt"
	"strings"

	"atoll/gossip"
	"atoll/gossip/p2p"
	"atoll/gossip/wire"
)

// linkScheme begins every join link.
const linkScheme = "atoll:"

// maxLinkPeers bounds the addresses in one link: those that a node remembers fit.
const maxLinkPeers = gossip.MaxContacts

// Link is what a newcomer needs to join: the run and some peers' addresses.
// As text: atoll:RUNID,ADDR,ADDR with RunID in hex and multiaddrs that end in
// /p2p/ID. It holds no character that a shell would touch.
type Link struct {
	Run   wire.RunID
	Peers []string
}

// String is the inverse of ParseLink.
func (l Link) String() string {
	return linkScheme + strings.Join(append([]string{hex.EncodeToString(l.Run[:])}, l.Peers...), ",")
}

// ParseLink reads a join link.
func ParseLink(s string) (Link, error) {
	rest, ok := strings.CutPrefix(strings.TrimSpace(s), linkScheme)
	if !ok {
		return Link{}, fmt.Errorf("join link %q does not begin with %q; copy it whole, as `atoll new` or DIR/link shows it", clip(s), linkScheme)
	}
	parts := strings.Split(rest, ",")
	var l Link
	if err := l.Run.UnmarshalText([]byte(parts[0])); err != nil {
		return Link{}, fmt.Errorf("join link %q: %w", clip(s), err)
	}
	if n := len(parts) - 1; n > maxLinkPeers {
		return Link{}, fmt.Errorf("join link names %d peers; use at most %d", n, maxLinkPeers)
	}
	for _, p := range parts[1:] {
		if err := checkPeer(p); err != nil {
			return Link{}, fmt.Errorf("join link: %w", err)
		}
		l.Peers = append(l.Peers, p)
	}
	return l, nil
}

// checkPeer makes sure that a peer's address can be dialled.
func checkPeer(addr string) error {
	if _, err := p2p.PeerIDOf(addr); err != nil {
		return fmt.Errorf("peer %q is not a multiaddr that ends in /p2p/ID, like /ip4/192.0.2.1/tcp/4001/p2p/12D3...: %w", clip(addr), err)
	}
	return nil
}

// clip keeps an error readable when the value is a pasted page.
func clip(s string) string {
	const most = 80
	if len(s) > most {
		return s[:most] + "..."
	}
	return s
}
