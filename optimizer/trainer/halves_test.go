package trainer

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"
)

// TestHalvesAreAStep: Gradient and Update together have the bits of Step, and what
// Gradient says is final does not change any more, whatever the micro-batch.
func TestHalvesAreAStep(t *testing.T) { eachOptimizer(t, halvesAreAStep) }

func halvesAreAStep(t *testing.T, cfg Config) {
	for _, micro := range []int{0, 2, 1} {
		cfg.MicroBatch = micro
		whole, halves := newTrainer(t, cfg), newTrainer(t, cfg)
		for range 3 {
			want, err := whole.Step(context.Background(), 0.01)
			if err != nil {
				t.Fatal(err)
			}
			var los []int
			var seen [][]float32
			got, err := halves.Gradient(context.Background(), func(lo int) {
				los = append(los, lo)
				seen = append(seen, slices.Clone(halves.Grads()[lo:]))
			})
			if err != nil || got != want {
				t.Fatalf("micro-batch %d: %+v, %v; Step says %+v", micro, got, err, want)
			}
			if len(los) == 0 || los[len(los)-1] != 0 {
				t.Errorf("micro-batch %d: told %v, want offsets that end with 0", micro, los)
			}
			for i, lo := range los {
				if !slices.Equal(seen[i], halves.Grads()[lo:]) {
					t.Errorf("micro-batch %d: gradients at %d and beyond changed after they were said to be final", micro, lo)
				}
			}
			if err := halves.Update(0.01); err != nil {
				t.Fatal(err)
			}
		}
		if !slices.Equal(whole.Params(), halves.Params()) || whole.Steps() != halves.Steps() {
			t.Errorf("micro-batch %d: the halves of three steps lead elsewhere", micro)
		}
	}
}

// TestUpdateRefusesWhatIsNotFinite and changes nothing.
func TestUpdateRefusesWhatIsNotFinite(t *testing.T) {
	b := newTrainer(t, miniConfig())
	before := slices.Clone(b.Params())
	if _, err := b.Gradient(context.Background(), nil); err != nil {
		t.Fatal(err)
	}
	b.Grads()[5] = float32(math.NaN())
	if err := b.Update(0.01); !errors.Is(err, ErrDiverged) {
		t.Errorf("error %v, want ErrDiverged", err)
	}
	if b.Steps() != 0 || !slices.Equal(before, b.Params()) {
		t.Error("a refused update changed something")
	}
}
