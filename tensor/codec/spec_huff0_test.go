package codec_test

import (
	"bytes"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"atoll/gossip/wire/spectest"
	"atoll/tensor/codec"
)

// Clauses C-9 to C-11, with an encoder of chunks after the text.

// codesOf are the codes of the symbols of a tree as bits in text, of any length. The last
// weight is the one that is not listed.
func codesOf(weights []byte) (codes []string) {
	total := 0
	for _, w := range weights {
		total += 1 << w >> 1
	}
	width := bits.Len(uint(total))
	weights = append(slices.Clone(weights), byte(bits.Len(uint(1<<width-total))))
	codes = make([]string, len(weights))
	entry := 0
	for w := 1; w <= width; w++ {
		for symbol, have := range weights {
			if int(have) == w {
				codes[symbol] = fmt.Sprintf("%0*b", width+1-w, entry>>(w-1))
				entry += 1 << (w - 1)
			}
		}
	}
	return codes
}

// backwardBits are bytes that a reader from the end finds the bits in.
func backwardBits(text string) (b []byte) {
	text = "1" + text
	for len(text) > 0 {
		at := max(0, len(text)-8)
		x, err := strconv.ParseUint(text[at:], 2, 8)
		if err != nil {
			panic(err)
		}
		b, text = append(b, byte(x)), text[:at]
	}
	return b
}

// direct is a tree description with half a byte for each weight.
func direct(weights []byte) []byte {
	b := []byte{byte(127 + len(weights))}
	for i, w := range weights {
		if i%2 == 0 {
			b = append(b, w<<4)
		} else {
			b[len(b)-1] |= w
		}
	}
	return b
}

// quarters are the lengths of the four parts of n bytes, by C-9.2.
func quarters(n int) []int {
	part := (n + 3) / 4
	return []int{part, part, part, n - 3*part}
}

// packed is a chunk of huff0 with a tree, whose weights these are, and parts of those
// lengths. The bits in more follow those of the first part.
func packed(tree, weights, symbols []byte, parts []int, more string) []byte {
	codes := codesOf(weights)
	var jump, streams []byte
	for i, n := range parts {
		var text strings.Builder
		for _, symbol := range symbols[:n] {
			text.WriteString(codes[symbol])
		}
		symbols = symbols[n:]
		stream := backwardBits(text.String() + more)
		if more = ""; i < 3 {
			jump = append(jump, byte(len(stream)), byte(len(stream)>>8))
		}
		streams = append(streams, stream...)
	}
	body := slices.Concat(tree, jump, streams)
	return append([]byte{2, byte(len(body)), byte(len(body) >> 8), 0}, body...)
}

// ofBytes is a payload of up to 256 values of f32, with their lowest bytes in a chunk and the others 0.
func ofBytes(n int, chunk []byte) []byte {
	return slices.Concat([]byte{0xa1, 1, byte(n), byte(n >> 8), 0, 0}, chunk, []byte{1, 0, 1, 0, 1, 0})
}

// deep are the weights of symbols 1 to bits+1 whose codes have up to that many bits: the first
// two the most, the last one 1.
func deep(bits int) (weights []byte) {
	weights = []byte{0, 1}
	for w := 1; w < bits; w++ {
		weights = append(weights, byte(w))
	}
	return weights
}

// cycle are n symbols from 1 to most, the larger ones more often.
func cycle(n, most int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(most)
		if i%8 == 0 {
			b[i] = byte(1 + i/8%most)
		}
	}
	return b
}

// exampleValues are those of the example of huff0, as the text says.
func exampleValues() []float32 {
	v := make([]float32, 256)
	for i := range v {
		switch {
		case i%29 == 3:
			v[i] = 0.4
		case i%17 == 0:
			v[i] = -1
		case i%5 == 0:
			v[i] = 1
		}
	}
	return v
}

func specHuff0(t *testing.T, s *spectest.Spec) {
	b := s.Hex(t, "payload huff0")
	scale := math.Float32frombits(0x3e090000)
	for i, v := range taken(t, "the example", b, 256) {
		if x := exampleValues()[i]; math.Abs(float64(v-x)) > float64(scale)/2 {
			t.Fatalf("value %d is %v, encoded of %v", i, v, x)
		}
	}
	if !bytes.Equal(encode(t, codec.Int4, exampleValues()), b) {
		t.Error("the example is encoded differently")
	}
	normal := make([]float32, 70000)
	for i := range normal {
		x := math.Sin(float64(i) * float64(i))
		normal[i] = float32(x * x * x)
	}
	for name, k := range kinds {
		packed := encode(t, k, normal)
		if len(packed) >= codec.MaxSize(k, len(normal)) {
			t.Errorf("%s: no stream is packed", name)
		}
		taken(t, name, packed, len(normal))
	}
	jump := 6 + 2 + 2 + 4 + 17
	refuse(t, "streams of other lengths", changed(b, jump, b[jump]+1), 256)
	refuse(t, "no last bit", changed(b, -1, 0), 256)
}

func specParts(t *testing.T, s *spectest.Spec) {
	weights := deep(4)
	for _, n := range []int{64, 65, 66, 67, 250, 256} {
		symbols := cycle(n, 5)
		for i, x := range taken(t, "four parts", ofBytes(n, packed(direct(weights), weights, symbols, quarters(n), "")), n) {
			if math.Float32bits(x) != uint32(symbols[i]) {
				t.Fatalf("value %d of %d is %v, packed as %d", i, n, x, symbols[i])
			}
		}
		for i := range 3 {
			parts := quarters(n)
			parts[i]--
			parts[i+1]++
			refuse(t, "other parts", ofBytes(n, packed(direct(weights), weights, symbols, parts, "")), n)
		}
	}
}

func specCodeBits(t *testing.T, s *spectest.Spec) {
	for bits, ok := range map[int]bool{2: true, 10: true, 11: true, 12: false} {
		weights, symbols := deep(bits), cycle(256, bits+1)
		if got := len(codesOf(weights)[1]); got != bits {
			t.Fatalf("the longest code has %d bits, want %d", got, bits)
		}
		if _, err := decode(t, ofBytes(256, packed(direct(weights), weights, symbols, quarters(256), "")), 256); (err == nil) != ok {
			t.Errorf("codes of up to %d bits: %v", bits, err)
		}
	}
}

func specLeftOver(t *testing.T, s *spectest.Spec) {
	weights, symbols := deep(4), cycle(100, 5)
	chunk := func(n int, more string) []byte {
		return ofBytes(100, packed(direct(weights), weights, symbols[:n], []int{25, 25, 25, n - 75}, more))
	}
	taken(t, "no bit over", chunk(100, ""), 100)
	for _, more := range []string{"0", "1", "00", "0000000", "00000000"} {
		refuse(t, "bits over", chunk(100, more), 100)
	}
	refuse(t, "a byte fewer", chunk(99, ""), 100)
	symbols = append(symbols, 5)
	refuse(t, "a byte more", chunk(101, ""), 100)
}

// certain is the description of FSE of accuracy 5 in which one symbol has all 32 states.
var certain = []byte{0xf0, 0x03}

func specTree(t *testing.T, s *spectest.Spec) {
	b := s.Hex(t, "payload huff0")
	const tree = 14 // its first byte is the length of the FSE
	refuse(t, "3 bytes", changed(b, tree, 3), 256)
	refuse(t, "accuracy 7", changed(b, tree+1, b[tree+1]&0xf0|2), 256)
	if counts, width, _, err := fseCounts(append(certain, 0, 0)); err != nil || width != 5 || !slices.Equal(counts, []int{32}) {
		t.Fatalf("counts %d, width %d, %v", counts, width, err)
	}
	refuse(t, "one symbol", slices.Concat(b[:tree], []byte{6}, certain, []byte{0x55, 0x55, 0x55, 1}, b[tree+17:]), 256)
}

// trees are descriptions by FSE: the example's with a few bytes changed, and some of which one weight
// has 31 states of 32, with any bits behind.
func trees(t *testing.T, s *spectest.Spec, do func(fse []byte, run fseRun)) {
	b := s.Hex(t, "payload huff0")
	example := b[15 : 15+int(b[14])]
	r := rand.New(rand.NewPCG(1, 2))
	for range 20000 {
		fse := bytes.Clone(example)
		if r.IntN(3) == 0 {
			fse = []byte{0xe0, 0x0f}
			for range 2 + r.IntN(40) {
				fse = append(fse, byte(r.Uint32()))
			}
		} else {
			for range 1 + r.IntN(3) {
				fse[r.IntN(len(fse))] = byte(r.Uint32())
			}
			fse[0] &= 0xf1
		}
		do(fse, readFSE(fse))
	}
}

// withTree is a payload with a tree by FSE and streams for its weights, where these make a
// tree. Symbol 0 is not in the streams.
func withTree(fse, weights []byte) (b []byte, ok bool) {
	if _, _, err := huffmanTable(slices.Clone(weights)); err != nil {
		return nil, false
	}
	var symbols []byte
	codes, short := codesOf(weights), 0
	for i, code := range codes {
		if i == 0 || code == "" {
			continue
		}
		if symbols = append(symbols, byte(i)); short == 0 || len(code) < len(codes[short]) {
			short = i
		}
	}
	if short == 0 {
		return nil, false
	}
	symbols = append(symbols, bytes.Repeat([]byte{byte(short)}, 256-len(symbols))...)
	chunk := packed(append([]byte{byte(len(fse))}, fse...), weights, symbols, quarters(256), "")
	return ofBytes(256, chunk), len(chunk) <= 257
}

// judged decodes payloads with trees by FSE that the text takes, or refuses for a reason, and tells
// how many of those that interest there were.
func judged(t *testing.T, s *spectest.Spec, interests func(run fseRun) bool) (n int) {
	trees(t, s, func(fse []byte, run fseRun) {
		if !interests(run) {
			return
		}
		b, ok := withTree(fse, run.weights)
		if !ok {
			return
		}
		n++
		if _, err := decode(t, b, 256); (err == nil) != (run.err == nil) {
			t.Fatalf("tree %x: %v, by the text %v", fse, err, run.err)
		}
	})
	return n
}

func specTurns(t *testing.T, s *spectest.Spec) {
	if n := judged(t, s, func(run fseRun) bool { return run.err == nil }); n < 20 {
		t.Errorf("%d trees are taken", n)
	}
}

func specIdle(t *testing.T, s *spectest.Spec) {
	if n := judged(t, s, func(run fseRun) bool { return run.err == nil && run.idle > 0 }); n < 20 {
		t.Errorf("%d trees have a state that needs no bit", n)
	}
}

// A decoder that ended where a state needs more bits than there are would take these.
func specOverrun(t *testing.T, s *spectest.Spec) {
	if n := judged(t, s, func(run fseRun) bool { return run.err == errBits }); n < 20 {
		t.Errorf("%d trees end within a state", n)
	}
}

func specManyWeights(t *testing.T, s *spectest.Spec) {
	n := 0
	trees(t, s, func(fse []byte, run fseRun) {
		if run.err == errMany && len(fse) < 128 {
			n++
			refuse(t, "many weights", ofBytes(256, slices.Concat([]byte{2, byte(7 + len(fse) + 4), 0, 0, byte(len(fse))}, fse, []byte{1, 0, 1, 0, 1, 0, 1, 1, 1, 1})), 256)
		}
	})
	if n < 20 {
		t.Errorf("%d trees have more than 255 weights", n)
	}
}

func specHuff0Length(t *testing.T, s *spectest.Spec) {
	weights := deep(11)
	ofLong := func(n, long int) []byte { // so many symbols of the longest code in each quarter
		var symbols []byte
		for _, part := range quarters(n) {
			symbols = append(append(symbols, bytes.Repeat([]byte{1}, long)...), bytes.Repeat([]byte{12}, part-long)...)
		}
		return packed(direct(weights), weights, symbols, quarters(n), "")
	}
	for _, c := range []struct {
		n, long, length int
		ok              bool
	}{{256, 1, 0, true}, {256, 41, 257, true}, {256, 42, 261, false}, {64, 1, 0, true}, {63, 1, 0, false}} {
		chunk := ofLong(c.n, c.long)
		if c.length > 0 && len(chunk) != c.length {
			t.Fatalf("the chunk has %d bytes, want %d", len(chunk), c.length)
		}
		if _, err := decode(t, ofBytes(c.n, chunk), c.n); (err == nil) != c.ok {
			t.Errorf("a chunk of %d bytes for %d: %v", len(chunk), c.n, err)
		}
	}
	// One byte more than the longest: a symbol of another length in the first part only.
	symbols := bytes.Repeat(append(bytes.Repeat([]byte{1}, 41), bytes.Repeat([]byte{12}, 23)...), 4)
	symbols[63] = 1
	if chunk := packed(direct(weights), weights, symbols, quarters(256), ""); len(chunk) != 258 {
		t.Fatalf("the chunk has %d bytes", len(chunk))
	} else {
		refuse(t, "a byte longer than stored", ofBytes(256, chunk), 256)
	}
}
