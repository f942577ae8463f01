package codec

import (
	"math"
	"slices"
)

// groupLen is the number of values that are looked at together for the largest; see largest.
const groupLen = 32

// selection finds the values of a block that travel, and their levels. It is working memory: no result
// depends on what it was used for before.
type selection struct {
	keys   [sparseLen]uint64
	rest   [sparseLen]uint64
	tops   [sparseLen / groupLen]uint32
	sorted [sparseMost]uint32
}

// A key orders the values of a block: by magnitude, and among equal ones the earlier first. So all keys of
// a block differ.

const indexBits = 12 // of sparseLen

func keyOf(bits uint32, i int) uint64 { return uint64(bits)<<indexBits | uint64(sparseLen-1-i) }
func keyBits(k uint64) uint32         { return uint32(k >> indexBits) }
func keyIndex(k uint64) int           { return sparseLen - 1 - int(k%sparseLen) }

// bitsOf are those of the magnitude of x, and 0 if it is too small to travel.
func bitsOf(x float32) uint32 {
	b := math.Float32bits(x) & magnitude
	if b < sparseLeast {
		b = 0
	}
	return b
}

// largest returns the keys of the values that travel, in the order of the block, and whether all can be
// encoded. The time is proportional to the length of the block: it first takes the largest of each group,
// and of these the one that as many reach as travel. What travels reaches it too. Where values are bell-shaped half
// of the groups have none that does, and all together half as many again as travel.
func (s *selection) largest(block []float32) (keys []uint64, fit bool) {
	k := sparseSent(len(block))
	groups := s.tops[:(len(block)+groupLen-1)/groupLen]
	rest := s.rest[:len(groups)]
	top := uint32(0)
	for g := range groups {
		groups[g] = topBits(block[g*groupLen : min((g+1)*groupLen, len(block))])
		top = max(top, groups[g])
		rest[g] = keyOf(groups[g], g)
	}
	if top >= limitBits {
		return nil, false
	}
	least := keyBits(kth(rest, k))
	n := 0
	for g, t := range groups {
		if t >= least {
			from, to := g*groupLen, min((g+1)*groupLen, len(block))
			n += appendFrom(s.keys[n:], block[from:to], from, least)
		}
	}
	return s.cut(s.keys[:n], k), true
}

// topBits is the largest bitsOf of v.
func topBits(v []float32) uint32 {
	var m0, m1, m2, m3 uint32
	for ; len(v) >= 4; v = v[4:] {
		m0 = max(m0, math.Float32bits(v[0])&magnitude)
		m1 = max(m1, math.Float32bits(v[1])&magnitude)
		m2 = max(m2, math.Float32bits(v[2])&magnitude)
		m3 = max(m3, math.Float32bits(v[3])&magnitude)
	}
	for _, x := range v {
		m0 = max(m0, math.Float32bits(x)&magnitude)
	}
	if m := max(m0, m1, m2, m3); m >= sparseLeast {
		return m
	}
	return 0
}

// appendFrom writes the keys of the values of v with at least that magnitude to keys, and returns their
// number. v begins at number from of the block. keys may hold all of v.
func appendFrom(keys []uint64, v []float32, from int, least uint32) int {
	keys = keys[:len(v)]
	n := 0
	for i, x := range v {
		b := bitsOf(x)
		keys[n] = keyOf(b, from+i) // a branch here would be mispredicted
		n += int((least - 1 - b) >> 31)
	}
	return n
}

// cut returns the k largest of keys, in their order.
func (s *selection) cut(keys []uint64, k int) []uint64 {
	if len(keys) == k {
		return keys
	}
	least := kth(s.rest[:copy(s.rest[:], keys)], k)
	return slices.DeleteFunc(keys, func(x uint64) bool { return x < least })
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
			n += int((middle - 1 - x) >> 63) // 1 from middle on
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
	m := s.sorted[:len(keys)]
	sum := 0.0
	for j, k := range keys {
		m[j] = keyBits(k)
		sum += widest(m[j])
	}
	slices.Sort(m)
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
