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
		n = rapid.IntRange(1<<15, SegmentLen).Draw(t, "long length")
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
		checkPair(t, s, raw, want, raw, want)
	})
	if packed == 0 {
		t.Error("nothing was packed")
	}
}

// checkPair has the loops decode two packed streams and
// fails unless the library says the same of them, or if the loops do not take two whole ones.
func checkPair(t *rapid.T, s *scratch, raw1, packed1, raw2, packed2 []byte) {
	x, y := make([]byte, len(raw1)), make([]byte, len(raw2))
	want := [2][]byte{}
	for i, b := range [][]byte{packed1, packed2} {
		library, parts, err := huff0.ReadTable(b, nil)
		if err != nil {
			return // nor are the loops asked
		}
		if want[i], err = library.Decoder().Decompress4X(make([]byte, 0, len(raw1)), parts); err != nil {
			want[i] = nil
		}
	}
	if len(raw1) < fastHuff || !tensor.HasHuff() || !s.fast.decompress(&[2]waiting{{x, packed1}, {y, packed2}}) {
		if bytes.Equal(want[0], raw1) && bytes.Equal(want[1], raw2) && len(raw1) >= fastHuff && tensor.HasHuff() {
			t.Fatalf("the loops do not decode %d bytes that are whole", len(raw1))
		}
		return
	}
	if !bytes.Equal(x, want[0]) || !bytes.Equal(y, want[1]) {
		t.Fatal("the loops take what the library does not, or make other bytes of it")
	}
}

// What the loops take, the library takes, with the same bytes: however it was damaged.
func TestDamagedHuffLikeTheLibrary(t *testing.T) {
	s := newScratch()
	rapid.Check(t, func(t *rapid.T) {
		raw1 := drawStream(t)
		raw2 := bytes.Clone(raw1)
		rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "shuffle"), 7)).Shuffle(len(raw2), func(i, j int) { raw2[i], raw2[j] = raw2[j]/2, raw2[i] })
		var packed [2][]byte
		for i, raw := range [][]byte{raw1, raw2} {
			b, _, err := huff0.Compress4X(raw, &huff0.Scratch{Reuse: huff0.ReusePolicyNone})
			if err != nil {
				return
			}
			packed[i] = bytes.Clone(b)
		}
		for range rapid.IntRange(0, 3).Draw(t, "flips") {
			b := packed[rapid.IntRange(0, 1).Draw(t, "which")]
			b[rapid.IntRange(0, len(b)-1).Draw(t, "at")] ^= byte(rapid.IntRange(1, 255).Draw(t, "flip"))
		}
		cut := rapid.SampledFrom([]int{0, 0, 0, 1, 9}).Draw(t, "cut")
		checkPair(t, s, raw1, packed[0], raw2, packed[1][:len(packed[1])-cut]) // which fails where whole ones are not taken
	})
}
