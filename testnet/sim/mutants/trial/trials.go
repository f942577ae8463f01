package main

import (
	"errors"
	"fmt"

	"atoll/tensor/codec"
	"atoll/testnet/sim"
	"atoll/testnet/sim/exhaust"
)

// trial is one way to look for a broken promise.
type trial struct {
	name string
	run  func() (check string, err error) // check "" if all promises were kept
}

// exploredSeeds are drawn schedules that take about a second each. In some of
// them own deltas are returned.
var exploredSeeds = []uint64{0, 3, 4, 5, 6, 7, 8, 9, 105, 127}

// trials are all, those first that are short.
func trials() []trial {
	all := []trial{{"interleavings", interleavings}, {"far-fork", takenOnce}, {"guests", guests}, {"leaked", leaked}, {"copies", copies}}
	for _, w := range worlds() {
		all = append(all, trial{w.name, w.run})
	}
	return all
}

// interleavings searches every way in which two steps of three nodes, deltas
// and a crash can follow each other.
func interleavings() (check string, err error) {
	const states = 30_000
	_, err = exhaust.Search(exhaust.Bounds{Nodes: 3, Steps: 2, Crashes: 1}, states)
	if broken := (*exhaust.Broken)(nil); errors.As(err, &broken) {
		return "interleavings", err
	}
	return "", err
}

// trialWorld is a world of the simulator.
type trialWorld struct {
	name     string
	scenario sim.Scenario
}

func (w trialWorld) run() (check string, err error) {
	r, err := sim.Run(w.scenario)
	if err != nil {
		return "", err
	}
	return r.Check, r.Err
}

func worlds() []trialWorld {
	all := []trialWorld{
		{"calm", world(4, 30, "")},
		{"crash", world(3, 40, "kill 1 @4s, start 1 @6s, kill 2 @7s, start 2 @7500ms")},
		{"full-disk", world(3, 40, "disk-full 1 @3s, disk-free 1 @9s")},
		{"share", shared()},
		{"alone", world(4, 200, "kill 1 @4s, kill 2 @4s, kill 3 @4s, start 1 @60s")},
		{"equivocator", attacked(sim.Equivocate)},
		{"flood", flooded()},
		{"wrong-payloads", attacked(sim.WrongPayloads)},
		{"backlog", world(6, 90, "partition 0+1+2 @3s, merge @50s")},
		{"partition", world(4, 60, "partition 0+1 @3s, merge @14s")},
		{"narrow", narrow("partition 0+1 @3s, merge @9s")},
		{"fork", narrow("partition 0+1 @3s, merge @40s")},
		{"own-lost", ownLost()},
		{"restart", world(2, 20, "partition 0 @3s, merge @5s, kill 1 @5720ms, start 1 @6020ms")},
		{"slow-join", slowJoin()},
		{"leave", far("leave 1 @5s, leave 2 @9s")},
		{"one-proof", proved()},
		{"full", full()},
		{"revoke-calm", revoke("revoke 4 @3500ms")},
		{"revoke-late", revokeLate()},
	}
	for _, seed := range exploredSeeds {
		all = append(all, trialWorld{fmt.Sprint("seed-", seed), sim.Explore(seed)})
	}
	return all
}

// revoke is a world of five members, the last of whom goes on when it is revoked.
func revoke(faults string) sim.Scenario {
	s := world(5, 40, faults)
	s.Founders[4].Attack = sim.Attack{Kind: sim.Undead}
	return s
}

// revokeLate is one that somebody joins when the revocation is older than what a snapshot tells of.
func revokeLate() sim.Scenario {
	s := revoke("revoke 4 @3500ms, join @9s")
	s.Params.WindowAccept, s.Params.WindowUnion = 2, 4
	return s
}

// full is a world whose rounds take three deltas of eight learners'.
func full() sim.Scenario {
	s := world(8, 30, "partition 0+1+2 @3s, merge @7s")
	s.Deltas, s.Params.WindowAccept, s.Params.WindowUnion = 3, 6, 12
	return s
}

// world is one of so many learners for about so many rounds.
func world(nodes int, rounds uint32, faults string) sim.Scenario {
	parsed, err := sim.ParseFaults(faults, nodes)
	if err != nil {
		panic(err) // the table above is wrong
	}
	return sim.Small(nodes, rounds, parsed, 7)
}

// shared is a run with open admission, in which one learner makes three times
// the steps of each of the others.
func shared() sim.Scenario {
	s := world(4, 30, "")
	s.Open = true
	s.Params.MaxShare, s.Params.Quorum = 0.5, 3
	for i := range s.Founders[1:] {
		s.Founders[i+1].Slow = 4
	}
	return s
}

// narrow has windows so small that sides of a partition soon cannot reconcile.
func narrow(faults string) sim.Scenario {
	s := world(4, 100, faults)
	s.Params.WindowAccept, s.Params.WindowUnion = 4, 8
	s.Params.Codec = codec.F32
	s.Params.Fragments = 3
	return s
}

// farFork has long links, so that some rounds close while a snapshot travels: as many as repair can bring before the next ones do.
func farFork() sim.Scenario {
	s := narrow("partition 0+1 @3s, merge @26s")
	s.Link.LatencyMs, s.Link.JitterMs = 300, 100
	return s
}

// mostTaken is how often nodes may take snapshots in farFork. The two of the side that loses take them once each. Where what comes
// meanwhile is lost they are behind again when a snapshot is in place, take others, and so on, twenty times and more.
const mostTaken = 8

// takenOnce plays farFork and counts.
func takenOnce() (check string, err error) {
	r, err := sim.Run(farFork())
	if err == nil && r.Err == nil && r.Did.Installs > mostTaken {
		return "snapshots", fmt.Errorf("snapshots were taken %d times, at most %d are of use", r.Did.Installs, mostTaken)
	}
	return r.Check, errors.Join(err, r.Err)
}

// ownLost has a learner that trains alone lose power, and then the payload of its newest delta, which nobody else has: all
// that is left of it is the mark of its round.
func ownLost() sim.Scenario {
	s := world(2, 40, "partition 0 @3s, power-cut 0 @5s, start 0 @5100ms, merge @9s")
	for i := range s.Faults {
		if s.Faults[i].Kind == "power-cut" {
			s.Faults[i].Factor = 1
		}
	}
	return s
}

// far has payloads that are pulled, over long links.
func far(faults string) sim.Scenario {
	s := world(4, 30, faults)
	s.Params.Fragments, s.Params.Codec = 1, codec.F32
	s.Link.LatencyMs = 400
	return s
}

// slowJoin has one join over links on which the first chunk of a snapshot takes longer than a joiner waits that hears nobody.
func slowJoin() sim.Scenario {
	s := world(2, 60, "join @15s")
	s.Link.BytesMs = 2
	return s
}

// proved has a liar that signs one round twice. It shows so when it has signed some rounds
// more, while one node is parted from the others.
func proved() sim.Scenario {
	s := attacked(sim.OneProof)
	f := world(4, 30, "partition 1 @3s, merge @12s")
	s.Faults, s.CalmMs, s.LimitMs, s.Params.Budget = f.Faults, f.CalmMs, f.LimitMs, f.Params.Budget
	s.Founders[len(s.Founders)-1].Attack.Times = 4
	return s
}

// flooded has a liar that shows headers without payloads, of more fresh keys than a
// round has room for. It is of a few rounds: how much of the budget is trained beside such a
// flood is not looked at.
func flooded() sim.Scenario {
	s := attacked(sim.PayloadMissing)
	s.Rounds = 8
	s.Founders[len(s.Founders)-1].Attack.Times = 1500
	return s
}

// attacked has open admission, payloads that are pulled, and one liar.
func attacked(lie sim.AttackKind) sim.Scenario {
	s := world(4, 15, "")
	s.Open = true
	s.Params.MaxShare, s.Params.Quorum = 0.5, 3
	s.Params.Fragments, s.Params.Codec = 1, codec.F32
	s.Founders[len(s.Founders)-1].Attack = sim.Attack{Kind: lie, From: 2000}
	return s
}
