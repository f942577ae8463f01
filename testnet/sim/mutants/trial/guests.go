package main

import (
	"errors"
	"fmt"

	"atoll/testnet/sim"
)

// What guests may cost members, beside a world in which the guest is honest: as in the attack tests of sim.
const (
	mostGuestLoss   = 3    // times the loss
	leastOfRounds   = 0.9  // of the rounds
	mostGuestRounds = 1.25 // times the rounds; calm worlds of several seeds differ by a tenth
)

// guestWorld has five members, and a guest that lies with so many keys.
func guestWorld(lie sim.Attack) sim.Scenario {
	s := world(6, 40, "")
	s.Params.WindowAccept, s.Params.WindowUnion = 4, 10
	s.Founders[5] = sim.NodeSpec{Guest: true, Observer: true, Attack: lie}
	return s
}

// guests plays what strangers do with keys that are free, as guests, beside a calm world.
func guests() (check string, err error) {
	calm, err := sim.Run(guestWorld(sim.Attack{}))
	if err = errors.Join(err, calm.Err); err != nil {
		return calm.Check, err
	}
	for _, lie := range []sim.Attack{
		{Kind: sim.MostClaims, Times: 2, From: 3000}, {Kind: sim.OneClaim, From: 8000},
		{Kind: sim.BurstRounds, Times: 200, From: 8000}, {Kind: sim.ClaimRun, From: 5000},
		{Kind: sim.SybilRun, Times: 6, From: 5000, Ahead: 200}, {Kind: sim.InventedRun, From: 5000, Ahead: 200},
	} {
		r, err := sim.Run(guestWorld(lie))
		if err != nil {
			return "", err
		}
		if r.Err == nil {
			r.Err = above(lie, r, calm)
		}
		if r.Err != nil {
			return "guests", r.Err
		}
	}
	return "", nil
}

// above says what a world came to that is above the bar.
func above(lie sim.Attack, r, calm sim.Result) error {
	switch rounds, usual := float64(r.Rounds), float64(calm.Rounds); {
	case !(r.Loss <= mostGuestLoss*calm.Loss): // true for NaN
		return fmt.Errorf("%s by guests: loss %.3g, %.3g without", lie.Kind, r.Loss, calm.Loss)
	case rounds < leastOfRounds*usual, rounds > mostGuestRounds*usual:
		return fmt.Errorf("%s by guests: %d rounds, %d without", lie.Kind, r.Rounds, calm.Rounds)
	}
	return nil
}
