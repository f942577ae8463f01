package testnet

import (
	"context"
	"fmt"
	"time"

	"atoll/node/genesis"
	"atoll/node/hardware"
	"atoll/optimizer/trainer"
	"atoll/tensor"
)

// utilisation is the part of the cores that all learners together may need at
// the calibrated pace. The rest is for folding, the network, evaluation and
// whatever else the machine does; a world that needed more would measure the
// scheduler.
const utilisation = 0.8

// How long the speed of a step is measured, of processor time: enough for a
// median.
const (
	measureSteps = 5
	measureFor   = 500 * time.Millisecond
)

// Calibration is how fast the learners of a world step, and why.
type Calibration struct {
	StepMs      float64 `json:"step_ms,omitempty"` // of one step on one thread, measured in processor time
	Cores       int     `json:"cores"`
	Utilisation float64 `json:"utilisation"` // of the cores, by all learners together
	PaceMs      float64 `json:"pace_ms"`     // of a step of a learner with divisor 1
	Note        string  `json:"note"`
}

// calibrate measures a step on one thread of this process, in the best of some precisions and in processor time:
// what else the machine is doing at this moment must not slow the whole run.
func calibrate(ctx context.Context, g genesis.Genesis, among []tensor.Precision) (time.Duration, tensor.Precision, error) {
	cfg := trainer.Config{Model: g.Model, Batch: g.Batch, Seed: g.Seed, Threads: 1, Optim: g.Inner.Optim()}
	threads := tensor.Threads()
	defer tensor.SetThreads(threads)
	speed, best, err := trainer.MeasureBest(ctx, cfg, among, measureSteps, measureFor, hardware.ProcessorTime)
	if err != nil {
		return 0, best, fmt.Errorf("calibrate: %w", err)
	}
	return speed.Step, best, nil
}

// paceFor is the pace of divisor 1 at which learners with these divisors need
// the wanted part of the cores: each needs step/(pace x divisor) of one.
func paceFor(step time.Duration, divisors []float64, cores int) Calibration {
	needed := 0.0
	for _, d := range divisors {
		needed += 1 / d
	}
	pace := step.Seconds() * needed / (utilisation * float64(cores))
	c := Calibration{StepMs: ms(step), Cores: cores, Utilisation: utilisation, PaceMs: 1000 * pace}
	c.Note = "calibrated: all learners together need this part of the cores"
	if least := step.Seconds(); pace < least {
		c.PaceMs, c.Utilisation = 1000*least, needed/float64(cores)
		c.Note = "calibrated: no slower than one step on one core takes"
	}
	return c
}

// paceAsked is the calibration of a pace that was asked for.
func paceAsked(pace, step time.Duration, divisors []float64, cores int) Calibration {
	needed := 0.0
	for _, d := range divisors {
		needed += min(1, step.Seconds()/(pace.Seconds()*d))
	}
	c := Calibration{StepMs: ms(step), Cores: cores, Utilisation: needed / float64(cores), PaceMs: ms(pace)}
	switch {
	case c.Utilisation > 1:
		c.Note = "free-running: at this pace the learners need more cores than there are"
	case pace < step:
		c.Note = "free-running: a step takes longer than this pace"
	case c.Utilisation > utilisation:
		c.Note = "pace as asked for; it leaves little time for folding and the network"
	default:
		c.Note = "pace as asked for"
	}
	return c
}

// paceOfOthers is the calibration where other programs train on all nodes: how long their steps take is for them to
// say, and the built-in trainer may be too large for this machine.
func paceOfOthers(pace time.Duration, cores int) Calibration {
	return Calibration{Cores: cores, PaceMs: ms(pace), Note: "pace as asked for; other programs train"}
}

// step is how long one of a learner with divisor 1 takes, in milliseconds: longer than the pace where that does not hold.
func (c Calibration) step() float64 { return max(c.StepMs, c.PaceMs) * max(1, c.Utilisation) }

// utilisationText is empty where learners want more than there is.
func (c Calibration) utilisationText() string {
	if c.Utilisation > 1 {
		return ""
	}
	return fmt.Sprintf(", %.0f %% of %d cores", 100*c.Utilisation, c.Cores)
}

func ms(d time.Duration) float64 { return 1000 * d.Seconds() }

// pace is the least time of a step of a learner with a divisor.
func (c Calibration) pace(divisor float64) time.Duration {
	return time.Duration(c.PaceMs * divisor * float64(time.Millisecond))
}
