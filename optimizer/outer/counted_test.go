package outer

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// A delta is worth the steps that can have been made since its base, and no more tokens
// in each of them than genesis allows.
func TestClaimed(t *testing.T) {
	p := toyParams()
	p.H, p.MaxTokensPerStep = 8, 100
	for name, c := range map[string]struct {
		pace        int
		base, steps uint32
		tokens      uint64
		want        uint64
	}{
		"an honest delta":          {2, 9, 16, 1600, 1600},
		"one step too many":        {2, 9, 17, 1700, 1600},
		"few tokens in many steps": {2, 9, 1000, 1500, 1500},
		"most tokens":              {2, 9, 1000, 100_000, 1600},
		"two rounds":               {2, 8, 1000, 100_000, 3200},
		"from genesis on":          {2, 0, 1000, 100_000, 16_000},
	} {
		p.MaxPace = c.pace
		if got := p.Claimed(Delta{Round: 10, Base: c.base, Steps: c.steps, Tokens: c.tokens}); got != c.want {
			t.Errorf("%s: %d tokens count, want %d", name, got, c.want)
		}
	}
}

// Nothing overflows at the largest values that Validate and Check let pass.
func TestClaimedOfTheLargest(t *testing.T) {
	p := toyParams()
	p.H, p.MaxSteps, p.MaxTokensPerStep, p.MaxPace = MaxH, MaxStepsLimit, MaxTokensLimit, MaxPaceLimit
	d := Delta{Round: math.MaxUint32, Steps: MaxStepsLimit, Tokens: MaxStepsLimit * MaxTokensLimit}
	if got := p.Claimed(d); got != d.Tokens {
		t.Errorf("%d tokens count, want %d", got, d.Tokens)
	}
}

// A claim of more steps and tokens never counts for less, and what counts never
// exceeds the claim. Honest deltas count in full.
func TestClaimedIsMonotone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := toyParams()
		p.H, p.MaxPace = rapid.IntRange(1, 64).Draw(t, "H"), rapid.IntRange(1, 8).Draw(t, "pace")
		round := rapid.Uint32Range(1, 1000).Draw(t, "round")
		d := Delta{Round: round, Base: rapid.Uint32Range(0, round-1).Draw(t, "base"), Steps: rapid.Uint32Range(1, 1024).Draw(t, "steps")}
		d.Tokens = rapid.Uint64Range(1, uint64(d.Steps)*p.MaxTokensPerStep).Draw(t, "tokens")
		more := d
		more.Steps++
		more.Tokens += p.MaxTokensPerStep
		if p.Claimed(d) > d.Tokens || p.Claimed(d) > p.Claimed(more) || p.Claimed(d) == 0 {
			t.Fatalf("%d of %d tokens count, and %d of %d", p.Claimed(d), d.Tokens, p.Claimed(more), more.Tokens)
		}
		if honest := uint64(d.Steps) <= uint64(p.MaxPace*p.H); honest && p.Claimed(d) != d.Tokens {
			t.Fatalf("%d of %d tokens of %d steps count", p.Claimed(d), d.Tokens, d.Steps)
		}
	})
}

// No member counts for more than twice what the others of its round do, whatever it claims, and honest ones that are alike count
// in full, in whatever order.
func TestNobodyEndsARunByClaims(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := toyParams()
		p.TokensPerStep = 512
		n := rapid.IntRange(3, 12).Draw(t, "n")
		set := make([]Delta, n)
		for i := range set {
			set[i] = Delta{Author: Author{byte(i)}, Round: 1, Steps: 24, Tokens: 24 * 512}
		}
		honest := p.CountedOf(set)
		if honest != uint64(n)*24*512 {
			t.Fatalf("%d tokens of %d honest members count", honest, n)
		}
		liar := rapid.IntRange(0, n-1).Draw(t, "liar")
		set[liar].Steps = rapid.Uint32Range(1, p.MaxSteps).Draw(t, "steps")
		set[liar].Tokens = rapid.Uint64Range(1, uint64(set[liar].Steps)*p.MaxTokensPerStep).Draw(t, "tokens")
		counts := p.Counted(set)
		for i, c := range counts {
			if i != liar && c != 24*512 || c > 2*24*512 {
				t.Fatalf("%v count beside %+v", counts, set[liar])
			}
		}
		set[0], set[n-1] = set[n-1], set[0]
		if again := p.Counted(set); again[0] != counts[n-1] || again[n-1] != counts[0] {
			t.Fatalf("%v count in another order, %v before", again, counts)
		}
	})
}
