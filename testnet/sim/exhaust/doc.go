// Package exhaust visits every interleaving of a small world of real replicas:
// two or three nodes, one fragment, the first rounds of a run. Nodes crash, and deltas
// arrive twice or not at all.
//
// A node is a replica whose disk and folds take no time. It shares nothing with other nodes and is a function
// of its inputs. So what an input does to a node in a given state is computed once, whatever state the others
// are in. The search goes over tuples of such states and the deltas under way. Two states of a node are one
// if everything that its replica, learner and disk hold is equal, by a hash over all their fields. A state of
// the world that was met before is not followed again.
//
// These are enumerated, each whenever it can happen and as often as Bounds says.
// A learner steps. A node's clock goes on by a tick, which is a heartbeat period and
// the longest grace. A delta arrives, or arrives and stays under way, or is lost.
// A node crashes between two inputs, or when its own delta is durable and nothing
// of it has left yet. It starts again. Deltas under way overtake each other in
// every way.
//
// These are not enumerated. Heartbeats, requests and their answers, equivocation proofs and
// handshakes arrive at once and in order, so between two choices only deltas are
// under way. A delta has its payload inside the header's message, and receivers do
// not pass it on. Disk and fold take no time. A connection breaks only with a node, or is made anew by one.
// What is under way to a node that crashes is lost. Clocks drift apart by ticks
// only. The rules are those of new runs with the codec f32 and H of 1: eta is 1 and there is no momentum. Tips of even rounds
// are not on disk, others are.
//
// These hold in every state. The learner's account shows every token that it made.
// A chain has one state, in whatever world it is folded. No round is signed twice.
// Honest nodes refuse and blame nobody and take no snapshot. From every state in
// which all nodes are up and nothing is under way the faults end, learners step
// and clocks go on. Then the run ends with one chain and one state. The tip has
// the tokens of all steps except the ones lost at a crash. The local parameters are the global ones
// wherever nothing is in flight.
package exhaust
