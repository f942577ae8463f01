package optimizer

import (
	"encoding/binary"
	"math"

	"atoll/tensor"
)

// Moments are running means over gradients. In memory they are float32 or, in half of it, bfloat16; encoded they are float32.
type Moments struct {
	wide   []float32
	narrow []uint16 // in place of wide
}

// leastTake is the least share of a gradient in moments that may be narrow. A value of bfloat16 stands still where it should move by less
// than 1/256 of itself: with this share, where it is within an eighth of what it follows.
const leastTake = 1.0 / 32

// MayBeNarrow tells whether moments that keep such a share of themselves in each step lose nothing that matters in bfloat16.
func MayBeNarrow(keep float64) bool { return 1-keep >= leastTake }

// NewMoments returns n moments of 0, narrow in BF16.
func NewMoments(n int, p tensor.Precision) Moments {
	if p == tensor.BF16 {
		return Moments{narrow: tensor.Halves(n)}
	}
	return Moments{wide: tensor.Floats(n)}
}

// momentBytes is the memory of a moment.
func momentBytes(p tensor.Precision) int64 {
	if p == tensor.BF16 {
		return 2
	}
	return 4
}

// Len is their number.
func (m Moments) Len() int { return len(m.wide) + len(m.narrow) }

// part is the moments from lo to hi, which it shares.
func (m Moments) part(lo, hi int) Moments {
	if m.narrow != nil {
		return Moments{narrow: m.narrow[lo:hi]}
	}
	return Moments{wide: m.wide[lo:hi]}
}

func (m Moments) clear() {
	clear(m.wide)
	clear(m.narrow)
}

// appendTo encodes the moments, little-endian.
func (m Moments) appendTo(b []byte) []byte {
	for _, v := range m.wide {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	for _, v := range m.narrow {
		b = binary.LittleEndian.AppendUint32(b, uint32(v)<<16)
	}
	return b
}

// set takes over values from a place on. Narrow moments round them.
func (m Moments) set(at int, values []float32) {
	if m.narrow != nil {
		tensor.NarrowBF16(m.narrow[at:at+len(values)], values)
		return
	}
	copy(m.wide[at:], values)
}

// update applies a step of AdamW to parameters p with gradients g and moments m, v. One
// piece needs no function for other threads, which would be an allocation.
func update(p, g []float32, m, v Moments, c tensor.AdamWCoef) {
	if len(p) <= pieceLen {
		updatePiece(p, g, m, v, c)
		return
	}
	inPieces(len(p), func(_, from, to int) {
		updatePiece(p[from:to], g[from:to], m.part(from, to), v.part(from, to), c)
	})
}

func updatePiece(p, g []float32, m, v Moments, c tensor.AdamWCoef) {
	if m.narrow != nil {
		tensor.AdamWUpdateBF16(p, g, m.narrow, v.narrow, c)
		return
	}
	tensor.AdamWUpdate(p, g, m.wide, v.wide, c)
}
