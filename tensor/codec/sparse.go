package codec

import (
	"errors"
	"fmt"
	"math"

	"atoll/tensor"
)

const (
	// sparseLen is the number of values of a block. The values of greatest magnitude travel. A
	// piece has a whole number of blocks.
	sparseLen = tensor.TopBlockLen

	// One of so many values travels, rounded up.
	sparseOf  = 64
	sparse8Of = 8

	// sparseMost is the largest number that travel of a block of any kind.
	sparseMost = sparseLen / sparse8Of

	// sparseLeast are the bits of 2^-100. Smaller magnitudes count as 0, which keeps levels far
	// from subnormal numbers, as minScale does.
	sparseLeast = (127 - 100) << 23
)

// The code of a value that travels: the sign, which of the two levels, and the bits of the gap beyond 8.
const (
	codeNegative = 1 << 0
	codeLarge    = 1 << 1
	codeSign     = codeNegative | codeLarge // the index of the value among four
	codeGap      = 2                        // the shift of the gap's bits
)

var (
	errLevels = errors.New("its levels are not two finite magnitudes that ascend")
	errUnused = errors.New("a level is not in use")
	errGap    = errors.New("a value lies beyond it")
	errZero   = errors.New("a value of 0 is negative, or follows one that does not travel")
)

// sparseBlocks is the number of blocks that n values have.
func sparseBlocks(n int) int { return (n + sparseLen - 1) / sparseLen }

// sent is the number of values that travel of n in a Partial kind. All blocks but the last are whole.
func (k Kind) sent(n int) int {
	of := sparseOf
	if k == Sparse8 {
		of = sparse8Of
	}
	return (n + of - 1) / of
}

// sparsify writes the low and high bytes of the two levels of each block of v to streams 0 and 1, and the gaps
// and codes of the values that travel to streams 2 and 3. It returns the index of the first value that
// cannot be encoded, or -1.
func (s *selection) sparsify(kind Kind, streams [][]byte, v []float32) int {
	for i := range sparseBlocks(len(v)) {
		block := v[i*sparseLen : min((i+1)*sparseLen, len(v))]
		keys, fit := s.largest(s.whole(block), kind.sent(len(block)))
		if !fit {
			return indexUnfit(v)
		}
		low, high, split := s.levels(keys)
		streams[0][2*i], streams[1][2*i] = byte(low), byte(low>>8)
		streams[0][2*i+1], streams[1][2*i+1] = byte(high), byte(high>>8)
		from := i * kind.sent(sparseLen)
		to := from + len(keys)
		packSparse(streams[2][from:to], streams[3][from:to], block, keys, split)
	}
	return -1
}

// packSparse writes the gaps and codes of the values of a block that have the keys; those from magnitude
// split on are of the larger level.
func packSparse(gaps, codes []byte, block []float32, keys []uint64, split uint32) {
	next := 0
	for j, k := range keys {
		i := keyIndex(k)
		gap := i - next
		next = i + 1
		negative := byte(math.Float32bits(block[i])>>31) & reaches(keyBits(k), 1)
		gaps[j], codes[j] = byte(gap), byte(gap>>8<<codeGap)|reaches(keyBits(k), split)*codeLarge|negative*codeNegative
	}
}

// reaches is 1 where a magnitude is at least that, which is above 0, and else 0: a branch would be mispredicted.
func reaches(bits, least uint32) byte { return byte((uint64(least) - 1 - uint64(bits)) >> 63) }

// scatter is the inverse of sparsify, for the values from number from on, a multiple of sparseLen.
func scatter(kind Kind, dst []float32, streams [][]byte, from int) error {
	clear(dst)
	for at := 0; at < len(dst); at += sparseLen {
		i := (from + at) / sparseLen
		block := dst[at:min(at+sparseLen, len(dst))]
		if err := scatterBlock(kind, block, streams, i); err != nil {
			return fmt.Errorf("block %d: %w", i, err)
		}
	}
	return nil
}

// scatterBlock sets the values of block number i that travelled. The others are 0.
func scatterBlock(kind Kind, block []float32, streams [][]byte, i int) error {
	low := uint16(streams[0][2*i]) | uint16(streams[1][2*i])<<8
	high := uint16(streams[0][2*i+1]) | uint16(streams[1][2*i+1])<<8
	if low > high || math.Float32bits(widen(high)) >= infBits { // negative ones too
		return errLevels
	}
	values := [4]float32{widen(low), -widen(low), widen(high), -widen(high)}
	from, sent := i*kind.sent(sparseLen), kind.sent(len(block))
	gaps, codes := streams[2][from:from+sent], streams[3][from:from+sent]
	next, used := 0, byte(0)
	for j, code := range codes {
		next += int(code>>codeGap)<<8 | int(gaps[j])
		if next >= len(block) {
			return errGap
		}
		block[next] = values[code&codeSign]
		next++
		used |= 1 << (code & codeLarge)
	}
	return checkSparse(gaps, codes, low, high, used)
}

// checkSparse returns an error unless the block of these gaps and codes is what encode makes of its values.
func checkSparse(gaps, codes []byte, low, high uint16, used byte) error {
	const small, large = 1 << 0, 1 << codeLarge
	switch {
	case low == high && used != small, low < high && used != small|large:
		return errUnused
	case low == 0:
		return checkZeros(gaps, codes)
	}
	return nil
}

// checkZeros returns an error if a value of the level 0 is negative, or follows one that does not travel
// and is 0 as well: the earlier one would travel in its place.
func checkZeros(gaps, codes []byte) error {
	hole := false
	for j, code := range codes {
		hole = hole || gaps[j] != 0 || code>>codeGap != 0
		if code&codeLarge == 0 && (hole || code&codeNegative != 0) {
			return errZero
		}
	}
	return nil
}
