package sim

import (
	"testing"

	"atoll/tensor/codec"
)

// calmScenario is a world of n learners without faults, in which anybody may speak: tests do so with keys that nobody invited.
func calmScenario(n, steps int) Scenario {
	return Scenario{
		Seed: 1, Open: true, Params: Params(3, steps, codec.Int4), Founders: make([]NodeSpec, n),
		Link: Link{LatencyMs: 10, JitterMs: 5}, StepMs: 100, LimitMs: 400_000,
	}
}

// play runs a scenario that must keep every promise.
func play(t *testing.T, s Scenario) Result {
	t.Helper()
	r, err := Run(s)
	if err != nil {
		t.Fatal(err)
	}
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	return r
}

func TestFourLearnersReachTheBudget(t *testing.T) {
	t.Parallel()
	r := play(t, calmScenario(4, 1000))
	if r.Rounds < 20 {
		t.Errorf("only %d rounds", r.Rounds)
	}
}
