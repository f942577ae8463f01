package codec

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Bytes of float32 values that must stay as they are, such as those of a tip, travel as the four planes of the
// values, each of which is one chunk. What else stands between the values costs little: all bytes come back,
// whatever they are of.

// planes is the number of streams of packed bytes: the bytes of a float32.
const planes = 4

// MaxPacked is how many bytes can be packed at a time: no plane of them is longer than a stream of a segment
// may be.
const MaxPacked = planes * SegmentLen

// Pack returns b, of at most MaxPacked bytes, in fewer bytes where it can, and in up to four more where it cannot.
func Pack(b []byte) []byte {
	if len(b) > MaxPacked {
		panic(fmt.Sprintf("codec: pack %d bytes: at most %d fit", len(b), MaxPacked))
	}
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	streams := s.segments[0].planes(len(b))
	part(streams, b)
	out := make([]byte, 0, planes+len(b))
	for _, stream := range streams {
		if len(stream) > 0 {
			out = s.appendChunk(out, stream)
		}
	}
	return out
}

// Unpack returns the n bytes that were packed. It sets no memory aside for them before it has read all of packed.
func Unpack(packed []byte, n int) ([]byte, error) {
	if n < 0 || n > MaxPacked {
		return nil, fmt.Errorf("unpack: %d bytes are outside 0..%d", n, MaxPacked)
	}
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	s.waiting = waiting{}
	streams := s.segments[0].planes(n)
	if err := s.readPlanes(packed, streams); err != nil {
		return nil, fmt.Errorf("%w: unpack %d bytes of %d: %w", ErrCorrupt, n, len(packed), err)
	}
	b := make([]byte, n)
	join(b, streams)
	return b, nil
}

var errFollow = errors.New("bytes follow the last stream")

// readPlanes fills the streams from all of b.
func (s *scratch) readPlanes(b []byte, streams [][]byte) (err error) {
	for i, stream := range streams {
		if len(stream) == 0 {
			continue // it has no chunk
		}
		if b, err = s.readChunk(b, stream); err != nil {
			return fmt.Errorf("stream %d: %w", i, err)
		}
	}
	if len(b) > 0 {
		return errFollow
	}
	return s.complete()
}

// planes makes s.streams those of n bytes that are packed.
func (s *segment) planes(n int) [][]byte {
	if cap(s.buf) < n {
		s.buf = make([]byte, n)
	}
	rest := s.buf[:n]
	s.streams = s.streams[:0]
	for k := range planes {
		size := (n + planes - 1 - k) / planes
		s.streams = append(s.streams, rest[:size:size])
		rest = rest[size:]
	}
	return s.streams
}

// part writes byte i of b to stream i mod 4.
func part(streams [][]byte, b []byte) {
	n := len(b) / planes
	p0, p1, p2, p3 := streams[0][:n], streams[1][:n], streams[2][:n], streams[3][:n]
	for i := range n {
		x := binary.LittleEndian.Uint32(b[planes*i:])
		p0[i], p1[i], p2[i], p3[i] = byte(x), byte(x>>8), byte(x>>16), byte(x>>24)
	}
	for k, x := range b[planes*n:] {
		streams[k][n] = x
	}
}

// join is the inverse of part.
func join(b []byte, streams [][]byte) {
	n := len(b) / planes
	p0, p1, p2, p3 := streams[0][:n], streams[1][:n], streams[2][:n], streams[3][:n]
	for i := range n {
		x := uint32(p0[i]) | uint32(p1[i])<<8 | uint32(p2[i])<<16 | uint32(p3[i])<<24
		binary.LittleEndian.PutUint32(b[planes*i:], x)
	}
	rest := b[planes*n:]
	for k := range rest {
		rest[k] = streams[k][n]
	}
}
