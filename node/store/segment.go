package store

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sort"

	"atoll/gossip/wire"
)

// segment is what a segment file holds: headers and records of some rounds of a fragment
// that are final. A file of it does not change.
//
//	"atollsg1" || fragment u16 || first u32 || last u32
//	n || n authors || n || n certificates
//	n || n headers, ascending by round, author and id:
//	    round-first, author's place, round-base, steps, tokens, precision u8, codec u8,
//	    size, certificate's place + 1 (0 = none), payload's digest, signature, id
//	n || n records, ascending by round:
//	    round-first, chain, state, tokens, end round, n, n folded:
//	    header's place + 1, or 0 and the id of a delta whose header is not here
//	BLAKE3 of all that
//
// Numbers without a width are unsigned varints; those with one are big-endian.
type segment struct {
	fragment    int
	first, last uint32 // rounds, both included
	headers     []sealedHeader
	records     []sealedRound

	byID    []int32                // places in headers, ascending by id
	unknown map[wire.Digest]uint32 // folded, and their headers are not here: their rounds
}

// sealedHeader is a header in a segment.
type sealedHeader struct {
	id wire.Digest
	wire.SignedHeader
}

// sealedRound is a record in a segment.
type sealedRound struct {
	round uint32
	Round
}

const (
	segmentMagic = "atollsg1"
	// headerLeast and recordLeast are the least bytes that one takes: what a file says
	// it has must fit it before memory is taken.
	headerLeast = 8 + 2*len(wire.Digest{}) + len(wire.Signature{})
	recordLeast = 4 + 2*len(wire.Digest{})
)

// before orders headers as the keys of the headers bucket do.
func (h sealedHeader) before(o sealedHeader) int {
	return cmp.Or(cmp.Compare(h.Header.Round, o.Header.Round), h.Header.Author.Compare(o.Header.Author), bytes.Compare(h.id[:], o.id[:]))
}

// key is the key that the headers bucket has for a header.
func (h sealedHeader) key() []byte {
	return append(headerPrefix(h.Header), h.id[:]...)
}

// newSegment makes a segment of headers and records in the order of their keys.
func newSegment(fragment int, first, last uint32, headers []sealedHeader, records []sealedRound) *segment {
	g := &segment{fragment: fragment, first: first, last: last, headers: headers, records: records, unknown: map[wire.Digest]uint32{}}
	g.byID = make([]int32, len(headers))
	for i := range g.byID {
		g.byID[i] = int32(i)
	}
	slices.SortFunc(g.byID, func(a, b int32) int { return bytes.Compare(headers[a].id[:], headers[b].id[:]) })
	for _, r := range records {
		for _, id := range r.Folded {
			if _, known := g.find(id); !known {
				g.unknown[id] = r.round
			}
		}
	}
	return g
}

// find is the place of a header.
func (g *segment) find(id wire.Digest) (place int, known bool) {
	i, known := slices.BinarySearchFunc(g.byID, id, func(at int32, id wire.Digest) int { return bytes.Compare(g.headers[at].id[:], id[:]) })
	if !known {
		return 0, false
	}
	return int(g.byID[i]), true
}

// ofRound is the place of the first header of a round or of later ones.
func (g *segment) ofRound(round uint32) int {
	return sort.Search(len(g.headers), func(i int) bool { return g.headers[i].Header.Round >= round })
}

// table gives each of some digests its place.
type table struct {
	all    []wire.Digest
	places map[wire.Digest]int
}

func (t *table) place(d wire.Digest) int {
	p, known := t.places[d]
	if !known {
		p = len(t.all)
		t.all = append(t.all, d)
		t.places[d] = p
	}
	return p
}

func (t *table) append(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(len(t.all)))
	for _, d := range t.all {
		b = append(b, d[:]...)
	}
	return b
}

// encode is the file of a segment.
func (g *segment) encode() []byte {
	authors, certificates := table{places: map[wire.Digest]int{}}, table{places: map[wire.Digest]int{}}
	for _, h := range g.headers {
		authors.place(wire.Digest(h.Header.Author))
		if !h.Header.Certificate.IsZero() {
			certificates.place(h.Header.Certificate)
		}
	}
	b := append([]byte(segmentMagic), roundKey(g.fragment, g.first)...)
	b = binary.BigEndian.AppendUint32(b, g.last)
	b = certificates.append(authors.append(b))
	b = binary.AppendUvarint(b, uint64(len(g.headers)))
	for _, h := range g.headers {
		b = g.appendHeader(b, h, &authors, &certificates)
	}
	b = binary.AppendUvarint(b, uint64(len(g.records)))
	for _, r := range g.records {
		b = g.appendRecord(b, r)
	}
	sum := wire.Sum(b)
	return append(b, sum[:]...)
}

func (g *segment) appendHeader(b []byte, s sealedHeader, authors, certificates *table) []byte {
	h := s.Header
	certificate := 0
	if !h.Certificate.IsZero() {
		certificate = certificates.place(h.Certificate) + 1
	}
	for _, n := range []uint64{uint64(h.Round - g.first), uint64(authors.place(wire.Digest(h.Author))), uint64(h.Round - h.Base), uint64(h.Steps), h.Tokens} {
		b = binary.AppendUvarint(b, n)
	}
	b = append(b, h.Codec)
	b = binary.AppendUvarint(b, uint64(h.Size))
	b = binary.AppendUvarint(b, uint64(certificate))
	b = append(append(b, h.Payload[:]...), s.Sig[:]...)
	return append(b, s.id[:]...)
}

func (g *segment) appendRecord(b []byte, r sealedRound) []byte {
	b = binary.AppendUvarint(b, uint64(r.round-g.first))
	b = append(append(b, r.Chain[:]...), r.State[:]...)
	b = binary.AppendUvarint(b, r.Tokens)
	b = binary.AppendUvarint(b, uint64(r.EndRound))
	b = binary.AppendUvarint(b, uint64(len(r.Folded)))
	for _, id := range r.Folded {
		if place, known := g.find(id); known {
			b = binary.AppendUvarint(b, uint64(place)+1)
		} else {
			b = append(append(b, 0), id[:]...)
		}
	}
	return b
}

// decodeSegment reads a file of a segment. What it returns is as encode had it.
func decodeSegment(b []byte) (*segment, error) {
	end := len(b) - len(wire.Digest{})
	if end < 0 || wire.Sum(b[:end]) != wire.Digest(b[end:]) {
		return nil, fmt.Errorf("%d bytes do not match the digest at their end", len(b))
	}
	return parseSegment(b[:end])
}

// parseSegment reads what stands before the digest.
func parseSegment(b []byte) (*segment, error) {
	r := segmentReader{rest: b}
	if string(r.bytes(len(segmentMagic))) != segmentMagic {
		return nil, errors.New("it is not a segment of a kind that this atoll knows")
	}
	g := &segment{fragment: int(r.u16()), first: r.u32(), last: r.u32()}
	if r.err == nil && (g.fragment >= wire.MaxFragments || g.first > g.last) {
		return nil, fmt.Errorf("it says fragment %d, rounds %d to %d", g.fragment, g.first, g.last)
	}
	authors, certificates := r.table(), r.table()
	headers := make([]sealedHeader, r.count(headerLeast))
	for i := range headers {
		headers[i] = r.header(g, authors, certificates)
		if r.err == nil && i > 0 && headers[i-1].before(headers[i]) >= 0 {
			return nil, fmt.Errorf("header %d is out of order", i)
		}
	}
	records := make([]sealedRound, r.count(recordLeast))
	for i := range records {
		records[i] = r.record(g, headers)
		if r.err == nil && i > 0 && records[i-1].round >= records[i].round {
			return nil, fmt.Errorf("record %d is out of order", i)
		}
	}
	if r.err == nil && len(r.rest) > 0 {
		r.err = fmt.Errorf("%d bytes too many", len(r.rest))
	}
	if r.err != nil {
		return nil, r.err
	}
	return newSegment(g.fragment, g.first, g.last, headers, records), nil
}

// segmentReader reads a segment from its front. After an error it reads zeros.
type segmentReader struct {
	rest []byte
	err  error
}

var errSegmentShort = errors.New("it ends too early")

// zeros stand for what cannot be read.
var zeros [len(wire.Signature{})]byte

// bytes are the next n, at most those of a signature.
func (r *segmentReader) bytes(n int) []byte {
	if r.err == nil && n > len(r.rest) {
		r.err = errSegmentShort
	}
	if r.err != nil {
		return zeros[:n]
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

func (r *segmentReader) u16() uint16         { return binary.BigEndian.Uint16(r.bytes(2)) }
func (r *segmentReader) u32() uint32         { return binary.BigEndian.Uint32(r.bytes(4)) }
func (r *segmentReader) digest() wire.Digest { return wire.Digest(r.bytes(len(wire.Digest{}))) }

// number is the next varint, at most most.
func (r *segmentReader) number(most uint64) uint64 {
	if r.err != nil {
		return 0
	}
	n, size := binary.Uvarint(r.rest)
	switch {
	case size <= 0:
		r.err = errSegmentShort
	case n > most:
		r.err = fmt.Errorf("a number is %d, and may be %d", n, most)
	default:
		r.rest = r.rest[size:]
		return n
	}
	return 0
}

// count is the next number, of things that take at least some bytes each.
func (r *segmentReader) count(least int) int { return int(r.number(uint64(len(r.rest) / least))) }

// round is the next round of a segment.
func (r *segmentReader) round(g *segment) uint32 {
	return g.first + uint32(r.number(uint64(g.last-g.first)))
}

func (r *segmentReader) table() []wire.Digest {
	all := make([]wire.Digest, r.count(len(wire.Digest{})))
	for i := range all {
		all[i] = r.digest()
	}
	return all
}

// place is one of a table, whose place is the next number.
func (r *segmentReader) place(all []wire.Digest) (d wire.Digest) {
	if len(all) == 0 {
		r.err = cmp.Or(r.err, errors.New("it names an author, and lists none"))
		return d
	}
	return all[r.number(uint64(len(all)-1))]
}

func (r *segmentReader) header(g *segment, authors, certificates []wire.Digest) (s sealedHeader) {
	h := &s.Header
	h.Fragment, h.Round = uint16(g.fragment), r.round(g)
	h.Author = wire.PeerID(r.place(authors))
	h.Base = h.Round - uint32(r.number(uint64(h.Round)))
	h.Steps, h.Tokens = uint32(r.number(none-1)), r.number(1<<64-1)
	h.Codec = r.bytes(1)[0]
	h.Size = uint32(r.number(none - 1))
	if place := r.number(uint64(len(certificates))); place > 0 {
		h.Certificate = certificates[place-1]
	}
	h.Payload = r.digest()
	s.Sig = wire.Signature(r.bytes(len(s.Sig)))
	s.id = r.digest()
	if r.err == nil {
		r.err = h.Validate()
	}
	return s
}

func (r *segmentReader) record(g *segment, headers []sealedHeader) sealedRound {
	s := sealedRound{round: r.round(g)}
	s.Chain, s.State = r.digest(), r.digest()
	s.Tokens, s.EndRound = r.number(1<<64-1), uint32(r.number(none-1))
	for n := r.count(1); n > 0 && r.err == nil; n-- {
		if place := r.number(uint64(len(headers))); place > 0 {
			s.Folded = append(s.Folded, headers[place-1].id)
		} else {
			s.Folded = append(s.Folded, r.digest())
		}
	}
	return s
}
