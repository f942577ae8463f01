package codec

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

var kinds = Kinds()

// lengths are those where a block, a byte or a segment is just full or not.
var lengths = []int{0, 1, 2, 3, 63, 64, 65, 255, 256, 257, 511, 512, 1000, sparseLen - 1, sparseLen, sparseLen + 1, SegmentLen - 1, SegmentLen, SegmentLen + 1, 2*SegmentLen + 511}

// normal returns n normal values of deviation sd.
func normal(n int, sd float64, seed uint64) []float32 {
	r := rand.New(rand.NewPCG(seed, 1))
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(sd * r.NormFloat64())
	}
	return v
}

func mustEncode(t testing.TB, k Kind, v []float32) []byte {
	t.Helper()
	b, err := Encode(k, v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func mustDecode(t testing.TB, b []byte, n int) []float32 {
	t.Helper()
	v := make([]float32, n)
	if err := Decode(b, n, v); err != nil {
		t.Fatal(err)
	}
	return v
}

// tolerance is the largest |decoded - x| that kind k permits for each value.
func tolerance(k Kind, v []float32) []float64 {
	if k.Partial() {
		return sparseTolerance(k, v)
	}
	tol := make([]float64, len(v))
	for at := 0; at < len(v); at += blockLen {
		block := v[at:min(at+blockLen, len(v))]
		top := 0.0
		for _, x := range block {
			top = max(top, math.Abs(float64(x)))
		}
		for i, x := range block {
			tol[at+i] = valueTolerance(k, math.Abs(float64(x)), top)
		}
	}
	return tol
}

// valueTolerance is half a step: of the bfloat16 at x, or of the scale that
// belongs to a block with the largest magnitude top, rounded up by 2^-7 at most.
func valueTolerance(k Kind, x, top float64) float64 {
	const roundedUp = (1 + 0x1p-7) * (1 + 0x1p-20) / 2
	switch k {
	case F32:
		return 0
	default:
		return max(top/span, minScale) * roundedUp
	}
}

func checkClose(t interface{ Fatalf(string, ...any) }, k Kind, v, got []float32) {
	for i, tol := range tolerance(k, v) {
		if diff := math.Abs(float64(got[i]) - float64(v[i])); !(diff <= tol) {
			t.Fatalf("%v value %d: %v became %v, off by %g, at most %g allowed", k, i, v[i], got[i], diff, tol)
		}
	}
}

// eachPayload runs a test with a payload of each kind and length, and its values.
func eachPayload(t *testing.T, test func(t *testing.T, k Kind, b []byte, values []float32)) {
	for _, k := range kinds {
		for _, n := range lengths {
			t.Run(fmt.Sprintf("%v/%d", k, n), func(t *testing.T) {
				b := mustEncode(t, k, normal(n, 0.01, uint64(n)))
				test(t, k, b, mustDecode(t, b, n))
			})
		}
	}
}

func TestRoundTripLengths(t *testing.T) {
	eachPayload(t, func(t *testing.T, k Kind, b []byte, values []float32) {
		n := len(values)
		if len(b) > MaxSize(k, n) {
			t.Errorf("%d bytes, MaxSize is %d", len(b), MaxSize(k, n))
		}
		checkClose(t, k, normal(n, 0.01, uint64(n)), values)
		if err := Check(b, n); err != nil {
			t.Errorf("Check: %v", err)
		}
	})
}

func TestF32IsLossless(t *testing.T) {
	v := []float32{0, float32(math.Copysign(0, -1)), 1, -1, math.SmallestNonzeroFloat32, -0x1p126, 1.5e-38}
	for i, got := range mustDecode(t, mustEncode(t, F32, v), len(v)) {
		if math.Float32bits(got) != math.Float32bits(v[i]) {
			t.Errorf("value %d: %v became %v", i, v[i], got)
		}
	}
}

// Magnitudes at both ends of float32 keep within the bound like all others.
func TestExtremes(t *testing.T) {
	below127 := math.Float32frombits(limitBits - 1)
	for _, k := range kinds {
		for _, top := range []float32{below127, 0x1p126, 0x1p-99, 0x1p-101, 0x1p-126, math.SmallestNonzeroFloat32} {
			v := []float32{top, -top, top / 3, 0, -top / 7, top / 2}
			checkClose(t, k, v, mustDecode(t, mustEncode(t, k, v), len(v)))
		}
	}
}

func TestEncodeNamesTheUnfitValue(t *testing.T) {
	unfit := []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), 0x1p127, -math.MaxFloat32}
	for _, k := range kinds {
		for _, at := range []string{"0", "299", "131075"} {
			for _, x := range unfit {
				v := make([]float32, SegmentLen+4)
				v[map[string]int{"0": 0, "299": 299, "131075": SegmentLen + 3}[at]] = x
				_, err := Encode(k, v)
				if err == nil || !strings.Contains(err.Error(), "value "+at+" is") {
					t.Errorf("%v with %v at %s: %v", k, x, at, err)
				}
			}
		}
	}
}

func TestArguments(t *testing.T) {
	if _, err := Encode(0, nil); err == nil {
		t.Error("Encode took kind 0")
	}
	if _, err := Encode(Sparse8+1, nil); err == nil {
		t.Error("Encode took an unknown kind")
	}
	b := mustEncode(t, Int4, make([]float32, 5))
	if err := Decode(b, 5, make([]float32, 6)); err == nil || errors.Is(err, ErrCorrupt) {
		t.Errorf("Decode into a slice of another length: %v", err)
	}
	if err := Check(b, -1); err == nil || errors.Is(err, ErrCorrupt) {
		t.Errorf("Check of -1 values: %v", err)
	}
	if MaxSize(0, 1) != 0 || MaxSize(F32, -1) != 0 || MaxSize(F32, MaxValues+1) != 0 {
		t.Error("MaxSize is not 0 where no payload is valid")
	}
}

func TestKindNames(t *testing.T) {
	for _, k := range kinds {
		if got, err := Parse(k.String()); got != k || err != nil {
			t.Errorf("Parse(%q) = %v, %v", k.String(), got, err)
		}
	}
	if _, err := Parse("int3"); err == nil || !strings.Contains(err.Error(), "int3") {
		t.Errorf("Parse of an unknown name: %v", err)
	}
	if s := Kind(9).String(); s != "codec(9)" {
		t.Errorf("unknown kind prints %q", s)
	}
}

// patch returns the bytes of b with those at i replaced.
func patch(b []byte, i int, with ...byte) []byte {
	b = bytes.Clone(b)
	copy(b[i:], with)
	return b
}

func TestDecodeRefuses(t *testing.T) {
	header := func(k Kind, n byte) []byte { return []byte{version, byte(k), n, 0, 0, 0} }
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	run := func(c byte) []byte { return []byte{modeRun, c} }
	sparse := func(b0, b1, b2, b3 byte, code ...byte) []byte {
		return join(header(Sparse, 130), []byte{modeStored, b0, b2, modeStored, b1, b3}, run(0), []byte{modeStored}, code)
	}
	packed := mustEncode(t, Int4, normal(SegmentLen, 1, 1))
	good := join(header(Int4, 3), run(0x80), run(0x3f), run(0x88))
	if err := Check(good, 3); err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		name, want string
		n          int
		b          []byte
	}{
		{"nothing", "shorter than the header", 3, nil},
		{"half a header", "shorter than the header", 3, good[:5]},
		{"version", "version 0xa2", 3, patch(good, 0, 0xa2)},
		{"kind", "kind 9", 3, patch(good, 1, 9)},
		{"count", "4 values where 3", 3, patch(good, 2, 4)},
		{"huge count", "values where 3", 3, patch(good, 2, 255, 255, 255, 255)},
		{"no chunks", "ends too early", 3, good[:headerSize]},
		{"chunk missing", "ends too early", 3, good[:len(good)-2]},
		{"stored chunk cut", "ends too early", 3, join(header(F32, 3), []byte{modeStored, 1, 2})},
		{"mode", "mode 3", 3, patch(good, headerSize, 3)},
		{"trailing byte", "1 bytes follow", 3, join(good, []byte{0})},
		{"trailing byte of none", "1 bytes follow", 0, join(header(F32, 0), []byte{0})},
		{"scale Inf", "scale 0 is +Inf", 3, patch(good, headerSize+3, 0x7f)},
		{"scale NaN", "scale 0 is NaN", 3, join(header(Int4, 3), run(0xc0), run(0x7f), run(0x88))},
		{"scale negative", "scale 0 is -", 3, patch(good, headerSize+3, 0xbf)},
		{"scale -0", "scale 0 is -0", 3, join(header(Int4, 3), run(0), run(0x80), run(0x88))},
		{"scale overflows int4", "scale 0", 3, join(header(Int4, 3), run(0x80), run(0x7e), run(0x88))},
		{"int4 code low", "code is 0", 3, patch(good, headerSize+5, 0x80)},
		{"int4 code high", "code is 0", 3, patch(good, headerSize+5, 0x08)},
		{"sparse levels", "block 0: its levels are not", 130, sparse(0xc0, 0x3f, 0x80, 0x3f, 0, 0, 3)},
		{"sparse level NaN", "block 0: its levels are not", 130, sparse(0x80, 0x3f, 0xc0, 0x7f, 0, 0, 3)},
		{"sparse level unused", "block 0: a level is not in use", 130, sparse(0x80, 0x3f, 0xc0, 0x3f, 1, 0, 1)},
		{"sparse gap", "block 0: a value lies beyond it", 130, sparse(0x80, 0x3f, 0xc0, 0x3f, 1, 0x20, 3)},
		{"sparse code", "block 0: a value lies beyond it", 130, sparse(0x80, 0x3f, 0xc0, 0x3f, 1, 0, 0x83)},
		{"sparse zero", "block 0: a value of 0 is negative", 130, sparse(0, 0, 0xc0, 0x3f, 1, 0, 3)},
		{"pad", "after the last value", 3, patch(good, headerSize+5, 0x98)},
		{"f32 Inf", "a value is +Inf", 3, join(header(F32, 3), run(0), run(0), run(0x80), run(0x7f))},
		{"f32 -NaN", "a value is NaN", 3, join(header(F32, 3), run(1), run(0), run(0x80), run(0xff))},
		{"huff0 in a short stream", "more than stored", 3, join(header(Int4, 3), []byte{modeHuff0, 1, 0, 0, 0})},
		{"huff0 header cut", "ends too early", 3, join(header(Int4, 3), []byte{modeHuff0, 1})},
		{"huff0 data cut", "ends too early", SegmentLen, packed[:len(packed)-1]},
		{"huff0 table", "huffman", SegmentLen, patch(packed, headerSize+huffHeader, 0)},
	}
	for _, c := range cases {
		err := Check(c.b, c.n)
		if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
		if err2 := Decode(c.b, c.n, make([]float32, c.n)); err2 == nil || err2.Error() != err.Error() {
			t.Errorf("%s: Check says %v, Decode says %v", c.name, err, err2)
		}
	}
}

// The encoding is part of the protocol: kept payloads must stay readable.
func TestGolden(t *testing.T) {
	ramp := []float32{0, 1, -1, 0.25, 3, -3.5, 7, -7.49, 0.1}
	run := make([]float32, 300)
	golden := []struct {
		k   Kind
		v   []float32
		hex string
	}{
		{F32, nil, "a10100000000"},
		{F32, []float32{1.5, -0x1p-140}, "a10102000000" + "0100" + "000002" + "00c000" + "003f80"},
		{Int4, ramp, "a10409000000" + "0180" + "013f" + "0098874b1f88"},
		{Int4, run, "a1042c010000" + "0100" + "0100" + "0188"},
		{Sparse, ramp, "a10509000000" + "01f0" + "0140" + "0107" + "0101"},
		{Sparse, run, "a1052c010000" + "0100" + "0100" + "0100" + "0100"},
		{Sparse, slices.Concat(ramp, run, ramp[1:]), "a1053d010000" + "0060e8" + "0140" + "000500003200" + "000102030603"},
	}
	for _, g := range golden {
		b := mustEncode(t, g.k, g.v)
		if got := hex.EncodeToString(b); got != g.hex {
			t.Errorf("%v of %v:\n got %s\nwant %s", g.k, g.v, got, g.hex)
		}
	}
}

// vectors draws lengths and magnitudes of all kinds, with runs and outliers.
func vectors() *rapid.Generator[[]float32] {
	return rapid.Custom(func(t *rapid.T) []float32 {
		n := rapid.IntRange(0, 3000).Draw(t, "n")
		sd := math.Ldexp(1, rapid.IntRange(-140, 100).Draw(t, "exponent"))
		v := normal(n, sd, rapid.Uint64().Draw(t, "seed"))
		if n > 0 && rapid.Bool().Draw(t, "outlier") {
			v[rapid.IntRange(0, n-1).Draw(t, "at")] *= 100
		}
		if rapid.Bool().Draw(t, "zeros") {
			clear(v[n/2:])
		}
		return v
	})
}

func TestRoundTripProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := vectors().Draw(t, "v")
		k := rapid.SampledFrom(kinds).Draw(t, "kind")
		b, err := Encode(k, v)
		if err != nil {
			t.Fatal(err)
		}
		if again, _ := Encode(k, v); !bytes.Equal(b, again) {
			t.Fatalf("%v: two encodings differ", k)
		}
		if len(b) > MaxSize(k, len(v)) {
			t.Fatalf("%v: %d bytes, MaxSize %d", k, len(b), MaxSize(k, len(v)))
		}
		got := make([]float32, len(v))
		if err := Decode(b, len(v), got); err != nil {
			t.Fatal(err)
		}
		checkClose(t, k, v, got)
	})
}

// However a payload is damaged, Check and Decode agree on it.
func TestCheckAgreesOnDamage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := vectors().Draw(t, "v")
		b, err := Encode(rapid.SampledFrom(kinds).Draw(t, "kind"), v)
		if err != nil {
			t.Fatal(err)
		}
		at := rapid.IntRange(0, len(b)-1).Draw(t, "at")
		b[at] ^= byte(rapid.IntRange(1, 255).Draw(t, "flip"))
		agree(t, b, len(v))
	})
}

// agreePair fails unless OpenPair says the same of b as check does, before and behind a payload that is whole and of the
// same kind, and takes the values v from it.
func agreePair(t interface{ Fatalf(string, ...any) }, b []byte, v []float32, check error) {
	kind, err := KindOf(b)
	if err != nil {
		kind = Int4
	}
	whole, err := Encode(kind, normal(len(v), 0.01, 3))
	if err != nil {
		t.Fatalf("%v", err)
	}
	for i := range 2 {
		var src [2]Source
		src[i].Payload, src[1-i].Payload = b, whole
		readers, err := OpenPair(src[0], src[1], len(v))
		if (check == nil) != (err == nil) {
			t.Fatalf("Check %v, OpenPair at place %d %v", check, i, err)
		}
		for at := 0; at < len(v) && err == nil; at += SegmentLen {
			m := min(SegmentLen, len(v)-at)
			for j, x := range valuesOf(readers[i], at, m) {
				if math.Float32bits(x) != math.Float32bits(v[at+j]) {
					t.Fatalf("value %d is %v, in a pair %v", at+j, v[at+j], x)
				}
			}
		}
	}
}

// agree fails unless Check, Decode, Decode with memory never used before, Open, Add and
// OpenPair say the same about b, and values, where there are any, are finite and equal.
func agree(t interface{ Fatalf(string, ...any) }, b []byte, n int) {
	check := Check(b, n)
	v, fresh := make([]float32, n), make([]float32, n)
	err := Decode(b, n, v)
	scratches.Put(newScratch())
	err2 := Decode(b, n, fresh)
	_, err3 := Open(Source{Payload: b, Parts: []Squares{{To: n / 3}, {From: n / 3, To: n}}}, n)
	sum := make([]float64, n)
	err4 := Add(b, n, 1, sum)
	for _, e := range []error{err, err2, err3, err4} {
		if (check == nil) != (e == nil) {
			t.Fatalf("Check %v, Decode %v, again %v, Open %v, Add %v", check, err, err2, err3, err4)
		}
	}
	agreePair(t, b, v, check)
	if err != nil {
		return
	}
	for i, x := range v {
		if math.Float32bits(x)&magnitude >= infBits {
			t.Fatalf("value %d is %v", i, x)
		}
		if math.Float32bits(x) != math.Float32bits(fresh[i]) {
			t.Fatalf("value %d is %v, then %v", i, x, fresh[i])
		}
		if sum[i] != float64(x) {
			t.Fatalf("value %d is %v, and adds %v", i, x, sum[i])
		}
	}
}

// Damaged huff0 data is where implementations could differ: an assembly loop
// and a plain one (-tags noasm, other architectures) must accept the same
// payloads with the same values. Their verdicts on many are pinned by a hash.
func TestVerdictsGolden(t *testing.T) {
	for _, c := range []struct {
		kinds []Kind
		want  string
	}{
		{[]Kind{F32, Int4}, "1643 3f926cf4b3c76012"},
		{[]Kind{Sparse}, "1283 a095ddafd9c33d7a"},
		{[]Kind{Sparse8}, "1182 b2ef4e26128de92c"},
	} {
		if got := verdicts(t, c.kinds); got != c.want {
			t.Errorf("verdicts on %v hash to %q, want %q", c.kinds, got, c.want)
		}
	}
}

// verdicts tells how many of 2,000 damaged payloads of these kinds are accepted, and hashes their values.
func verdicts(t *testing.T, kinds []Kind) string {
	r := rand.New(rand.NewPCG(11, 2))
	h := sha256.New()
	accepted := 0
	for trial := range 2000 {
		n := 1000 + 37*(trial%100)
		if kinds[0].Partial() {
			n *= 8 // so that streams are packed
		}
		b := mustEncode(t, kinds[trial%len(kinds)], intNormal(n, r))
		b[headerSize+r.IntN(len(b)-headerSize)] ^= 1 << r.IntN(8)
		v := make([]float32, n)
		if Decode(b, n, v) != nil {
			h.Write([]byte{0})
			continue
		}
		accepted++
		for _, x := range v {
			if x != 0 || !kinds[0].Partial() {
				h.Write(binary.LittleEndian.AppendUint32(nil, math.Float32bits(x)))
			}
		}
	}
	return fmt.Sprintf("%d %x", accepted, h.Sum(nil)[:8])
}

// intNormal returns n normal values made without math functions, so that
// they are equal on each architecture.
func intNormal(n int, r *rand.Rand) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(r.IntN(1000)+r.IntN(1000)+r.IntN(1000)-1500) / 4096
	}
	return v
}

func FuzzDecode(f *testing.F) {
	for _, k := range kinds {
		for _, n := range []int{0, 1, 255, 600, 5000} {
			b, err := Encode(k, normal(n, 0.1, 7))
			if err != nil {
				f.Fatal(err)
			}
			f.Add(b, n)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte, n int) {
		if n < 0 || n > 1<<16 {
			return
		}
		agree(t, b, n)
		if k, err := KindOf(b); err == nil && Check(b, n) == nil && len(b) > MaxSize(k, n) {
			t.Fatalf("%d valid bytes exceed MaxSize %d", len(b), MaxSize(k, n))
		}
	})
}
