package optimizer

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

var recipe = Schedule{Peak: 2e-3, FinalFraction: 0.1, WarmupFraction: 0.03}

func TestScheduleAt(t *testing.T) {
	for _, tc := range []struct {
		schedule       Schedule
		fraction, want float64
	}{
		{recipe, 0, 0.1 * 2e-3},
		{recipe, -1, 0.1 * 2e-3},
		{recipe, 0.015, 0.55 * 2e-3},
		{recipe, 0.03, 2e-3},
		{recipe, 0.515, 0.55 * 2e-3}, // halfway down
		{recipe, 1, 0.1 * 2e-3},
		{recipe, 7, 0.1 * 2e-3},
		{Schedule{Peak: 1, FinalFraction: 0}, 0, 1},
		{Schedule{Peak: 1, FinalFraction: 0}, 1, 0},
		{Schedule{Peak: 1, WarmupFraction: 1}, 1, 1},
		{Schedule{Peak: 1, FinalFraction: 1, WarmupFraction: 0.5}, 0.75, 1},
	} {
		if got := tc.schedule.At(tc.fraction); math.Abs(got-tc.want) > 1e-15 {
			t.Errorf("%+v at %v is %v, want %v", tc.schedule, tc.fraction, got, tc.want)
		}
	}
}

func TestScheduleRisesThenFalls(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.Float64Range(0, 1).Draw(t, "a")
		b := rapid.Float64Range(a, 1).Draw(t, "b")
		early, late := recipe.At(a), recipe.At(b)
		if b <= recipe.WarmupFraction && late < early {
			t.Fatalf("warm-up falls from %v at %v to %v at %v", early, a, late, b)
		}
		if a >= recipe.WarmupFraction && late > early {
			t.Fatalf("decay rises from %v at %v to %v at %v", early, a, late, b)
		}
		if early < 0.1*recipe.Peak*(1-1e-12) || early > recipe.Peak {
			t.Fatalf("rate is %v at %v", early, a)
		}
	})
}

func TestScheduleValidate(t *testing.T) {
	if err := recipe.Validate(); err != nil {
		t.Error(err)
	}
	for field, s := range map[string]Schedule{
		"Peak":           {},
		"FinalFraction":  {Peak: 1, FinalFraction: 2},
		"WarmupFraction": {Peak: 1, WarmupFraction: math.NaN()},
	} {
		if err := s.Validate(); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: error %v", field, err)
		}
	}
}
