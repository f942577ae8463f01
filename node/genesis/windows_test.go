package genesis

import (
	"testing"

	"pgregory.net/rapid"
)

// Windows take a budget of bytes, within bounds, and a run may have them.
func TestWindowsFollowBytes(t *testing.T) {
	for _, c := range []struct {
		budget, round float64
		union, accept uint32
	}{
		{20e9, 1e6, 256, 16},  // all that there is
		{20e9, 0.4e9, 50, 16}, // 124M parameters of eight learners
		{20e9, 3.7e9, 32, 16}, // a billion: no fewer than that
		{0, 1, 32, 16},
		{25.6e9, 0.1e9, 256, 16},
	} {
		g := fixedGenesis()
		g.Outer.WindowUnion, g.Outer.WindowAccept = 256, 16
		g.SetWindow(c.budget, c.round)
		if g.Outer.WindowUnion != c.union || g.Outer.WindowAccept != c.accept {
			t.Errorf("%v bytes of rounds of %v: %d and %d rounds", c.budget, c.round, g.Outer.WindowUnion, g.Outer.WindowAccept)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		g := fixedGenesis()
		was := g.Outer
		budget, round := rapid.Float64Range(0, 1e15).Draw(t, "budget"), rapid.Float64Range(1e-3, 1e15).Draw(t, "round")
		g.SetWindow(budget, round)
		g.SetGrace(rapid.Float64Range(0, 1e18).Draw(t, "sweep"))
		if err := g.Validate(); err != nil {
			t.Fatal(err)
		}
		if u := g.Outer.WindowUnion; u > was.WindowUnion || u > leastWindow && float64(u)*round > budget {
			t.Fatalf("%d rounds", u)
		}
	})
}

// Rounds stay open as long as links may need, and no shorter than they always did.
func TestGraceFollowsBytes(t *testing.T) {
	for sweep, want := range map[float64]int64{0: mostGrace, 60: mostGrace, 61: 122_000, 293: 586_000} {
		g := fixedGenesis()
		if g.SetGrace(sweep); g.Outer.GraceMaxMs != want {
			t.Errorf("%v s: %d ms, want %d", sweep, g.Outer.GraceMaxMs, want)
		}
	}
}
