package main

import (
	"errors"
	"fmt"
	"math"

	"atoll/optimizer/outer"
	"atoll/testnet/sim"
)

const (
	originals = 6   // honest members
	copySeeds = 6   // worlds: the last loss of one alone is mostly noise
	mostCopy  = 1.2 // times the loss without those that copy; 1.4 where copies count as work
)

// copyWorld has honest members that make so many tokens, and others that copy their deltas.
func copyWorld(seed uint64, copiers int) sim.Scenario {
	s := sim.Small(originals+copiers, 0, nil, seed)
	p := &s.Params
	*p = sim.ParamsOf(outer.Spec{Fragments: 3, H: 24, Learners: originals + copiers})
	p.Budget = uint64((originals+copiers)*16*p.H) * sim.TokensPerStep
	for i := range copiers {
		s.Founders[originals+i].Attack = sim.Attack{Kind: sim.Copy}
	}
	return s
}

// copies plays two of eight members that publish what others made, beside the others alone.
func copies() (check string, err error) {
	sum := 0.0
	for seed := range uint64(copySeeds) {
		calm, err := sim.Run(copyWorld(seed+1, 0))
		if err = errors.Join(err, calm.Err); err != nil {
			return calm.Check, err
		}
		r, err := sim.Run(copyWorld(seed+1, 2))
		if err = errors.Join(err, r.Err); err != nil {
			return r.Check, err
		}
		sum += math.Log(r.Loss / calm.Loss)
	}
	if cost := math.Exp(sum / copySeeds); !(cost <= mostCopy) { // true for NaN
		return "copies", fmt.Errorf("two of eight copy: %.3g times the loss of the others alone", cost)
	}
	return "", nil
}
