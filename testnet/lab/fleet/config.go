package fleet

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// System is how units train together.
type System string

// Systems.
const (
	DP        System = "dp"        // data parallelism: all chips step together, and all restart for a failure
	Elastic   System = "elastic"   // data parallelism that goes on without the failed slice
	Decoupled System = "decoupled" // units step alone; a central syncer merges what they learned
	Atoll     System = "atoll"     // units step alone; each merges what all learned
)

// Systems are all of them.
var Systems = []System{DP, Elastic, Decoupled, Atoll}

// together reports whether all units step as one.
func (s System) together() bool { return s == DP || s == Elastic }

// Limits of a fleet. They keep a simulation within minutes and 2 GiB.
const (
	MaxChips    = 1e8
	MaxLearners = 1 << 16
	MaxDays     = 366
	maxEvents   = 1e7 // that a fleet may expect: failures, preemptions and their ends
)

// Config describes a fleet. Default returns one that is whole.
type Config struct {
	Chips    float64 // in all units
	Learners int     // units; of the same size
	System   System
	Days     float64
	Seed     uint64

	MTBF    time.Duration // of a chip: failures come at random, one in such a time
	Slice   int           // chips that a failure takes out
	Repair  time.Duration // until they are back
	Preempt time.Duration // mean time until a slice is taken away by its owner; 0: never
	Away    time.Duration // until another one is given instead

	Step   time.Duration // of a unit of speed 1 in which nothing fails
	Detect time.Duration // from a failure to the decision of the unit
	Shrink time.Duration // to go on without a slice
	Grow   time.Duration // to take a slice in again
	Resume time.Duration // to restart all chips, of data parallelism
	Slow   float64       // share of the steps of a slice that take SlowBy times as long
	SlowBy float64
	Speeds []float64 // of the units, in turn; empty: all 1

	Tokens    float64       // of a chip's step
	Params    float64       // of the model
	H         int           // steps between two exchanges of a part of the model, of the decoupled systems
	Rate      float64       // of a unit's link to the others, bits/s; 0: it limits nothing
	Delay     time.Duration // of that link, one way
	Partition time.Duration // in which half of the units and the others do not reach each other; in the middle of the run
}

// The fit to the published goodput, see the documentation of the package.
const (
	publishedStep = 10 * time.Second
	fitDetect     = 8 * time.Second
	fitShrink     = 10 * time.Second
	fitGrow       = 8 * time.Second  // with the two before: 26 s
	fitResume     = 78 * time.Second // with detection: 86 s
)

// year is a mean one.
const year = 8766 * time.Hour

// Default is the fleet of the published table, in eight units.
func Default() Config {
	return Config{
		Chips: 1.2e6, Learners: 8, System: Atoll, Days: 1, Seed: 1,
		MTBF: year, Slice: 1, Repair: time.Hour, Away: 10 * time.Minute,
		Step: publishedStep, Detect: fitDetect, Shrink: fitShrink, Grow: fitGrow, Resume: fitResume, SlowBy: 2,
		Tokens: 1024, Params: 10e9, H: 24, Delay: 40 * time.Millisecond,
	}
}

// Validate refuses what is no fleet, or too large a one. The error names the field as the command does.
func (c Config) Validate() error {
	switch {
	case !slices.Contains(Systems, c.System):
		return fmt.Errorf("system is %q; use %s", c.System, systemNames())
	case !(c.Chips >= 1 && c.Chips <= MaxChips) || c.Chips != math.Trunc(c.Chips):
		return fmt.Errorf("chips is %g; use a whole number from 1 to %g", c.Chips, float64(MaxChips))
	case c.Learners < 1 || c.Learners > MaxLearners || float64(c.Learners) > c.Chips:
		return fmt.Errorf("learners is %d; use 1 to %d, and no more than there are chips", c.Learners, MaxLearners)
	case !(c.Days > 0 && c.Days <= MaxDays):
		return fmt.Errorf("days is %g; use more than 0, and at most %d", c.Days, MaxDays)
	case c.Slice < 1 || float64(c.Slice) > c.unitChips():
		return fmt.Errorf("slice is %d; use 1 to the %.0f chips of a learner", c.Slice, c.unitChips())
	case c.MTBF <= 0:
		return fmt.Errorf("mtbf is %v; use a time above 0", c.MTBF)
	case c.Preempt < 0 || c.Preempt > 0 && c.Away <= 0:
		return fmt.Errorf("preempt is %v and away %v; use times above 0", c.Preempt, c.Away)
	case c.Step <= 0 || c.Repair < 0 || c.Detect < 0 || c.Shrink < 0 || c.Grow < 0 || c.Resume < 0 || c.Delay < 0 || c.Partition < 0:
		return fmt.Errorf("a time is below 0, or step is %v; use a step above 0", c.Step)
	case !(c.Slow >= 0 && c.Slow <= 1) || !(c.SlowBy >= 1 && c.SlowBy <= maxSlowBy):
		return fmt.Errorf("slow is %g, by %g; use a share from 0 to 1, by 1 to %d", c.Slow, c.SlowBy, maxSlowBy)
	case slices.ContainsFunc(c.Speeds, func(s float64) bool { return !(s > 0 && s <= maxSpeed) }):
		return fmt.Errorf("speeds are %v; use numbers above 0, at most %d", c.Speeds, maxSpeed)
	case !(c.Tokens > 0 && c.Tokens < 1e12) || !(c.Params >= 1 && c.Params <= 1e15):
		return fmt.Errorf("tokens of a step are %g and params %g; use more than 0, and params up to 1e15", c.Tokens, c.Params)
	case c.H < 1 || c.H > maxH:
		return fmt.Errorf("h is %d; use 1 to %d", c.H, maxH)
	case !(c.Rate >= 0) || math.IsInf(c.Rate, 0):
		return fmt.Errorf("link is %g bits/s; use 0 or more", c.Rate)
	case c.seconds() < c.Partition.Seconds():
		return fmt.Errorf("partition is %v; use at most the %g days of the run", c.Partition, c.Days)
	case c.expected() > maxEvents:
		return fmt.Errorf("%.2g failures are to be expected, more than the %.0g that are simulated: use fewer chips, fewer days or a longer mtbf", c.expected(), float64(maxEvents))
	}
	return nil
}

// Bounds of what nobody has, which would make numbers overflow.
const (
	maxSlowBy = 1000
	maxSpeed  = 1000
	maxH      = 1 << 20
)

func systemNames() string {
	names := make([]string, len(Systems))
	for i, s := range Systems {
		names[i] = string(s)
	}
	return strings.Join(names, ", ")
}

// seconds is how long the run takes.
func (c Config) seconds() float64 { return c.Days * 24 * 3600 }

// unitChips are the chips of a learner.
func (c Config) unitChips() float64 { return c.Chips / float64(c.Learners) }

// expected is how many slices are lost in the run, about.
func (c Config) expected() float64 {
	n := c.Chips * c.seconds() / c.MTBF.Seconds()
	if c.Preempt > 0 {
		n += c.Chips / float64(c.Slice) * c.seconds() / c.Preempt.Seconds()
	}
	return n
}

// speed is that of a learner.
func (c Config) speed(i int) float64 {
	if len(c.Speeds) == 0 {
		return 1
	}
	return c.Speeds[i%len(c.Speeds)]
}
