package tensor

import (
	"encoding/binary"
	"math"
)

// BlockLen is the number of values that share a scale in the quantised codecs: package codec
// says what the codes mean, these are its loops.
const BlockLen = 256

// A block of values, and of 4-bit codes two to a byte, the earlier one in the low nibble.
type (
	Block  = [BlockLen]float32
	Codes4 = [BlockLen / 2]byte
)

const (
	// magnitudeBits masks the sign off the bits of a float32.
	magnitudeBits = 1<<31 - 1

	// round4 added to |t| < 2^22 leaves t, rounded to the nearest integer with ties to even,
	// plus 8 in the low bits of the sum: 1.5 * 2^23 has a unit in the last place of 1.
	round4 float32 = roundMagic + 8
)

// MaxBits returns the bits of the largest magnitude in x. Those of infinity and NaN are larger
// than those of finite values.
func MaxBits(x *Block) uint32 { return use.maxBits(x) }

// Pack4 writes the codes x[i]*inv + 8, rounded to nearest, ties to even. Those of products
// that round beyond -8..7 are meaningless.
func Pack4(codes *Codes4, x *Block, inv float32) { use.pack4(codes, x, inv) }

// Unpack4 sets x[i] to (code - 8)*scale. It reports whether no code is 0; if one is, x is
// undefined.
func Unpack4(x *Block, codes *Codes4, scale float32) bool { return !use.unpack4(x, codes, scale) }

// AnyZero4 reports whether one of the codes, of whole blocks and at least one, is 0.
func AnyZero4(codes []byte) bool { return use.anyZero4(codes) }

// AddCodes4 adds alpha times the values that Unpack4 makes of blocks of codes, one or more, each with its scale, to
// sum, as AxpyWide does. It reports whether no code is 0; if one is, sum is undefined.
func AddCodes4(sum []float64, alpha float64, codes []byte, scales []float32) bool {
	n := len(scales) * BlockLen
	return !use.addCodes4(sum[:n], alpha, codes[:n/2], scales)
}

// SquareCodes4 adds the squares of the values that Unpack4 makes of blocks of codes, one or more, each with its scale, to
// sum, as AddSquares does for a piece whose first value belongs to the first lane. It reports whether no code is 0;
// if one is, sum is undefined.
func SquareCodes4(sum *Lanes, codes []byte, scales []float32) bool {
	return !use.squareCodes4((*[lanes]float64)(sum), codes[:len(scales)*BlockLen/2], scales)
}

// maxBitsGo keeps four running maxima, so that comparisons need not wait for one another.
func maxBitsGo(x *Block) uint32 {
	var m0, m1, m2, m3 uint32
	for i := 0; i < BlockLen; i += 4 {
		m0 = max(m0, math.Float32bits(x[i])&magnitudeBits)
		m1 = max(m1, math.Float32bits(x[i+1])&magnitudeBits)
		m2 = max(m2, math.Float32bits(x[i+2])&magnitudeBits)
		m3 = max(m3, math.Float32bits(x[i+3])&magnitudeBits)
	}
	return max(m0, m1, m2, m3)
}

func pack4Go(codes *Codes4, x *Block, inv float32) {
	for i := range codes {
		low := math.Float32bits(float32(x[2*i]*inv) + round4)
		high := math.Float32bits(float32(x[2*i+1]*inv) + round4)
		codes[i] = byte(low&15 | high<<4)
	}
}

func unpack4Go(x *Block, codes *Codes4, scale float32) (zero bool) {
	var value [16]float32
	for q := range value {
		value[q] = float32(q-8) * scale
	}
	for i, q := range codes {
		x[2*i] = value[q&15]
		x[2*i+1] = value[q>>4]
	}
	return anyZero4Go(codes[:])
}

func addCodes4Go(sum []float64, alpha float64, codes []byte, scales []float32) (zero bool) {
	for b, scale := range scales {
		var product [16]float64
		for q := range product {
			product[q] = alpha * float64(float32(q-8)*scale)
		}
		to := sum[b*BlockLen:][:BlockLen]
		for i, q := range codes[b*BlockLen/2:][:BlockLen/2] {
			to[2*i] += product[q&15]
			to[2*i+1] += product[q>>4]
		}
	}
	return anyZero4Go(codes)
}

func squareCodes4Go(sum *[lanes]float64, codes []byte, scales []float32) (zero bool) {
	for b, scale := range scales {
		var square [16]float64
		for q := range square {
			x := float64(float32(q-8) * scale)
			square[q] = x * x
		}
		for i, q := range codes[b*BlockLen/2:][:BlockLen/2] {
			sum[2*i%lanes] += square[q&15]
			sum[(2*i+1)%lanes] += square[q>>4]
		}
	}
	return anyZero4Go(codes)
}

func anyZero4Go(codes []byte) bool {
	found := uint64(0)
	for i := 0; i < len(codes); i += 8 {
		w := ^binary.LittleEndian.Uint64(codes[i:])
		found |= w & (w >> 1) & (w >> 2) & (w >> 3)
	}
	return found&0x1111111111111111 != 0
}
