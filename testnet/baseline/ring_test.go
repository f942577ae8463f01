package baseline

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// circle passes frames between rings in an order that choose makes, until none is left.
// It contributes every bucket of every member, in orders that choose makes as well.
type circle struct {
	rings   []*Ring
	vectors [][]float32
	bounds  []int     // where each bucket begins, and the end
	due     [][]int   // buckets that a member has not contributed yet
	flying  [][]Frame // to each member from its predecessor, in order
	sent    []int     // bytes of payload
}

func newCircle(n int, sizes []int, vectors [][]float32) *circle {
	c := &circle{vectors: vectors, bounds: []int{0}, due: make([][]int, n), flying: make([][]Frame, n), sent: make([]int, n)}
	for b, size := range sizes {
		c.bounds = append(c.bounds, c.bounds[b]+size)
	}
	for i := range n {
		c.rings = append(c.rings, NewRing(i, n, sizes))
		for b := range sizes {
			c.due[i] = append(c.due[i], b)
		}
	}
	return c
}

// run does what is possible, as choose picks, until nothing is.
func (c *circle) run(choose func(most int) int) error {
	n := len(c.rings)
	for {
		var can []int // i: member i contributes; n+i: it receives
		for i := range n {
			if len(c.due[i]) > 0 {
				can = append(can, i)
			}
			if len(c.flying[i]) > 0 {
				can = append(can, n+i)
			}
		}
		if len(can) == 0 {
			return nil
		}
		what := can[choose(len(can))]
		i := what % n
		var out []Frame
		if what < n {
			at := choose(len(c.due[i]))
			b := c.due[i][at]
			c.due[i] = slices.Delete(c.due[i], at, at+1)
			out = c.rings[i].Contribute(b, c.vectors[i][c.bounds[b]:c.bounds[b+1]])
		} else {
			f := c.flying[i][0]
			c.flying[i] = c.flying[i][1:]
			var err error
			if out, err = c.rings[i].Receive(f); err != nil {
				return err
			}
		}
		for _, f := range out {
			c.sent[i] += len(f.Payload)
		}
		c.flying[(i+1)%n] = append(c.flying[(i+1)%n], out...)
	}
}

// TestRingSums compares the ring with a plain sum: of small whole numbers, which
// bfloat16 holds exactly, in any order of events, for ragged and empty buckets.
func TestRingSums(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 7).Draw(t, "members")
		sizes := rapid.SliceOfN(rapid.IntRange(0, 23), 1, 5).Draw(t, "sizes")
		all := 0
		for _, size := range sizes {
			all += size
		}
		vectors, want := make([][]float32, n), make([]float32, all)
		for i := range vectors {
			for j := range all {
				x := float32(rapid.IntRange(-9, 9).Draw(t, "value"))
				vectors[i] = append(vectors[i], x)
				want[j] += x
			}
		}
		c := newCircle(n, sizes, vectors)
		if err := c.run(func(most int) int { return rapid.IntRange(0, most-1).Draw(t, "next") }); err != nil {
			t.Fatal(err)
		}
		for i, v := range vectors {
			if !c.rings[i].Done() {
				t.Fatalf("member %d of %d is not done", i, n)
			}
			if !slices.Equal(v, want) {
				t.Fatalf("member %d of %d has %v, want %v", i, n, v, want)
			}
		}
	})
}

// TestRingEqualBits: whatever the values, all members end with the same bits, near
// the sum, and have sent 2(n-1)/n of the vector.
func TestRingEqualBits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 7).Draw(t, "members")
		size := rapid.IntRange(1, 40).Draw(t, "size")
		vectors, want, most := make([][]float32, n), make([]float64, size), 0.0
		for i := range vectors {
			for j := range size {
				x := rapid.Float32Range(-1e3, 1e3).Draw(t, "value")
				vectors[i] = append(vectors[i], x)
				want[j] += float64(x)
				most = max(most, math.Abs(float64(x)))
			}
		}
		c := newCircle(n, []int{size}, vectors)
		if err := c.run(func(most int) int { return rapid.IntRange(0, most-1).Draw(t, "next") }); err != nil {
			t.Fatal(err)
		}
		for i, v := range vectors {
			if !slices.Equal(v, vectors[0]) {
				t.Fatalf("member %d has other bits than member 0: %v, %v", i, v, vectors[0])
			}
			if n > 1 && (c.sent[i] > 2*(n-1)*bytesPerValue*((size+n-1)/n)) {
				t.Fatalf("member %d of %d sent %d bytes for %d values", i, n, c.sent[i], size)
			}
		}
		// Each of the n hops of a sum rounds to 8 bits: half a unit in the last of them.
		tolerance := float64(n*n) * most / 256
		for j, x := range vectors[0] {
			if d := math.Abs(float64(x) - want[j]); n > 1 && d > tolerance {
				t.Fatalf("value %d is %v, want %v within %v", j, x, want[j], tolerance)
			}
		}
	})
}

func TestBF16(t *testing.T) {
	for _, c := range []struct {
		x    float32
		want uint16
	}{
		{0, 0}, {1, 0x3f80}, {-2, 0xc000},
		{math.Float32frombits(0x3f808000), 0x3f80}, // a tie, to even
		{math.Float32frombits(0x3f818000), 0x3f82},
		{math.Float32frombits(0x3f808001), 0x3f81},
		{math.MaxFloat32, 0x7f80}, {float32(math.Inf(-1)), 0xff80},
	} {
		if got := toBF16(c.x); got != c.want {
			t.Errorf("%v is %#x, want %#x", c.x, got, c.want)
		}
	}
	if x := fromBF16(toBF16(math.Float32frombits(0x7f800001))); x == x {
		t.Errorf("a NaN became %v", x)
	}
}

// TestRingRefuses what no ring expects: nothing of it may panic or change a sum.
func TestRingRefuses(t *testing.T) {
	fresh := func(contributed bool) *Ring {
		r := NewRing(0, 3, []int{6, 3})
		if contributed {
			r.Contribute(0, make([]float32, 6))
		}
		return r
	}
	four := make([]byte, 4)
	for _, c := range []struct {
		name        string
		contributed bool
		f           Frame
	}{
		{"a bucket that is not", true, Frame{2, 0, four}},
		{"a bucket below 0", true, Frame{-1, 0, four}},
		{"a hop that is not", true, Frame{0, 4, four}},
		{"a hop below 0", true, Frame{0, -1, four}},
		{"a hop too early", true, Frame{0, 1, four}},
		{"too little", true, Frame{0, 0, four[:2]}},
		{"too much", true, Frame{0, 0, make([]byte, 6)}},
		{"a hop too early before the contribution", false, Frame{0, 1, four}},
	} {
		if out, err := fresh(c.contributed).Receive(c.f); err == nil || out != nil {
			t.Errorf("%s: %v, %v", c.name, out, err)
		}
	}
	r := fresh(false)
	for hop := range 2 {
		if _, err := r.Receive(Frame{0, hop, four}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.Receive(Frame{0, 2, four}); err == nil {
		t.Error("a sum that lacks this member's values was taken")
	}
	alone := NewRing(0, 1, []int{2})
	if _, err := alone.Receive(Frame{0, 0, four}); err == nil {
		t.Error("a member alone took a frame")
	}
	if out := alone.Contribute(0, []float32{1, 2}); out != nil || !alone.Done() {
		t.Errorf("a member alone sends %v", out)
	}
}
