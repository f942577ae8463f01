package fleet

import (
	"cmp"
	"math/rand/v2"
	"slices"
)

// Result is what a fleet came to.
type Result struct {
	System   System  `json:"system"`
	Chips    float64 `json:"chips"`
	Learners int     `json:"learners"`
	Days     float64 `json:"days"`
	Seed     uint64  `json:"seed"`

	Goodput float64 `json:"goodput"`     // tokens, of those if nothing failed, was slow or waited: 0 to 1
	Uptime  float64 `json:"uptime"`      // share of the time in which at least one learner made progress: 0 to 1
	Tokens  float64 `json:"tokens"`      // that the model learned from
	Lost    float64 `json:"lost_tokens"` // that were trained, and did not reach the model
	Losses  int     `json:"losses"`      // slices that failed or were taken away
	Pauses  int     `json:"pauses"`      // of learners

	Bytes       float64 `json:"bytes"`        // that all learners received from each other
	ExchangeS   float64 `json:"exchange_s"`   // seconds in which each part of the model is exchanged once
	LinkBits    float64 `json:"link_bits"`    // bits/s that a learner receives, as it goes
	BusiestBits float64 `json:"busiest_bits"` // bits/s that the busiest place receives
	MergeCores  float64 `json:"merge_cores"`  // of that place, busy with merging
}

// Run simulates a fleet. The same Config gives the same Result.
func Run(c Config) (Result, error) {
	if err := c.Validate(); err != nil {
		return Result{}, err
	}
	end := c.seconds()
	r := Result{System: c.System, Chips: c.Chips, Learners: c.Learners, Days: c.Days, Seed: c.Seed}
	units := c.units()
	var ideal, slowest float64
	var pauses []pause
	for _, u := range units {
		u.run(end)
		r.Losses += u.failures
		r.Tokens += u.done * c.Tokens
		slowest = max(slowest, u.step)
		pauses = append(pauses, u.pauses...)
	}
	for i := range c.Learners {
		ideal += c.unitChips() * c.Tokens * end * c.speed(i) / c.Step.Seconds()
	}
	r.Pauses = len(pauses)
	if c.System == DP {
		from, until := c.partition()
		pauses = append(pauses, pause{from, until})
	}
	t := c.traffic(slowest)
	r.Lost = c.cutOff(units, t)
	r.Tokens -= r.Lost
	r.Goodput, r.Uptime = r.Tokens/ideal, 1-allPause(pauses, len(units))/end
	r.ExchangeS, r.LinkBits, r.BusiestBits, r.MergeCores = t.sweep, 8*t.unit/t.sweep, 8*t.busiest/t.sweep, t.cores
	r.Bytes = t.unit * float64(c.Learners) * end / t.sweep
	if c.System.together() {
		r.Bytes *= r.Goodput // a pause exchanges nothing
	}
	return r, nil
}

// units of the system: one of all chips, or one for each learner.
func (c Config) units() (units []*unit) {
	n, chips := c.Learners, c.unitChips()
	if c.System.together() {
		n, chips = 1, c.Chips
	}
	for i := range n {
		speed := c.speed(i)
		if c.System.together() {
			speed = c.slowest()
		}
		from, until := c.partition()
		units = append(units, &unit{
			cfg: c, chips: chips, step: c.stepOf(chips, speed), from: from, until: until,
			draws: rand.New(rand.NewPCG(c.Seed, uint64(i))),
		})
	}
	return units
}

// slowest is the speed of those that step together.
func (c Config) slowest() float64 {
	slow := c.speed(0)
	for i := range c.Learners {
		slow = min(slow, c.speed(i))
	}
	return slow
}

// partition is the time in which half of the learners are cut off.
func (c Config) partition() (from, until float64) {
	middle, half := c.seconds()/2, c.Partition.Seconds()/2
	if c.Learners == 1 {
		half = 0 // there is nobody to be cut off from
	}
	return middle - half, middle + half
}

// cutOff are tokens that were trained in the partition and do not reach the model. Data parallelism makes none meanwhile,
// and elastic data parallelism those of one half. Units of decoupled that do not reach the syncer are taken to train in vain;
// how long their work stays of use was not published. atoll folds what both halves made, as long as the rounds that they
// closed meanwhile fit its window; beyond it the lighter half takes the model of the other one.
func (c Config) cutOff(units []*unit, t traffic) (tokens float64) {
	if c.Partition == 0 || c.Learners == 1 {
		return 0
	}
	near := (c.Learners + 1) / 2
	var halves [2]float64
	for i, u := range units {
		halves[min(1, i/near)] += u.cutOff * c.Tokens
	}
	switch c.System {
	case DP:
		return halves[0]
	case Elastic:
		return halves[0] * float64(c.Learners-near) / float64(c.Learners)
	case Decoupled:
		return halves[1]
	}
	if c.Partition.Seconds() <= windowRounds*t.sweep {
		return 0
	}
	return min(halves[0], halves[1])
}

// allPause is how long all of n units pause at once.
func allPause(pauses []pause, n int) (total float64) {
	type edge struct {
		at    float64
		pause int
	}
	edges := make([]edge, 0, 2*len(pauses))
	for _, p := range pauses {
		edges = append(edges, edge{p.from, 1}, edge{p.to, -1})
	}
	slices.SortFunc(edges, func(a, b edge) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.pause, b.pause)) })
	pausing, since := 0, 0.0
	for _, e := range edges {
		if pausing >= n {
			total += e.at - since
		}
		pausing, since = pausing+e.pause, e.at
	}
	return total
}
