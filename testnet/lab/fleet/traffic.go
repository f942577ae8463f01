package fleet

import "math"

// What was measured of atoll: testnet/lab/RESULTS.md, "Codecs, folds, the outer loop", and the settings of its runs.
const (
	int4Bytes        = 0.43    // of a value in a delta, entropy-coded
	foldValue        = 3e-9    // seconds of a core for a value of a fold
	foldDelta        = 1.2e-9  // and for that value in each of its deltas
	learnersPerRound = 16      // deltas of a round at most: larger runs take turns
	windowRounds     = 256     // rounds of a fragment for which halves that were parted still fold what the other one made
	bf16Bytes        = 2.0     // of a value that the other systems exchange
	hidden           = 3.0 / 5 // of a step, beside which an all-reduce runs: about the backward pass
)

// traffic is what units exchange.
type traffic struct {
	sweep   float64 // seconds in which each part of the model is exchanged once
	unit    float64 // bytes that a unit receives in that time; it sends about as many
	busiest float64 // bytes that the busiest place receives in that time
	cores   float64 // of the busiest place, busy with merging
}

// stepOf is the time of a step of a unit of all or one learner: that of its slowest part, and of what it waits for.
func (c Config) stepOf(chips, speed float64) float64 {
	slices := chips / float64(c.Slice)
	slow := 1 - math.Pow(1-c.Slow, slices)
	step := c.Step.Seconds() / speed * (1 + slow*(c.SlowBy-1))
	if c.System.together() {
		step += max(0, c.allReduce()-hidden*step)
	}
	return step
}

// reduced are the bytes that a learner receives in a ring all-reduce.
func (c Config) reduced() float64 {
	n := float64(c.Learners)
	return 2 * (n - 1) / n * bf16Bytes * c.Params
}

// allReduce is how long one takes over the learners' links.
func (c Config) allReduce() float64 {
	if c.Rate == 0 {
		return 0
	}
	return 8*c.reduced()/c.Rate + 2*float64(c.Learners-1)*c.Delay.Seconds()
}

// traffic of a fleet whose steps take so long. Decoupled units never wait for a link: what does not pass in H steps
// takes longer.
func (c Config) traffic(step float64) (t traffic) {
	merged := float64(c.Learners)
	switch c.System {
	case DP, Elastic:
		t = traffic{sweep: step, unit: c.reduced(), busiest: c.reduced()}
		return t
	case Decoupled:
		t.unit = bf16Bytes * c.Params
		t.busiest = merged * t.unit
	case Atoll:
		merged = min(merged, learnersPerRound)
		t.unit = min(merged, float64(c.Learners-1)) * int4Bytes * c.Params
		t.busiest = t.unit
	}
	t.sweep = float64(c.H) * step
	if c.Rate > 0 {
		t.sweep = max(t.sweep, 8*t.unit/c.Rate)
	}
	t.cores = c.Params * (foldValue + merged*foldDelta) / t.sweep
	return t
}
