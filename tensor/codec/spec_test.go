package codec_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"atoll/gossip/wire/spectest"
	"atoll/tensor/codec"
)

// One test for each clause of gossip/wire/SPEC.md that is about payloads.
func TestSpec(t *testing.T) {
	spectest.Run(t, "C", map[string]spectest.Clause{
		"C-1": specHead, "C-1.2": specHeadRefused, "C-2": specKinds, "C-3": specSegments, "C-3.2": specStreams, "C-3.3": specBehind,
		"C-3.4": specNoValues, "C-4": specModes, "C-4.2": specModesRefused, "C-5": specF32, "C-5.2": specFinite,
		"C-6": specScales, "C-6.2": specBlocks, "C-6.3": specCodes, "C-6.4": specValues, "C-7": specCodesRefused, "C-8": specPad,
		"C-9": specHuff0, "C-9.2": specParts, "C-9.3": specCodeBits, "C-9.4": specLeftOver, "C-10": specTree, "C-10.2": specTurns,
		"C-10.3": specIdle, "C-10.4": specOverrun, "C-10.5": specManyWeights, "C-11": specHuff0Length, "C-12": specLongest,
		"C-13": specEncoderScale, "C-13.2": specEncoderCodes, "C-13.3": specEncoderModes, "C-14": specRange,
		"C-15": specSparse, "C-15.2": specSparseBlocks, "C-15.3": specLevels, "C-15.4": specTravelling, "C-15.5": specGaps,
		"C-15.6": specFarGaps, "C-15.7": specSparseCodes, "C-15.8": specSparseZeros, "C-15.9": specSparse8, "C-16": specCases("C-16"), "C-16.2": specCases("C-16.2"),
		"C-16.3": specCases("C-16.3"), "C-16.4": specCases("C-16.4"), "C-16.5": specOneEncoding, "C-17": specGreatest, "C-17.2": specLeastError,
		"C-17.3": specMean, "C-17.4": specZeroPart, "C-17.5": specOneLevel,
		"C-18": specPacked, "C-18.2": specPackedStreams, "C-18.3": specPackedBehind,
	})
}

var kinds = map[string]codec.Kind{"f32": codec.F32, "int4": codec.Int4, "sparse": codec.Sparse, "sparse8": codec.Sparse8}

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

// stored is a payload of one segment with stored streams.
func stored(k codec.Kind, n int, streams ...[]byte) []byte {
	b := binary.LittleEndian.AppendUint32([]byte{0xa1, byte(k)}, uint32(n))
	for _, stream := range streams {
		b = append(append(b, 0), stream...)
	}
	return b
}

func specHead(t *testing.T, s *spectest.Spec) {
	for name, k := range kinds {
		for _, n := range []int{0, 3, 0x12345} {
			if b := encode(t, k, make([]float32, n)); !bytes.Equal(b[:6], []byte{0xa1, byte(k), byte(n), byte(n >> 8), byte(n >> 16), 0}) {
				t.Errorf("%d values of %s begin with %x", n, name, b[:6])
			}
		}
	}
}

func specHeadRefused(t *testing.T, s *spectest.Spec) {
	b := s.Hex(t, "payload f32")
	taken(t, "the example", b, 3)
	refuse(t, "another version", changed(b, 0, 0xa2), 3)
	refuse(t, "kind 0", changed(b, 1, 0), 3)
	refuse(t, "kind 6", changed(b, 1, 6), 3)
	refuse(t, "a value more than the fragment", b, 2)
	refuse(t, "a value fewer", b, 4)
	refuse(t, "no whole head", b[:5], 3)
	const most = 268435456
	zeros := bytes.Repeat([]byte{1, 0, 1, 0, 1, 0x88}, most/131072)
	head := []byte{0xa1, 4, 0, 0, 0, 0x10}
	if err := codec.Check(slices.Concat(head, zeros), most); err != nil {
		t.Errorf("%d values: %v", most, err)
	}
	if codec.Check(slices.Concat(changed(head, 2, 1), zeros, []byte{1, 0, 1, 0, 0, 0x88}), most+1) == nil {
		t.Errorf("%d values are taken", most+1)
	}
}

// sizeOf evaluates a cell of the table of kinds.
func sizeOf(t *testing.T, cell string, n int) int {
	of := map[string]int{"n": n, "b": (n + 255) / 256, "ceil(n/2)": (n + 1) / 2, "2B": 2 * ((n + 4095) / 4096), "k": (n + 63) / 64, "K": (n + 7) / 8}
	size, ok := of[cell]
	if !ok {
		t.Fatalf("the table of kinds has %q", cell)
	}
	return size
}

func specKinds(t *testing.T, s *spectest.Spec) {
	for _, row := range s.Table(t, "codecs") {
		k := kinds[row[0]]
		if int64(k) != s.Number(t, "codecs", row[0]) || k.String() != row[0] {
			t.Errorf("%s is %d", row[0], k)
		}
		offset, err := strconv.Atoi(row[3])
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range []int{1, 2, 63, 65, 255, 257, 4095, 4097, 131072} {
			var streams [][]byte
			for cell := range strings.SplitSeq(row[2], ", ") {
				streams = append(streams, make([]byte, sizeOf(t, cell, n)))
			}
			codes := streams[len(streams)-1]
			for i := range codes { // scales are 0
				codes[i] = byte(offset)
				if k == codec.Int4 {
					codes[i] |= byte(offset) << 4
				}
			}
			if v := taken(t, row[0], stored(k, n, streams...), n); slices.ContainsFunc(v, func(x float32) bool { return x != 0 }) {
				t.Errorf("%s: a code of the offset is not 0", row[0])
			}
			for i, stream := range streams {
				streams[i] = append(stream, stream[0])
				refuse(t, row[0]+" with a stream that is longer", stored(k, n, streams...), n)
				streams[i] = stream[1:]
				refuse(t, row[0]+" with a stream that is shorter", stored(k, n, streams...), n)
				streams[i] = stream
			}
		}
	}
	if len(s.Table(t, "codecs")) != len(kinds) {
		t.Error("kinds are missing")
	}
}

// runs are the streams of so many segments of f32 whose values are all alike.
func runs(segments ...float32) (b []byte) {
	for _, x := range segments {
		for plane := range 4 {
			b = append(b, 1, byte(math.Float32bits(x)>>(8*plane)))
		}
	}
	return b
}

func specSegments(t *testing.T, s *spectest.Spec) {
	for _, n := range []int{1, 131071, 131072, 131073, 262145} {
		v := make([]float32, n)
		for i := range v {
			v[i] = float32(i%7) - 3
		}
		for name, k := range kinds {
			taken(t, name, encode(t, k, v), n)
		}
	}
	head := []byte{0xa1, 1, 1, 0, 2, 0} // 131073 values
	v := taken(t, "two segments", slices.Concat(head, runs(1, 2)), 131073)
	if v[0] != 1 || v[131071] != 1 || v[131072] != 2 {
		t.Errorf("the second segment does not begin with value 131072")
	}
	refuse(t, "one segment", slices.Concat(head, runs(1)), 131073)
	refuse(t, "three segments", slices.Concat(head, runs(1, 2, 3)), 131073)
	refuse(t, "two segments of as many", slices.Concat(changed(head, 2, 0), runs(1, 2)), 131072)
}

// With 1 in the first segment and 2 in the second, whose bytes differ in two streams.
func specStreams(t *testing.T, s *spectest.Spec) {
	b := slices.Concat([]byte{0xa1, 1, 0, 0, 4, 0}, []byte{1, 0, 1, 0, 1, 0x80, 1, 0x3f}, []byte{1, 0, 1, 0, 1, 0, 1, 0x40})
	v := taken(t, "two segments", b, 262144)
	if v[0] != 1 || v[131071] != 1 || v[131072] != 2 || v[262143] != 2 {
		t.Errorf("decoded %v, %v, %v, %v", v[0], v[131071], v[131072], v[262143])
	}
}

func specBehind(t *testing.T, s *spectest.Spec) {
	for _, n := range []int{0, 1, 100, 131073} {
		for name, k := range kinds {
			b := encode(t, k, make([]float32, n))
			refuse(t, name+" with a byte behind", append(b, 0), n)
			refuse(t, name+" with a chunk behind", append(b, 1, 0), n)
		}
	}
}

func specNoValues(t *testing.T, s *spectest.Spec) {
	for name, k := range kinds {
		b := encode(t, k, nil)
		taken(t, name, b, 0)
		if len(b) != 6 {
			t.Errorf("no values of %s take %d bytes", name, len(b))
		}
	}
}

// The same streams in each mode that they can have are the same values.
func specModes(t *testing.T, s *spectest.Spec) {
	for i, row := range s.Table(t, "modes") {
		if row[0] != strconv.Itoa(i) {
			t.Errorf("row %d is of mode %s", i, row[0])
		}
	}
	packed := s.Hex(t, "payload huff0")
	stream, rest, err := readChunk(packed[10:], 128)
	if err != nil || packed[6] != 1 || packed[10] != 2 || len(rest) > 0 {
		t.Fatalf("the example has no run and huff0 chunk: %v", err)
	}
	want := taken(t, "packed", packed, 256)
	plain := stored(codec.Int4, 256, packed[7:8], packed[9:10], stream)
	if got := taken(t, "stored", plain, 256); !slices.Equal(got, want) {
		t.Errorf("stored %v, packed %v", got, want)
	}
	run := slices.Concat(packed[:10], []byte{1, 0x9a})
	plain = stored(codec.Int4, 256, packed[7:8], packed[9:10], bytes.Repeat([]byte{0x9a}, 128))
	if got := taken(t, "a run", run, 256); !slices.Equal(got, taken(t, "a stored run", plain, 256)) {
		t.Errorf("a run is %v", got)
	}
}

func specModesRefused(t *testing.T, s *spectest.Spec) {
	for name, n := range map[string]int{"f32": 3, "int4": 3, "huff0": 256, "sparse": 130, "sparse8": 20} {
		b := s.Hex(t, "payload "+name)
		refuse(t, "mode 3", changed(b, 6, 3), n)
		refuse(t, "mode 255", changed(b, 6, 255), n)
		for cut := 6; cut < len(b); cut++ {
			refuse(t, "cut off", b[:cut], n)
		}
	}
}

// example decodes and encodes an example of three values.
func example(t *testing.T, s *spectest.Spec, name string) {
	b := s.Hex(t, "payload "+name)
	if v := taken(t, name, b, 3); !slices.Equal(v, three) {
		t.Errorf("%s: %v", name, v)
	}
	if !bytes.Equal(encode(t, kinds[name], three), b) {
		t.Errorf("%s: encoded %x", name, encode(t, kinds[name], three))
	}
}

func specF32(t *testing.T, s *spectest.Spec) {
	example(t, s, "f32")
	x := math.Float32frombits(0x12345678)
	if v := taken(t, "four bytes", stored(codec.F32, 2, []byte{0x78, 0}, []byte{0x56, 0}, []byte{0x34, 0}, []byte{0x12, 0x80}), 2); v[0] != x || !sameBits(v[1], float32(math.Copysign(0, -1))) {
		t.Errorf("decoded %v", v)
	}
}

func specFinite(t *testing.T, s *spectest.Spec) {
	for _, c := range []struct {
		bits uint32
		ok   bool
	}{{0x7f800000, false}, {0xff800000, false}, {0x7f810000, false}, {0xffff0000, false}, {0x7f7f0000, true}, {0xff7f0000, true}, {0x00010000, true}} {
		b := binary.LittleEndian.AppendUint32(nil, c.bits)
		for at := range 3 { // of three values
			planes := make([][]byte, 4)
			for i := range planes {
				planes[i] = make([]byte, 3)
				planes[i][at] = b[i]
			}
			if _, err := decode(t, stored(codec.F32, 3, planes...), 3); (err == nil) != c.ok {
				t.Errorf("the bits %08x: %v", c.bits, err)
			}
		}
	}
	if _, err := decode(t, stored(codec.F32, 1, []byte{1}, []byte{0}, []byte{0x80}, []byte{0x7f}), 1); err == nil {
		t.Error("a number that is none by its lowest bit is taken")
	}
}

// The low byte 80 and the high byte 3f are the scale 1.
func specScales(t *testing.T, s *spectest.Spec) {
	if v := taken(t, "scale 1", stored(codec.Int4, 2, []byte{0x80}, []byte{0x3f}, []byte{0x69}), 2); !slices.Equal(v, []float32{1, -2}) {
		t.Error(v)
	}
}

// Each block has another scale, its number as a power of 2; all codes are 1 above the
// offset.
func specBlocks(t *testing.T, s *spectest.Spec) {
	for _, n := range []int{255, 256, 257, 1000} {
		blocks := (n + 255) / 256
		low, high := make([]byte, blocks), make([]byte, blocks)
		for i := range blocks {
			bits := math.Float32bits(float32(int(1) << i))
			low[i], high[i] = byte(bits>>16), byte(bits>>24)
		}
		half := bytes.Repeat([]byte{0x99}, n/2)
		if n%2 > 0 {
			half = append(half, 0x89)
		}
		for i, x := range taken(t, "blocks", stored(codec.Int4, n, low, high, half), n) {
			if x != float32(int(1)<<(i/256)) {
				t.Fatalf("value %d of %d is %v", i, n, x)
			}
		}
	}
}

func specCodes(t *testing.T, s *spectest.Spec) {
	want, b := []float32{7, -5, 1}, s.Hex(t, "payload int4")
	scale := math.Float32frombits(uint32(b[9])<<24 | uint32(b[7])<<16)
	for i, v := range taken(t, "int4", b, 3) {
		if v != want[i]*scale {
			t.Errorf("value %d is %v, want %v x %v", i, v, want[i], scale)
		}
	}
}

// All codes, with scales from the smallest to the largest.
func specValues(t *testing.T, s *spectest.Spec) {
	for _, scale := range []uint16{0, 1, 0x7f, 0x80, 0x3f80, 0x3fff, 0x4049, 0x7bff, 0x7c01} {
		wide := float64(math.Float32frombits(uint32(scale) << 16))
		low, high := []byte{byte(scale)}, []byte{byte(scale >> 8)}
		var half []byte
		for code := byte(1); code < 16; code++ {
			half = append(half, code<<4|code)
		}
		for i, x := range taken(t, "int4", stored(codec.Int4, 30, low, high, half), 30) {
			if float64(x) != float64(i/2+1-8)*wide {
				t.Errorf("int4 code %d x %v is %v", i/2+1, wide, x)
			}
		}
	}
}

func specCodesRefused(t *testing.T, s *spectest.Spec) {
	b := s.Hex(t, "payload int4")
	refuse(t, "code 0, low", changed(b, -2, 0xf0), 3)
	refuse(t, "code 0, high", changed(b, -2, 0x0f), 3)
	for _, c := range []struct {
		bits uint16
		ok   bool
	}{{0, true}, {0x8000, false}, {0xbd00, false}, {0x7f80, false}, {0x7d80, true}, {0x7e12, true}, {0x7e13, false}} {
		if _, err := decode(t, changed(changed(b, 7, byte(c.bits)), 9, byte(c.bits>>8)), 3); (err == nil) != c.ok {
			t.Errorf("scale %04x: %v", c.bits, err)
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
			noise := make([]float32, n)
			for i := range noise {
				x := uint32(i+1) * 2654435761
				noise[i] = math.Float32frombits(x&0x807fffff | x>>4&0x07000000 | 0x3c000000)
			}
			if b := encode(t, k, noise); len(b) > want {
				t.Errorf("%v: %d values took %d bytes, by the text at most %d", k, n, len(b), want)
			}
		}
	}
}

// waves are values of very different sizes by block, one of them zeros.
func waves() []float32 {
	v := make([]float32, 1500)
	for i := range v {
		v[i] = float32(math.Sin(float64(i))) * float32(math.Exp2(float64(i/256*60-200)))
	}
	clear(v[512:768])
	return v
}

func specEncoderScale(t *testing.T, s *spectest.Spec) {
	v := waves()
	b := encode(t, codec.Int4, v)
	blocks := (len(v) + 255) / 256
	low, rest, err := readChunk(b[6:], blocks)
	if err != nil {
		t.Fatal(err)
	}
	high, _, err := readChunk(rest, blocks)
	if err != nil {
		t.Fatal(err)
	}
	for i := range blocks {
		want := scaleByText(v[256*i : min(256*i+256, len(v))])
		if got := math.Float32frombits(uint32(low[i])<<16 | uint32(high[i])<<24); got != want {
			t.Errorf("block %d has scale %v, by the text %v", i, got, want)
		}
	}
}

// span is what C-13 divides by.
const span float32 = 7.49

// scaleByText is the scale of C-13.
func scaleByText(block []float32) float32 {
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

func specEncoderCodes(t *testing.T, s *spectest.Spec) {
	v := waves()
	copy(v[1024:], []float32{7.49, 0.5, 1.5, 2.5, -0.5, -1.5}) // scale 1, and ties
	clear(v[1030:1280])
	got := taken(t, "encoded", encode(t, codec.Int4, v), len(v))
	for at := 0; at < len(v); at += 256 {
		block := v[at:min(at+256, len(v))]
		scale := scaleByText(block)
		for i, x := range block {
			q := float32(0)
			if scale > 0 {
				q = float32(math.RoundToEven(float64(x * (1 / scale))))
			}
			if want := q * scale; got[at+i] != want || q > span || q < -span {
				t.Fatalf("value %d: %v of %v, by the text %v", at+i, got[at+i], x, want)
			}
		}
	}
}

func specEncoderModes(t *testing.T, s *spectest.Spec) {
	noise, normal := make([]float32, 4096), make([]float32, 4096)
	for i := range noise {
		noise[i] = math.Float32frombits(0x3f800000 | uint32(i+1)*2654435761>>9)
		x := math.Sin(float64(i) * float64(i))
		normal[i] = float32(x * x * x)
	}
	for _, c := range []struct {
		name  string
		k     codec.Kind
		v     []float32
		modes []byte
	}{
		{"alike", codec.F32, slices.Repeat([]float32{1.5}, 100), []byte{1, 1, 1, 1}},
		{"one", codec.F32, []float32{1.5}, []byte{1, 1, 1, 1}},
		{"noise", codec.F32, noise, []byte{0, 0, 2, 1}},
		{"normal", codec.Int4, normal, []byte{1, 1, 2}},
		{"a few", codec.Int4, normal[:63], []byte{1, 1, 0}},
	} {
		var modes []byte
		rest := encode(t, c.k, c.v)[6:]
		for _, size := range streamsOf(c.k, len(c.v)) {
			modes = append(modes, rest[0])
			before := len(rest)
			var err error
			if _, rest, err = readChunk(rest, size); err != nil || modes[len(modes)-1] == 2 && before-len(rest) >= 1+size {
				t.Fatalf("%s: a chunk of %d bytes for %d, %v", c.name, before-len(rest), size, err)
			}
		}
		if !bytes.Equal(modes, c.modes) {
			t.Errorf("%s: modes %d, want %d", c.name, modes, c.modes)
		}
	}
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
	for _, name := range []string{"f32", "int4", "huff0", "sparse", "sparse8"} {
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
