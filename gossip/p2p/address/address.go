// Package address reads and writes the names of peers and the addresses at which they are: what libp2p calls them, and what an
// address is worth. All of it follows from the text; it knows no host.
package address

import (
	"fmt"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"

	"atoll/gossip/wire"
)

// ID returns the libp2p form of id, which is the multihash of the
// public key. It fails for 32 bytes that are no key.
func ID(id wire.PeerID) (peer.ID, error) {
	key, err := crypto.UnmarshalEd25519PublicKey(id[:])
	if err != nil {
		return "", fmt.Errorf("peer id %v: %w", id, err)
	}
	return peer.IDFromPublicKey(key)
}

// PeerID is the reverse of ID. It fails for a key that is not ed25519.
func PeerID(pid peer.ID) (wire.PeerID, error) {
	key, err := pid.ExtractPublicKey()
	if err != nil {
		return wire.PeerID{}, fmt.Errorf("peer id %s: %w; atoll nodes have ed25519 keys", pid, err)
	}
	raw, err := key.Raw()
	if err != nil || key.Type() != crypto.Ed25519 {
		return wire.PeerID{}, fmt.Errorf("peer id %s: key of type %v; atoll nodes have ed25519 keys", pid, key.Type())
	}
	return wire.PeerID(raw), nil
}

// PeerText returns id as it stands in a multiaddr after /p2p/: 12D3KooW...
// It is empty for an id that is no key.
func PeerText(id wire.PeerID) string {
	pid, err := ID(id)
	if err != nil {
		return ""
	}
	return pid.String()
}

// ParsePeer reads what PeerText wrote.
func ParsePeer(text string) (wire.PeerID, error) {
	pid, err := peer.Decode(text)
	if err != nil {
		return wire.PeerID{}, fmt.Errorf("peer %q: %w; want the part of an address after /p2p/", text, err)
	}
	return PeerID(pid)
}

// PeerIDOf returns the peer that a full address, like
// /ip4/192.0.2.1/tcp/4001/p2p/12D3KooW..., leads to.
func PeerIDOf(addr string) (wire.PeerID, error) {
	_, id, err := Parse(addr)
	return id, err
}

// Of completes a transport address with the peer that is found there.
func Of(transport string, id wire.PeerID) (string, error) {
	a, err := ma.NewMultiaddr(transport)
	if err != nil {
		return "", fmt.Errorf("address %q: %w", transport, err)
	}
	pid, err := ID(id)
	if err != nil {
		return "", err
	}
	return a.String() + "/p2p/" + pid.String(), nil
}

const addrExample = "/ip4/192.0.2.1/tcp/4001/p2p/12D3KooW..."

// Parse checks an address that shall be dialled.
func Parse(addr string) (peer.AddrInfo, wire.PeerID, error) {
	a, err := ma.NewMultiaddr(addr)
	if err != nil {
		return peer.AddrInfo{}, wire.PeerID{}, fmt.Errorf("address %q: %w; want something like %s", addr, err, addrExample)
	}
	info, err := peer.AddrInfoFromP2pAddr(a)
	if err != nil {
		return peer.AddrInfo{}, wire.PeerID{}, fmt.Errorf("address %q: %w; it has to end in /p2p/ and the peer's id, like %s", addr, err, addrExample)
	}
	if len(info.Addrs) == 0 {
		return peer.AddrInfo{}, wire.PeerID{}, fmt.Errorf("address %q: names a peer but no place; want something like %s", addr, addrExample)
	}
	id, err := PeerID(info.ID)
	if err != nil {
		return peer.AddrInfo{}, wire.PeerID{}, fmt.Errorf("address %q: %w", addr, err)
	}
	return *info, id, nil
}
