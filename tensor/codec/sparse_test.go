package codec

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// sparseTolerance is the largest |decoded - x|: of what travels the range of the block's magnitudes that do,
// and of the rest |x|, as it must become 0. What travels is found by sorting.
func sparseTolerance(k Kind, v []float32) []float64 {
	tol := make([]float64, len(v))
	for at := 0; at < len(v); at += sparseLen {
		block := v[at:min(at+sparseLen, len(v))]
		sent := sentBySorting(k, block)
		last, first := sent[len(sent)-1], sent[0]
		least, most := math.Abs(float64(block[last])), math.Abs(float64(block[first]))
		for i, x := range block {
			tol[at+i] = math.Abs(float64(x))
		}
		for _, i := range sent {
			tol[at+i] = max(most-least, 0) + most*0x1p-8 + 0x1p-100 // of what counts as 0 the first may be less
		}
	}
	return tol
}

// sentBySorting returns the indices of what travels of a block, the largest magnitude first, of equal ones the
// earlier.
func sentBySorting(k Kind, block []float32) []int {
	order := make([]int, len(block))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(bitsOf(block[b]), bitsOf(block[a])) })
	return order[:k.sent(len(block))]
}

// partial draws a kind that sends only some values.
func partial(t *rapid.T) Kind { return rapid.SampledFrom([]Kind{Sparse, Sparse8}).Draw(t, "kind") }

// bitsOf are the bits of the magnitude of x, and 0 if it is too small to travel.
func bitsOf(x float32) uint32 { return travelling(math.Float32bits(x) & magnitude) }

// blocks draws values that make selection hard: normal ones, few different ones, all large ones in one
// place, ascending, zeros.
func blocks() *rapid.Generator[[]float32] {
	return rapid.Custom(func(t *rapid.T) []float32 {
		n := rapid.SampledFrom([]int{1, 31, 32, 33, 64, 65, 129, 4095, sparseLen}).Draw(t, "n")
		v := normal(n, math.Ldexp(1, rapid.IntRange(-104, 100).Draw(t, "exponent")), rapid.Uint64().Draw(t, "seed"))
		switch rapid.IntRange(0, 6).Draw(t, "shape") {
		case 1:
			for i := range v {
				v[i] = float32(math.Copysign(float64(i%3), float64(v[i])))
			}
		case 2:
			for i := range v[:(n+3)/4] {
				v[i] *= 1000
			}
		case 3:
			slices.Sort(v)
		case 4:
			clear(v[:n-n/100])
		case 5:
			clear(v)
		case 6:
			for i := range v {
				if i%16 != 3 {
					v[i] = 0
				}
			}
		}
		return v
	})
}

func TestLargestLikeSorting(t *testing.T) {
	s := &selection{}
	rapid.Check(t, func(t *rapid.T) {
		block, k := blocks().Draw(t, "block"), partial(t)
		keys, fit := s.largest(s.whole(block), k.sent(len(block)))
		if !fit {
			t.Fatal("finite values do not fit")
		}
		got := make([]int, len(keys))
		for j, k := range keys {
			got[j] = keyIndex(k)
			if keyBits(k) != bitsOf(block[got[j]]) {
				t.Fatalf("key %x of value %v", k, block[got[j]])
			}
		}
		want := sentBySorting(k, block)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Fatalf("values %v travel, want %v", got, want)
		}
	})
}

// No two levels, nor one, have a smaller squared error than those chosen, but for their rounding.
func TestLevelsAreBest(t *testing.T) {
	s := &selection{}
	rapid.Check(t, func(t *rapid.T) {
		block := blocks().Draw(t, "block")
		keys, _ := s.largest(s.whole(block), partial(t).sent(len(block)))
		low, high, split := s.levels(keys)
		if low > high || low == high && split != limitBits {
			t.Fatalf("levels %x and %x, parted at %x", low, high, split)
		}
		m := make([]float64, len(keys))
		chosen, power := 0.0, 0.0
		for j, k := range keys {
			m[j] = widest(keyBits(k))
			level := widest(uint32(low) << 16)
			if keyBits(k) >= split {
				level = widest(uint32(high) << 16)
			}
			chosen += (m[j] - level) * (m[j] - level)
			power += m[j] * m[j]
		}
		slices.Sort(m)
		if m[0] == 0 {
			return // zeros are a part of their own, whatever that costs
		}
		for at := range m {
			if best := scatterOf(m[:at]) + scatterOf(m[at:]); best < chosen-power*0x1p-16 {
				t.Fatalf("squared error %g; parted at %d it is %g", chosen, at, best)
			}
		}
	})
}

// scatterOf is the squared error of m with their mean for a level.
func scatterOf(m []float64) (sum float64) {
	mean := 0.0
	for _, x := range m {
		mean += x / float64(len(m))
	}
	for _, x := range m {
		sum += (x - mean) * (x - mean)
	}
	return sum
}

// What an encoder leaves out and gets wrong is less each time that it is fed back: the squared error of one pass
// is below the values', and after some passes all values have travelled.
func TestSparseFeedbackConverges(t *testing.T) {
	for k, passes := range map[Kind]int{Sparse: 300, Sparse8: 40} {
		left := normal(2*sparseLen+100, 1, 4)
		got := make([]float32, len(left))
		first := squares(left)
		for pass := range passes {
			before := squares(left)
			if err := Decode(mustEncode(t, k, left), len(left), got); err != nil {
				t.Fatal(err)
			}
			for i, x := range got {
				left[i] -= x
			}
			if after := squares(left); after >= before {
				t.Fatalf("%v, pass %d: %g of %g is left", k, pass, after, before)
			}
		}
		if last := squares(left); last > first/1e3 {
			t.Errorf("%v: %g of %g is left", k, last, first)
		}
	}
}

// squares is the sum of the squares of v.
func squares(v []float32) (sum float64) {
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	return sum
}

func TestSortLikeTheLibrary(t *testing.T) {
	s := &selection{}
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.SampledFrom([]uint32{0, 1, 63, 64, 1 << 20, limitBits - 1}).Draw(t, "most")
		m := rapid.SliceOfN(rapid.Uint32Range(0, most), 1, sparseMost).Draw(t, "magnitudes")
		got := s.sort(m)
		slices.Sort(m)
		if !slices.Equal(got, m) {
			t.Fatalf("%v, want %v", got, m)
		}
	})
}

// Positions as gaps in two streams of known length take within a fiftieth of what gaps in one would, with 255 to
// lengthen them, which has no length that follows from the number of values; and three quarters of 12 bits each.
func TestSparsePositions(t *testing.T) {
	for _, src := range sources {
		v := normal(SegmentLen, 1, 8)
		for i, x := range v {
			v[i] = float32(src.draw(float64(x)))
		}
		for _, k := range []Kind{Sparse, Sparse8} {
			t.Run(src.name+" "+k.String(), func(t *testing.T) { comparePositions(t, k, v) })
		}
	}
}

func comparePositions(t *testing.T, k Kind, v []float32) {
	s := newScratch()
	streams := s.segments[0].divide(nil, k, len(v))
	if i := s.sparse.sparsify(k, streams, v); i >= 0 {
		t.Fatalf("value %d does not fit", i)
	}
	size := func(b []byte) int { return len(s.appendChunk(nil, b)) }
	gaps, codes := streams[2], streams[3]
	var one, signs []byte
	for j, code := range codes {
		gap := int(code>>codeGap)<<8 | int(gaps[j])
		for ; gap >= 255; gap -= 255 {
			one = append(one, 255)
		}
		one, signs = append(one, byte(gap)), append(signs, code&codeSign)
	}
	chosen, lengthened, plain := size(gaps)+size(codes), size(one)+size(signs), len(gaps)*3/2+size(signs)
	t.Logf("bits for each value that travels: %.2f, in one stream %.2f, with 12 bits %.2f",
		8*float64(chosen)/float64(len(gaps)), 8*float64(lengthened)/float64(len(gaps)), 8*float64(plain)/float64(len(gaps)))
	if chosen > lengthened*51/50 || chosen > plain*3/4 {
		t.Errorf("%d bytes, in one stream %d, with 12 bits %d", chosen, lengthened, plain)
	}
}

// Selection must not take long on any values: kth halves a range of 43 bits at most as often as that.
func TestKthByHand(t *testing.T) {
	for k, want := range []uint64{9, 7, 4, 1, 0} {
		if got := kth([]uint64{4, 0, 9, 1, 7}, k+1); got != want {
			t.Errorf("number %d is %d, want %d", k+1, got, want)
		}
	}
	far := make([]uint64, 43) // powers of two: each halving parts one off
	for i := range far {
		far[i] = 1 << i
	}
	for k := range far {
		if got := kth(slices.Clone(far), k+1); got != 1<<(42-k) {
			t.Errorf("number %d is %d", k+1, got)
		}
	}
}
