package sim

import (
	"testing"

	"atoll/tensor/codec"
)

// Deltas that carry a few values, and learners that hold the rest back, keep every promise through crashes
// and a partition; and are worth something.
func TestSparseDeltas(t *testing.T) {
	t.Parallel()
	s := withFaults(t, 4, 80, "crash 1 @4s, restart 1 @6s, partition 0+1 @8s, heal @13s")
	s.Params.Codec = codec.Sparse
	r := play(t, s)
	if !(r.Loss < r.LossStart/10) {
		t.Errorf("loss %v, at first %v", r.Loss, r.LossStart)
	}
}

// What is held is progress towards an optimum near which a learner comes in each round, from the anchor again,
// until it is sent. Little enough of it adds up that the run does not diverge.
func TestHeldProgressDoesNotAddUp(t *testing.T) {
	t.Parallel()
	s := Explore(8)
	s.Params.Codec = codec.Sparse
	play(t, s) // which fails where a run learns less than it must
}
