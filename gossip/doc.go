// Package gossip is the core of spreading: it finds out where this node and its peers differ, and brings together what
// they have. Its machines share the table of package peers, and each keeps its own notes of a peer in its own file. What
// they stand on are machines in packages of their own: effect (the time, the effects and the calls in flight), peers (who is
// there), headers (which headers were met), fetch (the payloads that they announce), serve (what others ask for) and limit
// (which messages the network side passes on).
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
// Every machine here owns bounded state. The bounds are in limits.go, each
// with its reason.
//
// Files, each may use those above it:
//
//	limits, effects                                bounds, each with its reason, and names of effects
//	config, env                                    what a Core is made from, and what its machines share
//	certificates                                   ask for what admits authors
//	blobs, parts                                   fetch blobs, and say what this node has of them
//	snapshot, chunks, attest, renew                take a snapshot
//	repair, compare, fork, history, own, audit     reconcile
//	core, inputs, visitors, views, chains, join    all of them as one machine
//	pause, sizes                                   leave out what is heavy; how much is held
//
// SPEC.md has what another implementation must do to share a run.
package gossip
