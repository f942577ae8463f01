package codec_test

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"atoll/gossip/wire/spectest"
	"atoll/tensor/codec"
	"pgregory.net/rapid"
)

// Clauses C-15 to C-17, with a decoder and an encoder after the text.

// sparseValues sets the values of a segment, block by block.
func sparseValues(v []float32, streams [][]byte) error {
	for i := 0; i*4096 < len(v); i++ {
		block := v[i*4096 : min(i*4096+4096, len(v))]
		small := uint16(streams[0][2*i]) | uint16(streams[1][2*i])<<8
		large := uint16(streams[0][2*i+1]) | uint16(streams[1][2*i+1])<<8
		sent := (len(block) + 63) / 64
		gaps, codes := streams[2][i*64:i*64+sent], streams[3][i*64:i*64+sent]
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
	return slices.Concat([]byte{0xa1, 5, byte(n), byte(n >> 8), 0, 0},
		[]byte{0, byte(small), byte(large), 0, byte(small >> 8), byte(large >> 8)}, []byte{0}, gaps, []byte{0}, codes)
}

func specSparse(t *testing.T, s *spectest.Spec) {
	b := s.Hex(t, "payload sparse")
	v := make([]float32, 130)
	v[5], v[6], v[129] = -0.75, 0.25, 0.5
	if !slices.Equal(b, encode(t, codec.Sparse, v)) {
		t.Errorf("encoded %x", encode(t, codec.Sparse, v))
	}
	v[5], v[129] = -0.625, 0.625
	if got := taken(t, "the example", b, 130); !slices.Equal(got, v) {
		t.Errorf("decoded %v", got)
	}
	got := taken(t, "far gaps", sparseOf(4000, 0x3f80, 0x4000, make([]byte, 63), append([]byte{2 | 7<<2, 1}, make([]byte, 61)...)), 4000)
	if got[7*256] != 2 || got[7*256+1] != -1 || got[7*256+62] != 1 {
		t.Errorf("decoded %v", got[7*256:7*256+64])
	}
	for _, n := range []int{1, 64, 65, 4095, 4096, 4097, 8192 + 65, 131072 + 4097} {
		v := make([]float32, n)
		for i := range v {
			v[i] = float32(math.Sin(float64(i) * float64(i)))
		}
		travel := 0
		for _, x := range taken(t, "sines", encode(t, codec.Sparse, v), n) {
			if x != 0 {
				travel++
			}
		}
		if want := (n + 63) / 64; travel != want && n != 1 { // sin 0 is 0
			t.Errorf("%d of %d values travel, want %d", travel, n, want)
		}
	}
}

func specSparseRefused(t *testing.T, s *spectest.Spec) {
	for _, c := range []struct {
		name         string
		small, large uint16
		gaps, codes  []byte
		ok           bool
	}{
		{"two levels", 0x3e80, 0x3f20, []byte{5, 0, 122}, []byte{3, 0, 2}, true},
		{"descending", 0x3f20, 0x3e80, []byte{5, 0, 122}, []byte{3, 0, 2}, false},
		{"infinite", 0x3e80, 0x7f80, []byte{5, 0, 122}, []byte{3, 0, 2}, false},
		{"the largest number", 0x3e80, 0x7f7f, []byte{5, 0, 122}, []byte{3, 0, 2}, true},
		{"negative", 0x3e80, 0xbf20, []byte{5, 0, 122}, []byte{3, 0, 2}, false},
		{"both negative", 0xbe80, 0xbf20, []byte{5, 0, 122}, []byte{3, 0, 2}, false},
		{"minus zero", 0x8000, 0x8000, []byte{0, 0, 0}, []byte{0, 0, 0}, false},
		{"beyond the block", 0x3e80, 0x3f20, []byte{5, 0, 123}, []byte{3, 0, 2}, false},
		{"far beyond", 0x3e80, 0x3f20, []byte{5, 0, 0}, []byte{3, 0, 2 | 15<<2}, false},
		{"a high bit", 0x3e80, 0x3f20, []byte{5, 0, 122}, []byte{3, 0x40, 2}, false},
		{"the highest", 0x3e80, 0x3f20, []byte{5, 0, 122}, []byte{3, 0x80, 2}, false},
		{"equal levels", 0x3e80, 0x3e80, []byte{5, 0, 122}, []byte{1, 0, 0}, true},
		{"equal levels, the larger", 0x3e80, 0x3e80, []byte{5, 0, 122}, []byte{1, 2, 0}, false},
		{"equal levels, all the larger", 0x3e80, 0x3e80, []byte{5, 0, 122}, []byte{2, 2, 2}, false},
		{"none is larger", 0x3e80, 0x3f20, []byte{5, 0, 122}, []byte{1, 0, 1}, false},
		{"none is smaller", 0x3e80, 0x3f20, []byte{5, 0, 122}, []byte{3, 2, 2}, false},
		{"zeros", 0, 0, []byte{0, 0, 0}, []byte{0, 0, 0}, true},
		{"a zero and more", 0, 0x3f20, []byte{0, 0, 122}, []byte{0, 2, 3}, true},
		{"a zero is negative", 0, 0x3f20, []byte{0, 0, 122}, []byte{1, 2, 3}, false},
		{"a zero behind another", 0, 0x3f20, []byte{1, 0, 12}, []byte{0, 2, 3}, false},
		{"a zero behind a hole", 0, 0x3f20, []byte{0, 1, 0}, []byte{2, 3, 0}, false},
		{"a zero behind a far hole", 0, 0, []byte{0, 0, 0}, []byte{0, 0, 0x10}, false},
	} {
		_, err := decode(t, sparseOf(130, c.small, c.large, c.gaps, c.codes), 130)
		if (err == nil) != c.ok {
			t.Errorf("%s: %v", c.name, err)
		}
	}
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
func levelled(b []byte) []byte {
	out, rest := slices.Clone(b[:6]), b[6:]
	for _, size := range []int{2, 2, 3, 3} {
		stream, after, err := readChunk(rest, size)
		if err != nil {
			panic(err)
		}
		out, rest = append(append(out, 0), stream...), after
	}
	return out
}

func specSparseEncoder(t *testing.T, s *spectest.Spec) {
	rapid.Check(t, func(rt *rapid.T) {
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
		got := taken(t, "encoded", encode(t, codec.Sparse, v), n)
		for at := 0; at < n; at += 4096 {
			block := v[at:min(at+4096, n)]
			if want := sparseByText(block); !slices.EqualFunc(got[at:at+len(block)], want, sameBits) {
				rt.Fatalf("block at %d: %v\nby the text %v", at, got[at:at+len(block)], want)
			}
		}
	})
}

// sparseByText is what C-17 makes of a block.
func sparseByText(block []float32) []float32 {
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
	sent := all[:(len(block)+63)/64]
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
