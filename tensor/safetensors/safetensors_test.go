package safetensors

import (
	"bytes"
	"encoding/binary"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"atoll/tensor"
)

func slab() *tensor.Slab {
	s := tensor.NewSlab([]tensor.Spec{{Name: "b.weight", Shape: []int{2, 3}}, {Name: "a"}, {Name: "c", Shape: []int{5}}})
	for i := range s.Data {
		s.Data[i] = float32(i) - 4.25
	}
	return s
}

func TestWrittenIsRead(t *testing.T) {
	s, b := slab(), bytes.Buffer{}
	if err := Write(&b, s, map[string]string{"format": "pt"}); err != nil {
		t.Fatal(err)
	}
	f, err := Open(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(b.Bytes(), []byte(`"__metadata__":{"format":"pt"}`)) || len(f.Tensors) != 3 || f.begin%8 != 0 {
		t.Errorf("%+v", f)
	}
	for i, v := range s.Views {
		got := f.Tensors[i]
		if got.Name != v.Name || !slices.Equal(got.Shape, v.Shape) && len(v.Shape) > 0 {
			t.Errorf("%+v is %+v, in the file %+v", v, got, f.Tensors[i])
		}
		values := make([]float32, got.Len())
		if err := f.Read(got, values); err != nil || !slices.Equal(values, s.Of(v)) {
			t.Errorf("%s: %v, %v", v.Name, values, err)
		}
	}
}

// raw is a file with that header and data.
func raw(header string, data []byte) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), data...)
}

func TestNarrowTypes(t *testing.T) {
	var data []byte
	want := map[uint16]float32{0: 0, 0x3c00: 1, 0xc100: -2.5, 0x0001: 0x1p-24, 0x7bff: 65504, 0xfc00: float32(math.Inf(-1)), 0x3555: 0.333251953125}
	halves := slices.Sorted(maps.Keys(want))
	for _, h := range halves {
		data = binary.LittleEndian.AppendUint16(data, h)
	}
	b := raw(`{"x":{"dtype":"F16","shape":[7],"data_offsets":[0,14]},"y":{"dtype":"BF16","shape":[1],"data_offsets":[14,16]},"z":{"dtype":"F64","shape":[],"data_offsets":[16,24]},"i":{"dtype":"I64","shape":[1],"data_offsets":[24,32]}}`,
		binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint16(data, 0xc049), math.Float64bits(math.Pi)))
	b = append(b, make([]byte, 8)...)
	f, err := Open(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	got := make([]float32, 7)
	if err := f.Read(f.Tensors[0], got); err != nil {
		t.Fatal(err)
	}
	for i, h := range halves {
		if got[i] != want[h] {
			t.Errorf("half %#x is %v, want %v", h, got[i], want[h])
		}
	}
	one := got[:1]
	if err := f.Read(f.Tensors[1], one); err != nil || one[0] != -3.140625 {
		t.Error(one, err)
	}
	if err := f.Read(f.Tensors[2], one); err != nil || one[0] != math.Pi {
		t.Error(one, err)
	}
	if err := f.Read(f.Tensors[3], one); err == nil || !strings.Contains(err.Error(), "I64") {
		t.Error(err)
	}
	for i := range uint16(0x7c00) { // by the definition of IEEE 754: sign, 5 bits of exponent, 10 of fraction
		e, fraction := int(i>>10), float64(i&0x3ff)
		x := math.Ldexp(1+fraction/1024, e-15)
		if e == 0 {
			x = math.Ldexp(fraction/1024, -14)
		}
		if float64(half(i)) != x || float64(half(i|0x8000)) != -x {
			t.Fatalf("half %#x is %v and %v, want %v", i, half(i), half(i|0x8000), x)
		}
	}
}

func TestBadFilesAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		b    []byte
		want string
	}{
		"empty":        {nil, "no file of tensors"},
		"long header":  {binary.LittleEndian.AppendUint64(nil, 1<<40), "cut off"},
		"cut off":      {raw(`{}`, nil)[:9], "cut off"},
		"no JSON":      {raw(`pickle`, nil), "no JSON object"},
		"no entry":     {raw(`{"x":3}`, nil), `"x"`},
		"outside":      {raw(`{"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}`, make([]byte, 7)), "cut off or damaged"},
		"negative":     {raw(`{"x":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}}`, make([]byte, 4)), "shape"},
		"too large":    {raw(`{"x":{"dtype":"F32","shape":[1099511627776,1099511627776],"data_offsets":[0,4]}}`, make([]byte, 4)), "shape"},
		"other length": {raw(`{"x":{"dtype":"BF16","shape":[2],"data_offsets":[0,8]}}`, make([]byte, 8)), "it needs 4"},
		"dimensions":   {raw(`{"x":{"dtype":"F32","shape":[`+strings.Repeat("1,", 20)+`1],"data_offsets":[0,4]}}`, make([]byte, 4)), "21 dimensions"},
		"a gap":        {raw(`{"x":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}`, make([]byte, 8)), "begins at byte 4"},
		"two in one":   {raw(`{"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"y":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`, make([]byte, 4)), "begins at byte 0"},
		"more behind":  {raw(`{"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`, make([]byte, 5)), "the header has 4 bytes of values, the file 5"},
	} {
		if _, err := Open(bytes.NewReader(c.b), int64(len(c.b))); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Header([]tensor.View{{Name: "a"}, {Name: "a"}}, nil, 0); err == nil {
		t.Error("two tensors of one name")
	}
}

// Whatever a file has, opening it ends with tensors inside it or an error.
func FuzzOpen(f *testing.F) {
	b := bytes.Buffer{}
	if err := Write(&b, slab(), nil); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add(raw(`{"x":{"dtype":"F16","shape":[2],"data_offsets":[0,4]}}`, make([]byte, 4)))
	f.Fuzz(func(t *testing.T, b []byte) {
		file, err := Open(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			return
		}
		for _, x := range file.Tensors {
			if x.End > int64(len(b)) {
				t.Fatalf("%+v in %d bytes", x, len(b))
			}
			if _, known := widths[x.DType]; known {
				if err := file.Read(x, make([]float32, x.Len())); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}

// written is what a file of a single tensor of these values in a type has behind its header.
func written(t testing.TB, dtype string, values ...float32) ([]byte, error) {
	t.Helper()
	s := tensor.NewSlab([]tensor.Spec{{Name: "x", Shape: []int{len(values)}}})
	copy(s.Data, values)
	var b bytes.Buffer
	if err := WriteAs(&b, s, []string{dtype}, nil); err != nil {
		return nil, err
	}
	f, err := Open(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil || f.Tensors[0].DType != dtype {
		t.Fatalf("%+v, %v", f, err)
	}
	return b.Bytes()[f.begin:], nil
}

// Every number of a narrow type comes back with its bits.
func TestNarrowNumbersComeBack(t *testing.T) {
	for dtype, most := range map[string]uint16{"BF16": 0x7f80, "F16": 0x7c00} {
		var bits []byte
		for h := range 1 << 16 {
			if h&0x7fff < int(most) {
				bits = binary.LittleEndian.AppendUint16(bits, uint16(h))
			}
		}
		values := make([]float32, len(bits)/2)
		decode(dtype, bits, values)
		if got, err := written(t, dtype, values...); err != nil || !bytes.Equal(got, bits) {
			t.Errorf("%s: %v, or other bits", dtype, err)
		}
	}
}

// A value becomes the nearest number of the type, of two the even one, and infinity nowhere.
func TestValuesAreRoundedToTheNearest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dtype := rapid.SampledFrom([]string{"BF16", "F16"}).Draw(t, "type")
		x := math.Float32frombits(rapid.Uint32().Draw(t, "bits"))
		if rapid.Bool().Draw(t, "small") { // within F16, with ties
			x = float32(rapid.IntRange(-1<<14, 1<<14).Draw(t, "steps")) * float32(math.Ldexp(1, rapid.IntRange(-30, 4).Draw(t, "scale")))
		}
		number := func(h uint16) float64 {
			v := make([]float32, 1)
			decode(dtype, binary.LittleEndian.AppendUint16(nil, h), v)
			return float64(v[0])
		}
		b, err := encode(nil, dtype, []float32{x})
		if x != x {
			if h := binary.LittleEndian.Uint16(b); number(h) == number(h) {
				t.Fatalf("no number became %x", h)
			}
			return
		}
		past := map[string]float64{"BF16": 0x1.ffp127, "F16": 65520}[dtype]
		if large := math.Abs(float64(x)) >= past && !math.IsInf(float64(x), 0); large || err != nil {
			if !large || err == nil {
				t.Fatalf("%v in %s: %v", x, dtype, err)
			}
			return
		}
		h := binary.LittleEndian.Uint16(b)
		off := math.Abs(number(h) - float64(x))
		for _, other := range []uint16{h - 1, h + 1} {
			if d := math.Abs(number(other) - float64(x)); d < off || d == off && h&1 == 1 && !math.IsInf(float64(x), 0) {
				t.Fatalf("%v in %s is %x, %v away; %x is %v", x, dtype, h, off, other, d)
			}
		}
		if math.Signbit(number(h)) != math.Signbit(float64(x)) {
			t.Fatalf("%v in %s has the other sign", x, dtype)
		}
	})
}

// Tensors of several types are in the file from the widest on, so that programs can map them.
func TestTypesOfOneFile(t *testing.T) {
	s, b := slab(), bytes.Buffer{}
	if err := WriteAs(&b, s, []string{"BF16", "F64", "F32"}, nil); err != nil {
		t.Fatal(err)
	}
	f, err := Open(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"a", "c", "b.weight"} {
		values := make([]float32, f.Tensors[i].Len())
		v := s.Views[slices.IndexFunc(s.Views, func(v tensor.View) bool { return v.Name == name })]
		if err := f.Read(f.Tensors[i], values); err != nil || f.Tensors[i].Name != name || !slices.Equal(values, s.Of(v)) {
			t.Errorf("%+v: %v, %v", f.Tensors[i], values, err)
		}
	}
	if _, err := written(t, "F16", 1, 65520); err == nil || err.Error() != `tensor "x" has the value 65520, which is too large for F16: export it with --dtype float32` {
		t.Error(err)
	}
	if b, err := written(t, "F16", float32(math.Inf(1)), 65519); err != nil || !bytes.Equal(b, []byte{0, 0x7c, 0xff, 0x7b}) {
		t.Errorf("% x, %v", b, err)
	}
}
