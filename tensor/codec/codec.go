package codec

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sync"
)

const (
	// version opens every payload: high nibble magic, low nibble the version.
	version = 0xA1

	// headerSize is version, kind and count.
	headerSize = 1 + 1 + 4

	// segmentLen is the number of values that are coded together. It bounds
	// the scratch memory, and no stream of a segment exceeds the 128 KiB that
	// keep each of huff0's four parts within its 16-bit length.
	segmentLen = 1 << 17

	// MaxValues bounds the count, so that every size fits an int of 32 bits.
	MaxValues = 1 << 28

	// limitBits are the bits of 2^127. Encode takes magnitudes below it: what
	// rounding makes of them is still finite.
	limitBits = 0x7f000000

	// infBits are the bits of +Inf: magnitudes below it are finite.
	infBits = 0x7f800000

	// magnitude masks the sign off the bits of a float32.
	magnitude = 0x7fffffff
)

// ErrCorrupt is wrapped by each error about the bytes handed to Decode or
// Check, as against wrong arguments.
var ErrCorrupt = errors.New("corrupt payload")

// Encode returns v in kind k. The result is a function of the arguments alone
// and at most MaxSize(k, len(v)) bytes long. A value that is not finite, or
// whose magnitude is 2^127 or more, is an error that names its index.
func Encode(k Kind, v []float32) ([]byte, error) {
	if !k.Valid() {
		return nil, fmt.Errorf("encode %v: unknown kind: use f32, bf16, int8 or int4", k)
	}
	if len(v) > MaxValues {
		return nil, fmt.Errorf("encode %v: %d values exceed %d: use smaller fragments", k, len(v), MaxValues)
	}
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	out := make([]byte, 0, MaxSize(k, len(v)))
	out = append(out, version, byte(k))
	out = binary.LittleEndian.AppendUint32(out, uint32(len(v)))
	for at := 0; at < len(v); at += segmentLen {
		seg := v[at:min(at+segmentLen, len(v))]
		if i := encodeSegment(k, s, seg); i >= 0 {
			return nil, fmt.Errorf("encode %v: value %d is %v: only magnitudes below 2^127 can be encoded", k, at+i, seg[i])
		}
		for _, stream := range s.streams {
			out = s.appendChunk(out, stream)
		}
	}
	return out, nil
}

// Decode writes the n values of payload b to dst, which must have length n.
// After an error the content of dst is undefined.
func Decode(b []byte, n int, dst []float32) error {
	if len(dst) != n {
		return fmt.Errorf("decode: %d values do not go into a slice of %d", n, len(dst))
	}
	return decode(b, n, func(at, n int, _ *scratch) []float32 { return dst[at : at+n] })
}

// Check returns nil exactly where Decode does, without keeping the values.
func Check(b []byte, n int) error {
	return decode(b, n, func(_, n int, s *scratch) []float32 { return s.values(n) })
}

// MaxSize is the length in bytes that no valid payload of n values in kind k
// exceeds. It is 0 for an unknown kind or an n outside 0..MaxValues, of which
// no payload is valid.
func MaxSize(k Kind, n int) int {
	if !k.Valid() || n < 0 || n > MaxValues {
		return 0
	}
	size := headerSize + (n/segmentLen)*maxSegment(k, segmentLen)
	if rest := n % segmentLen; rest > 0 {
		size += maxSegment(k, rest)
	}
	return size
}

// KindOf returns the kind that payload b declares, without checking the rest.
func KindOf(b []byte) (Kind, error) {
	if len(b) < headerSize {
		return 0, fmt.Errorf("%w: %d bytes are shorter than the header of %d", ErrCorrupt, len(b), headerSize)
	}
	if b[0] != version {
		return 0, fmt.Errorf("%w: version %#x where %#x is known", ErrCorrupt, b[0], version)
	}
	if k := Kind(b[1]); k.Valid() {
		return k, nil
	}
	return 0, fmt.Errorf("%w: kind %d is unknown", ErrCorrupt, b[1])
}

// decode runs through payload b segment by segment; where says into which
// slice the n values from index at on go.
func decode(b []byte, n int, where func(at, n int, s *scratch) []float32) error {
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
	b = b[headerSize:]
	for at := 0; at < n; at += segmentLen {
		m := min(segmentLen, n-at)
		if b, err = decodeSegment(k, s, b, where(at, m, s)); err != nil {
			return fmt.Errorf("%w: %v values from %d on: %w", ErrCorrupt, k, at, err)
		}
	}
	if len(b) > 0 {
		return fmt.Errorf("%w: %d bytes follow the last value", ErrCorrupt, len(b))
	}
	return nil
}

// encodeSegment fills the streams of s from v. It returns the index of the
// first value that cannot be encoded, or -1.
func encodeSegment(k Kind, s *scratch, v []float32) int {
	s.divide(k.layout(len(v)))
	switch k {
	case F32:
		return splitF32(s.streams, v)
	case BF16:
		return splitBF16(s.streams, v)
	case Int8:
		return quantize(s.streams, v, span8, pack8)
	default: // Int4
		return quantize(s.streams, v, span4, pack4)
	}
}

// decodeSegment reads the chunks of one segment off b into dst and returns
// what follows them.
func decodeSegment(k Kind, s *scratch, b []byte, dst []float32) (rest []byte, err error) {
	s.divide(k.layout(len(dst)))
	for i, stream := range s.streams {
		if b, err = s.readChunk(b, stream); err != nil {
			return nil, fmt.Errorf("stream %d: %w", i, err)
		}
	}
	switch k {
	case F32:
		return b, joinF32(dst, s.streams)
	case BF16:
		return b, joinBF16(dst, s.streams)
	case Int8:
		return b, dequantize(dst, s.streams, 127, unpack8)
	default: // Int4
		return b, dequantize(dst, s.streams, 7, unpack4)
	}
}

// scratches lends working memory, so that neither direction allocates it anew
// for each payload. No result depends on what a scratch was used for before.
var scratches = sync.Pool{New: func() any { return newScratch() }}

// indexUnfit returns the index of the first value of v that Encode refuses, or -1.
func indexUnfit(v []float32) int {
	for i, x := range v {
		if math.Float32bits(x)&magnitude >= limitBits {
			return i
		}
	}
	return -1
}
