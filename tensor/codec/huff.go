package codec

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"

	"atoll/tensor"

	"github.com/klauspost/compress/fse"
	"github.com/klauspost/compress/huff0"
)

// The library huff0 codes a stream in three steps: a histogram, a table from it, the codes. Where the
// kernel in use has loops for the last, which take most of the time, only the table is the library's.
// The bytes are the same either way, and so is the verdict on damaged ones: what the loops do not
// decode to the last bit is left to the library.

// fastHuff is the shortest stream for the loops. Below it the table takes more time than the codes do.
const fastHuff = 1 << 10

// fastTable is the working memory of the loops.
type fastTable struct {
	counts  [4][256]uint32
	codes   [256]tensor.HuffCode
	tables  [2]tensor.HuffTable
	weights [256]byte
	fse     fse.Scratch
	packed  []byte
}

// compress returns raw in the format of huff0.Compress4X, or an error where that would: the
// stream is to be stored then.
func (s *scratch) compress(raw []byte) ([]byte, error) {
	if len(raw) < fastHuff || !tensor.HasHuff() {
		packed, _, err := huff0.Compress4X(raw, s.packer)
		return packed, err
	}
	t := &s.fast
	counts := t.count(raw)
	most := uint32(0)
	for _, n := range counts {
		most = max(most, n)
	}
	if int(most) < len(raw)>>7 {
		return nil, huff0.ErrIncompressible
	}
	if err := s.packer.BuildCTable(counts); err != nil {
		return nil, err
	}
	out, err := s.packer.AppendTable(t.packed[:0])
	if err != nil {
		return nil, err
	}
	if _, err := t.describe(out, nil); err != nil {
		return nil, err
	}
	t.packed = t.append(out, raw)
	return t.packed, nil
}

// count returns how often each byte occurs. Four counters for each keep equal bytes in a row from
// waiting for one another.
func (t *fastTable) count(raw []byte) *[256]uint32 {
	clear(t.counts[:])
	c := &t.counts
	for ; len(raw) >= 8; raw = raw[8:] {
		x := binary.LittleEndian.Uint64(raw)
		c[0][byte(x)]++
		c[1][byte(x>>8)]++
		c[2][byte(x>>16)]++
		c[3][byte(x>>24)]++
		c[0][byte(x>>32)]++
		c[1][byte(x>>40)]++
		c[2][byte(x>>48)]++
		c[3][byte(x>>56)]++
	}
	for _, x := range raw {
		c[0][x]++
	}
	for i := range c[0] {
		c[0][i] += c[1][i] + c[2][i] + c[3][i]
	}
	return &c[0]
}

// append adds the lengths of the first three quarters of raw, as uint16, and the codes of all four.
func (t *fastTable) append(out, raw []byte) []byte {
	lengths := len(out)
	at := lengths + 6
	quarter := (len(raw) + 3) / 4
	out = slices.Grow(out, 6+len(raw)*tensor.HuffBits/8+4*32)
	out = out[:cap(out)]
	for i := range 4 {
		part := raw[i*quarter : min((i+1)*quarter, len(raw))]
		n := tensor.HuffEncode(out[at:], part, &t.codes)
		if i < 3 {
			binary.LittleEndian.PutUint16(out[lengths+2*i:], uint16(n))
		}
		at += n
	}
	return out[:at]
}

// describe reads the description of a table that begins b, which the library has written or
// accepted, and returns what follows. It fills the table, or where that is nil the codes.
func (t *fastTable) describe(b []byte, table *tensor.HuffTable) (rest []byte, err error) {
	n, size, b := 0, int(b[0]), b[1:]
	if size >= 128 { // half bytes
		n = size - 127
		size = (n + 1) / 2
		for i := range n {
			t.weights[i] = b[i/2] >> (4 - i%2*4) & 15
		}
	} else {
		t.fse.DecompressLimit, t.fse.Out = 255, t.weights[:0]
		w, err := fse.Decompress(b[:size], &t.fse)
		if err != nil {
			return nil, err
		}
		n = copy(t.weights[:], w)
		t.fse.Out = nil
	}
	t.fill(n, table)
	return b[size:], nil
}

// fill makes the table of n weights and the last one, which completes a power of two: a symbol of
// weight w takes 2^(w-1) parts of it, in order of weight, then of value.
func (t *fastTable) fill(n int, table *tensor.HuffTable) {
	var count [tensor.HuffBits + 2]int
	total := 0
	for _, w := range t.weights[:n] {
		total += 1 << w >> 1
		count[w]++
	}
	log := bits.Len(uint(total))
	last := bits.Len(uint(1<<log - total))
	t.weights[n] = byte(last)
	count[last]++
	var next [tensor.HuffBits + 2]int // the place of the next symbol of a weight
	for w, at := 1, 0; w <= log; w++ {
		next[w] = at
		at += count[w] << (w - 1)
	}
	if table == nil {
		clear(t.codes[:])
	}
	wider := tensor.HuffBits - log
	for symbol, w := range t.weights[:n+1] {
		if w == 0 {
			continue
		}
		length, at := log+1-int(w), next[w]
		next[w] += 1 << (w - 1)
		if table == nil {
			t.codes[symbol] = tensor.HuffCode{uint32(at >> (w - 1)), uint32(length)}
			continue
		}
		entries := table[at<<wider : next[w]<<wider]
		for i := range entries {
			entries[i] = uint16(symbol)<<8 | uint16(length)
		}
	}
}

// waiting is a stream that is not decoded yet: two of one length are decoded together.
type waiting struct {
	raw []byte // where it goes; nil if none waits
	b   []byte // a table and four streams
}

// put takes a stream whose table the library has accepted. It is decoded with the next one of the same
// length, or by complete. It reports whether it did.
func (s *scratch) put(raw, b []byte) (bool, error) {
	if len(raw) < fastHuff || !tensor.HasHuff() {
		return false, nil
	}
	if len(s.waiting.raw) != len(raw) {
		err := s.complete()
		s.waiting = waiting{raw, b}
		return true, err
	}
	pair := [2]waiting{s.waiting, {raw, b}}
	s.waiting = waiting{}
	if s.fast.decompress(&pair) {
		return true, nil
	}
	if err := s.decompress(pair[0]); err != nil {
		return true, err
	}
	return true, s.decompress(pair[1])
}

// complete decodes the stream that waits, if one does.
func (s *scratch) complete() error {
	w := s.waiting
	s.waiting = waiting{}
	if w.raw == nil {
		return nil
	}
	return s.decompress(w)
}

// decompress has the library decode a stream.
func (s *scratch) decompress(w waiting) error {
	_, parts, err := huff0.ReadTable(w.b, s.reader)
	if err != nil {
		return fmt.Errorf("huffman table: %w", err)
	}
	if _, err := s.reader.Decoder().Decompress4X(w.raw[:0:len(w.raw)], parts); err != nil {
		return fmt.Errorf("huffman data: %w", err)
	}
	return nil
}

// quartet is the four streams of one input: where they begin and end in it, one where the other ends.
type quartet [5]int

// split finds the streams in b from number at on: the lengths of three, then they. It reports whether
// they are there.
func split(b []byte, at int) (q quartet, ok bool) {
	if len(b) < at+6 {
		return q, false
	}
	q[0] = at + 6
	for i := range 3 {
		q[i+1] = q[i] + int(binary.LittleEndian.Uint16(b[at+2*i:]))
	}
	q[4] = len(b)
	return q, q[3] <= q[4]
}

// decompress decodes two streams of the same length. It reports whether it could: the library decides
// otherwise.
func (t *fastTable) decompress(in *[2]waiting) bool {
	var parts [2]quartet
	for i, w := range in {
		rest, err := t.describe(w.b, &t.tables[i])
		if err != nil {
			return false
		}
		var ok bool
		if parts[i], ok = split(w.b, len(w.b)-len(rest)); !ok {
			return false
		}
	}
	var state tensor.HuffState
	for i := range 8 {
		src, begin, end := in[i/4].b, parts[i/4][i%4], parts[i/4][i%4+1]
		if end < begin+8 || src[end-1] == 0 {
			return false
		}
		used := 1 + bits.LeadingZeros8(src[end-1])
		state[i] = (binary.LittleEndian.Uint64(src[end-8:]) | 1) << used
		state[8+i] = uint64(end - 8)
	}
	done := t.run(in, &parts, &state)
	for i := range 8 {
		raw := in[i/4].raw
		quarter := (len(raw) + 3) / 4
		begin, end := parts[i/4][i%4], parts[i/4][i%4+1]
		left := 8*(int(state[8+i])-begin) + 64 - bits.TrailingZeros64(state[i])
		raw = raw[i%4*quarter+done : min((i%4+1)*quarter, len(raw))]
		if !finish(raw, in[i/4].b[begin:end], left, &t.tables[i/4]) {
			return false
		}
	}
	return true
}

// run decodes what is safe to decode without a look at each symbol, and returns how many of each stream
// that is.
func (t *fastTable) run(in *[2]waiting, parts *[2]quartet, state *tensor.HuffState) (done int) {
	length := len(in[0].raw)
	quarter := (length + 3) / 4
	shortest := length - 3*quarter // the last one
	src := [2][]byte{in[0].b, in[1].b}
	for {
		runs := (shortest - done) / tensor.HuffRun
		for i := range 8 {
			runs = min(runs, (int(state[8+i])-parts[i/4][i%4])/7) // a run takes 7 bytes at most
		}
		if runs <= 0 {
			return done
		}
		dst := [2][]byte{in[0].raw[done:], in[1].raw[done:]}
		tensor.HuffDecode(&dst, &src, quarter, &t.tables, state, runs)
		done += runs * tensor.HuffRun
	}
}

// finish decodes the last symbols of a stream that has so many bits left. It reports whether they
// take exactly these.
func finish(raw, stream []byte, left int, table *tensor.HuffTable) bool {
	for i := range raw {
		entry := table[peek(stream, left)]
		left -= int(entry & 0xff)
		if left < 0 {
			return false
		}
		raw[i] = byte(entry >> 8)
	}
	return left == 0
}

// peek returns the HuffBits bits below bit number left of the stream, zeros beyond its beginning.
func peek(stream []byte, left int) uint32 {
	low := left - tensor.HuffBits
	if low < 0 {
		return (uint32(stream[0]) | uint32(stream[1])<<8) << -low & (1<<tensor.HuffBits - 1)
	}
	at := low / 8
	x := uint32(stream[at]) | uint32(stream[at+1])<<8
	if at+2 < len(stream) {
		x |= uint32(stream[at+2]) << 16
	}
	return x >> (low % 8) & (1<<tensor.HuffBits - 1)
}
