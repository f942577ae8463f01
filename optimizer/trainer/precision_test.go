package trainer

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"atoll/tensor"
)

func TestPrecisions(t *testing.T) {
	fast, why := tensor.FastBF16()
	both, narrow, note := []tensor.Precision{tensor.F32, tensor.BF16}, []tensor.Precision{tensor.BF16}, ""
	if !fast {
		both, narrow, note = []tensor.Precision{tensor.F32}, []tensor.Precision{tensor.F32}, why
	}
	for _, c := range []struct {
		name string
		want []tensor.Precision
		note string
	}{{"", both, ""}, {"auto", both, ""}, {"f32", []tensor.Precision{tensor.F32}, ""}, {"bf16", narrow, note}} {
		got, said, err := Precisions(c.name)
		if err != nil || !slices.Equal(got, c.want) || !strings.HasSuffix(said, c.note) || c.note == "" && said != "" {
			t.Errorf("%q: %v, %q, %v; want %v, %q", c.name, got, said, err, c.want, c.note)
		}
	}
	if _, _, err := Precisions("fp8"); err == nil || !strings.Contains(err.Error(), `"fp8": use f32, bf16, or auto`) {
		t.Errorf("error %v", err)
	}
}

// In BF16 steps take a time of their own: the second precision wins if it is faster by more than a quarter.
func TestMeasureBest(t *testing.T) {
	among := []tensor.Precision{tensor.F32, tensor.BF16}
	for _, c := range []struct {
		first, second time.Duration
		want          tensor.Precision
	}{{10, 9, tensor.F32}, {10, 7, tensor.BF16}, {10, 30, tensor.F32}, {100, 81, tensor.F32}, {100, 79, tensor.BF16}} {
		clock, looks := time.Time{}, 0
		now := func() time.Time { // three looks for two steps of a precision
			if looks++; looks <= 3 {
				clock = clock.Add(c.first * time.Millisecond)
			} else {
				clock = clock.Add(c.second * time.Millisecond)
			}
			return clock
		}
		speed, got, err := MeasureBest(context.Background(), miniConfig(), among, 2, 0, now)
		want := min(c.first, c.second)
		if c.want == tensor.F32 {
			want = c.first
		}
		if err != nil || got != c.want || speed.Step != want*time.Millisecond {
			t.Errorf("%v and %v: %v in %v, %v; want %v", c.first, c.second, speed.Step, got, err, c.want)
		}
	}
}
