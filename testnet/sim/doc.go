// Package sim runs whole networks of nodes in one process and in virtual time.
//
// It runs the protocol itself, not a model of it. Each node is the replica.Replica of
// a real one, with core.Machine (which joins gossip.Core and rounds.Machine),
// outer.Learner and outer.Fold. The simulator is behind the replica's ports: the
// clock, the wires, the disk, and the trainer. DESIGN.md says what is modelled and
// how, and which checker and test stand for which promise of the protocol.
//
// A Scenario is data: founders, links, faults with their times. Run plays it and
// returns a Result. One scenario has one history, whose digest is part of the
// result. Explore draws a scenario from a seed, ExploreThin one whose payloads take a
// good share of what its links carry. Shrink makes a failing one smaller.
package sim
