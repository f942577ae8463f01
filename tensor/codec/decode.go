package codec

import (
	"encoding/binary"
	"fmt"
)

// SegmentLen is the most values that Walk and a Reader deliver at a time.
const SegmentLen = segmentLen

// Decode writes the n values of payload b to dst, which must have length n.
// After an error the content of dst is undefined.
func Decode(b []byte, n int, dst []float32) error {
	if len(dst) != n {
		return fmt.Errorf("decode: %d values do not go into a slice of %d", n, len(dst))
	}
	return decode(b, n, func(d *decoder, m int) error { return d.next(nil, dst[d.at:d.at+m]) })
}

// Check returns nil exactly where Decode does, without keeping the values.
func Check(b []byte, n int) error {
	return Walk(b, n, func(int, []float32) {})
}

// Walk decodes payload b of n values and hands them to visit a segment at a time, in order: v
// holds those from number at on, and is overwritten after visit returns. The error is that of
// Decode; values that visit saw before it are undefined.
func Walk(b []byte, n int, visit func(at int, v []float32)) error {
	return decode(b, n, func(d *decoder, m int) error {
		v := d.s.values(m)
		err := d.next(nil, v)
		if err == nil {
			visit(d.at, v)
		}
		return err
	})
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
	return (n/segmentLen)*rawSegment(k, segmentLen) + rawSegment(k, n%segmentLen)
}

// Open is Walk, and returns a Reader of the payload, which keeps b and memory. memory has RawSize
// bytes, or is nil.
func Open(b []byte, n int, memory []byte, visit func(at int, v []float32)) (*Reader, error) {
	kind, err := KindOf(b)
	if err != nil {
		return nil, err
	}
	if want := RawSize(kind, n); memory != nil && len(memory) != want {
		return nil, fmt.Errorf("open %v: memory of %d bytes; %d values have %d", kind, len(memory), n, want)
	}
	r := &Reader{kind: kind, n: n, b: b, raw: memory}
	return r, decode(b, n, func(d *decoder, m int) error {
		r.starts = append(r.starts, len(b)-len(d.rest))
		v := d.s.values(m)
		err := d.next(r.streams(len(r.starts)-1), v)
		if err == nil {
			visit(d.at, v)
		}
		return err
	})
}

// streams is the memory of those of segment i, or nil.
func (r *Reader) streams(i int) []byte {
	if r.raw == nil {
		return nil
	}
	at := i * rawSegment(r.kind, segmentLen)
	return r.raw[at : at+rawSegment(r.kind, r.length(i))]
}

// length is the number of values in segment i.
func (r *Reader) length(i int) int { return min(segmentLen, r.n-i*segmentLen) }

// Segment returns the values from number i*SegmentLen on, written to dst, which has length SegmentLen.
// The payload must not have changed since Open.
func (r *Reader) Segment(i int, dst []float32) []float32 {
	dst = dst[:r.length(i)]
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	s.divide(r.streams(i), r.kind, len(dst))
	var err error
	if r.raw == nil {
		_, err = s.readStreams(r.b[r.starts[i]:])
	}
	if err == nil {
		err = s.join(r.kind, dst)
	}
	if err != nil {
		panic("codec: a payload that was decoded does not decode again: " + err.Error())
	}
	return dst
}

// decoder is a payload under way.
type decoder struct {
	kind Kind
	at   int    // values decoded
	rest []byte // of the payload
	s    *scratch
}

// decode runs through payload b: segment decodes the next m of its n values.
func decode(b []byte, n int, segment func(d *decoder, m int) error) error {
	k, err := KindOf(b)
	if err != nil {
		return err
	}
	if n < 0 || n > MaxValues {
		return fmt.Errorf("decode %v: %d values are outside 0..%d", k, n, MaxValues)
	}
	if count := binary.LittleEndian.Uint32(b[2:]); uint64(count) != uint64(n) {
		return fmt.Errorf("%w: it has %d values where %d are expected", ErrCorrupt, count, n)
	}
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	d := &decoder{kind: k, rest: b[headerSize:], s: s}
	for d.at < n {
		m := min(segmentLen, n-d.at)
		if err := segment(d, m); err != nil {
			return fmt.Errorf("%w: %v values from %d on: %w", ErrCorrupt, k, d.at, err)
		}
		d.at += m
	}
	if len(d.rest) > 0 {
		return fmt.Errorf("%w: %d bytes follow the last value", ErrCorrupt, len(d.rest))
	}
	return nil
}

// next reads a segment off the payload into dst, by way of streams in memory or, where that is
// nil, of the scratch.
func (d *decoder) next(memory []byte, dst []float32) (err error) {
	d.s.divide(memory, d.kind, len(dst))
	if d.rest, err = d.s.readStreams(d.rest); err != nil {
		return err
	}
	return d.s.join(d.kind, dst)
}

// readStreams fills the streams of a segment from the chunks that b begins with and returns what
// follows them.
func (s *scratch) readStreams(b []byte) (rest []byte, err error) {
	for i, stream := range s.streams {
		if b, err = s.readChunk(b, stream); err != nil {
			return nil, fmt.Errorf("stream %d: %w", i, err)
		}
	}
	return b, nil
}

// join makes values of the streams.
func (s *scratch) join(k Kind, dst []float32) error {
	switch k {
	case F32:
		return joinF32(dst, s.streams)
	case BF16:
		return joinBF16(dst, s.streams)
	case Int8:
		return quant8.dequantize(dst, s.streams, &s.last)
	default: // Int4
		return quant4.dequantize(dst, s.streams, &s.last)
	}
}
