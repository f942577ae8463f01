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

	// SegmentLen is the number of values that are coded together. It bounds
	// the scratch memory, and no stream of a segment exceeds the 128 KiB that
	// keep each of huff0's four parts within its 16-bit length.
	SegmentLen = 1 << 17

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
		return nil, fmt.Errorf("encode %v: unknown kind: use %s", k, alternatives)
	}
	if len(v) > MaxValues {
		return nil, fmt.Errorf("encode %v: %d values exceed %d: use smaller fragments", k, len(v), MaxValues)
	}
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	out := make([]byte, 0, MaxSize(k, len(v)))
	out = append(out, version, byte(k))
	out = binary.LittleEndian.AppendUint32(out, uint32(len(v)))
	for at := 0; at < len(v); at += SegmentLen {
		seg := v[at:min(at+SegmentLen, len(v))]
		if i := encodeSegment(k, s, seg); i >= 0 {
			return nil, fmt.Errorf("encode %v: value %d is %v: only magnitudes below 2^127 can be encoded", k, at+i, seg[i])
		}
		for _, stream := range s.segments[0].streams {
			out = s.appendChunk(out, stream)
		}
	}
	return out, nil
}

// MaxSize is the length in bytes that no valid payload of n values in kind k
// exceeds. It is 0 for an unknown kind or an n outside 0..MaxValues: no payload
// of these is valid.
func MaxSize(k Kind, n int) int {
	if !k.Valid() || n < 0 || n > MaxValues {
		return 0
	}
	size := headerSize + (n/SegmentLen)*maxSegment(k, SegmentLen)
	if rest := n % SegmentLen; rest > 0 {
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

// encodeSegment fills the streams of s from v. It returns the index of the
// first value that cannot be encoded, or -1.
func encodeSegment(k Kind, s *scratch, v []float32) int {
	streams := s.segments[0].divide(nil, k, len(v))
	switch k {
	case F32:
		return splitF32(streams, v)
	case Int4:
		return quantize(streams, v, &s.last)
	default: // Sparse, Sparse8
		return s.sparse.sparsify(k, streams, v)
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
