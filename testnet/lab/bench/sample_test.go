package bench

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"atoll/tensor"
)

func TestSummarize(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   Sample
	}{
		{nil, Sample{}},
		{[]float64{3}, Sample{3, 3, 3, 0}},
		{[]float64{4, 2}, Sample{3, 2, 4, 1.0 / 3}},
		{[]float64{9, 1, 5}, Sample{5, 1, 9, 0.8}},
		{[]float64{5, 4, 3, 2, 1}, Sample{3, 1, 5, 2.0 / 3}},
		{[]float64{2, 2, 2, 100}, Sample{2, 2, 100, 12.25}}, // one bad moment moves the spread, not the median
		{[]float64{0, 0}, Sample{}},
	} {
		got := Summarize(c.values)
		if got.Median != c.want.Median || got.Min != c.want.Min || got.Max != c.want.Max || math.Abs(got.Spread-c.want.Spread) > 1e-12 {
			t.Errorf("%v: %+v, want %+v", c.values, got, c.want)
		}
	}
	values := []float64{3, 1, 2}
	if Summarize(values); values[0] != 3 {
		t.Error("the values were sorted in place")
	}
}

func TestGrow(t *testing.T) {
	for _, c := range []struct {
		calls int
		took  time.Duration
		want  int
	}{
		{1, partTime / 2, 3},          // 2.4, rounded up
		{1, 0, 10},                    // no more than tenfold at once
		{100, partTime * 9 / 10, 134}, // always more
		{maxCalls, 1, maxCalls},
	} {
		if got := grow(c.calls, c.took); got != c.want {
			t.Errorf("%d calls in %v: %d, want %d", c.calls, c.took, got, c.want)
		}
	}
}

func TestCollect(t *testing.T) {
	values := []float64{1, 2, 6}
	next := 0
	s, err := Meter{}.collect(t.Context(), func() (float64, error) {
		next++
		return values[next-1], nil
	})
	if err != nil || s.Median != 2 || next != leastParts {
		t.Errorf("%+v after %d parts, %v", s, next, err)
	}
	broken := errors.New("broken")
	if _, err := (Meter{}).collect(t.Context(), func() (float64, error) { return 0, broken }); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
	if _, err := (Meter{}).repeat(t.Context(), func() error { return broken }); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
}

// What is alternated is called in turn, and each ratio is a ratio of
// neighbours.
func TestAlternate(t *testing.T) {
	order := ""
	op := func(name string) func() error {
		return func() error {
			if !strings.HasSuffix(order, name) {
				order += name
			}
			return nil
		}
	}
	a, b, ratio, err := Meter{}.alternate(t.Context(), op("a"), op("b"))
	if want := "ab" + "ababab"; err != nil || order != want { // to warm up, then the parts
		t.Errorf("called %s, want %s, %v", order, want, err)
	}
	if a.Min <= 0 || b.Min <= 0 || ratio.Min <= 0 {
		t.Errorf("%+v, %+v, ratio %+v", a, b, ratio)
	}
	broken := errors.New("broken")
	if _, _, _, err := (Meter{}).alternate(t.Context(), func() error { return nil }, func() error { return broken }); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
}

// However long a thing is to be measured, the end of the context ends it.
func TestCollectEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	m := Meter{For: time.Hour}
	parts := 0
	_, err := m.collect(ctx, func() (float64, error) {
		if parts++; parts == 5 {
			cancel()
		}
		return 1, nil
	})
	if !errors.Is(err, context.Canceled) || parts != 5 {
		t.Errorf("%v after %d parts", err, parts)
	}
	if _, err := MeasurePeak(ctx, 1, tensor.F32); !errors.Is(err, context.Canceled) {
		t.Errorf("peak: %v", err)
	}
}
