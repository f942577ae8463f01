package sim

import (
	"os"
	"strconv"
	"testing"
	"time"

	"atoll/tensor/codec"
)

// calm is a world of n learners without faults.
func calmScenario(n, steps int) Scenario {
	return Scenario{
		Seed: 1, Params: Params(3, steps, codec.Int4), Founders: make([]NodeSpec, n),
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

func TestExploreSome(t *testing.T) {
	from, _ := strconv.Atoi(os.Getenv("FROM"))
	to, _ := strconv.Atoi(os.Getenv("TO"))
	for seed := from; seed < to; seed++ {
		began := time.Now()
		s := Explore(uint64(seed))
		t.Logf("seed %d founders %d faults %d calm %d", seed, len(s.Founders), len(s.Faults), s.CalmMs)
		r, err := Run(s)
		if err != nil {
			t.Fatal(err)
		}
		e := r.Error
		if len(e) > 600 { e = e[:600] }
		t.Logf("   %v nodes %d rounds %d virtual %d events %d agreed %d %s", time.Since(began).Round(time.Millisecond), r.Nodes, r.Rounds, r.VirtualMs, r.Counts.Events, r.AgreedIn, e)
	}
}
