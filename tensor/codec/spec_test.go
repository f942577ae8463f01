package codec_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"testing"

	"atoll/gossip/wire/spectest"
	"atoll/tensor/codec"
	"pgregory.net/rapid"
)

// One test for each clause of gossip/wire/SPEC.md that is about payloads.
func TestSpec(t *testing.T) {
	spectest.Run(t, "C", map[string]spectest.Clause{
		"C-1": specHead, "C-2": specKinds, "C-3": specSegments, "C-4": specModes, "C-5": specPlanes, "C-6": specBlocks,
		"C-7": specCodes, "C-8": specPad, "C-9": specHuff0, "C-10": specTree, "C-11": specHuff0Length, "C-12": specLongest,
		"C-13": specEncoder, "C-14": specRange, "C-15": specSparse, "C-16": specSparseRefused, "C-17": specSparseEncoder,
	})
}

var kinds = map[string]codec.Kind{"f32": codec.F32, "bf16": codec.BF16, "int8": codec.Int8, "int4": codec.Int4, "sparse": codec.Sparse}

// three are the values of the short examples.
var three = []float32{0.75, -0.5, 0.125}

func encode(t testing.TB, k codec.Kind, v []float32) []byte {
	t.Helper()
	b, err := codec.Encode(k, v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// decode holds the package to the decoder of this test, which follows the
// text: the same bits, or a refusal by both.
func decode(t testing.TB, b []byte, n int) ([]float32, error) {
	t.Helper()
	got := make([]float32, n)
	err := codec.Decode(b, n, got)
	want, refused := decodeByText(b, n)
	if (err == nil) != (refused == nil) {
		t.Fatalf("decoded with %v, by the text %v", err, refused)
	}
	if err == nil && !slices.EqualFunc(got, want, sameBits) {
		t.Fatalf("decoded %v, by the text %v", got, want)
	}
	return got, err
}

func sameBits(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) }

// taken and refuse decode and fail on the other verdict.
func taken(t testing.TB, what string, b []byte, n int) []float32 {
	t.Helper()
	v, err := decode(t, b, n)
	if err != nil {
		t.Errorf("%s: %v", what, err)
	}
	return v
}

func refuse(t testing.TB, what string, b []byte, n int) {
	t.Helper()
	if _, err := decode(t, b, n); !errors.Is(err, codec.ErrCorrupt) {
		t.Errorf("%s: %v, want %v", what, err, codec.ErrCorrupt)
	}
}

// changed is a copy of b with other bytes from at on; from the end if at is
// negative.
func changed(b []byte, at int, with ...byte) []byte {
	c := bytes.Clone(b)
	if at < 0 {
		at += len(c)
	}
	copy(c[at:], with)
	return c
}

func specHead(t *testing.T, s *spectest.Spec) {
	b := s.Hex(t, "payload f32")
	taken(t, "the example", b, 3)
	refuse(t, "another version", changed(b, 0, 0xa2), 3)
	refuse(t, "kind 0", changed(b, 1, 0), 3)
	refuse(t, "kind 6", changed(b, 1, 6), 3)
	refuse(t, "a value more than the fragment", b, 2)
	refuse(t, "a value fewer", b, 4)
	refuse(t, "no whole head", b[:5], 3)
	if codec.MaxValues != 268435456 {
		t.Errorf("MaxValues is %d", codec.MaxValues)
	}
}

func specKinds(t *testing.T, s *spectest.Spec) {
	for _, row := range s.Table(t, "codecs") {
		k := kinds[row[0]]
		if int64(k) != s.Number(t, "codecs", row[0]) || k.String() != row[0] {
			t.Errorf("%s is %d", row[0], k)
		}
		raw := s.Hex(t, "payload "+row[0])
		if raw[1] != byte(k) {
			t.Errorf("the example of %s is of kind %d", row[0], raw[1])
		}
		if _, err := codec.Parse(row[0]); err != nil {
			t.Error(err)
		}
	}
	if len(s.Table(t, "codecs")) != len(kinds) {
		t.Error("kinds are missing")
	}
}

func specSegments(t *testing.T, s *spectest.Spec) {
	for _, n := range []int{0, 1, 131071, 131072, 131073, 262145} {
		v := make([]float32, n)
		for i := range v {
			v[i] = float32(i%7) - 3
		}
		for name, k := range kinds {
			b := encode(t, k, v)
			taken(t, name, b, n)
			refuse(t, name+" with a byte behind", append(b, 0), n)
		}
	}
	if b := encode(t, codec.Int4, nil); len(b) != 6 {
		t.Errorf("no values take %d bytes", len(b))
	}
}

func specModes(t *testing.T, s *spectest.Spec) {
	b := s.Hex(t, "payload f32")
	stored := slices.Concat(b[:6], []byte{0, 0, 0, 0}, b[8:])
	if v := taken(t, "a run that is stored", stored, 3); !slices.Equal(v, three) {
		t.Errorf("decoded %v", v)
	}
	refuse(t, "mode 3", changed(b, 6, 3), 3)
	for n := 6; n < len(b); n++ {
		refuse(t, "cut off", b[:n], 3)
	}
}

func specPlanes(t *testing.T, s *spectest.Spec) {
	for _, name := range []string{"f32", "bf16"} {
		b := s.Hex(t, "payload "+name)
		if v := taken(t, name, b, 3); !slices.Equal(v, three) {
			t.Errorf("%s: %v", name, v)
		}
		if !bytes.Equal(encode(t, kinds[name], three), b) {
			t.Errorf("%s: encoded %x", name, encode(t, kinds[name], three))
		}
	}
	infinite := changed(changed(s.Hex(t, "payload bf16"), -3, 0x7f), 7, 0x80)
	refuse(t, "an infinity", infinite, 3)
	refuse(t, "no number", changed(infinite, 7, 0x81), 3)
	taken(t, "the largest number", changed(infinite, 7, 0x7f), 3)
}

func specBlocks(t *testing.T, s *spectest.Spec) {
	for name, want := range map[string][]float32{"int8": {127, -85, 21}, "int4": {7, -5, 1}} {
		b := s.Hex(t, "payload "+name)
		scale := math.Float32frombits(uint32(b[9])<<24 | uint32(b[7])<<16)
		for i, v := range taken(t, name, b, 3) {
			if v != want[i]*scale {
				t.Errorf("%s: value %d is %v, want %v x %v", name, i, v, want[i], scale)
			}
		}
	}
	for _, n := range []int{255, 256, 257, 1000} {
		v := make([]float32, n)
		for i := range v {
			v[i] = float32(math.Sin(float64(i))) * float32(1+i/256)
		}
		taken(t, "int8", encode(t, codec.Int8, v), n)
		taken(t, "int4", encode(t, codec.Int4, v), n)
	}
}

func specCodes(t *testing.T, s *spectest.Spec) {
	b8, b4 := s.Hex(t, "payload int8"), s.Hex(t, "payload int4")
	refuse(t, "code 0 of int8", changed(b8, -1, 0), 3)
	refuse(t, "code 0 of int4, low", changed(b4, -2, 0xf0), 3)
	refuse(t, "code 0 of int4, high", changed(b4, -2, 0x0f), 3)
	scaled := func(b []byte, bits uint16) []byte { return changed(changed(b, 7, byte(bits)), 9, byte(bits>>8)) }
	for _, c := range []struct {
		bits uint16
		ok8  bool
		ok4  bool
	}{{0, true, true}, {0x8000, false, false}, {0xbd00, false, false}, {0x7f80, false, false}, {0x7d80, false, true}, {0x7c00, true, true}, {0x7e93, false, false}} {
		for b, ok := range map[*[]byte]bool{&b8: c.ok8, &b4: c.ok4} {
			if _, err := decode(t, scaled(*b, c.bits), 3); (err == nil) != ok {
				t.Errorf("scale %04x, kind %d: %v", c.bits, (*b)[1], err)
			}
		}
	}
}

func specPad(t *testing.T, s *spectest.Spec) {
	b := s.Hex(t, "payload int4")
	taken(t, "code 8", changed(b, -1, 0x89), 3)
	refuse(t, "code 9", changed(b, -1, 0x99), 3)
	zero := changed(changed(b, 7, 0), 9, 0)
	taken(t, "code 9 with scale 0", changed(zero, -1, 0x99), 3)
	refuse(t, "code 0 with scale 0", changed(zero, -1, 0x09), 3)
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
	bell := make([]float32, 70000)
	for i := range bell {
		x := math.Sin(float64(i) * float64(i))
		bell[i] = float32(x * x * x)
	}
	for name, k := range kinds {
		packed := encode(t, k, bell)
		if len(packed) >= codec.MaxSize(k, len(bell)) {
			t.Errorf("%s: no stream is packed", name)
		}
		taken(t, name, packed, len(bell))
	}
	jump := 6 + 2 + 2 + 4 + 17
	refuse(t, "streams of other lengths", changed(b, jump, b[jump]+1), 256)
	refuse(t, "no last bit", changed(b, -1, 0), 256)
}

// Trees with a byte or three changed reach each refusal, and now and then
// another valid tree: package and text agree on all.
func specTree(t *testing.T, s *spectest.Spec) {
	b := s.Hex(t, "payload huff0")
	const tree, end = 14, 14 + 17 // its first byte is the length of the FSE
	refuse(t, "3 bytes", changed(b, tree, 3), 256)
	refuse(t, "accuracy 7", changed(b, tree+1, b[tree+1]&0xf0|2), 256)
	rapid.Check(t, func(rt *rapid.T) {
		c := bytes.Clone(b)
		for range rapid.IntRange(1, 3).Draw(rt, "changes") {
			c[rapid.IntRange(tree, end+6).Draw(rt, "at")] = rapid.Byte().Draw(rt, "byte")
		}
		if rapid.Bool().Draw(rt, "small accuracy") {
			c[tree+1] &= 0xf1
		}
		_, _ = decode(t, c, 256)
	})
}

func specHuff0Length(t *testing.T, s *spectest.Spec) {
	b := s.Hex(t, "payload huff0")
	chunk := b[10:]
	long := slices.Concat(b[:10], []byte{2, 125, 0, 0}, chunk[4:], make([]byte, 125-62))
	if 4+125 > 1+128 {
		t.Fatal("this is not the longest chunk")
	}
	refuse(t, "bytes after the streams", long, 256)
	refuse(t, "longer than stored", changed(long, 11, 126), 256)
	short := slices.Concat(b[:2], []byte{126, 0, 0, 0}, b[6:10], chunk)
	refuse(t, "a stream of 63 bytes", short, 126)
}

func specLongest(t *testing.T, s *spectest.Spec) {
	for _, n := range []int{0, 1, 2, 257, 131072, 131073} {
		for _, k := range kinds {
			want := 6
			for at := 0; at < n; at += 131072 {
				m := min(131072, n-at)
				for _, size := range streamsOf(k, m) {
					want += 1 + size
				}
			}
			if got := codec.MaxSize(k, n); got != want {
				t.Errorf("%v of %d values: at most %d, by the text %d", k, n, got, want)
			}
		}
	}
}

func specEncoder(t *testing.T, s *spectest.Spec) {
	v := make([]float32, 1000)
	for i := range v {
		v[i] = float32(math.Sin(float64(i))) * float32(math.Exp2(float64(i/256*40-80)))
	}
	clear(v[256:512])
	for k, c := range map[codec.Kind]struct{ span, largest float32 }{codec.Int4: {7.49, 7}, codec.Int8: {127.49, 127}} {
		got := taken(t, "encoded", encode(t, k, v), len(v))
		for at := 0; at < len(v); at += 256 {
			block := v[at:min(at+256, len(v))]
			scale := scaleByText(block, c.span)
			for i, x := range block {
				q := float32(0)
				if scale > 0 {
					q = float32(math.RoundToEven(float64(x * (1 / scale))))
				}
				if want := q * scale; got[at+i] != want || q > c.largest || q < -c.largest {
					t.Fatalf("%v value %d: %v of %v, by the text %v", k, at+i, got[at+i], x, want)
				}
			}
		}
	}
	if b := encode(t, codec.BF16, []float32{math.Float32frombits(0x3f808000), math.Float32frombits(0x3f818000)}); !bytes.Equal(b[6:], []byte{0, 0x80, 0x82, 1, 0x3f}) {
		t.Errorf("ties go elsewhere: %x", b)
	}
}

// scaleByText is the scale of C-13.
func scaleByText(block []float32, span float32) float32 {
	top := float32(0)
	for _, x := range block {
		top = max(top, float32(math.Abs(float64(x))))
	}
	if top == 0 {
		return 0
	}
	scale := max(top/span, 0x1p-100)
	return math.Float32frombits((math.Float32bits(scale) + 0xffff) &^ 0xffff)
}

func specRange(t *testing.T, s *spectest.Spec) {
	largest := math.Nextafter32(0x1p127, 0)
	for name, k := range kinds {
		taken(t, name, encode(t, k, []float32{largest, -largest}), 2)
		for _, x := range []float32{0x1p127, -0x1p127, float32(math.Inf(1)), float32(math.NaN())} {
			if _, err := codec.Encode(k, []float32{x}); err == nil {
				t.Errorf("%s encodes %v", name, x)
			}
		}
	}
}

// FuzzSpec looks for payloads on which the package and the text disagree.
func FuzzSpec(f *testing.F) {
	s := spectest.Load(f)
	for _, name := range []string{"f32", "bf16", "int8", "int4", "huff0", "sparse"} {
		f.Add(s.Hex(f, "payload "+name))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < 6 {
			return
		}
		if n := binary.LittleEndian.Uint32(b[2:]); n <= 4096 {
			_, _ = decode(t, b, int(n))
		}
	})
}
