package codec

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// chunkLen is what is packed at a time: wire.ChunkSize.
const chunkLen = 1 << 18

// bytesOf are the bytes of values as a tip has them.
func bytesOf(v []float32) (b []byte) {
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}

// packed packs bytes, and fails unless they come back.
func packed(t interface{ Fatalf(string, ...any) }, b []byte) []byte {
	p := Pack(b)
	if len(p) > len(b)+planes {
		t.Fatalf("%d bytes packed to %d", len(b), len(p))
	}
	if got, err := Unpack(p, len(b)); err != nil || !bytes.Equal(got, b) {
		t.Fatalf("%d bytes came back as %d others, %v", len(b), len(got), err)
	}
	return p
}

// noise returns bytes that do not pack.
func noise(n int) []byte {
	b := make([]byte, n)
	r := rand.New(rand.NewPCG(uint64(n), 3))
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

func TestPackLengths(t *testing.T) {
	for _, n := range append([]int{4, 5, 6, 7, 8, 9, chunkLen - 1, chunkLen, MaxPacked - 1, MaxPacked}, lengths...) {
		packed(t, noise(n))
		packed(t, make([]byte, n))
		packed(t, bytesOf(normal(n/4, 0.01, uint64(n))))
	}
}

// What travels as floats is smaller: a little for values as they come, half for those that were bfloat16.
func TestPackSizes(t *testing.T) {
	v := normal(chunkLen/4, 0.02, 1)
	rounded := slices.Clone(v)
	for i, x := range rounded {
		rounded[i] = math.Float32frombits(math.Float32bits(x) &^ 0xffff)
	}
	for name, c := range map[string]struct {
		v    []float32
		most float64 // of the bytes that they are
	}{"normal": {v, 0.88}, "bfloat16": {rounded, 0.4}, "zeros": {make([]float32, chunkLen/4), 0.001}} {
		if share := float64(len(packed(t, bytesOf(c.v)))) / chunkLen; share > c.most {
			t.Errorf("%s values take %.3f of their bytes, want at most %.3f", name, share, c.most)
		}
	}
}

func TestPackedBytesComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := rapid.SliceOfN(rapid.Byte(), 0, 1<<rapid.IntRange(0, 12).Draw(t, "log")).Draw(t, "bytes")
		few := rapid.ByteRange(0, 7).Draw(t, "mask")
		for i := range b {
			if few > 0 && i%4 == 3 {
				b[i] &= few // so that a plane is packed
			}
		}
		packed(t, b)
	})
}

func TestUnpackRefuses(t *testing.T) {
	b := bytesOf(normal(1000, 0.01, 1))
	p := Pack(b)
	for i := range p {
		if _, err := Unpack(p[:i], len(b)); !errors.Is(err, ErrCorrupt) {
			t.Fatalf("the first %d of %d bytes: %v", i, len(p), err)
		}
	}
	for name, c := range map[string]struct {
		packed []byte
		n      int
	}{
		"bytes that follow":   {append(bytes.Clone(p), 0), len(b)},
		"a byte for none":     {[]byte{0}, 0},
		"nothing for a byte":  {nil, 1},
		"an unknown mode":     {[]byte{3, 1}, 1},
		"four bytes fewer":    {p, len(b) - 4},
		"four bytes more":     {p, len(b) + 4},
		"a chunk of no bytes": {[]byte{1, 1, 1, 1}, 1},
	} {
		if got, err := Unpack(c.packed, c.n); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
	}
	for _, n := range []int{-1, MaxPacked + 1, math.MaxInt} {
		if _, err := Unpack([]byte{1, 1, 1, 1, 1, 1, 1, 1}, n); err == nil || errors.Is(err, ErrCorrupt) {
			t.Errorf("for %d bytes: %v", n, err)
		}
	}
}

func TestPackTooMuchPanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("packs more than MaxPacked bytes")
		}
	}()
	Pack(make([]byte, MaxPacked+1))
}

// Working memory is lent, so little is allocated besides the bytes handed out, and nothing for what is refused.
func TestPackAllocates(t *testing.T) {
	const times = 32
	b := bytesOf(normal(chunkLen/4, 0.01, 1))
	p := Pack(b)
	for name, c := range map[string]struct {
		do   func()
		most int // bytes each time
	}{
		"Pack":           {func() { Pack(b) }, chunkLen * 5 / 4},
		"Unpack":         {func() { _, _ = Unpack(p, len(b)) }, chunkLen * 5 / 4},
		"Unpack refuses": {func() { _, _ = Unpack(p[:len(p)-1], len(b)) }, chunkLen / 4},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range times {
			c.do()
		}
		runtime.ReadMemStats(&after)
		if each := int(after.TotalAlloc-before.TotalAlloc) / times; each > c.most {
			t.Errorf("%s allocates %d bytes, want at most %d", name, each, c.most)
		}
	}
}

func FuzzUnpack(f *testing.F) {
	for _, n := range []int{0, 1, 3, 4, 255, 5000, 20_000} {
		f.Add(Pack(bytesOf(normal(n/4+1, 0.1, 7))[:n]), n)
	}
	f.Fuzz(func(t *testing.T, b []byte, n int) {
		got, err := Unpack(b, n)
		if err != nil {
			return
		}
		if len(got) != n {
			t.Fatalf("%d bytes, want %d", len(got), n)
		}
		again, err := Unpack(b, n)
		if err != nil || !bytes.Equal(got, again) {
			t.Fatalf("%v at another time", err)
		}
		packed(t, got)
	})
}

func BenchmarkPack(b *testing.B) {
	raw := bytesOf(normal(chunkLen/4, 0.01, 1))
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	size := 0
	for b.Loop() {
		size = len(Pack(raw))
	}
	b.ReportMetric(float64(size)/float64(len(raw)), "share")
}

func BenchmarkUnpack(b *testing.B) {
	raw := bytesOf(normal(chunkLen/4, 0.01, 1))
	p := Pack(raw)
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Unpack(p, len(raw)); err != nil {
			b.Fatal(err)
		}
	}
}
