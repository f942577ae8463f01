// Package node runs one process of a run: it is the one place where the
// trainer, the outer step and gossip meet. Run(ctx) owns one loop that feeds
// events to node/core and executes its effects. The training thread, the fold
// worker and the network have their own goroutines and talk to the loop through
// mailboxes. So training never waits for any of them.
package node
