package codec_test

import (
	"encoding/binary"
	"errors"
	"math"
	"math/bits"
	"slices"

	"atoll/tensor/codec"
)

// A decoder of payloads after gossip/wire/SPEC.md and RFC 8878, written to be
// read beside them: slow, and sharing nothing with the package.

var errText = errors.New("the text refuses this")

func decodeByText(b []byte, n int) (v []float32, err error) {
	if len(b) < 6 || b[0] != 0xa1 || !slices.Contains([]byte{1, 4, 5, 6}, b[1]) || int(binary.LittleEndian.Uint32(b[2:])) != n {
		return nil, errText
	}
	k, b := codec.Kind(b[1]), b[6:]
	for at := 0; at < n; at += 131072 {
		m := min(131072, n-at)
		var streams [][]byte
		for _, size := range streamsOf(k, m) {
			var stream []byte
			if stream, b, err = readChunk(b, size); err != nil {
				return nil, err
			}
			streams = append(streams, stream)
		}
		segment, err := valuesOf(k, m, streams)
		if err != nil {
			return nil, err
		}
		v = append(v, segment...)
	}
	if len(b) > 0 {
		return nil, errText
	}
	return v, nil
}

// streamsOf is the table of C-2.
func streamsOf(k codec.Kind, n int) []int {
	blocks := (n + 255) / 256
	switch k {
	case codec.F32:
		return []int{n, n, n, n}
	case codec.Int4:
		return []int{blocks, blocks, (n + 1) / 2}
	default:
		levels, sent := 2*((n+4095)/4096), travellers(k, n)
		return []int{levels, levels, sent, sent}
	}
}

func readChunk(b []byte, size int) (stream, rest []byte, err error) {
	if len(b) < 2 {
		return nil, nil, errText
	}
	mode, b := b[0], b[1:]
	switch {
	case mode == 0 && len(b) >= size:
		return b[:size], b[size:], nil
	case mode == 1:
		stream = make([]byte, size)
		for i := range stream {
			stream[i] = b[0]
		}
		return stream, b[1:], nil
	case mode == 2 && len(b) >= 3:
		n := int(b[0]) | int(b[1])<<8 | int(b[2])<<16
		if b = b[3:]; n > len(b) || size < 64 || 4+n > 1+size {
			return nil, nil, errText
		}
		stream, err = huff0(b[:n], size)
		return stream, b[n:], err
	}
	return nil, nil, errText
}

func valuesOf(k codec.Kind, n int, streams [][]byte) ([]float32, error) {
	v := make([]float32, n)
	if sparseKinds[k] > 0 {
		return v, sparseValues(k, v, streams)
	}
	for i := range v {
		bits := uint32(0)
		switch k {
		case codec.F32:
			for plane, stream := range streams {
				bits |= uint32(stream[i]) << (8 * plane)
			}
			v[i] = math.Float32frombits(bits)
			if bits>>23&0xff == 0xff {
				return nil, errText
			}
		default:
			if err := quantized(v, i, streams); err != nil {
				return nil, err
			}
		}
	}
	return v, nil
}

// quantized sets value i of a segment, and checks the half byte that follows
// the last one.
func quantized(v []float32, i int, streams [][]byte) error {
	scale := math.Float32frombits(uint32(streams[0][i/256])<<16 | uint32(streams[1][i/256])<<24)
	code := int(streams[2][i/2] >> (i % 2 * 4) & 15)
	if top := float64(scale * 7); code == 0 || math.Signbit(top) || math.IsInf(top, 0) || math.IsNaN(top) {
		return errText
	}
	v[i] = float32(code-8) * scale
	if i == len(v)-1 && i%2 == 0 {
		if pad := streams[2][i/2] >> 4; pad == 0 || pad != 8 && scale != 0 {
			return errText
		}
	}
	return nil
}

// huff0 decodes a tree description and four streams into n bytes.
func huff0(b []byte, n int) ([]byte, error) {
	if len(b) == 0 {
		return nil, errText
	}
	weights, b, err := treeWeights(b)
	if err != nil {
		return nil, err
	}
	table, width, err := huffmanTable(weights)
	if err != nil || len(b) < 6 {
		return nil, errText
	}
	var out []byte
	jump, b := b[:6], b[6:]
	for i := range 4 {
		size, want := len(b), n-len(out)
		if i < 3 {
			size, want = int(binary.LittleEndian.Uint16(jump[2*i:])), (n+3)/4
		}
		if size > len(b) || want < 0 {
			return nil, errText
		}
		part, err := huffmanStream(b[:size], table, width, want)
		if err != nil {
			return nil, err
		}
		out, b = append(out, part...), b[size:]
	}
	return out, nil
}

// treeWeights is RFC 8878, 4.2.1.1: half bytes, or FSE.
func treeWeights(b []byte) (weights, rest []byte, err error) {
	n, b := int(b[0]), b[1:]
	if n < 128 {
		if n > len(b) {
			return nil, nil, errText
		}
		weights, err = fseWeights(b[:n])
		return weights, b[n:], err
	}
	n -= 127
	if (n+1)/2 > len(b) {
		return nil, nil, errText
	}
	for i := range n {
		weights = append(weights, b[i/2]>>(4-i%2*4)&15)
	}
	return weights, b[(n+1)/2:], nil
}

// entry is a code's symbol and length in bits.
type entry struct{ symbol, bits byte }

// huffmanTable is RFC 8878, 4.2.1 and 4.2.1.3: the last weight completes a power of two,
// symbols are in order of weight, then of value.
func huffmanTable(weights []byte) (table []entry, width int, err error) {
	total := 0
	for _, w := range weights {
		if w > 11 {
			return nil, 0, errText
		}
		total += 1 << w >> 1
	}
	if total == 0 || len(weights) > 255 {
		return nil, 0, errText
	}
	width = bits.Len(uint(total))
	last := 1<<width - total
	if width > 11 || last&(last-1) != 0 {
		return nil, 0, errText
	}
	weights = append(weights, byte(bits.Len(uint(last))))
	ones := 0
	for w := byte(1); int(w) <= width; w++ {
		for symbol, have := range weights {
			if have != w {
				continue
			}
			if w == 1 {
				ones++
			}
			for range 1 << w >> 1 {
				table = append(table, entry{byte(symbol), byte(width+1) - w})
			}
		}
	}
	if ones < 2 || ones%2 != 0 || len(table) != 1<<width {
		return nil, 0, errText
	}
	return table, width, nil
}

// backward reads bits from the end of b, below the highest bit set.
type backward struct {
	b    []byte
	left int // bits
}

func newBackward(b []byte) (*backward, error) {
	if len(b) == 0 || b[len(b)-1] == 0 {
		return nil, errText
	}
	return &backward{b, 8*(len(b)-1) + bits.Len8(b[len(b)-1]) - 1}, nil
}

// peek returns the next n bits, zeros beyond the beginning.
func (r *backward) peek(n int) (v int) {
	for i := r.left - 1; i >= r.left-n; i-- {
		v <<= 1
		if i >= 0 {
			v |= int(r.b[i/8] >> (i % 8) & 1)
		}
	}
	return v
}

func (r *backward) read(n int) int {
	v := r.peek(n)
	r.left -= n
	return v
}

func huffmanStream(b []byte, table []entry, width, n int) ([]byte, error) {
	r, err := newBackward(b)
	if err != nil {
		return nil, err
	}
	out := make([]byte, n)
	for i := range out {
		e := table[r.peek(width)]
		out[i] = e.symbol
		r.left -= int(e.bits)
	}
	if r.left != 0 {
		return nil, errText
	}
	return out, nil
}
