package main

import (
	"errors"
	"fmt"

	"atoll/testnet/sim"
)

// leakedKeys send heartbeats by one invite, each as often as an honest node.
const leakedKeys = 200

// mostLeakedMessages is how many times as many messages nodes may send, beside a world in which nobody has such keys. What the
// liar itself sends comes to four times; were all of it passed on it would be sixteen.
const mostLeakedMessages = 8

// leakedWorld has four members, one by an invite for one, and another by the same.
func leakedWorld(lie sim.Attack) sim.Scenario {
	s := world(6, 12, "")
	s.Founders[4].Leaked = true
	s.Founders[5] = sim.NodeSpec{Leaked: true, Observer: true, Attack: lie}
	return s
}

// leaked plays an invite that has leaked and lets in keys that send heartbeats, beside a calm world.
func leaked() (check string, err error) {
	calm, err := sim.Run(leakedWorld(sim.Attack{}))
	if err = errors.Join(err, calm.Err); err != nil {
		return calm.Check, err
	}
	r, err := sim.Run(leakedWorld(sim.Attack{Kind: sim.FreshHeartbeats, Times: leakedKeys, From: 3000}))
	if err != nil || r.Err != nil {
		return r.Check, errors.Join(err, r.Err)
	}
	rate := func(r sim.Result) float64 { return float64(r.Counts.Messages) / float64(r.VirtualMs) }
	if rate(r) > mostLeakedMessages*rate(calm) {
		return "leaked", fmt.Errorf("%d keys of one invite: %.2f messages a ms, %.2f without", leakedKeys, rate(r), rate(calm))
	}
	return "", nil
}
