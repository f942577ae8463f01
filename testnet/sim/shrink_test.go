package sim

import (
	"atoll/testnet/fault"
	"reflect"
	"testing"
)

// A failure that one fault causes comes down to that fault, however many others
// there are, and to as few nodes as it takes.
func TestShrink(t *testing.T) {
	t.Parallel()
	s := withFaults(t, 5, 30, "slow 1 x2 @1s, skew 1 by 5ms @2s, kill 2 @3s, join @4s, skew 3 by 7ms @4s, slow 2 x2 @5s")
	s.LimitMs = s.CalmMs + 200 // nobody is done by then
	small, r := Shrink(s, 60)
	if r.Check != "converges" || len(small.Faults) != 0 || len(small.Founders) != 1 {
		t.Errorf("%d faults and %d founders are left: %v", len(small.Faults), len(small.Founders), r.Err)
	}
}

// A scenario that passes stays as it is.
func TestShrinkLeavesWhatPasses(t *testing.T) {
	t.Parallel()
	s := calmScenario(2, 100)
	small, r := Shrink(s, 10)
	if r.Err != nil || !reflect.DeepEqual(small, s) {
		t.Errorf("%v, %+v", r.Err, small)
	}
}

// Faults go on meaning the same nodes when a founder is left out.
func TestFaultWithout(t *testing.T) {
	f := Fault{Kind: fault.Cut, Node: 4, Others: []int{0, 2, 3}}
	if got := f.without(2); got.Node != 3 || !reflect.DeepEqual(got.Others, []int{0, 2}) {
		t.Errorf("got %+v", got)
	}
	if got := f.without(4); got.Node != -1 {
		t.Errorf("got %+v", got)
	}
}
