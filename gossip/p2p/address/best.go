package address

import (
	"cmp"
	"slices"
	"strings"

	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
)

// Reach of an address: from where it leads to its node, the furthest first.
const (
	reachAll   = iota // from anywhere
	reachRelay        // from anywhere, through a relay
	reachNear         // from the same network
	reachSelf         // from the same machine
	reachNone         // it is no address
)

func reachOf(a ma.Multiaddr) int {
	switch {
	case a == nil:
		return reachNone
	case has(a, ma.P_CIRCUIT):
		return reachRelay
	case manet.IsPublicAddr(a):
		return reachAll
	case manet.IsIPLoopback(a):
		return reachSelf
	}
	return reachNear
}

// Best sorts addresses by what they are worth to somebody of whom nothing is known: public
// ones first, then those through relays, then those of a network, and among equals TCP with
// IPv4. Those that are equal in this keep their order.
func Best(addrs []string) []string {
	sorted := slices.Clone(addrs)
	slices.SortStableFunc(sorted, func(a, b string) int { return cmp.Compare(worth(a), worth(b)) })
	return sorted
}

// worth is lower for a better address.
func worth(text string) int {
	a, err := ma.NewMultiaddr(text)
	if err != nil {
		return 100 * reachNone
	}
	return 100*reachOf(a) + 10*boolRank(has(a, ma.P_IP6)) + TransportRank(a)
}

// TransportRank is lower for a transport that carries more. Those of the web come last, and
// among them WebSocket gets through where plain TCP does, and in more places.
func TransportRank(a ma.Multiaddr) int {
	switch {
	case has(a, ma.P_WS):
		return 2
	case Web(a):
		return 3
	case has(a, ma.P_UDP):
		return 1
	}
	return 0
}

// OnWeb reports whether an address is one of the web's: where nothing else is let out, it may
// still be dialled.
func OnWeb(addr string) bool {
	a, err := ma.NewMultiaddr(addr)
	return err == nil && !has(a, ma.P_CIRCUIT) && Web(a)
}

// FromAnywhere reports whether an address leads to its node from anywhere, by itself or
// through a relay.
func FromAnywhere(addr string) bool {
	a, err := ma.NewMultiaddr(addr)
	return err == nil && reachOf(a) <= reachRelay
}

// IPv6 reports whether an address begins with one of IPv6.
func IPv6(addr string) bool { return strings.HasPrefix(addr, "/ip6/") }

// Local reports whether an address leads to its node from the same machine alone.
func Local(addr string) bool {
	a, err := ma.NewMultiaddr(addr)
	return err == nil && reachOf(a) == reachSelf
}

// RelayOf is the address of the relay that an address leads through.
func RelayOf(addr string) (relay string, ok bool) {
	before, _, ok := strings.Cut(addr, "/p2p-circuit")
	if !ok || Check(before) != nil {
		return "", false
	}
	return before, true
}

// Check makes sure that an address can be dialled: it names a place and a peer.
func Check(addr string) error {
	_, _, err := Parse(addr)
	return err
}

// Machine is the part of an address that names a machine, such as /ip4/192.0.2.1.
func Machine(addr string) string {
	a, err := ma.NewMultiaddr(addr)
	if err != nil {
		return ""
	}
	return MachineOf(a)
}

// MachineOf is the part of an address that names a machine.
func MachineOf(a ma.Multiaddr) string {
	first, _ := ma.SplitFirst(a)
	return first.String()
}

// WebPort is the one that every network lets out.
const WebPort = "443"

// Web reports whether an address may be dialled from where only the web is.
func Web(a ma.Multiaddr) bool {
	port, err := a.ValueForProtocol(ma.P_TCP)
	return err == nil && (port == WebPort || has(a, ma.P_WS))
}

func has(a ma.Multiaddr, code int) bool {
	_, err := a.ValueForProtocol(code)
	return err == nil
}

func boolRank(b bool) int {
	if b {
		return 1
	}
	return 0
}
