package tensor

import (
	"runtime"
	"unsafe"
)

// The loops of the Huffman coder of package codec, which says what the codes are. Only amd64 has
// them: elsewhere, and for the plain kernel, the codec's library does the whole work.

const (
	// HuffBits is the longest code in bits.
	HuffBits = 11
	// HuffRun is how many symbols the loops take between two looks at memory.
	HuffRun = 5
)

// HuffCode is a code, in the low bits, and its length.
type HuffCode = [2]uint32

// HuffTable has for each value of the next HuffBits bits the length of the code that they begin with,
// in the low byte, and the symbol, in the high byte.
type HuffTable = [1 << HuffBits]uint16

// HuffState is how far eight streams were read, backwards. In the first half it has the bits of each
// that come next, at the top of a word, behind them a one and then zeros: as many as bits were used
// of the 8 bytes of the source from a place on; and in the second half these places.
type HuffState = [16]uint64

// huffLoops are the loops of a kernel.
type huffLoops struct {
	encode func(dst, src *byte, runs int, codes *[256]HuffCode, bits, used uint64) (rest, left uint64, n int)
	decode func(dst *byte, quarter, apart int, src *byte, tables *[2]HuffTable, state *HuffState, runs int)
}

// HasHuff reports whether the kernel in use has the loops below.
func HasHuff() bool { return use.huff != nil }

// HuffEncode writes the codes of src, the last symbol first, then a one and zeros up to a full byte: each
// code begins where the one before ended, from the lowest bit on. It returns the length. Every
// symbol must have a code of 1 to HuffBits bits, and dst room for as many bits for each, and 16 bytes.
func HuffEncode(dst, src []byte, codes *[256]HuffCode) int {
	_ = dst[(len(src)*HuffBits+7)/8+15]
	var bits, used uint64
	n := 0
	if runs := len(src) / HuffRun; runs > 0 {
		bits, used, n = use.huff.encode(&dst[0], &src[len(src)-1], runs, codes, 0, 0)
		src = src[:len(src)-runs*HuffRun]
	}
	for i := len(src) - 1; i >= 0; i-- {
		code := codes[src[i]]
		bits |= uint64(code[0]) << used
		used += uint64(code[1])
	}
	bits |= 1 << used
	for used++; ; used -= 8 {
		dst[n] = byte(bits)
		n++
		if bits >>= 8; used <= 8 {
			return n
		}
	}
}

// HuffDecode decodes HuffRun symbols, runs times, of each of eight streams: of four of src[0] to dst[0] and every
// quarter bytes behind it, of four of src[1] to dst[1] likewise, each four with a table of their own. Each stream
// must have 7 bytes in its source before its place for each run.
func HuffDecode(dst, src *[2][]byte, quarter int, tables *[2]HuffTable, state *HuffState, runs int) {
	for i := range dst {
		_ = dst[i][3*quarter+runs*HuffRun-1]
		for _, at := range state[8+4*i : 12+4*i] {
			_ = src[i][int(at)-7*runs : at+8]
		}
	}
	// The loop counts places of both from the first source. None of the four moves: they are of slices that live
	// until the end.
	behind := uint64(apart(&src[0][0], &src[1][0]))
	for i := range 4 {
		state[12+i] += behind
	}
	use.huff.decode(&dst[0][0], quarter, int(apart(&dst[0][0], &dst[1][0])), &src[0][0], tables, state, runs)
	for i := range 4 {
		state[12+i] -= behind
	}
	runtime.KeepAlive(dst)
	runtime.KeepAlive(src)
}

// apart is by how much b lies behind a, modulo 2^64.
func apart(a, b *byte) uintptr { return uintptr(unsafe.Pointer(b)) - uintptr(unsafe.Pointer(a)) }
