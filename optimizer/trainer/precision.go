package trainer

import (
	"context"
	"fmt"
	"time"

	"atoll/tensor"
)

// AutoPrecision is the name of whichever precision is faster; "" means it too.
const AutoPrecision = "auto"

// bf16Gain is how much faster steps in bfloat16 must be where nobody asked for them: what measurements of a busy machine differ
// by is no reason.
const bf16Gain = 1.25

// Precisions returns those that a name allows on this machine: "f32", "bf16" or "auto". The note says why bf16 is not
// among them although it was asked for: without instructions for it nothing would be gained.
func Precisions(name string) (allowed []tensor.Precision, note string, err error) {
	fast, why := tensor.FastBF16()
	if name == "" || name == AutoPrecision {
		if fast {
			return []tensor.Precision{tensor.F32, tensor.BF16}, "", nil
		}
		return []tensor.Precision{tensor.F32}, "", nil
	}
	var p tensor.Precision
	if err := p.UnmarshalText([]byte(name)); err != nil {
		return nil, "", fmt.Errorf("precision %q: use f32, bf16, or %s for the faster", name, AutoPrecision)
	}
	if p == tensor.BF16 && !fast {
		return []tensor.Precision{tensor.F32}, "trains in f32 instead of bf16: " + why, nil
	}
	return []tensor.Precision{p}, "", nil
}

// MeasureBest is Measure in each of the precisions, and returns the best with its speed. BF16 must be faster by a
// quarter.
func MeasureBest(ctx context.Context, cfg Config, among []tensor.Precision, steps int, atLeast time.Duration, now func() time.Time) (best Speed, chosen tensor.Precision, err error) {
	for i, p := range among {
		cfg.Precision = p
		speed, err := Measure(ctx, cfg, steps, atLeast, now)
		if err != nil {
			return Speed{}, p, err
		}
		if i == 0 || speed.TokensPerSecond > bf16Gain*best.TokensPerSecond {
			best, chosen = speed, p
		}
	}
	return best, chosen, nil
}
