package store

import (
	"bytes"
	"encoding/binary"
	"math"
	"reflect"
	"slices"
	"testing"

	"atoll/gossip/wire"

	"pgregory.net/rapid"
)

// drawSegment draws a segment of any headers and records. Some ids of its records have no header.
func drawSegment(t *rapid.T) *segment {
	fragment := rapid.IntRange(0, wire.MaxFragments-1).Draw(t, "fragment")
	first := rapid.OneOf(rapid.Just(uint32(1)), rapid.Uint32Range(1, math.MaxUint32-9)).Draw(t, "first")
	last := first + rapid.Uint32Range(0, 9).Draw(t, "span")
	var headers []sealedHeader
	var records []sealedRound
	for round := uint64(first); round <= uint64(last); round++ {
		r := sealedRound{uint32(round), Round{Chain: wire.Digest{1, byte(round)}, State: wire.Digest{2}, Tokens: rapid.Uint64().Draw(t, "tokens"), EndRound: rapid.Uint32().Draw(t, "end")}}
		for n := range rapid.IntRange(0, 3).Draw(t, "headers") {
			h := drawHeader(t, fragment, uint32(round))
			h.id = wire.Sum(binary.BigEndian.AppendUint64(nil, round<<8|uint64(n)))
			headers = append(headers, h)
			r.Folded = append(r.Folded, h.id)
		}
		if rapid.Bool().Draw(t, "unknown") {
			r.Folded = slices.Insert(r.Folded, 0, wire.Digest{byte(round), 3})
		}
		if rapid.IntRange(0, 4).Draw(t, "recorded") > 0 {
			records = append(records, r)
		}
	}
	slices.SortFunc(headers, sealedHeader.before)
	return newSegment(fragment, first, last, headers, records)
}

func drawHeader(t *rapid.T, fragment int, round uint32) (s sealedHeader) {
	s.Header = wire.Header{
		Author: wire.PeerID{rapid.Byte().Draw(t, "author")}, Fragment: uint16(fragment), Round: round, Base: rapid.Uint32Range(0, round-1).Draw(t, "base"),
		Steps: rapid.Uint32Min(1).Draw(t, "steps"), Tokens: rapid.Uint64().Draw(t, "tokens"), Codec: rapid.Byte().Draw(t, "codec"),
		Size: rapid.Uint32Range(1, wire.MaxPayload).Draw(t, "size"), Payload: wire.Digest{7},
		Certificate: wire.Digest{rapid.ByteMax(2).Draw(t, "certificate")},
	}
	if s.Header.Validate() != nil { // a revocation names somebody
		s.Header.Certificate = wire.Digest{9}
	}
	s.Sig = wire.Signature{8, byte(round)}
	return s
}

// What a segment is made of comes back, by place and by id.
func TestSegment(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := drawSegment(t)
		got, err := decodeSegment(g.encode())
		mustDo(t, err)
		if !same(g, got) {
			t.Fatalf("came back as %+v, was %+v", got, g)
		}
		for i, h := range g.headers {
			if place, known := got.find(h.id); !known || place != i {
				t.Fatalf("header %d is at %d, %v", i, place, known)
			}
		}
		if _, known := got.find(wire.Digest{255}); known {
			t.Fatal("it has what was not put")
		}
	})
}

// same compares segments. An empty list is as good as none.
func same(a, b *segment) bool {
	return a.fragment == b.fragment && a.first == b.first && a.last == b.last && slices.Equal(a.headers, b.headers) &&
		slices.EqualFunc(a.records, b.records, func(x, y sealedRound) bool { return reflect.DeepEqual(x, y) }) && reflect.DeepEqual(a.unknown, b.unknown)
}

// A file that is cut or has one flipped bit is no segment.
func TestDamagedSegmentIsNone(t *testing.T) {
	whole := rapid.Custom(drawSegment).Example(7).encode()
	for at := range whole {
		if _, err := decodeSegment(whole[:at]); err == nil {
			t.Errorf("cut to %d bytes it is a segment", at)
		}
		spoilt := bytes.Clone(whole)
		spoilt[at] ^= 1 << (at % 8)
		if _, err := decodeSegment(spoilt); err == nil {
			t.Errorf("with byte %d spoilt it is a segment", at)
		}
	}
}

// Of what claims to be huge no memory is taken.
func TestSegmentThatClaimsTooMuch(t *testing.T) {
	head := append([]byte(segmentMagic), roundKey(1, 5)...)
	head = binary.BigEndian.AppendUint32(head, 9)
	for _, counts := range [][]uint64{{1 << 40}, {0, 1 << 40}, {0, 0, 1 << 40}, {0, 0, 0, 1 << 40}} {
		b := bytes.Clone(head)
		for _, n := range counts {
			b = binary.AppendUvarint(b, n)
		}
		if _, err := parseSegment(append(b, make([]byte, 100)...)); err == nil {
			t.Errorf("%v things in 100 bytes", counts)
		}
	}
}

// FuzzSegment: whatever bytes are read, there is an error or a segment that comes back the same.
func FuzzSegment(f *testing.F) {
	for seed := range 4 {
		b := rapid.Custom(drawSegment).Example(seed).encode()
		f.Add(b[:len(b)-len(wire.Digest{})])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		g, err := parseSegment(b)
		if err != nil {
			return
		}
		again, err := decodeSegment(g.encode())
		if err != nil || !same(g, again) {
			t.Errorf("it came back as %+v, %v, was %+v", again, err, g)
		}
	})
}
