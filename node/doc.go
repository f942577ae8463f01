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
//
// Files, each may use those above it:
//
//	workers        goroutines that end with the node
//	node           what a process of a run has, and its loop
//	marks          what a new key has signed
//	handle         what a program does to the node that it runs
//	config         what one process is told
//	membership     who is admitted
//	checkadmission  whether what admits is whole
//	record         this node's own record
//	wake           after the machine slept
//	damage         what is damaged on the disk
//	holders        who has what a message announces
//	reach          where this node is dialled
//	foldwatch      tell that nothing is folded
//	inventory      what this node has of the corpus, and needs
//	disk           the health of the disk
//	allowance      bytes that the owner allows
//	text           the text that a node trains on
//	export         the model, written while the run goes on
//	first          what training begins with
//	corpus         the run's corpus, from a folder or from peers
//	learner        a program that trains
//	prepare        the trainer, and what it is tuned to
//	evaluate       live evaluation
//	duplicatekey   another process with this key
//	contacts       where peers were reached, kept for the next start
//	network        what comes from the host
//	discovery      whom to dial, and being alone
//	trace          the record of deltas
//	executor       what a replica needs of a process
//	revoke         the end of a node that is revoked
//	watch          what a replica tells
//	snapshot       the status
//	mirrors        shards from mirrors
//	journal        events, kept for people
//	genesis_fetch  the genesis, from peers
//	shutdown       leave in order
//	control        the local control API
//	run            from start to end
package node
