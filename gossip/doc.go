// Package gossip is the core of spreading. Its machines share the table of package peers, and each
// keeps its own notes of a peer in its own file:
//
//	repair         reconcile the sets of two nodes that differ, or choose whose snapshot wins
//	snapshot       take a snapshot
//	history        fetch the headers behind a snapshot
//	own            ask which of this node's deltas others know
//	audit          find out whose state is wrong
//	serve, uplink  answer the same requests from others, the most urgent first
//	pause          leave out all that is heavy while the owner has the node paused
//
// The core is sans-IO. What the network says goes in as values of type Input (Step),
// time as Tick; the outer side says what it stored and what it wants by method calls.
// Effects come out as values of type Effect, and the caller executes them in order after
// each input. What a core knows it tells through two views: Peers and Chains.
//
// Time is an argument. The core has no clock, goroutine, socket or random source, and no
// output depends on the order of a map. So the same inputs give the same effects in a
// node, in a test and in the simulator.
//
// Only the outer side (rounds and ledger) knows what a node holds. The core reads
// it through the Chain interface and reports upward with effects: Offer, Fetched,
// CatchUp, Snapshot, EquivocationFound.
//
// Package effect has the time, the effects and the calls in flight, which all machines share. Package peers has who is there,
// package headers which headers were met, package fetch the payloads that they announce, and package limit which messages the
// network side passes on.
//
// Every machine here owns bounded state. The bounds are in limits.go, each
// with its reason.
//
// SPEC.md has what another implementation must do to share a run.
package gossip
