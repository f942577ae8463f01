// Package gossip is the core of spreading: who is there (roster), what they
// say they hold (beats), fetching the payloads that headers announce (pull),
// uniting the sets of two nodes that differ (repair), taking tips whole
// (snapshot), and answering the same requests from others (serve).
//
// The core is sans-IO. What the network says goes in as values of type Input (Step),
// time as Tick; the outer side says what it stored and what it wants by method calls.
// Effects come out as values of type Effect. Time is an argument. The core has no clock,
// goroutine, socket or random source, and no output depends on the order of a map, so the
// same inputs give the same effects in a node, in a test and in the simulator. The caller
// drains Effects after each input and executes them in order. What a core knows it tells
// through two views: Peers and Chains.
//
// What a node holds is known only to the outer side (rounds and ledger); the
// core reads it through the Chain interface and reports upward with effects:
// Offer, Fetched, CatchUp, Snapshot, EvidenceFound.
//
// Every machine here owns bounded state. The bounds are in limits.go, each
// with its reason.
//
// SPEC.md tells another implementation what nodes say to each other, and when.
package gossip
