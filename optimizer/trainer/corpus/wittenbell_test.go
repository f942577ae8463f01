package corpus

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// TestWittenBellByHand: after "abab", P(a) = P(b) = (2 + 2/256) / (4 + 2),
// P(b|a) = (2 + P(b)) / (2 + 1), P(b|b) = (0 + P(b)) / (1 + 1) and
// P(b|ab) = (0 + P(b|b)) / (1 + 1).
func TestWittenBellByHand(t *testing.T) {
	single := (2 + 2.0/256) / 6
	want := -(math.Log2(single) + math.Log2((2+single)/3) + math.Log2(single/4)) / 3
	if got := WittenBell([]byte("abab"), []byte("abb")); math.Abs(got-want) > 1e-12 {
		t.Errorf("%v bits per byte, want %v", got, want)
	}
}

// The code of one window is the same, less the byte that is context only; that of nothing is no number.
func TestWittenBellOfWindows(t *testing.T) {
	single := (2 + 2.0/256) / 6
	want := -(math.Log2((2+single)/3) + math.Log2(single/4)) / 2
	if got := WittenBellOf([]byte("abab"), [][]byte{[]byte("abb")}); math.Abs(got-want) > 1e-12 {
		t.Errorf("%v bits per byte, want %v", got, want)
	}
	twice := WittenBellOf([]byte("abab"), [][]byte{[]byte("abb"), []byte("abb")})
	if math.Abs(twice-want) > 1e-12 {
		t.Errorf("twice: %v bits per byte, want %v", twice, want)
	}
	if got := WittenBellOf([]byte("any"), [][]byte{[]byte("a")}); !math.IsNaN(got) {
		t.Errorf("%v bits per byte of nothing", got)
	}
}

func TestWittenBellUntrainedIsUniform(t *testing.T) {
	if got := WittenBell(nil, []byte("any")); got != 8 {
		t.Errorf("%v bits per byte, want 8", got)
	}
	if got := WittenBell([]byte("any"), nil); !math.IsNaN(got) {
		t.Errorf("%v bits per byte of nothing", got)
	}
}

func TestWittenBellIsADistribution(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		letters := rapid.SampledFrom([]byte("abcd"))
		train := rapid.SliceOfN(letters, 0, 60).Draw(t, "train")
		history := rapid.SliceOfN(letters, maxOrder, maxOrder).Draw(t, "history")
		model := countContexts(train)
		sum := 0.0
		for b := range 256 {
			p := 1.0 / 256
			for order := range maxOrder + 1 {
				p = model.context(history[maxOrder-order:]).interpolate(byte(b), p)
			}
			sum += p
		}
		if math.Abs(sum-1) > 1e-12 {
			t.Fatalf("probabilities after %q sum to %v", history, sum)
		}
	})
}

// TestWittenBellOnProse pins the baseline of the default corpus, as Go 1.26 ships it.
func TestWittenBellOnProse(t *testing.T) {
	const opticks = "d4a9ac22462b35e7821a4f2706c211093da678620a8f9997989ee7cf8d507bbd"
	c, err := Open(Prose)
	if err != nil {
		t.Skip(err)
	}
	if c.SHA256() != opticks {
		t.Skip("this Go ships another text")
	}
	if got := WittenBell(c.Train(), c.HeldOut()); math.Abs(got-2.8493) > 0.0001 {
		t.Errorf("%.4f bits per byte, want 2.8493", got)
	}
}
