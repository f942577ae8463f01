package sim

import "testing"

// Rounds take three deltas of eight learners', whatever happens to nodes and links. Nodes that
// saw different ones first agree, and what learners made for the others comes back to them.
func TestFullRounds(t *testing.T) {
	if !longMode() {
		t.Skip("takes seconds: ATOLL_LONG=1 runs it")
	}
	t.Parallel()
	for seed := range uint64(3) {
		s := withFaults(t, 8, 50, "partition 0+1+2 @3s, merge @7s, kill 3 @9s, start 3 @11s")
		s.Seed, s.Deltas = seed+1, 3
		s.Params.WindowAccept, s.Params.WindowUnion = 6, 12
		r := play(t, s)
		if r.Did.Returns == 0 {
			t.Errorf("seed %d: no delta came back to its learner", s.Seed)
		}
	}
}
