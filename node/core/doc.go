// Package core joins the two sans-IO cores of a node: rounds.Machine, which
// decides rounds and folds, and gossip.Core, which spreads what they decide.
// Events go in as method calls that carry the time, effects come out as
// values, and nothing here has a clock, socket, goroutine or random source.
// A node executes the effects on disks and networks; the simulator does so
// in virtual time. node/DESIGN.md follows a delta through them.
//
// Files, each may use those above it:
//
//	effects     what is to be done
//	cache       what was computed before
//	heard       what heartbeats say of deltas and tokens
//	core        both cores as one machine
//	digests     digests over all fragments
//	marks       what a key without its disk does before it signs
//	snapshot    a fragment as a joiner takes it
//	source      what is given to joiners
//	left        own work on a chain that is left
//	join        how far a node is on its way into the run
//	attendance  whom rounds wait for
//	credit      who has contributed
//	needed      whether more tokens are needed
//	end, pause  the end of a run, and pauses
//	progress    how far the run is
//	links       what heartbeats say of links
//	ended       how long the end took
//	chain       rounds and ledger, as gossip sees them
//	deltas      deltas on their way in and out
//	revoke      names that are revoked
//	peerlist    who is live, for the rounds
//	blobs       files that nodes give each other
//	retain      payloads that nobody needs any more
//	saved       what a restart reads
//	sizes       how much is held, and its bounds
package core
