package bench

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"
)

// Sample sums up repeated measurements of one thing.
type Sample struct {
	Median, Min, Max float64
	Spread           float64 // the middle half of the values, from end to end, over the median
}

// Summarize returns the sample of some values. The median of an even number is the mean of
// the middle two; quartiles lie between values likewise.
func Summarize(values []float64) Sample {
	if len(values) == 0 {
		return Sample{}
	}
	sorted := slices.Sorted(slices.Values(values))
	s := Sample{Median: quantile(sorted, 0.5), Min: sorted[0], Max: sorted[len(sorted)-1]}
	if s.Median != 0 {
		s.Spread = (quantile(sorted, 0.75) - quantile(sorted, 0.25)) / s.Median
	}
	return s
}

// quantile interpolates between the two values around place q of a sorted slice.
func quantile(sorted []float64, q float64) float64 {
	at := q * float64(len(sorted)-1)
	low := int(at)
	high := min(low+1, len(sorted)-1)
	return sorted[low] + (at-float64(low))*(sorted[high]-sorted[low])
}

// Meter says how measurements are made.
type Meter struct {
	// For is how long one thing is measured at least, its warm-up not counted.
	For time.Duration
	// Note hears what is measured next; nil is nobody.
	Note func(what string)
}

const (
	// leastParts is the least number of timed parts, so that there is a median.
	leastParts = 3
	// partTime is how long a part takes at least: far above what a clock resolves, and
	// short enough for many of them between two interruptions by other work.
	partTime = time.Millisecond
	// maxCalls bounds the calls of a part, for operations that a clock does not see.
	maxCalls = 1 << 20
)

func (m Meter) report(what string) {
	if m.Note != nil {
		m.Note(what)
	}
}

// on names a number of threads.
func on(threads int) string {
	if threads == 1 {
		return "1 thread"
	}
	return fmt.Sprintf("%d threads", threads)
}

// repeat returns the seconds that a call of op takes.
func (m Meter) repeat(ctx context.Context, op func() error) (Sample, error) {
	calls, err := callsFor(op)
	if err != nil {
		return Sample{}, err
	}
	return m.collect(ctx, func() (float64, error) {
		took, err := timed(calls, op)
		return took.Seconds() / float64(calls), err
	})
}

// alternate returns the seconds that calls of two operations take, in turn, and the ratio of neighbours:
// other work on the machine meets both.
func (m Meter) alternate(ctx context.Context, first, second func() error) (a, b, ratio Sample, err error) {
	var each [2][]float64
	var calls [2]int
	ops := []func() error{first, second}
	for i, op := range ops {
		if calls[i], err = callsFor(op); err != nil {
			return a, b, ratio, err
		}
	}
	ratio, err = m.collect(ctx, func() (float64, error) {
		for i, op := range ops {
			took, err := timed(calls[i], op)
			if err != nil {
				return 0, err
			}
			each[i] = append(each[i], took.Seconds()/float64(calls[i]))
		}
		n := len(each[0]) - 1
		return each[0][n] / each[1][n], nil
	})
	return Summarize(each[0]), Summarize(each[1]), ratio, err
}

// inTurn makes both measurements of round i. Which begins changes with it: neither always has the
// machine as the other left it.
func inTurn(i int, first, second func() error) error {
	if i%2 == 1 {
		first, second = second, first
	}
	if err := first(); err != nil {
		return err
	}
	return second()
}

// callsFor warms up and finds out how many calls of op make a part.
func callsFor(op func() error) (calls int, err error) {
	calls = 1
	for {
		took, err := timed(calls, op)
		if err != nil || took >= partTime || calls >= maxCalls {
			return calls, err
		}
		calls = grow(calls, took)
	}
}

// grow is the number of calls to try after one that took too short a time.
func grow(calls int, took time.Duration) int {
	wanted := 1.2 * float64(calls) * float64(partTime) / float64(max(took, 1))
	return int(math.Ceil(min(wanted, 10*float64(calls), maxCalls)))
}

func timed(calls int, op func() error) (time.Duration, error) {
	start := time.Now()
	for range calls {
		if err := op(); err != nil {
			return 0, err
		}
	}
	return time.Since(start), nil
}

// collect samples part, which measures something once, until it has enough of it or ctx
// ends.
func (m Meter) collect(ctx context.Context, part func() (float64, error)) (Sample, error) {
	var values []float64
	for start := time.Now(); len(values) < leastParts || time.Since(start) < m.For; {
		if err := ctx.Err(); err != nil {
			return Sample{}, err
		}
		value, err := part()
		if err != nil {
			return Sample{}, cmp.Or(ctx.Err(), err)
		}
		values = append(values, value)
	}
	return Summarize(values), nil
}
