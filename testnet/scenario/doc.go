// Package scenario plays scripts: text files that say, in the words of the
// protocol, what befalls a run over virtual time, what is expected of it, and
// what came of it. A script is a world of package sim and nothing more: it has
// no machinery of its own, every checker of the simulator watches it, and a
// broken promise fails it whatever it expects.
//
// A line is a statement, and # begins a comment:
//
//	# One learner loses its machine for a while.
//	nodes 4
//	at 10s crash 2 for 5s
//	expect one chain within 1s
//	expect idle at most 1s
//
//	-- outcome --
//	promises      all kept, one chain and one state at the end
//	...
//
// What stands below the marker is what came of the script: facts of this one
// history, of which the seed is a part. `go test ./testnet/scenario -update`
// writes it anew and touches nothing above, so a change of the protocol shows as
// a diff of what it did to each world, and cannot hide what the expectations
// demand.
//
// # Settings
//
// Lines may stand in any order. Only nodes is needed.
//
//	nodes N [TRAITS]       so many begin together, numbered from 0
//	node NODES TRAITS      in what some of them differ
//	rounds N | steps N     the budget: so many rounds of H steps of every learner (60), or steps of all
//	seed N                 of everything that is drawn by chance (1)
//	step TIME              an inner step of a node that is not slow (100ms)
//	beat TIME              the shortest beat period (200ms)
//	link LINK              latency TIME, jitter TIME, loss SHARE, duplicate SHARE, uplink RATE (10ms, 5ms)
//	degree N               connections that a node seeks (12)
//	limit TIME             by then the run has ended (15 minutes after the last event)
//	P, H, h_min, W_a, W_u, C, K, eta, mu, clip, max_share, max_steps,
//	max_tokens_per_step N; min_round TIME; grace TIME TIME; codec NAME; merge NAME
//	                       as protocol.md has them (3, 8, 2, 16, 256, 16, 1, ..., int4, rda)
//
// NODES are numbers, ranges such as 1-4, or all (those of the start). A node that joins has the
// next number. TRAITS are
//
//	slow N                 its steps take N times longer
//	observer               it holds and serves, and never trains
//	skew TIME, drift N     its clock is off, and goes wrong by N parts per million
//	protocol N, codecs NAMES, other-run, newer
//	                       the version of its program: what it speaks, decodes, belongs to; newer says more
//	                       of itself than others can read
//	attack KIND [from TIME] [times X] [ahead N]
//	                       it lies; the kinds are those of sim.AttackKind
//
// # Events
//
//	at TIME EVENT [for TIME]
//	every TIME from TIME to TIME EVENT [in turn] [for TIME]
//
// With `for` an event is undone after so long, with `in turn` it befalls one of
// its nodes each time. An EVENT is
//
//	crash NODES            kill -9; also power-cut (files that were not synced may be damaged), wipe (only
//	                       the key stays), lose (gone for good); start ends the first three
//	pause NODES            a closed lid; resume
//	leave NODES            in order
//	join [N] [TRAITS]      so many come, with a link that names others
//	partition NODES | NODES | ...
//	                       nodes reach each other that share a part; those in none form one more; a node
//	                       in two parts is a bridge; heal
//	cut NODES > NODES      nothing gets through in this direction; mend [NODES > NODES]
//	disk-full NODES        writes fail; disk-free
//	slow NODES times N     steps take longer from now on
//	weather LINK           all links become so
//	skew NODES by TIME     the clock is off from the next start on
//	upgrade NODES to TRAITS
//	                       the program is of another version from the next start on
//
// What is down at the end of a script stays down.
//
// # Expectations
//
//	expect WHAT [of NODE] at most|at least|within|is VALUE
//	expect marked|barred|turned away NODES|nobody
//	expect said TEXT       some honest node says so of a liar
//	expect refusal TEXT    some node refuses another in these words
//	breaks CHECKER: WHY    a promise is known to be broken
//
// WHAT is the name of a line of the outcome. Tokens may be compared as numbers or
// as a share of those trained, one chain in time or in rounds. An expectation
// that ends in `known to fail: WHY` must not hold, so that nobody forgets to
// take the mark away once it does.
//
// # Outcomes
//
// trained are tokens stepped; folded, unpublished, in flight, discarded (with a
// chain that was left) and lost (at a crash) are where they went. late, returned
// and taken back count deltas: those that came after their round had closed,
// became final outside of the chain, could not be written. refolds are of rounds
// that were closed; tips taken counts how often a node took the state whole. idle
// is how long a learner stood still though tokens were missing, of the worst one.
// one chain is the longest time from the end of a disturbance, or the coming of a
// node, until all nodes had one chain with nobody behind; contributing that from
// the start of a node until a delta that it made since was folded. received are
// bytes of all kinds, of honest nodes on average.
//
// # Scripts
//
// README.md in testdata lists the scripts and what each shows.
package scenario
