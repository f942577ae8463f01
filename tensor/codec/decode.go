package codec

import (
	"encoding/binary"
	"fmt"
)

// PieceLen is the most values that are handed out at a time: few enough to stay in the first
// cache.
const PieceLen = 1 << 13

// Decode writes the n values of payload b to dst, which must have length n.
// After an error the content of dst is undefined.
func Decode(b []byte, n int, dst []float32) error {
	if len(dst) != n {
		return fmt.Errorf("decode: %d values do not go into a slice of %d", n, len(dst))
	}
	d := decoder{dst: dst}
	return d.decode(b, n)
}

// Check returns nil exactly where Decode does, without keeping the values.
func Check(b []byte, n int) error {
	d := decoder{}
	return d.decode(b, n)
}

// Reader reads the segments of a payload again: in any order, as often as is needed. It is
// not for concurrent use.
type Reader struct {
	kind   Kind
	n      int
	b      []byte
	starts []int  // of the segments in b
	raw    []byte // their streams without entropy coding, or nil
}

// RawSize is the memory in bytes that spares a Reader of n values in kind k to undo the entropy
// coding at each reading. It is 0 where MaxSize is.
func RawSize(k Kind, n int) int {
	if !k.Valid() || n < 0 || n > MaxValues {
		return 0
	}
	return (n/SegmentLen)*rawSegment(k, SegmentLen) + rawSegment(k, n%SegmentLen)
}

// Open finds out whether b is a payload of n values, adds their squares to those of parts, and returns a Reader of
// it, which keeps b and memory. memory has RawSize bytes, or is nil. parts follow one another and have all
// values, or there are none. After an error the sums of parts are undefined.
func Open(b []byte, n int, memory []byte, parts []Squares) (*Reader, error) {
	kind, err := KindOf(b)
	if err != nil {
		return nil, err
	}
	if want := RawSize(kind, n); memory != nil && len(memory) != want {
		return nil, fmt.Errorf("open %v: memory of %d bytes; %d values have %d", kind, len(memory), n, want)
	}
	if err := checkParts(parts, n); err != nil {
		return nil, fmt.Errorf("open %v: %w", kind, err)
	}
	r := &Reader{kind: kind, n: n, b: b, raw: memory}
	d := decoder{parts: parts}
	d.memory = func(at int) []byte {
		r.starts = append(r.starts, len(b)-len(d.rest))
		return r.streams(at / SegmentLen)
	}
	return r, d.decode(b, n)
}

// streams is the memory of those of segment i, or nil.
func (r *Reader) streams(i int) []byte {
	if r.raw == nil {
		return nil
	}
	at := i * rawSegment(r.kind, SegmentLen)
	return r.raw[at : at+rawSegment(r.kind, r.length(i))]
}

// length is the number of values in segment i.
func (r *Reader) length(i int) int { return min(SegmentLen, r.n-i*SegmentLen) }

// Read hands the n values from number at on, which lie in one segment, to visit piece by piece, in order: v holds
// those from its number at on, and is overwritten after visit returns. at is a multiple of PieceLen. Without memory
// it undoes the entropy coding of the whole segment. The payload must not have changed since Open.
func (r *Reader) Read(at, n int, visit func(at int, v []float32)) {
	d := decoder{visit: visit}
	r.segment(&d, at/SegmentLen, func(i int, streams [][]byte) error {
		return d.join(i*SegmentLen, at-i*SegmentLen, at-i*SegmentLen+n, streams)
	})
}

// segment has do work with the streams of segment i again.
func (r *Reader) segment(d *decoder, i int, do func(i int, streams [][]byte) error) {
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	s.waiting = waiting{}
	d.kind, d.s = r.kind, s
	streams := s.segments[0].divide(r.streams(i), r.kind, r.length(i))
	var err error
	if r.raw == nil {
		if _, err = s.readStreams(r.b[r.starts[i]:], streams); err == nil {
			err = s.settle()
		}
	}
	if err == nil {
		err = do(i, streams)
	}
	if err != nil {
		panic("codec: a payload that was decoded does not decode again: " + err.Error())
	}
}

// decoder is a payload under way.
type decoder struct {
	kind Kind
	rest []byte // of the payload
	s    *scratch

	// Where the streams of the values from number at on are to go, and all values, and who is told
	// of these. Each may be nil, for scratch memory and nobody. With sums or parts values are only added,
	// or their squares; with none of all that they are only checked.
	memory func(at int) []byte
	dst    []float32
	visit  func(at int, v []float32)
	sums   *sums
	parts  []Squares
}

// decode runs through payload b of n values, two segments at a time.
func (d *decoder) decode(b []byte, n int) (err error) {
	if d.kind, err = KindOf(b); err != nil {
		return err
	}
	if n < 0 || n > MaxValues {
		return fmt.Errorf("decode %v: %d values are outside 0..%d", d.kind, n, MaxValues)
	}
	if count := binary.LittleEndian.Uint32(b[2:]); uint64(count) != uint64(n) {
		return fmt.Errorf("%w: it has %d values where %d are expected", ErrCorrupt, count, n)
	}
	d.s, d.rest = scratches.Get().(*scratch), b[headerSize:]
	defer scratches.Put(d.s)
	for at := 0; at < n; at += len(d.s.segments) * SegmentLen {
		if err := d.next(at, n); err != nil {
			return fmt.Errorf("%w: %v values from %d on: %w", ErrCorrupt, d.kind, at, err)
		}
	}
	if len(d.rest) > 0 {
		return fmt.Errorf("%w: %d bytes follow the last value", ErrCorrupt, len(d.rest))
	}
	return nil
}

// next decodes the two segments from value number at on, or the one that is left of n values.
func (d *decoder) next(at, n int) (err error) {
	d.s.waiting = waiting{}
	segments := d.s.segments[:min(len(d.s.segments), (n-at+SegmentLen-1)/SegmentLen)]
	for i := range segments {
		var memory []byte
		from := at + i*SegmentLen
		if d.memory != nil {
			memory = d.memory(from)
		}
		streams := segments[i].divide(memory, d.kind, min(SegmentLen, n-from))
		if d.rest, err = d.s.readStreams(d.rest, streams); err != nil {
			return err
		}
	}
	if err := d.s.settle(); err != nil {
		return err
	}
	for i := range segments {
		from := at + i*SegmentLen
		length, streams := min(SegmentLen, n-from), segments[i].streams
		switch {
		case d.sums != nil:
			err = d.add(from, length, streams)
		case d.parts != nil:
			err = d.square(from, length, streams)
		case d.dst == nil && d.visit == nil:
			err = d.s.check(d.kind, streams, length)
		default:
			err = d.join(from, 0, length, streams)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// join makes the values between from and to of the segment that begins with number at of their
// streams, piece by piece.
func (d *decoder) join(at, from, to int, streams [][]byte) error {
	for ; from < to; from += PieceLen {
		m := min(PieceLen, to-from)
		var v []float32
		if d.dst != nil {
			v = d.dst[at+from : at+from+m]
		} else {
			v = d.s.values(m)
		}
		if err := d.s.join(d.kind, v, streams, from); err != nil {
			return err
		}
		if d.visit != nil {
			d.visit(at+from, v)
		}
	}
	return nil
}

// readStreams fills the streams of a segment from the chunks that b begins with and returns what
// follows them. The filling of one may wait until settle.
func (s *scratch) readStreams(b []byte, streams [][]byte) (rest []byte, err error) {
	for i, stream := range streams {
		if b, err = s.readChunk(b, stream); err != nil {
			return nil, fmt.Errorf("stream %d: %w", i, err)
		}
	}
	return b, nil
}

// join makes the values of a segment from number from on, a multiple of PieceLen, of its streams.
func (s *scratch) join(k Kind, dst []float32, streams [][]byte, from int) error {
	switch k {
	case F32:
		return joinF32(dst, streams, from)
	case BF16:
		return joinBF16(dst, streams, from)
	case Int8:
		return quant8.dequantize(dst, streams, from, &s.last)
	case Int4:
		return quant4.dequantize(dst, streams, from, &s.last)
	default: // Sparse
		return scatter(dst, streams, from)
	}
}
