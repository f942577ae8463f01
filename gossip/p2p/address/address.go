// Package address reads and writes the names of peers and the addresses at which they are: what libp2p calls them, and what an
// address is worth. All of it follows from the text; it knows no host, and has no libp2p.
package address

import (
	"errors"
	"fmt"
	"strings"

	ma "github.com/multiformats/go-multiaddr"

	"atoll/gossip/wire"
)

// idPrefix begins the libp2p form of every node's id. It says that a multihash is the hashed bytes themselves, and that these are
// the 32 bytes of an ed25519 key. All that follows is the key.
const idPrefix = "\x00\x24\x08\x01\x12\x20"

// ID returns the libp2p form of id, which is the multihash of the public key.
func ID(id wire.PeerID) string { return idPrefix + string(id[:]) }

var errOtherKey = errors.New("atoll nodes have ed25519 keys, and this is the name of another")

// PeerID is the reverse of ID. It fails for a key that is not ed25519.
func PeerID(name string) (id wire.PeerID, err error) {
	key, ok := strings.CutPrefix(name, idPrefix)
	if !ok || len(key) != len(id) {
		return id, errOtherKey
	}
	return wire.PeerID([]byte(key)), nil
}

// PeerText returns id as it stands in a multiaddr after /p2p/: 12D3KooW...
func PeerText(id wire.PeerID) string {
	text, _ := ma.TranscoderP2P.BytesToString([]byte(ID(id))) // it refuses only what is no multihash
	return text
}

// PeerIDOf returns the peer that a full address, like
// /ip4/192.0.2.1/tcp/4001/p2p/12D3KooW..., leads to.
func PeerIDOf(addr string) (wire.PeerID, error) {
	_, id, err := Parse(addr)
	return id, err
}

const addrExample = "/ip4/192.0.2.1/tcp/4001/p2p/12D3KooW..."

// Parse checks an address that shall be dialled, and returns the place and the peer that it names.
func Parse(addr string) (place ma.Multiaddr, id wire.PeerID, err error) {
	a, err := ma.NewMultiaddr(addr)
	if err != nil {
		return nil, id, fmt.Errorf("address %q: %w; want something like %s", addr, err, addrExample)
	}
	place, last := ma.SplitLast(a)
	if last == nil || last.Protocol().Code != ma.P_P2P {
		return nil, id, fmt.Errorf("address %q: it has to end in /p2p/ and the peer's id, like %s", addr, addrExample)
	}
	if len(place) == 0 {
		return nil, id, fmt.Errorf("address %q: names a peer but no place; want something like %s", addr, addrExample)
	}
	if id, err = PeerID(string(last.RawValue())); err != nil {
		return nil, id, fmt.Errorf("address %q: %w", addr, err)
	}
	return place, id, nil
}
