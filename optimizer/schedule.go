package optimizer

import (
	"fmt"
	"math"
)

// warmupStart is the share of the peak at which warm-up begins. It is not 0, so
// that a learner's first steps move its parameters.
const warmupStart = 0.1

// Schedule is the learning rate over a run: a linear warm-up from a tenth of
// Peak during the first WarmupFraction of the run, then half a cosine down to
// FinalFraction of Peak (I. Loshchilov and F. Hutter, SGDR, 2017).
type Schedule struct {
	Peak           float64
	FinalFraction  float64 // of Peak, 0 to 1
	WarmupFraction float64 // of the run, 0 to 1
}

// Validate returns an error that names the first field out of range.
func (s Schedule) Validate() error {
	switch {
	case !(s.Peak > 0) || math.IsInf(s.Peak, 0):
		return fmt.Errorf("Schedule Peak is %v: use a finite learning rate above 0", s.Peak)
	case !(s.FinalFraction >= 0 && s.FinalFraction <= 1):
		return fmt.Errorf("Schedule FinalFraction is %v: use 0 to 1", s.FinalFraction)
	case !(s.WarmupFraction >= 0 && s.WarmupFraction <= 1):
		return fmt.Errorf("Schedule WarmupFraction is %v: use 0 to 1", s.WarmupFraction)
	}
	return nil
}

// At returns the learning rate when the given fraction of the run is done.
// Below 0 it is the rate of the start, above 1 the rate of the end.
func (s Schedule) At(fraction float64) float64 {
	f := min(max(fraction, 0), 1)
	if f < s.WarmupFraction {
		return s.Peak * (warmupStart + (1-warmupStart)*f/s.WarmupFraction)
	}
	if s.WarmupFraction == 1 {
		return s.Peak
	}
	cosine := math.Cos(math.Pi * (f - s.WarmupFraction) / (1 - s.WarmupFraction))
	return s.Peak * (s.FinalFraction + (1-s.FinalFraction)*(1+cosine)/2)
}
