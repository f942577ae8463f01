package codec_test

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"strconv"
	"testing"

	"atoll/gossip/wire/spectest"
	"atoll/tensor/codec"
	"pgregory.net/rapid"
)

// Clauses C-15 to C-17, with a decoder and an encoder after the text.

// sparseKinds are those of the table densities.
var sparseKinds = map[codec.Kind]int{codec.Sparse: 64, codec.Sparse8: 8}

// travellers is how many of n values travel.
func travellers(k codec.Kind, n int) int { return (n + sparseKinds[k] - 1) / sparseKinds[k] }

// sparseValues sets the values of a segment, block by block.
func sparseValues(k codec.Kind, v []float32, streams [][]byte) error {
	for i := 0; i*4096 < len(v); i++ {
		block := v[i*4096 : min(i*4096+4096, len(v))]
		small := uint16(streams[0][2*i]) | uint16(streams[1][2*i])<<8
		large := uint16(streams[0][2*i+1]) | uint16(streams[1][2*i+1])<<8
		first := i * travellers(k, 4096)
		last := first + travellers(k, len(block))
		gaps, codes := streams[2][first:last], streams[3][first:last]
		if err := sparseBlock(block, small, large, gaps, codes); err != nil {
			return err
		}
	}
	return nil
}

func sparseBlock(block []float32, small, large uint16, gaps, codes []byte) error {
	if small > large || large >= 0x7f80 {
		return errText
	}
	at, holes, larger := 0, 0, 0
	for j, code := range codes {
		gap := int(gaps[j]) | int(code>>2)<<8
		holes += gap
		at += gap
		if at >= len(block) {
			return errText
		}
		bits := uint32(small) << 16
		if code&2 != 0 {
			bits = uint32(large) << 16
			larger++
		}
		if bits == 0 && (holes > 0 || code&1 != 0) {
			return errText
		}
		block[at] = math.Float32frombits(bits | uint32(code)<<31)
		at++
	}
	if small == large && larger > 0 || small < large && (larger == 0 || larger == len(codes)) {
		return errText
	}
	return nil
}

// sparseOf builds a payload of one block with stored streams.
func sparseOf(n int, small, large uint16, gaps, codes []byte) []byte {
	return sparseOfKind(5, n, small, large, gaps, codes)
}

func sparseOfKind(kind byte, n int, small, large uint16, gaps, codes []byte) []byte {
	return slices.Concat([]byte{0xa1, kind, byte(n), byte(n >> 8), 0, 0},
		[]byte{0, byte(small), byte(large), 0, byte(small >> 8), byte(large >> 8)}, []byte{0}, gaps, []byte{0}, codes)
}

func specSparse(t *testing.T, s *spectest.Spec) {
	sparseExample(t, s, codec.Sparse, 130, []byte{5, 0, 122})
}

func specSparse8(t *testing.T, s *spectest.Spec) {
	sparseExample(t, s, codec.Sparse8, 20, []byte{1, 0, 16})
}

// sparseExample encodes and decodes the example of a kind: three of n values travel, with these gaps before them.
func sparseExample(t *testing.T, s *spectest.Spec, k codec.Kind, n int, gaps []byte) {
	b := s.Hex(t, "payload "+k.String())
	v := make([]float32, n)
	first := int(gaps[0])
	v[first], v[first+1], v[n-1] = -0.75, 0.25, 0.5
	if !slices.Equal(b, encode(t, k, v)) {
		t.Errorf("encoded %x", encode(t, k, v))
	}
	v[first], v[n-1] = -0.625, 0.625
	for what, b := range map[string][]byte{"the example": b, "stored": sparseOfKind(byte(k), n, 0x3e80, 0x3f20, gaps, []byte{3, 0, 2})} {
		if got := taken(t, what, b, n); !slices.Equal(got, v) {
			t.Errorf("%s: decoded %v", what, got)
		}
	}
}

// block decodes one block of n values.
func block(t *testing.T, n int, small, large uint16, gaps, codes []byte) []float32 {
	t.Helper()
	return taken(t, "a block", sparseOf(n, small, large, gaps, codes), n)
}

// The second block has the levels 4 and 8, the first one 1 and 2.
func specSparseBlocks(t *testing.T, s *spectest.Spec) {
	for k, of := range sparseKinds {
		for _, n := range []int{4097, 4097 + of, 8192} {
			specTwoBlocks(t, k, n, 4096/of, travellers(k, n-4096))
		}
	}
}

func specTwoBlocks(t *testing.T, k codec.Kind, n, first, second int) {
	codes := append(append(make([]byte, first-1), 2), make([]byte, second)...)
	codes[len(codes)-1] |= 2
	low, high := []byte{0x80, 0, 0x80, 0}, []byte{0x3f, 0x40, 0x40, 0x41}
	small, large := float32(4), float32(8)
	if second == 1 { // a level that is not in use is that of the other
		codes[len(codes)-1], low[3], high[3], large = 0, 0x80, 0x40, 4
	}
	v := taken(t, "two blocks", stored(k, n, low, high, make([]byte, first+second), codes), n)
	if v[0] != 1 || v[first-1] != 2 || v[first] != 0 || v[4095] != 0 || second > 1 && v[4096] != small || v[4096+second-1] != large {
		t.Errorf("%v, %d values: %v ..., %v ...", k, n, v[:first+2], v[4096:4096+second])
	}
}

func specLevels(t *testing.T, s *spectest.Spec) {
	for _, c := range [][2]uint16{{0x3f80, 0x4000}, {0x0001, 0x7f7f}, {0, 0x3dcd}, {0x3dcc, 0x3dcd}} {
		v := block(t, 65, c[0], c[1], []byte{0, 0}, []byte{0, 2})
		if math.Float32bits(v[0]) != uint32(c[0])<<16 || math.Float32bits(v[1]) != uint32(c[1])<<16 {
			t.Errorf("levels %04x have the values %v", c, v[:2])
		}
	}
	refuse(t, "the larger first", sparseOf(65, 0x4000, 0x3f80, []byte{0, 0}, []byte{0, 2}), 65)
}

func specTravelling(t *testing.T, s *spectest.Spec) {
	rows := s.Table(t, "densities")
	if len(rows) != len(sparseKinds) {
		t.Errorf("%d densities", len(rows))
	}
	for _, row := range rows {
		k := kinds[row[0]]
		if of := strconv.Itoa(sparseKinds[k]); row[1] != of {
			t.Errorf("%v: one of %s values travels, want %s", k, row[1], of)
		}
		for _, n := range []int{1, 8, 9, 64, 65, 4095, 4096, 4097, 8192 + 65, 131072 + 4097} {
			specTravellers(t, k, n)
		}
	}
}

func specTravellers(t *testing.T, k codec.Kind, n int) {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(math.Sin(float64(i+1) * float64(i+1)))
	}
	got := taken(t, "sines", encode(t, k, v), n)
	for at := 0; at < n; at += 4096 {
		end := min(at+4096, n)
		travel := 0
		for i, x := range got[at:end] {
			if x != 0 {
				travel++
			}
			if x*v[at+i] < 0 {
				t.Errorf("value %d of %d is %v, encoded of %v", at+i, n, x, v[at+i])
			}
		}
		if want := travellers(k, end-at); travel != want {
			t.Errorf("%v: %d of %d values travel, want %d", k, travel, end-at, want)
		}
	}
}

// places are where the values of a block are not 0.
func places(v []float32) (at []int) {
	for i, x := range v {
		if x != 0 {
			at = append(at, i)
		}
	}
	return at
}

func specGaps(t *testing.T, s *spectest.Spec) {
	for _, c := range []struct {
		gaps []byte
		at   []int
	}{{[]byte{0, 0, 0}, []int{0, 1, 2}}, {[]byte{5, 0, 122}, []int{5, 6, 129}}, {[]byte{1, 2, 3}, []int{1, 4, 8}}, {[]byte{127, 0, 0}, []int{127, 128, 129}}} {
		if got := places(block(t, 130, 0x3f80, 0x3f80, c.gaps, []byte{0, 0, 0})); !slices.Equal(got, c.at) {
			t.Errorf("gaps %d lead to %d, want %d", c.gaps, got, c.at)
		}
	}
}

func specFarGaps(t *testing.T, s *spectest.Spec) {
	for _, gap := range []int{255, 256, 257, 1000, 0x7ff, 0x800, 4096 - 64} {
		gaps, codes := make([]byte, 64), make([]byte, 64)
		gaps[0], codes[0] = byte(gap), byte(gap>>8)<<2
		if at := places(block(t, 4096, 0x3f80, 0x3f80, gaps, codes)); at[0] != gap || at[63] != gap+63 {
			t.Errorf("a gap of %d leads to %d", gap, at[0])
		}
	}
}

func specSparseCodes(t *testing.T, s *spectest.Spec) {
	if v := block(t, 256, 0x3f80, 0x4000, make([]byte, 4), []byte{0, 1, 2, 3}); !slices.Equal(v[:4], []float32{1, -1, 2, -2}) {
		t.Errorf("codes 0 to 3 are %v", v[:4])
	}
}

func specSparseZeros(t *testing.T, s *spectest.Spec) {
	v := block(t, 4096, 0x3f80, 0x4000, bytes.Repeat([]byte{20}, 64), append(bytes.Repeat([]byte{1}, 63), 3))
	for i, x := range v {
		if travels := i%21 == 20 && i < 64*21; (math.Float32bits(x) != 0) != travels {
			t.Fatalf("value %d is %v", i, x)
		}
	}
}

// sparseCases are blocks of 130 values and whether they are taken, by the clause that they are about.
var sparseCases = map[string][]sparseCase{
	"C-16": {
		{"two levels", 0x3e80, 0x3f20, []byte{5, 0, 122}, []byte{3, 0, 2}, true},
		{"descending", 0x3f20, 0x3e80, []byte{5, 0, 122}, []byte{3, 0, 2}, false},
		{"infinite", 0x3e80, 0x7f80, []byte{5, 0, 122}, []byte{3, 0, 2}, false},
		{"the largest number", 0x3e80, 0x7f7f, []byte{5, 0, 122}, []byte{3, 0, 2}, true},
		{"negative", 0x3e80, 0xbf20, []byte{5, 0, 122}, []byte{3, 0, 2}, false},
		{"both negative", 0xbe80, 0xbf20, []byte{5, 0, 122}, []byte{3, 0, 2}, false},
		{"minus zero", 0x8000, 0x8000, []byte{0, 0, 0}, []byte{0, 0, 0}, false},
		{"equal levels", 0x3e80, 0x3e80, []byte{5, 0, 122}, []byte{1, 0, 0}, true},
		{"no number", 0x3e80, 0x7fc0, []byte{5, 0, 122}, []byte{3, 0, 2}, false},
	},
	"C-16.2": {
		{"the last of the block", 0x3e80, 0x3f20, []byte{5, 0, 122}, []byte{3, 0, 2}, true},
		{"beyond the block", 0x3e80, 0x3f20, []byte{5, 0, 123}, []byte{3, 0, 2}, false},
		{"far beyond", 0x3e80, 0x3f20, []byte{5, 0, 0}, []byte{3, 0, 2 | 15<<2}, false},
		{"a high bit", 0x3e80, 0x3f20, []byte{5, 0, 122}, []byte{3, 0x40, 2}, false},
		{"the highest", 0x3e80, 0x3f20, []byte{5, 0, 122}, []byte{3, 0x80, 2}, false},
	},
	"C-16.3": {
		{"both in use", 0x3e80, 0x3f20, []byte{5, 0, 122}, []byte{3, 0, 0}, true},
		{"equal levels, the larger", 0x3e80, 0x3e80, []byte{5, 0, 122}, []byte{1, 2, 0}, false},
		{"equal levels, all the larger", 0x3e80, 0x3e80, []byte{5, 0, 122}, []byte{2, 2, 2}, false},
		{"none is larger", 0x3e80, 0x3f20, []byte{5, 0, 122}, []byte{1, 0, 1}, false},
		{"none is smaller", 0x3e80, 0x3f20, []byte{5, 0, 122}, []byte{3, 2, 2}, false},
	},
	"C-16.4": {
		{"zeros", 0, 0, []byte{0, 0, 0}, []byte{0, 0, 0}, true},
		{"a zero and more", 0, 0x3f20, []byte{0, 0, 122}, []byte{0, 2, 3}, true},
		{"a zero is negative", 0, 0x3f20, []byte{0, 0, 122}, []byte{1, 2, 3}, false},
		{"a zero behind another", 0, 0x3f20, []byte{1, 0, 12}, []byte{0, 2, 3}, false},
		{"a zero behind a hole", 0, 0x3f20, []byte{0, 1, 0}, []byte{2, 3, 0}, false},
		{"a zero behind a far hole", 0, 0, []byte{0, 0, 0}, []byte{0, 0, 0x10}, false},
	},
}

type sparseCase struct {
	name         string
	small, large uint16
	gaps, codes  []byte
	ok           bool
}

// specCases are the cases of a clause.
func specCases(clause string) spectest.Clause {
	return func(t *testing.T, _ *spectest.Spec) {
		for _, c := range sparseCases[clause] {
			if _, err := decode(t, sparseOf(130, c.small, c.large, c.gaps, c.codes), 130); (err == nil) != c.ok {
				t.Errorf("%s: %v", c.name, err)
			}
		}
	}
}

// Payloads of the same values have the same streams.
func specOneEncoding(t *testing.T, s *spectest.Spec) {
	rapid.Check(t, func(rt *rapid.T) {
		level := rapid.SampledFrom([]uint16{0, 0x3e80, 0x3f20, 0x7f80, 0x8000})
		small, large := level.Draw(rt, "small"), level.Draw(rt, "large")
		gaps := rapid.SliceOfN(rapid.SampledFrom([]byte{0, 0, 0, 1, 62, 255}), 3, 3).Draw(rt, "gaps")
		codes := rapid.SliceOfN(rapid.SampledFrom([]byte{0, 0, 1, 2, 3, 4, 64}), 3, 3).Draw(rt, "codes")
		b := sparseOf(150, small, large, gaps, codes)
		if v, err := decode(t, b, 150); err == nil && !slices.Equal(levelled(encode(t, codec.Sparse, v)), levelled(b)) {
			rt.Fatalf("%x has the values of %x", b, encode(t, codec.Sparse, v))
		}
	})
}

// levelled is a payload of one block with its chunks stored, as sparseOf builds it.
func levelled(b []byte) []byte { return levelledOf(b, 3) }

// levelledOf is levelled for a block of which n values travel.
func levelledOf(b []byte, n int) []byte {
	out, rest := slices.Clone(b[:6]), b[6:]
	for _, size := range []int{2, 2, n, n} {
		stream, after, err := readChunk(rest, size)
		if err != nil {
			panic(err)
		}
		out, rest = append(append(out, 0), stream...), after
	}
	return out
}

// sent encodes a block whose first values these are, with zeros behind, and returns as many.
func sent(t *testing.T, n int, first ...float32) []float32 {
	t.Helper()
	v := make([]float32, n)
	copy(v, first)
	return taken(t, "encoded", encode(t, codec.Sparse, v), n)[:len(first)]
}

func specGreatest(t *testing.T, s *spectest.Spec) {
	for _, c := range []struct{ first, want []float32 }{ // of 128 values two travel
		{[]float32{1, -3, 2, 4, 0.5}, []float32{0, -3, 0, 4, 0}},
		{[]float32{1, -1, 1, 1}, []float32{1, -1, 0, 0}},
		{[]float32{1, 2, -2, 2}, []float32{0, 2, -2, 0}},
		{[]float32{0x1p-101, 0x1.fffffep-101, 1}, []float32{0, 0, 1}},
		{[]float32{0x1p-101, 0x1p-100, 1}, []float32{0, 0x1p-100, 1}},
	} {
		if got := sent(t, 128, c.first...); !slices.Equal(got, c.want) {
			t.Errorf("of %v travel %v, want %v", c.first, got, c.want)
		}
	}
	rapid.Check(t, func(rt *rapid.T) {
		k := rapid.SampledFrom([]codec.Kind{codec.Sparse, codec.Sparse8}).Draw(rt, "kind")
		n := rapid.SampledFrom([]int{1, 63, 64, 100, 1000, 4096, 5000}).Draw(rt, "n")
		scale := math.Ldexp(1, rapid.IntRange(-105, 100).Draw(rt, "exponent"))
		steps := rapid.SampledFrom([]float64{3, 50, 1e6}).Draw(rt, "steps") // few make ties
		zeros := rapid.SampledFrom([]int{0, 2, 90}).Draw(rt, "zeros")
		v := make([]float32, n)
		for i := range v {
			x := math.Sin(float64(i+1) * float64(i+7))
			if i%100 >= zeros {
				v[i] = float32(math.Round(x*x*x*steps) / steps * scale)
			}
		}
		got := taken(t, "encoded", encode(t, k, v), n)
		for at := 0; at < n; at += 4096 {
			block := v[at:min(at+4096, n)]
			if want := sparseByText(k, block); !slices.EqualFunc(got[at:at+len(block)], want, sameBits) {
				rt.Fatalf("block at %d: %v\nby the text %v", at, got[at:at+len(block)], want)
			}
		}
	})
}

func specLeastError(t *testing.T, s *spectest.Spec) {
	for _, c := range []struct {
		n           int
		first, want []float32
	}{
		{256, []float32{1, -2, 9, 10}, []float32{1.5, -1.5, 9.5, 9.5}},
		{256, []float32{1, 2, -3, 10}, []float32{2, 2, -2, 10}},
		{192, []float32{1, 2, 3}, []float32{1, 2.5, 2.5}}, // both places are as good: the first
		{256, []float32{1, 1, 2, 2}, []float32{1, 1, 2, 2}},
	} {
		if got := sent(t, c.n, c.first...); !slices.Equal(got, c.want) {
			t.Errorf("%v become %v, want %v", c.first, got, c.want)
		}
	}
}

// The mean of the first two is a little above the middle of 1 and the next bfloat16: it rounds to that middle, and
// then to even.
func specMean(t *testing.T, s *spectest.Spec) {
	if got := sent(t, 192, 1+0x1p-8, 1+0x1p-8+0x1p-23, 100); !slices.Equal(got, []float32{1, 1, 100}) {
		t.Errorf("rounded twice: %v", got)
	}
	if got := sent(t, 192, 1+0x1p-8, 1+0x1p-8+0x1p-22, 100); !slices.Equal(got, []float32{1 + 0x1p-7, 1 + 0x1p-7, 100}) {
		t.Errorf("above the middle: %v", got)
	}
	if got := sent(t, 192, 1+3*0x1p-8, 1+3*0x1p-8, 100); !slices.Equal(got, []float32{1 + 0x1p-6, 1 + 0x1p-6, 100}) {
		t.Errorf("the middle: %v", got)
	}
}

func specZeroPart(t *testing.T, s *spectest.Spec) {
	if got := sent(t, 192, 1, 99); !slices.Equal(got, []float32{50, 50}) {
		t.Errorf("1 and 99 beside a zero that travels are %v", got)
	}
	if got := sent(t, 192, 7); got[0] != 7 {
		t.Errorf("7 beside zeros that travel is %v", got)
	}
}

func specOneLevel(t *testing.T, s *spectest.Spec) {
	for _, c := range []struct {
		first []float32
		want  uint32
	}{
		{[]float32{3, -3}, 0x40400000}, {[]float32{0, 0}, 0}, // all are equal
		{[]float32{1, 1 + 0x1p-20}, 0x3f800000}, {[]float32{1 + 0x1p-7, 1 + 0x1p-7 + 0x1p-20}, 0x3f810000}, // both levels are
	} {
		v := make([]float32, 128)
		copy(v, c.first)
		b := levelledOf(encode(t, codec.Sparse, v), 2)
		small, large := uint32(b[7])<<16|uint32(b[10])<<24, uint32(b[8])<<16|uint32(b[11])<<24
		if small != c.want || large != c.want || b[16]&2 != 0 || b[17]&2 != 0 {
			t.Errorf("%v have the levels %08x and %08x, codes %x", c.first, small, large, b[16:])
		}
	}
}

// sparseByText is what C-17 makes of a block.
func sparseByText(k codec.Kind, block []float32) []float32 {
	type value struct {
		i    int
		x, m float64
	}
	var all []value
	for i, x := range block {
		m := math.Abs(float64(x))
		if m < 0x1p-100 {
			m = 0
		}
		all = append(all, value{i, float64(x), m})
	}
	slices.SortStableFunc(all, func(a, b value) int { return cmp.Compare(b.m, a.m) })
	sent := all[:travellers(k, len(block))]
	slices.Reverse(sent)
	sum := func(part []value) (sum float64) {
		for _, x := range part {
			sum += x.m
		}
		return sum
	}
	cut, most := 0, 0.0
	for at := 1; at < len(sent); at++ {
		a, b := sum(sent[:at]), sum(sent[at:])
		gain := a*a/float64(at) + b*b/float64(len(sent)-at)
		if sent[at-1].m < sent[at].m && (sent[at-1].m == 0 || sent[0].m > 0 && gain > most) {
			cut, most = at, gain
		}
	}
	out := make([]float32, len(block))
	for _, part := range [][]value{sent[:cut], sent[cut:]} {
		for _, x := range part {
			if level := toBF16(sum(part) / float64(len(part))); level != 0 {
				out[x.i] = float32(math.Copysign(float64(level), x.x))
			}
		}
	}
	return out
}

// toBF16 rounds to the nearest bfloat16, ties to even.
func toBF16(x float64) float32 {
	bits := math.Float32bits(float32(x))
	below := bits &^ 0xffff
	switch rest := bits & 0xffff; {
	case rest > 0x8000, rest == 0x8000 && below&0x10000 != 0:
		below += 0x10000
	}
	return math.Float32frombits(below)
}
