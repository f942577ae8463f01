// Package replica is one node of a run without goroutines, clock, disk or
// network. It has the machine of the protocol, the learner, the kept bases, the
// own deltas, and the one executor of the machine's effects.
//
// What it lacks stands behind ports. Exec says when work runs, Ledger keeps
// things, Net sends them, Arithmetic folds, Watcher is told what happened.
// Package node brings goroutines, bbolt and libp2p; testnet/sim an event queue,
// memory and wires; testnet/sim/exhaust work that takes no time. A Policy holds
// what these decide differently.
//
// State has owners. The machine belongs to the loop (the caller of Execute and
// what Exec.Post runs), kept bases to the folds, the learner to the steps. What
// crosses from one to another goes through Exec.
//
// Files, each may use those above it:
//
//	ports                 what a replica lacks
//	policy                what replicas may decide differently
//	events                what a watcher is told
//	bases, replica, lost  kept bases, the executor of effects, and what the disk has lost
//	own                   own deltas by number
//	unrecorded            rounds that wait for the disk
//	fold                  fold rounds, and record them
//	learning              the learner and its steps
//	retain                what the ledger still needs
//	storing               make deltas and chunks durable
//	install               take a snapshot
//	source                serve payloads and chunks of snapshots
//	blobs                 files that nodes give each other
//	restart               go on from a ledger
package replica
