package labnode

import (
	"context"
	"strings"
	"testing"

	"atoll/optimizer/trainer"
	"atoll/testnet/controls"
)

// rate is a trainer that notes the learning rate of its last step.
type rate struct {
	trainer.Trainer
	last float64
}

func (r *rate) Step(_ context.Context, lr float64) (trainer.StepResult, error) {
	r.last = lr
	return trainer.StepResult{}, nil
}

func TestLiarInvertsTheGradient(t *testing.T) {
	inner := &rate{}
	l := liar{Trainer: inner}
	for _, want := range []float64{0.5, -0.5, 0.5} {
		l.lies.Store(want < 0)
		if _, err := l.Step(t.Context(), 0.5); err != nil || inner.last != want {
			t.Errorf("a rate of %v, %v; want %v", inner.last, err, want)
		}
	}
	if err := (&lab{}).corrupt(controls.BitFlip{Bit: controls.MantissaBits}); err == nil || !strings.Contains(err.Error(), "use 0 to 22") {
		t.Errorf("error %v", err)
	}
}
