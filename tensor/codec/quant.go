package codec

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

const (
	// blockLen is the number of values that share a scale.
	blockLen = 256

	// span4 and span8 are what max|x| is divided by: slightly less than half
	// a step beyond the largest code, so that nothing rounds past it.
	span4 = 7.49
	span8 = 127.49

	// minScale keeps the reciprocal of a scale and all products far from
	// subnormal numbers. What is smaller than half of it becomes 0.
	minScale = 0x1p-100

	// round4 and round8 added to |t| < 2^22 leave t, rounded to the nearest
	// integer with ties to even, plus 8 or 128 in the low bits of the sum:
	// 1.5 * 2^23 has a unit in the last place of 1.
	round4 float32 = 0x1.8p23 + 8
	round8 float32 = 0x1.8p23 + 128
)

var errCode = errors.New("a code is 0")

// A block of values, of 8-bit codes, of 4-bit codes two to a byte.
type (
	block  = [blockLen]float32
	codes8 = [blockLen]byte
	codes4 = [blockLen / 2]byte
)

// quantize writes the low and high bytes of the scale of each block of v to
// streams 0 and 1, and what pack makes of the blocks to stream 2. It returns
// the index of the first value that cannot be encoded, or -1.
func quantize(streams [][]byte, v []float32, span float32, pack func(codes []byte, v *block, inv float32) []byte) int {
	var tail block
	codes := streams[2]
	for i := range streams[0] {
		at := i * blockLen
		b := &tail
		if at+blockLen <= len(v) {
			b = (*block)(v[at:])
		} else {
			copy(tail[:], v[at:])
		}
		top := maxBits(b)
		if top >= limitBits {
			return at + indexUnfit(v[at:])
		}
		scale := scaleFor(top, span)
		streams[0][i], streams[1][i] = byte(scale), byte(scale>>8)
		codes = pack(codes, b, inverse(scale))
	}
	return -1
}

// maxBits returns the bits of the largest magnitude in b. Four running maxima
// keep the comparisons from waiting for one another.
func maxBits(b *block) uint32 {
	var m0, m1, m2, m3 uint32
	for i := 0; i < blockLen; i += 4 {
		m0 = max(m0, math.Float32bits(b[i])&magnitude)
		m1 = max(m1, math.Float32bits(b[i+1])&magnitude)
		m2 = max(m2, math.Float32bits(b[i+2])&magnitude)
		m3 = max(m3, math.Float32bits(b[i+3])&magnitude)
	}
	return max(m0, m1, m2, m3)
}

// scaleFor returns the bfloat16 bits of the scale for a block whose largest
// magnitude has the bits top: 0 for a block of zeros.
func scaleFor(top uint32, span float32) uint16 {
	if top == 0 {
		return 0
	}
	s := max(math.Float32frombits(top)/span, minScale)
	return uint16((math.Float32bits(s) + 0xffff) >> 16) // rounded up
}

// inverse is 1/scale, and 0 for 0.
func inverse(scale uint16) float32 {
	if scale == 0 {
		return 0
	}
	return 1 / widen(scale)
}

// widen returns the float32 of bfloat16 bits.
func widen(b uint16) float32 { return math.Float32frombits(uint32(b) << 16) }

// pack8 writes the codes of v to the front of codes and returns the rest.
func pack8(codes []byte, v *block, inv float32) []byte {
	var tail codes8
	c := &tail
	if len(codes) >= len(c) {
		c = (*codes8)(codes)
	}
	for i, x := range v {
		c[i] = byte(math.Float32bits(float32(x*inv) + round8))
	}
	return codes[copyTail(codes, c[:]):]
}

// pack4 writes the codes of v, two to a byte, to the front of codes and
// returns the rest. An odd value out is followed by the code of 0.
func pack4(codes []byte, v *block, inv float32) []byte {
	var tail codes4
	c := &tail
	if len(codes) >= len(c) {
		c = (*codes4)(codes)
	}
	for i := range c {
		lo := math.Float32bits(float32(v[2*i]*inv) + round4)
		hi := math.Float32bits(float32(v[2*i+1]*inv) + round4)
		c[i] = byte(lo&15 | hi<<4)
	}
	return codes[copyTail(codes, c[:]):]
}

// copyTail copies a shorter last block to where it belongs and returns how
// many bytes the block takes up there.
func copyTail(codes, block []byte) int {
	if len(codes) >= len(block) {
		return len(block)
	}
	return copy(codes, block)
}

// dequantize is the inverse of quantize. largest is the largest code less its
// offset: a scale that carries it beyond finite numbers is an error.
func dequantize(dst []float32, streams [][]byte, largest float32, unpack func(v *block, codes []byte, scale float32) ([]byte, error)) error {
	var tail block
	var err error
	codes := streams[2]
	for i := range streams[0] {
		scale := widen(uint16(streams[0][i]) | uint16(streams[1][i])<<8)
		if math.Float32bits(scale*largest) >= infBits { // negative ones too
			return fmt.Errorf("scale %d is %v", i, scale)
		}
		v := &tail
		if len(dst) >= blockLen {
			v = (*block)(dst)
		}
		if codes, err = unpack(v, codes, scale); err != nil {
			return fmt.Errorf("block %d: %w", i, err)
		}
		if len(dst) < blockLen {
			copy(dst, tail[:])
			return checkPad(tail[len(dst):])
		}
		dst = dst[blockLen:]
	}
	return nil
}

// unpack8 writes the values of the codes at the front of codes to v and
// returns the rest.
func unpack8(v *block, codes []byte, scale float32) ([]byte, error) {
	tail := codes8{}
	c := &tail
	if len(codes) >= len(c) {
		c = (*codes8)(codes)
	} else {
		fill(tail[:], 128)
		copy(tail[:], codes)
	}
	if bytes.IndexByte(c[:], 0) >= 0 {
		return nil, errCode
	}
	for i, q := range c {
		v[i] = float32(int32(q)-128) * scale
	}
	return codes[min(len(c), len(codes)):], nil
}

// unpack4 writes the values of the codes at the front of codes to v and
// returns the rest.
func unpack4(v *block, codes []byte, scale float32) ([]byte, error) {
	tail := codes4{}
	c := &tail
	if len(codes) >= len(c) {
		c = (*codes4)(codes)
	} else {
		fill(tail[:], 8<<4|8)
		copy(tail[:], codes)
	}
	if hasZeroNibble(c) {
		return nil, errCode
	}
	var value [16]float32
	for q := range value {
		value[q] = float32(q-8) * scale
	}
	for i, q := range c {
		v[2*i] = value[q&15]
		v[2*i+1] = value[q>>4]
	}
	return codes[min(len(c), len(codes)):], nil
}

// hasZeroNibble reports whether one of the 4-bit codes is 0.
func hasZeroNibble(c *codes4) bool {
	found := uint64(0)
	for i := 0; i < len(c); i += 8 {
		w := ^binary.LittleEndian.Uint64(c[i:])
		found |= w & (w >> 1) & (w >> 2) & (w >> 3)
	}
	return found&0x1111111111111111 != 0
}

// checkPad returns an error unless the value after an odd one out is 0.
func checkPad(v []float32) error {
	if v[0] != 0 {
		return errors.New("the code after the last value is not that of 0")
	}
	return nil
}
