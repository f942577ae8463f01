package tensor

import "math"

// The loops with which package codec selects the largest magnitudes of a block.

const (
	// TopBlockLen is the number of values that are selected from.
	TopBlockLen = 4096

	// TopLanes is the number of lanes that a block is parted into: value i is in lane i % TopLanes.
	TopLanes = 128
)

// TopBlock is such a block, TopSet a bit for each of its values, the first in the lowest bit.
type (
	TopBlock = [TopBlockLen]float32
	TopSet   = [TopBlockLen / 64]uint64
)

// LaneTops sets tops to the bits of the largest magnitude in each lane of x. Those of infinity and NaN are
// larger than those of finite values.
func LaneTops(tops *[TopLanes]uint32, x *TopBlock) { use.laneTops(tops, x) }

// Reach sets the bits of the values of x whose magnitude has bits of at least that.
func Reach(set *TopSet, x *TopBlock, least uint32) { use.reach(set, x, least) }

func laneTopsGo(tops *[TopLanes]uint32, x *TopBlock) {
	clear(tops[:])
	for from := 0; from < len(x); from += TopLanes {
		row := (*[TopLanes]float32)(x[from:])
		for i := range row {
			tops[i] = max(tops[i], math.Float32bits(row[i])&magnitudeBits)
		}
	}
}

// reachGo does not branch: which values reach a bound is hard to predict.
func reachGo(set *TopSet, x *TopBlock, least uint32) {
	for i := range set {
		part := (*[64]float32)(x[64*i:])
		word := uint64(0)
		for j := range part {
			below := math.Float32bits(part[j])&magnitudeBits - least // wraps around
			word = word>>1 | uint64(^below>>31)<<63
		}
		set[i] = word
	}
}
