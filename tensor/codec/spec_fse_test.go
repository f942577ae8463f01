package codec_test

import (
	"fmt"
	"math/bits"
)

// FSE after RFC 8878, section 4.1, for the weights of a Huffman tree.

// state is an entry of a decoding table: a symbol, and the next state as a
// base and a number of bits to add.
type state struct {
	symbol byte
	bits   int
	base   int
}

// Why the text refuses weights.
var (
	errBits = fmt.Errorf("%w: a state needs more bits than are left", errText)
	errMany = fmt.Errorf("%w: more than 255 weights", errText)
)

// fseRun is what came of a tree's weights: those read, where a state needs more bits than are left
// with the symbol of the other state, and how often a state needed none.
type fseRun struct {
	weights []byte
	idle    int
	err     error
}

func fseWeights(b []byte) ([]byte, error) {
	run := readFSE(b)
	return run.weights, run.err
}

// readFSE is section 4.2.1.2: two states take turns, until no bit is left and
// one needs some (C-10).
func readFSE(b []byte) (run fseRun) {
	if len(b) < 4 {
		return fseRun{err: errText}
	}
	counts, width, b, err := fseCounts(b)
	if err != nil {
		return fseRun{err: err}
	}
	table, err := fseTable(counts, width)
	if err != nil {
		return fseRun{err: err}
	}
	r, err := newBackward(b)
	if err != nil || r.left < 2*width {
		return fseRun{err: errText}
	}
	one, two := r.read(width), r.read(width)
	for len(run.weights) < 255 {
		run.weights = append(run.weights, table[one].symbol)
		need := table[one].bits
		if r.left < need {
			if run.weights = append(run.weights, table[two].symbol); r.left > 0 {
				run.err = errBits
			}
			return run.checkMany()
		}
		if need == 0 {
			run.idle++
		}
		one, two = two, table[one].base+r.read(need)
	}
	run.err = errMany
	return run
}

func (run fseRun) checkMany() fseRun {
	if len(run.weights) > 255 {
		run.err = errMany
	}
	return run
}

// forward reads bits from the front of b, the lowest of each byte first.
type forward struct {
	b  []byte
	at int // bits
}

func (r *forward) peek(n int) (v int) {
	for i := range n {
		if at := r.at + i; at/8 < len(r.b) {
			v |= int(r.b[at/8]>>(at%8)&1) << i
		}
	}
	return v
}

// fseCounts is section 4.1.1: the share of each symbol in 2^width, -1 for
// "less than one".
func fseCounts(b []byte) (counts []int, width int, rest []byte, err error) {
	r := &forward{b: b}
	width = r.peek(4) + 5
	r.at = 4
	left := 1 << width
	if width > 6 {
		return nil, 0, nil, errText
	}
	for left > 0 {
		if len(counts) > 255 {
			return nil, 0, nil, errText
		}
		n := bits.Len(uint(left + 1))
		v := r.peek(n)
		short := 1<<n - 2 - left // values that take a bit less
		low := v & (1<<(n-1) - 1)
		switch {
		case low < short:
			v = low
			r.at += n - 1
		default:
			if v >= 1<<(n-1) {
				v -= short
			}
			r.at += n
		}
		count := v - 1
		counts = append(counts, count)
		left -= max(count, -count)
		for count == 0 {
			repeat := r.peek(2)
			r.at += 2
			counts = append(counts, make([]int, repeat)...)
			if repeat < 3 {
				break
			}
			if len(counts) > 255 {
				return nil, 0, nil, errText
			}
		}
	}
	used := (r.at + 7) / 8
	if left < 0 || used > len(b) || len(counts) > 256 {
		return nil, 0, nil, errText
	}
	return counts, width, b[used:], nil
}

// fseTable is section 4.1.1, from the counts to the table.
func fseTable(counts []int, width int) ([]state, error) {
	size := 1 << width
	table := make([]state, size)
	high := size
	for symbol, n := range counts {
		if n == -1 {
			high--
			table[high].symbol = byte(symbol)
		}
		if n == size {
			return nil, errText // no state would ever need a bit
		}
	}
	at := 0
	for symbol, n := range counts {
		for range max(n, 0) {
			table[at].symbol = byte(symbol)
			for at = (at + size/2 + size/8 + 3) % size; at >= high; {
				at = (at + size/2 + size/8 + 3) % size
			}
		}
	}
	if at != 0 {
		return nil, errText
	}
	next := make([]int, len(counts))
	for symbol, n := range counts {
		next[symbol] = max(n, -n)
	}
	for i := range table {
		x := next[table[i].symbol]
		next[table[i].symbol]++
		table[i].bits = width - bits.Len(uint(x)) + 1
		table[i].base = x<<table[i].bits - size
	}
	return table, nil
}
