package tensor

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// drawBlock returns a block of values within spread, with special ones here and there.
func drawBlock(t *rapid.T) *Block {
	rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 4))
	spread := rapid.SampledFrom([]float32{1, 7.49, 127.49, 1e-38, 1e38}).Draw(t, "spread")
	specials := rapid.Bool().Draw(t, "specials")
	b := new(Block)
	for i := range b {
		b[i] = (2*rng.Float32() - 1) * spread
		if specials && rng.IntN(16) == 0 {
			b[i] = special[rng.IntN(len(special))]
		}
	}
	return b
}

// finite says whether packing b with inv gives codes that mean something: those of NaN have
// bits that depend on the kernel.
func finite(b *Block, inv float32) bool {
	for _, x := range b {
		if y := x * inv; y != y {
			return false
		}
	}
	return true
}

func TestPackLikePlain(t *testing.T) {
	eachKernel(t, fastKernels(), func(t *rapid.T, k kernel) {
		b := drawBlock(t)
		inv := rapid.SampledFrom([]float32{1, 0.5, 0, 1e-38, 2.25, 1e30}).Draw(t, "inv")
		if got, want := k.maxBits(b), maxBitsGo(b); got != want {
			t.Fatalf("largest bits %#x, want %#x", got, want)
		}
		if !finite(b, inv) {
			return
		}
		// Codes lie amid others, which must stay.
		var want4, got4 [3]Codes4
		pack4Go(&want4[1], b, inv)
		k.pack4(&got4[1], b, inv)
		if got4 != want4 {
			t.Fatalf("codes\n%x, want\n%x", got4, want4)
		}
	})
}

func TestUnpackLikePlain(t *testing.T) {
	eachKernel(t, fastKernels(), func(t *rapid.T, k kernel) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 5))
		scale := rapid.SampledFrom([]float32{1, 0, 1e-3, 0x1p-100, 0x1p127, 1e-45}).Draw(t, "scale")
		zeros := rapid.IntRange(0, 2).Draw(t, "zeros")
		var codes4 Codes4
		for i := range codes4 {
			codes4[i] = byte(1+rng.IntN(15)) | byte(1+rng.IntN(15))<<4
		}
		for range zeros {
			codes4[rng.IntN(len(codes4))] &= [2]byte{0x0f, 0xf0}[rng.IntN(2)]
		}
		var want, got [3]Block
		if z := k.unpack4(&got[1], &codes4, scale); z != unpack4Go(&want[1], &codes4, scale) || z != (zeros > 0) || k.anyZero4(codes4[:]) != z || anyZero4Go(codes4[:]) != z {
			t.Fatalf("a code is 0: %v, and %d are", z, zeros)
		}
		sameBlocks(t, &got, &want)
	})
}

// TestAddCodesLikeUnpacked holds each kernel against unpacking and adding.
func TestAddCodesLikeUnpacked(t *testing.T) {
	eachKernel(t, available(), func(t *rapid.T, k kernel) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 6))
		scale := rapid.SampledFrom([]float32{1, 0, 1e-3, 0x1.02p-100, 0x1.fep120}).Draw(t, "scale")
		alpha := rapid.SampledFrom([]float64{1, -1, 0, 1.0 / 3, 1e30, 1e-300}).Draw(t, "alpha")
		codes := make([]byte, rapid.IntRange(1, 4).Draw(t, "blocks")*BlockLen/2)
		for i := range codes {
			codes[i] = byte(1+rng.IntN(15)) | byte(1+rng.IntN(15))<<4
		}
		scales := make([]float32, len(codes)/len(Codes4{}))
		x := make([]float32, 2*len(codes))
		for i := range scales {
			scales[i] = scale * float32(i+1)
			unpack4Go((*Block)(x[i*BlockLen:]), (*Codes4)(codes[i*BlockLen/2:]), scales[i])
		}
		want := make([]float64, len(x)+2*BlockLen) // a block before and behind, which must stay
		for i := range want {
			want[i] = rng.NormFloat64() * float64(scale)
		}
		got := slices.Clone(want)
		axpyWideGo(alpha, x, want[BlockLen:][:len(x)])
		if k.addCodes4(got[BlockLen:][:len(x)], alpha, codes, scales) || k.anyZero4(codes) {
			t.Fatal("a code is said to be 0")
		}
		for i, w := range want {
			if g := got[i]; math.Float64bits(g) != math.Float64bits(w) {
				t.Fatalf("value %d is %v, want %v", i, g, w)
			}
		}
		squares := [2][lanes]float64{{1, 2, 3}, {1, 2, 3}}
		squaresGo(&squares[0], x)
		if k.squareCodes4(&squares[1], codes, scales) || squares[0] != squares[1] {
			t.Fatalf("squares add to %v, want %v", squares[1], squares[0])
		}
		at := rng.IntN(len(x))
		codes[at/2] &^= 15 << (4 * (at % 2))
		if !k.addCodes4(got[BlockLen:][:len(x)], alpha, codes, scales) || !k.squareCodes4(&squares[0], codes, scales) || !k.anyZero4(codes) {
			t.Fatalf("a code of 0 at %d was not seen", at)
		}
	})
}

func sameBlocks(t *rapid.T, got, want *[3]Block) {
	for i := range want {
		for j, w := range want[i] {
			if g := got[i][j]; math.Float32bits(g) != math.Float32bits(w) {
				t.Fatalf("block %d value %d is %v, want %v", i, j, g, w)
			}
		}
	}
}

// Each place of a block must be looked at.
func TestEveryPlaceOfABlock(t *testing.T) {
	for _, k := range available() {
		for i := range BlockLen {
			var b Block
			b[i] = -3
			var codes4 Codes4
			k.pack4(&codes4, &b, 1)
			for j := range BlockLen {
				want := 0
				if j == i {
					want = -3
				}
				if q := int(codes4[j/2]>>(4*(j%2))&15) - 8; q != want {
					t.Fatalf("%s: with -3 at %d the code at %d is %d, want %d", k.name, i, j, q, want)
				}
			}
			if got := k.maxBits(&b); got != math.Float32bits(3) {
				t.Fatalf("%s: with -3 at %d the largest bits are %#x", k.name, i, got)
			}
			var back Block
			if k.unpack4(&back, &codes4, 1) || back != b {
				t.Fatalf("%s: -3 at %d did not come back", k.name, i)
			}
			codes4[i/2] &^= 15 << (4 * (i % 2))
			if !k.unpack4(&back, &codes4, 1) || !k.anyZero4(codes4[:]) {
				t.Fatalf("%s: a code of 0 at %d was not seen", k.name, i)
			}
		}
	}
}
