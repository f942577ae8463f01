package codec

import (
	"errors"
	"fmt"
	"math"

	"atoll/tensor"
)

const (
	// blockLen is the number of values that share a scale.
	blockLen = tensor.BlockLen

	// span is what max|x| is divided by: slightly less than half a step beyond the
	// largest code, so that nothing rounds past it.
	span    = 7.49
	largest = 7 // the largest code, less its offset

	codeBytes = blockLen / 2 // of the codes of a block, two to a byte
	zeroCodes = 8<<4 | 8     // a byte of codes of 0

	// minScale keeps the reciprocal of a scale and all products far from
	// subnormal numbers. What is smaller than half of it becomes 0.
	minScale = 0x1p-100
)

var errCode = errors.New("a code is 0")

// A block of values, and of codes.
type (
	block  = tensor.Block
	codes4 = tensor.Codes4
)

// lastBlock is room for a block that a segment does not fill.
type lastBlock struct {
	values block
	codes  codes4
}

// quantize writes the low and high bytes of the scale of each block of v to
// streams 0 and 1, and the codes to stream 2. It returns the index of the
// first value that cannot be encoded, or -1. An odd value out of two to a byte
// is followed by the code of 0.
func quantize(streams [][]byte, v []float32, last *lastBlock) int {
	for i := range streams[0] {
		at, end := i*blockLen, (i+1)*blockLen
		b, c := &last.values, &last.codes
		if end <= len(v) {
			b, c = (*block)(v[at:]), (*codes4)(streams[2][i*codeBytes:])
		} else {
			clear(b[copy(b[:], v[at:]):])
		}
		top := tensor.MaxBits(b)
		if top >= limitBits {
			return at + indexUnfit(v[at:])
		}
		scale := scaleFor(top)
		streams[0][i], streams[1][i] = byte(scale), byte(scale>>8)
		tensor.Pack4(c, b, inverse(scale))
		if end > len(v) {
			copy(streams[2][i*codeBytes:], c[:])
		}
	}
	return -1
}

// scaleFor returns the bfloat16 bits of the scale for a block whose largest
// magnitude has the bits top: 0 for a block of zeros.
func scaleFor(top uint32) uint16 {
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

// scaleOf reads the scale of block i. One that carries the largest code beyond
// finite numbers is an error.
func scaleOf(streams [][]byte, i int) (float32, error) {
	scale := widen(uint16(streams[0][i]) | uint16(streams[1][i])<<8)
	if math.Float32bits(scale*largest) >= infBits { // negative ones too
		return 0, fmt.Errorf("scale %d is %v", i, scale)
	}
	return scale, nil
}

// scalesOf reads the scales of the blocks from number first on into dst, which it
// returns.
func scalesOf(dst []float32, streams [][]byte, first int) ([]float32, error) {
	for i := range dst {
		var err error
		if dst[i], err = scaleOf(streams, first+i); err != nil {
			return nil, err
		}
	}
	return dst, nil
}

// dequantize is the inverse of quantize, for the values from number from on, a
// multiple of blockLen.
func dequantize(dst []float32, streams [][]byte, from int, last *lastBlock) error {
	for at := 0; at < len(dst); at += blockLen {
		i := (from + at) / blockLen
		scale, err := scaleOf(streams, i)
		if err != nil {
			return err
		}
		b, c := &last.values, &last.codes
		whole := at+blockLen <= len(dst)
		if whole {
			b, c = (*block)(dst[at:]), (*codes4)(streams[2][i*codeBytes:])
		} else {
			for j := copy(c[:], streams[2][i*codeBytes:]); j < len(c); j++ {
				c[j] = zeroCodes
			}
		}
		if !tensor.Unpack4(b, c, scale) {
			return fmt.Errorf("block %d: %w", i, errCode)
		}
		if !whole {
			return checkPad(b[copy(dst[at:], b[:]):])
		}
	}
	return nil
}

// checkPad returns an error unless the value after an odd one out is 0.
func checkPad(v []float32) error {
	if v[0] != 0 {
		return errors.New("the code after the last value is not that of 0")
	}
	return nil
}
