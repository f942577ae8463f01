package baseline

import (
	"bytes"
	"context"
	"slices"
	"testing"

	"atoll/tensor"
)

// A stand-in touches every value in every step, and says what is final as the trainer does: from the end on.
func TestStandIn(t *testing.T) {
	s := newStandIn([]tensor.Spec{{Name: "a", Shape: []int{3, 2}}, {Name: "b", Shape: []int{5}}}, 7)
	var said []int
	res, err := s.Gradient(t.Context(), func(lo int) { said = append(said, lo) })
	if err != nil || res.Tokens != 7 || !slices.Equal(said, []int{6, 0}) || slices.Contains(s.Grads(), 0) {
		t.Errorf("%+v, %v: final from %v on, %v", res, err, said, s.Grads())
	}
	if _, err := s.Step(t.Context(), 0.1); err != nil || s.Steps() != 1 || slices.Contains(s.Params(), 0) {
		t.Errorf("%v after %d steps: %v", err, s.Steps(), s.Params())
	}
	state, err := stateOf(s)
	other := newStandIn(nil, 7)
	if err != nil || other.LoadState(bytes.NewReader(state)) != nil || other.Steps() != 1 || other.LoadState(bytes.NewReader(state[1:])) == nil {
		t.Errorf("%v, %d steps", err, other.Steps())
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Step(ctx, 0.1); err == nil || s.Steps() != 1 {
		t.Error("a step was taken after the end")
	}
}
