// Package node runs one process of a run: it is the one place where the
// trainer, the outer step and gossip meet. Run owns one loop, which feeds
// events to the machine of a node/replica and has it execute what the machine
// wants done. The training thread, the queues of disk, folds and messages, and
// the network have goroutines of their own. They talk to the loop through
// mailboxes, so that training never waits for any of them.
//
// What decides without the loop has a package of its own, which reaches neither
// node nor its machine's inputs:
//
//	allowance  why to pause
//	authors    who made how much
//	clock      how long the process was awake
//	data       which shards the next steps need
//	entry      whom a newcomer asks before there is a machine
//	holders    which peers have a delta
//	mirror     whom to ask for a shard beside peers
//	show       what people see
//	training   when to step, and what to do between steps
//
// This package tells them what happened, and does what they come to.
//
// DESIGN.md has the architecture: the way of a delta and of a byte, who owns
// which state, what is durable before what, and where to change what.
package node
