package codec

import (
	"math"
	"math/bits"
	"slices"

	"atoll/tensor"
)

// selection finds the values of a block that travel, and their levels. It is working memory: no result
// depends on what it was used for before.
type selection struct {
	last   tensor.TopBlock // room for a block that is not whole
	tops   [tensor.TopLanes]uint32
	set    tensor.TopSet
	keys   [sparseLen]uint64
	rest   [sparseLen]uint64
	counts [1 << (31 - countShift)]int32 // of magnitudes, by their upper bits
	sent   [sparseMost]uint32            // magnitudes
	sorted [sparseMost]uint32
	ends   [sparseMost + 1]int
}

// countShift leaves the exponent and three more bits of a magnitude: of normal values few are alike in these.
const countShift = 20

// A key orders the values of a block: by magnitude, and among equal ones the earlier first. So all keys of
// a block differ.

const indexBits = 12 // of sparseLen

func keyOf(bits uint32, i int) uint64 { return uint64(bits)<<indexBits | uint64(sparseLen-1-i) }
func keyBits(k uint64) uint32         { return uint32(k >> indexBits) }
func keyIndex(k uint64) int           { return sparseLen - 1 - int(k%sparseLen) }

// travelling are the bits of a magnitude, and 0 if it is too small to travel.
func travelling(bits uint32) uint32 {
	if bits < sparseLeast {
		return 0
	}
	return bits
}

// whole returns the values of block as those of a whole block, with zeros behind: these do not travel, as
// there are enough before them.
func (s *selection) whole(block []float32) *tensor.TopBlock {
	if len(block) == sparseLen {
		return (*tensor.TopBlock)(block)
	}
	clear(s.last[copy(s.last[:], block):])
	return &s.last
}

// largest returns the keys of the k values of greatest magnitude, in the order of the block, and whether all values can be
// encoded. The time is proportional to the length of the block: it first finds a magnitude that k values reach, and not
// many more.
func (s *selection) largest(block *tensor.TopBlock, k int) (keys []uint64, fit bool) {
	reached := s.byLanes
	if k > tensor.TopLanes/2 {
		reached = s.byCounting
	}
	least, fit := reached(block, k)
	if !fit {
		return nil, false
	}
	tensor.Reach(&s.set, block, max(least, sparseLeast))
	n := 0
	for i, word := range s.set {
		for ; word != 0; word &= word - 1 {
			at := i*64 + bits.TrailingZeros64(word)
			s.keys[n] = keyOf(math.Float32bits(block[at])&magnitude, at)
			n++
		}
	}
	if n < k {
		return s.withZeros(block, n, k), true
	}
	return s.cut(s.keys[:n], k), true
}

// withZeros returns k keys in the order of the block: those of the n values that do not count as 0, and the earliest of
// the others.
func (s *selection) withZeros(block *tensor.TopBlock, n, k int) []uint64 {
	keys, zeros := s.keys[:0], k-n
	for i, x := range block {
		b := travelling(math.Float32bits(x) & magnitude)
		if b == 0 {
			if zeros == 0 {
				continue
			}
			zeros--
		}
		keys = append(keys, keyOf(b, i))
	}
	return keys
}

// byLanes finds the magnitude among the largest of each lane, as its bits: the one that k of these reach. Half as
// many again of normal values reach it, if k is at most half of the lanes.
func (s *selection) byLanes(block *tensor.TopBlock, k int) (least uint32, fit bool) {
	tensor.LaneTops(&s.tops, block)
	rest := s.rest[:len(s.tops)]
	top := uint32(0)
	for lane, t := range s.tops {
		top = max(top, t)
		rest[lane] = keyOf(travelling(t), lane)
	}
	if top >= limitBits {
		return 0, false
	}
	return keyBits(kth(rest, k)), true
}

// byCounting finds the largest magnitude that k values reach of those whose lower bits are 0.
func (s *selection) byCounting(block *tensor.TopBlock, k int) (least uint32, fit bool) {
	clear(s.counts[:])
	for _, x := range block {
		s.counts[(math.Float32bits(x)&magnitude)>>countShift]++
	}
	at := magnitude >> countShift
	for ; at >= limitBits>>countShift; at-- {
		if s.counts[at] > 0 {
			return 0, false
		}
	}
	for n := int(s.counts[at]); n < k; n += int(s.counts[at]) {
		at--
	}
	return travelling(uint32(at) << countShift), true
}

// cut returns the k largest of keys, in their order.
func (s *selection) cut(keys []uint64, k int) []uint64 {
	if len(keys) == k {
		return keys
	}
	least := kth(s.rest[:copy(s.rest[:], keys)], k)
	n := 0
	for _, x := range keys {
		keys[n] = x
		n += int((least - 1 - x) >> 63) // 1 from least on
	}
	return keys[:n]
}

// kth returns the k-th largest of keys, which are below 2^63 and differ, and changes their order. It
// halves the range that the sought one lies in, so that no order of the keys takes long.
func kth(keys []uint64, k int) uint64 {
	low, high := slices.Min(keys), slices.Max(keys)
	for len(keys) > 1 {
		middle := low + (high-low+1)/2
		n := 0
		for i, x := range keys {
			keys[i], keys[n] = keys[n], x
			n += int((middle - 1 - x) >> 63) // 1 from middle on; a branch would be mispredicted
		}
		if n >= k {
			keys, low = keys[:n], middle
		} else {
			keys, k, high = keys[n:], k-n, middle-1
		}
	}
	return keys[0]
}

// levels returns the two magnitudes of least squared error for the values with these keys, as the bits of bfloat16
// numbers, and the bits of the least magnitude that takes the larger one. Where both come out equal, or
// all magnitudes are, the split is above all. 0 is a level of its own.
func (s *selection) levels(keys []uint64) (low, high uint16, split uint32) {
	sent := s.sent[:len(keys)]
	sum := 0.0
	for j, k := range keys {
		sent[j] = keyBits(k)
		sum += widest(sent[j])
	}
	m := s.sort(sent)
	at := splitOf(m, sum)
	if at == 0 {
		low = nearest(sum, len(m))
		return low, low, limitBits
	}
	below := 0.0
	for _, b := range m[:at] {
		below += widest(b)
	}
	low, high = nearest(below, at), nearest(sum-below, len(m)-at)
	if low == high {
		return low, low, limitBits
	}
	return low, high, m[at]
}

// crowded is how many magnitudes in one place are sorted by themselves, as moving each to where it belongs takes time
// in proportion to the square of that: a few far smaller ones, or zeros, put all others in a few places.
const crowded = 16

// sort returns m in ascending order. It puts each where it belongs if they are spread evenly, and moves
// them from there: normal ones not far.
func (s *selection) sort(m []uint32) []uint32 {
	low, high := slices.Min(m), slices.Max(m)
	width := bits.Len(uint(len(m) - 1))
	shift := max(0, bits.Len32(high-low)-width)
	ends := s.ends[:1<<width+1]
	clear(ends)
	for _, b := range m {
		ends[(b-low)>>shift+1]++
	}
	for i := 1; i < len(ends); i++ {
		ends[i] += ends[i-1]
	}
	sorted := s.sorted[:len(m)]
	for _, b := range m {
		place := &ends[(b-low)>>shift]
		sorted[*place] = b
		*place++
	}
	from := 0
	for _, end := range ends {
		if end-from > crowded {
			slices.Sort(sorted[from:end])
		}
		from = end
	}
	for i := 1; i < len(sorted); i++ {
		for j := i; j > 0 && sorted[j] < sorted[j-1]; j-- {
			sorted[j], sorted[j-1] = sorted[j-1], sorted[j]
		}
	}
	return sorted
}

// widest is the magnitude of those bits.
func widest(b uint32) float64 { return float64(math.Float32frombits(b)) }

// nearest is the bfloat16 bits nearest to the mean of n magnitudes of that sum, ties to even.
func nearest(sum float64, n int) uint16 {
	b := math.Float32bits(float32(sum / float64(n)))
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}

// splitOf returns where sorted magnitudes m of that sum are best parted in two, 0 if all are equal. With
// means for levels the squared error is least where sum^2/n of both parts, added up, is largest. Zeros, if
// there are any, are the one part.
func splitOf(m []uint32, sum float64) int {
	if m[0] == 0 {
		at, _ := slices.BinarySearch(m, 1)
		return at % len(m)
	}
	best, most, below := 0, 0.0, 0.0
	for at := 1; at < len(m); at++ {
		below += widest(m[at-1])
		if m[at] == m[at-1] {
			continue
		}
		above := sum - below
		gain := float64(below*below)/float64(at) + float64(above*above)/float64(len(m)-at)
		if gain > most {
			best, most = at, gain
		}
	}
	return best
}
