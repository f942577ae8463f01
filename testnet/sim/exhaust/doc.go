// Package exhaust visits every interleaving of a small world over the real cores:
// three nodes, one fragment, the first rounds of a run, with crashes, deltas that
// arrive twice and deltas that do not arrive.
//
// A node is a replica whose disk and folds take no time. It shares nothing with other nodes and is a function
// of its inputs, so what an input does to a node in a given state is computed
// once, whatever state the others are in, and the search goes over tuples of such
// states and the deltas under way. Two states of a node are one if everything
// that its replica, learner and disk hold is equal, by a hash over all their
// fields; a state of the world that was met before is not followed again.
//
// Enumerated, each whenever it can happen and as often as Bounds says: a learner
// steps; a node's clock goes on by a tick, which is a beat period and the longest
// grace; a delta arrives, or arrives and stays under way, or is lost; a node
// crashes, between two inputs or when its own delta is durable and nothing of it
// has left yet; it starts again. Deltas under way overtake each other in every
// way.
//
// Not enumerated: beats, requests and their answers, evidence and handshakes
// arrive at once and in order, so between two choices nothing but deltas is under
// way; a delta carries its payload inside the header's message and is not passed
// on by those who receive it; disk and fold take no time; a connection breaks only
// with a node; what is under way to a node that crashes is lost; clocks drift
// apart by ticks only. The codec is f32, eta is 1 and there is no momentum. Tips of
// even rounds are not on disk, others are.
//
// Held to in every state: the learner's account shows every token that it made;
// a chain has one state, in whatever world it is folded; no round is signed twice;
// honest nodes refuse and blame nobody and take no tips whole. From every state in
// which all nodes are up and nothing is under way the faults end, learners step
// and clocks go on: then the run ends with one chain and one state, the tip has
// the tokens of all steps but those that a crash took, and theta is the anchor
// wherever nothing is in flight.
package exhaust
