package trainer

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// clock returns a time source that is the given times further at each call.
func clock(advances ...time.Duration) func() time.Time {
	at := time.Unix(0, 0)
	return func() time.Time {
		if len(advances) > 0 {
			at, advances = at.Add(advances[0]), advances[1:]
		}
		return at
	}
}

func TestMeasure(t *testing.T) {
	const ms = time.Millisecond
	for _, tc := range []struct {
		name    string
		steps   int
		atLeast time.Duration
		taken   []time.Duration // by the steps that are timed
		want    Speed
	}{
		{"by steps", 3, 0, []time.Duration{40 * ms, 10 * ms, 50 * ms, ms}, Speed{3, 40 * ms, 1600}},
		{"by time", 0, 101 * ms, []time.Duration{64 * ms, 10 * ms, 20 * ms, 70 * ms, ms}, Speed{4, 64 * ms, 1000}},
		{"at least one", 0, 0, []time.Duration{40 * ms, ms}, Speed{1, 40 * ms, 1600}},
	} {
		started := []time.Duration{0}
		now := clock(append(started, tc.taken...)...)
		got, err := Measure(context.Background(), miniConfig(), tc.steps, tc.atLeast, now)
		if err != nil || got != tc.want {
			t.Errorf("%s: %+v, %v; want %+v", tc.name, got, err, tc.want)
		}
	}
}

func TestMeasureErrors(t *testing.T) {
	bad := miniConfig()
	bad.Batch = 0
	if _, err := Measure(context.Background(), bad, 1, 0, clock()); err == nil || !strings.Contains(err.Error(), "Batch is 0") {
		t.Errorf("error %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Measure(ctx, miniConfig(), 1, 0, clock()); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}
