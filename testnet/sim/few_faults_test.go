package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"atoll/optimizer/outer"
)

// fewFault is what a broken machine sends in place of its progress q on a fragment, nil where it sends nothing.
type fewFault func(l *fewLearner, f outer.Fragment, q []float32) []float32

// fewFaults are those of machines, not of people: what breaks memory, clocks, disks and programs.
var fewFaults = []struct {
	name  string
	fault fewFault
}{
	{name: "zeros", fault: func(_ *fewLearner, _ outer.Fragment, q []float32) []float32 { return make([]float32, len(q)) }},
	{name: "x0.001", fault: scaling(0.001)},
	{name: "x1000", fault: scaling(1000)},
	{name: "flip", fault: scaling(-1)},
	{name: "noise", fault: func(l *fewLearner, _ outer.Fragment, q []float32) []float32 { return noise(l.rng, len(q), norm(q)) }},
	{name: "one direction", fault: oneDirection},
	{name: "permuted", fault: permuted},
	{name: "ten rounds stale", fault: stale},
	{name: "one fragment", fault: oneFragment},
}

func scaling(by float64) fewFault {
	return func(_ *fewLearner, _ outer.Fragment, q []float32) []float32 { return scaled(q, by) }
}

func scaled(q []float32, by float64) []float32 {
	out := make([]float32, len(q))
	for i, x := range q {
		out[i] = float32(min(max(float64(x)*by, -1e37), 1e37))
	}
	return out
}

func noise(rng *rand.Rand, n int, size float64) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(rng.NormFloat64())
	}
	return scaled(v, size/norm(v))
}

func oneDirection(l *fewLearner, _ outer.Fragment, q []float32) []float32 {
	if l.fixed[l.fragment] == nil {
		l.fixed[l.fragment] = noise(l.rng, len(q), 1)
	}
	return scaled(l.fixed[l.fragment], norm(q))
}

// permuted has the values of each tensor in the wrong order.
func permuted(_ *fewLearner, f outer.Fragment, q []float32) []float32 {
	out, at := slices.Clone(q), 0
	for _, t := range f.Tensors {
		slices.Reverse(out[at : at+t.Len])
		at += t.Len
	}
	return out
}

// stale sends what it made ten rounds before, and its first progress until then.
func stale(l *fewLearner, _ outer.Fragment, q []float32) []float32 {
	sent := append(l.sent[l.fragment], slices.Clone(q))
	l.sent[l.fragment] = sent
	return sent[max(0, len(sent)-11)]
}

func oneFragment(l *fewLearner, _ outer.Fragment, q []float32) []float32 {
	if l.fragment != 0 {
		return nil
	}
	return q
}

// honest are n learners that are alike.
func honest(n int) []fewMember { return make([]fewMember, n) }

// withFault are n learners of which the last one is broken.
func withFault(n int, fault fewFault, claims float64) []fewMember {
	return append(honest(n-1), fewMember{fault: fault, claims: claims})
}

// fewBar is how many times the bits of the run without the broken machine are allowed.
const fewBar = 1.02

// One broken machine among few costs the others little: by folds alone from three on. No fold can tell which of two is right. There
// only what says nothing or claims too much is held to the bar, and the rest is for the self-check. Play some rows by their
// names: ATOLL_LONG=1 go test -run 'OneBroken/n=2/flip' -v ./testnet/sim.
func TestOneBrokenOfFew(t *testing.T) {
	if !longMode() {
		t.Skip("takes an hour: ATOLL_LONG=1 runs it")
	}
	for _, n := range []int{2, 3, 4, 8} {
		t.Run(fmt.Sprintf("n=%d", n), func(t *testing.T) { brokenOf(t, n) })
	}
}

// A machine of zeros beside one leaves it where it would be alone, and one that flips its sign and claims eight times as much leaves
// two where they would be without it.
func TestBrokenOfFewAtFirst(t *testing.T) {
	const rounds = 4
	play := func(members []fewMember) *fewRun {
		r := newFewRun(t, members, 1)
		r.playOn(t, rounds)
		return r
	}
	for i, f := range fewFaults[:2] {
		if !taken(i, 2) {
			continue
		}
		alone, beside := play(honest(1)), play(withFault(2, f.fault, 8))
		for p := range alone.plan {
			if !slices.Equal(alone.tips[p].Global, beside.tips[p].Global) {
				t.Errorf("%s: fragment %d is not where it would be alone", f.name, p)
			}
		}
	}
	without, flipped := play(honest(2)).result(t), play(withFault(3, scaling(-1), 8)).result(t)
	if flipped.bits > fewBar*without.bits || flipped.counted > 4.0/3 || flipped.trust > 0.1 {
		t.Errorf("a flipped sign: %v; without it %v", flipped, without)
	}
}

func brokenOf(t *testing.T, n int) {
	without := playFew(t, fewSeeds, honest(n-1)...)
	t.Logf("n=%d without it: %v", n, without)
	row := func(name string, fault fewFault, claims float64) {
		t.Run(fmt.Sprintf("%s/claims=%g", name, claims), func(t *testing.T) {
			got := playFew(t, fewSeeds, withFault(n, fault, claims)...)
			t.Logf("n=%d %s x%g: %v, %.3f of that without it", n, name, claims, got, got.bits/without.bits)
			if got.ended {
				t.Error("the run ends early")
			}
			if (n > 2 || !unjudgedOfTwo(name)) && !(got.bits <= fewBar*without.bits) {
				t.Errorf("%.3f bits; %.3f without it", got.bits, without.bits)
			}
		})
	}
	row("honest", nil, 1)
	row("honest", nil, 8)
	row("honest", nil, 64)
	for _, f := range fewFaults {
		row(f.name, f.fault, 1)
		row(f.name, f.fault, 8)
	}
}

// unjudgedOfTwo says that a fold of two has no means against a fault.
func unjudgedOfTwo(name string) bool {
	return !slices.Contains([]string{"honest", "zeros", "x0.001", "one fragment"}, name)
}
