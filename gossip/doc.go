// Package gossip is the core of spreading: who is there (roster), what they
// say they hold (beats), fetching the payloads that headers announce (pull),
// uniting the sets of two nodes that differ (repair), taking tips whole
// (snapshot), and answering the same requests from others (serve).
//
// The core is sans-IO. Events go in as method calls, effects come out as
// values of type Effect, and time is an argument. It has no clock, goroutine,
// socket or random source, and no output depends on the order of a map, so
// the same inputs give the same effects in a node, in a test and in the
// simulator. The caller drains Effects after each input and carries them out
// in order.
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
