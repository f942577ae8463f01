package codec

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/klauspost/compress/huff0"
)

// Modes of a chunk.
const (
	modeStored = 0
	modeRun    = 1
	modeHuff0  = 2
)

const (
	// huffHeader is the mode byte and the uint24 length of a huff0 chunk.
	huffHeader = 1 + 3

	// minHuff is the shortest stream worth trying: a table and the lengths
	// of four parts take more than half of it.
	minHuff = 64
)

var errShort = errors.New("it ends too early")

// scratch is the working memory of one Encode, Decode or Check.
type scratch struct {
	segments [2]segment // that are decoded together; the first one encodes
	floats   []float32
	last     lastBlock
	scales   [PieceLen / blockLen]float32
	sparse   selection
	packer   *huff0.Scratch
	reader   *huff0.Scratch
	fast     fastTable
	waiting  waiting
}

// segment is the raw streams of one segment.
type segment struct {
	buf     []byte // backs streams, if nothing else does
	streams [][]byte
}

func newScratch() *scratch {
	return &scratch{
		packer: &huff0.Scratch{Reuse: huff0.ReusePolicyNone},
		reader: &huff0.Scratch{},
	}
}

// divide makes s.streams those of n values: in memory, or where that is nil in memory of its
// own.
func (s *segment) divide(memory []byte, k Kind, n int) [][]byte {
	total := rawSegment(k, n)
	if memory == nil && cap(s.buf) < total {
		s.buf = make([]byte, total)
	}
	rest := memory
	if memory == nil {
		rest = s.buf[:total]
	}
	s.streams = s.streams[:0]
	sizes, streams := k.layout(n)
	for _, size := range sizes[:streams] {
		s.streams = append(s.streams, rest[:size:size])
		rest = rest[size:]
	}
	return s.streams
}

// values returns n floats to write to, n at most PieceLen.
func (s *scratch) values(n int) []float32 {
	if cap(s.floats) < n {
		s.floats = make([]float32, n)
	}
	return s.floats[:n]
}

// rawSegment is the length in bytes of all streams of a segment of n values.
func rawSegment(k Kind, n int) int {
	sizes, streams := k.layout(n)
	size := 0
	for _, raw := range sizes[:streams] {
		size += raw
	}
	return size
}

// maxSegment is the largest encoding in bytes of a segment of n values.
func maxSegment(k Kind, n int) int {
	_, streams := k.layout(n)
	return streams + rawSegment(k, n) // a mode byte each
}

// appendChunk appends raw, which is not empty, in the shortest mode.
func (s *scratch) appendChunk(dst, raw []byte) []byte {
	if isRun(raw) {
		return append(dst, modeRun, raw[0])
	}
	if len(raw) >= minHuff {
		packed, err := s.compress(raw)
		if n := len(packed); err == nil && huffHeader+n < 1+len(raw) {
			dst = append(dst, modeHuff0, byte(n), byte(n>>8), byte(n>>16))
			return append(dst, packed...)
		}
	}
	dst = append(dst, modeStored)
	return append(dst, raw...)
}

// isRun reports whether all bytes of raw are equal.
func isRun(raw []byte) bool {
	return bytes.Equal(raw[1:], raw[:len(raw)-1])
}

// readChunk fills raw from the chunk that b begins with and returns what
// follows it. The filling of one may wait until complete.
func (s *scratch) readChunk(b, raw []byte) (rest []byte, err error) {
	if len(b) < 2 { // the shortest chunk: a mode and one byte
		return nil, errShort
	}
	mode, b := b[0], b[1:]
	switch mode {
	case modeStored:
		if len(b) < len(raw) {
			return nil, errShort
		}
		copy(raw, b)
		return b[len(raw):], nil
	case modeRun:
		fill(raw, b[0])
		return b[1:], nil
	case modeHuff0:
		return s.readHuff0(b, raw)
	}
	return nil, fmt.Errorf("mode %d is unknown", mode)
}

// readHuff0 reads a huff0 chunk after its mode byte. huff0 accepts one of its
// parts only if it decodes to exactly the expected number of bytes with no bit
// left over, so that each implementation reaches the same verdict.
func (s *scratch) readHuff0(b, raw []byte) (rest []byte, err error) {
	if len(b) < huffHeader-1 {
		return nil, errShort
	}
	n := int(b[0]) | int(b[1])<<8 | int(b[2])<<16
	b = b[huffHeader-1:]
	if len(raw) < minHuff || huffHeader+n > 1+len(raw) {
		return nil, fmt.Errorf("%d packed bytes for %d are more than stored ones", n, len(raw))
	}
	if len(b) < n {
		return nil, errShort
	}
	_, parts, err := huff0.ReadTable(b[:n], s.reader)
	if err != nil {
		return nil, fmt.Errorf("huffman table: %w", err)
	}
	if put, err := s.put(raw, b[:n]); put || err != nil {
		return b[n:], err
	}
	if _, err = s.reader.Decoder().Decompress4X(raw[:0:len(raw)], parts); err != nil {
		return nil, fmt.Errorf("huffman data: %w", err)
	}
	return b[n:], nil
}

// fill sets each byte of raw to c.
func fill(raw []byte, c byte) {
	raw[0] = c
	for done := 1; done < len(raw); done *= 2 {
		copy(raw[done:], raw[:done])
	}
}
