// Package sim runs whole networks of nodes in one process and in virtual time.
//
// What runs is not a model of the protocol but the protocol: each node is a
// core.Machine (which joins gossip.Core and rounds.Machine) with an outer.Learner
// and the real outer.Fold around it. The simulator is what lies outside of these
// cores: the clock, the wires, the disk, the trainer, and the executor of
// effects. DESIGN.md says what is modelled and how, and which checker and
// test stand for which promise of the protocol.
//
// A Scenario is data: founders, links, faults with their times. Run plays it and
// returns a Result. One scenario has one history, whose digest is part of the
// result. Explore draws a scenario from a seed, Shrink makes a failing one
// smaller.
package sim
