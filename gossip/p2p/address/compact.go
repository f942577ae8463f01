package address

import (
	"encoding/binary"
	"errors"
	"slices"

	ma "github.com/multiformats/go-multiaddr"

	"atoll/gossip/wire"
)

// What begins an address in the compact form: the kind of its place, and flags. Ids follow where no flag says that they are those of the address before.
const (
	placeOther byte = iota // length as a varint, binary multiaddr
	placeIP4               // 4 bytes and a TCP port
	placeIP6               // 16 bytes and a TCP port

	flagRelayed   byte = 1 << 2 // the place is a relay's
	flagSameNode  byte = 1 << 3
	flagSameRelay byte = 1 << 4
	flagsEnd      byte = 1 << 5
)

// errCompact says that bytes are no addresses.
var errCompact = errors.New("no addresses in the compact form")

// parts is an address, taken apart.
type parts struct {
	place       ma.Multiaddr
	relay, node wire.PeerID
	relayed     bool
}

func takeApart(addr string) (p parts, err error) {
	if p.place, p.node, err = Parse(addr); err != nil {
		return p, err
	}
	before, circuit := ma.SplitLast(p.place)
	if circuit == nil || circuit.Protocol().Code != ma.P_CIRCUIT {
		return p, nil
	}
	place, relay := ma.SplitLast(before)
	if relay == nil || relay.Protocol().Code != ma.P_P2P || len(place) == 0 {
		return p, nil
	}
	if id, err := PeerID(string(relay.RawValue())); err == nil {
		p.place, p.relay, p.relayed = place, id, true
	}
	return p, nil
}

// AppendCompact appends addresses as Compact reads them. Those that Check refuses fail.
func AppendCompact(b []byte, addrs []string) ([]byte, error) {
	var last parts
	for _, addr := range addrs {
		p, err := takeApart(addr)
		if err != nil {
			return nil, err
		}
		kind, place := compactPlace(p.place)
		if p.relayed {
			kind |= flagRelayed
		}
		if p.relayed && p.relay == last.relay {
			kind |= flagSameRelay
		}
		if p.node == last.node {
			kind |= flagSameNode
		}
		b = append(append(b, kind), place...)
		if p.relayed && kind&flagSameRelay == 0 {
			b = append(b, p.relay[:]...)
		}
		if kind&flagSameNode == 0 {
			b = append(b, p.node[:]...)
		}
		if last.node = p.node; p.relayed {
			last.relay = p.relay
		}
	}
	return b, nil
}

func compactPlace(place ma.Multiaddr) (kind byte, b []byte) {
	if len(place) == 2 && place[1].Protocol().Code == ma.P_TCP {
		switch place[0].Protocol().Code {
		case ma.P_IP4:
			return placeIP4, slices.Concat(place[0].RawValue(), place[1].RawValue())
		case ma.P_IP6:
			return placeIP6, slices.Concat(place[0].RawValue(), place[1].RawValue())
		}
	}
	b = place.Bytes()
	return placeOther, append(binary.AppendUvarint(nil, uint64(len(b))), b...)
}

// Compact reads n addresses, and returns the bytes behind them.
func Compact(b []byte, n int) (addrs []string, rest []byte, err error) {
	var p parts
	for range n {
		if len(b) == 0 || b[0] >= flagsEnd {
			return nil, nil, errCompact
		}
		kind := b[0]
		if p.place, b, err = readPlace(kind, b[1:]); err != nil {
			return nil, nil, err
		}
		p.relayed = kind&flagRelayed != 0
		if p.relayed && kind&flagSameRelay == 0 {
			if b, err = readID(&p.relay, b); err != nil {
				return nil, nil, err
			}
		}
		if kind&flagSameNode == 0 {
			if b, err = readID(&p.node, b); err != nil {
				return nil, nil, err
			}
		}
		addr := p.String()
		if err := Check(addr); err != nil {
			return nil, nil, err
		}
		addrs = append(addrs, addr)
	}
	return addrs, b, nil
}

func readID(id *wire.PeerID, b []byte) (rest []byte, err error) {
	if len(b) < len(id) {
		return nil, errCompact
	}
	*id = wire.PeerID(b[:len(id)])
	return b[len(id):], nil
}

func readPlace(kind byte, b []byte) (place ma.Multiaddr, rest []byte, err error) {
	size, ip := 0, []byte{ma.P_IP4}
	switch kind & (flagRelayed - 1) {
	case placeIP4:
		size = 4
	case placeIP6:
		size, ip = 16, []byte{ma.P_IP6}
	case placeOther:
		n, used := binary.Uvarint(b)
		if used <= 0 || n > uint64(len(b)-used) {
			return nil, nil, errCompact
		}
		b = b[used:]
		place, err = ma.NewMultiaddrBytes(b[:n])
		return place, b[n:], err
	default:
		return nil, nil, errCompact
	}
	if len(b) < size+2 {
		return nil, nil, errCompact
	}
	place, err = ma.NewMultiaddrBytes(slices.Concat(ip, b[:size], []byte{ma.P_TCP}, b[size:size+2]))
	return place, b[size+2:], err
}

// String is the address as text.
func (p parts) String() string {
	if p.relayed {
		return p.place.String() + "/p2p/" + PeerText(p.relay) + "/p2p-circuit/p2p/" + PeerText(p.node)
	}
	return p.place.String() + "/p2p/" + PeerText(p.node)
}
