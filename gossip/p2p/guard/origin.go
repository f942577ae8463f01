package guard

import (
	"net/netip"

	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
)

// Limits on connections: of all, of a key and of an address.
const (
	// ConnsSystem is the hard limit, with room for handshakes under way.
	ConnsSystem = 512
	// ConnsPeer bounds connections to one peer: simultaneous dials over TCP and
	// QUIC in both directions make four, hole punching may double them.
	ConnsPeer = 8
	// OriginBits4 and OriginBits6 are how much of an IP address tells one owner from another: a provider
	// gives a customer one address of IPv4, and mostly all of IPv6 that begin with the same 56 bits. See Origin.
	OriginBits4, OriginBits6 = 32, 56
	// ConnsAddress bounds connections from one such address: a whole university
	// may sit behind one. libp2p's own default is 8.
	ConnsAddress = 64
)

// Origin is what the peers at an address have in common, and are bounded by together where keys alone cost nothing: the
// address of IPv4, or the network of IPv6 that one customer has. A relayed connection is of its relay. It is no valid prefix for an
// address without an IP.
func Origin(a ma.Multiaddr) netip.Prefix {
	raw, err := manet.ToIP(a)
	ip, ok := netip.AddrFromSlice(raw)
	if err != nil || !ok {
		return netip.Prefix{}
	}
	bits := OriginBits6
	if ip = ip.Unmap().WithZone(""); ip.Is4() {
		bits = OriginBits4
	}
	origin, err := ip.Prefix(bits)
	if err != nil {
		return netip.Prefix{}
	}
	return origin
}
