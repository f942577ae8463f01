package codec

import (
	"fmt"
	"math"
)

// Floats travel as byte planes: the plane of sign and exponent packs well,
// the planes of the fraction do not, and apart each gets the mode it deserves.

// splitF32 writes the four bytes of each value to the four planes. It returns
// the index of the first value that cannot be encoded, or -1.
func splitF32(planes [][]byte, v []float32) int {
	p0, p1 := planes[0][:len(v)], planes[1][:len(v)]
	p2, p3 := planes[2][:len(v)], planes[3][:len(v)]
	top := uint32(0)
	for i, x := range v {
		b := math.Float32bits(x)
		top = max(top, b&magnitude)
		p0[i], p1[i], p2[i], p3[i] = byte(b), byte(b>>8), byte(b>>16), byte(b>>24)
	}
	if top >= limitBits {
		return indexUnfit(v)
	}
	return -1
}

// joinF32 is the inverse of splitF32, for the values from number from on; a value that is not finite is an error.
func joinF32(dst []float32, planes [][]byte, from int) error {
	to := from + len(dst)
	p0, p1 := planes[0][from:to], planes[1][from:to]
	p2, p3 := planes[2][from:to], planes[3][from:to]
	top := uint32(0)
	for i := range dst {
		b := uint32(p0[i]) | uint32(p1[i])<<8 | uint32(p2[i])<<16 | uint32(p3[i])<<24
		top = max(top, b&magnitude)
		dst[i] = math.Float32frombits(b)
	}
	return checkFinite(top)
}

// checkFinite returns an error if top, the largest magnitude in bits, is not
// that of a finite number.
func checkFinite(top uint32) error {
	if top >= infBits {
		return fmt.Errorf("a value is %v", math.Float32frombits(top))
	}
	return nil
}
