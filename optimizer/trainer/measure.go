package trainer

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"atoll/optimizer/trainer/corpus"
)

// Speed is what a machine can do with one config.
type Speed struct {
	Steps           int           // steps that were timed
	Step            time.Duration // median time of one
	TokensPerSecond float64       // at the median
}

// measureRate is a learning rate at which a few steps on noise change little.
const measureRate = 1e-4

// A measurement of so many steps and so long is good enough to plan a batch.
const (
	MeasureSteps = 2
	MeasureFor   = 300 * time.Millisecond
)

// Measure trains on random bytes with a trainer of its own and times the steps:
// at least the given number, 1 or more, and for at least the given time. One
// step goes before, because it touches memory for the first time. The clock
// is now.
func Measure(ctx context.Context, cfg Config, steps int, atLeast time.Duration, now func() time.Time) (Speed, error) {
	trainer, err := New(cfg, Noise(cfg.Model.Context))
	if err != nil {
		return Speed{}, fmt.Errorf("measure speed: %w", err)
	}
	if _, err := trainer.Step(ctx, measureRate); err != nil {
		return Speed{}, fmt.Errorf("measure speed: %w", err)
	}
	var times []time.Duration
	start := now()
	for last := start; len(times) < max(steps, 1) || last.Sub(start) < atLeast; {
		if _, err := trainer.Step(ctx, measureRate); err != nil {
			return Speed{}, fmt.Errorf("measure speed: %w", err)
		}
		end := now()
		times = append(times, end.Sub(last))
		last = end
	}
	return speedOf(times, cfg.Batch*cfg.Model.Context), nil
}

// speedOf sums up the times of steps of the given number of tokens.
func speedOf(times []time.Duration, tokens int) Speed {
	slices.Sort(times)
	median := times[len(times)/2]
	return Speed{Steps: len(times), Step: median, TokensPerSecond: float64(tokens) / median.Seconds()}
}

// Noise is a corpus of random bytes that fits the context. Speed does not
// depend on what the text says.
func Noise(context int) *corpus.Corpus {
	b := make([]byte, max(1<<16, 10*(context+1)))
	rand.NewChaCha8([32]byte{}).Read(b)
	return corpus.New("noise", b)
}
