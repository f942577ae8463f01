package codec

import (
	"bytes"
	"math"
	"math/rand/v2"
	"testing"

	"atoll/tensor"
	"github.com/klauspost/compress/huff0"
	"pgregory.net/rapid"
)

// drawStream returns bytes of some distribution: codes of normal values, few symbols, many, one of
// them nearly always, a code of each length.
func drawStream(t *rapid.T) []byte {
	n := rapid.IntRange(minHuff, 9000).Draw(t, "length")
	if rapid.IntRange(0, 9).Draw(t, "long") == 0 {
		n = rapid.IntRange(1<<15, segmentLen).Draw(t, "long length")
	}
	rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 6))
	kind := rapid.IntRange(0, 4).Draw(t, "distribution")
	raw := make([]byte, n)
	for i := range raw {
		switch kind {
		case 0:
			raw[i] = byte(128 + 40*rng.NormFloat64())
		case 1:
			raw[i] = byte(rng.IntN(3)) * 100
		case 2:
			raw[i] = byte(rng.IntN(256))
		case 3:
			if rng.IntN(50) == 0 {
				raw[i] = byte(rng.IntN(256))
			}
		default:
			raw[i] = byte(math.Min(255, rng.ExpFloat64()*3))
		}
	}
	return raw
}

// The library is the judge of the loops: the same bytes, or stored by both; and they come back.
func TestHuffLikeTheLibrary(t *testing.T) {
	packed := 0
	rapid.Check(t, func(t *rapid.T) {
		raw := drawStream(t)
		want, _, wantErr := huff0.Compress4X(raw, &huff0.Scratch{Reuse: huff0.ReusePolicyNone})
		if wantErr == nil && huffHeader+len(want) >= 1+len(raw) {
			wantErr = huff0.ErrIncompressible
		}
		s := newScratch()
		got, err := s.compress(raw)
		if err == nil && huffHeader+len(got) >= 1+len(raw) {
			err = huff0.ErrIncompressible
		}
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("packed: %v, by the library: %v", err, wantErr)
		}
		if err != nil {
			return
		}
		if !bytes.Equal(got, want) {
			t.Fatalf("%d bytes became %d that are not the library's %d", len(raw), len(got), len(want))
		}
		packed++
		back := make([]byte, len(raw))
		if ok := s.fast.decompress(back, want); ok != (tensor.HasHuff() && len(raw) >= fastHuff) || ok && !bytes.Equal(back, raw) {
			t.Fatalf("%d bytes came back: %v, the same: %v", len(raw), ok, bytes.Equal(back, raw))
		}
	})
	if packed == 0 {
		t.Error("nothing was packed")
	}
}

// What the loops take, the library takes, with the same bytes: however it was damaged.
func TestDamagedHuffLikeTheLibrary(t *testing.T) {
	taken := 0
	rapid.Check(t, func(t *rapid.T) {
		raw := drawStream(t)
		b, _, err := huff0.Compress4X(raw, &huff0.Scratch{Reuse: huff0.ReusePolicyNone})
		if err != nil {
			return
		}
		b = bytes.Clone(b)
		for range rapid.IntRange(0, 3).Draw(t, "flips") {
			b[rapid.IntRange(0, len(b)-1).Draw(t, "at")] ^= byte(rapid.IntRange(1, 255).Draw(t, "flip"))
		}
		b = b[:len(b)-rapid.SampledFrom([]int{0, 0, 0, 1, 9}).Draw(t, "cut")]
		library, parts, err := huff0.ReadTable(b, nil)
		if err != nil {
			return // nor is this asked of the loops
		}
		want, err := library.Decoder().Decompress4X(make([]byte, 0, len(raw)), parts)
		var fast fastTable
		got := make([]byte, len(raw))
		if !fast.decompress(got, b) {
			return
		}
		taken++
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("the loops take what the library does not (%v), or make other bytes of it", err)
		}
	})
	if taken == 0 && tensor.HasHuff() {
		t.Error("the loops took nothing")
	}
}
