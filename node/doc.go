// Package node runs one process of a run: it is the one place where the
// trainer, the outer step and gossip meet. Run owns one loop, which feeds
// events to the machine of a node/replica and has it execute what the machine
// wants done. The training thread, the queues of disk, folds and messages, and
// the network have goroutines of their own. They talk to the loop through
// mailboxes, so that training never waits for any of them.
//
// DESIGN.md has the architecture: the way of a delta and of a byte, who owns
// which state, what is durable before what, and where to change what.
package node
