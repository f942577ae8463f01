package tensor

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// drawTopBlock returns a block of values, with special ones here and there.
func drawTopBlock(t *rapid.T) *TopBlock {
	rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 9))
	specials := rapid.IntRange(0, 2).Draw(t, "specials")
	x := new(TopBlock)
	for i := range x {
		x[i] = float32(rng.NormFloat64())
		if rng.IntN(100) < specials {
			x[i] = special[rng.IntN(len(special))]
		}
	}
	return x
}

func TestTopsLikePlain(t *testing.T) {
	eachKernel(t, fastKernels(), func(t *rapid.T, k kernel) {
		x := drawTopBlock(t)
		var want, got [TopLanes]uint32
		got[3] = 1 << 31 // what was there before does not matter
		laneTopsGo(&want, x)
		if k.laneTops(&got, x); got != want {
			t.Fatalf("lanes have %x, want %x", got, want)
		}
		least := rapid.SampledFrom([]uint32{0, 1, want[5], want[5] + 1, want[9], math.Float32bits(1), 1<<31 - 1}).Draw(t, "least")
		var wantSet, gotSet [3]TopSet // those around must stay
		reachGo(&wantSet[1], x, least)
		if k.reach(&gotSet[1], x, least); gotSet != wantSet {
			t.Fatalf("from %x on %x reach, want %x", least, gotSet, wantSet)
		}
	})
}

func TestTopsByHand(t *testing.T) {
	var x TopBlock
	x[0], x[TopLanes], x[2*TopLanes+5], x[TopBlockLen-1] = 1, -2, 0.5, float32(math.Inf(-1))
	var tops [TopLanes]uint32
	LaneTops(&tops, &x)
	for lane, want := range map[int]float32{0: 2, 1: 0, 5: 0.5, TopLanes - 1: float32(math.Inf(1))} {
		if tops[lane] != math.Float32bits(want) {
			t.Errorf("lane %d has %v, want %v", lane, math.Float32frombits(tops[lane]), want)
		}
	}
	var set TopSet
	Reach(&set, &x, math.Float32bits(1))
	if set[0] != 1 || set[TopLanes/64] != 1 || set[(2*TopLanes+5)/64] != 0 || set[63] != 1<<63 {
		t.Errorf("reached: %x", set)
	}
	Reach(&set, &x, 0)
	for i, word := range set {
		if word != 1<<64-1 {
			t.Errorf("of word %d %x reach 0", i, word)
		}
	}
}

func BenchmarkTops(b *testing.B) {
	x := new(TopBlock)
	for i := range x {
		x[i] = float32(math.Sin(float64(i) * float64(i)))
	}
	for _, k := range available() {
		b.Run(k.name, func(b *testing.B) {
			b.SetBytes(4 * TopBlockLen)
			var tops [TopLanes]uint32
			var set TopSet
			for b.Loop() {
				k.laneTops(&tops, x)
				k.reach(&set, x, tops[0])
			}
		})
	}
}
