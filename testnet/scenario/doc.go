// Package scenario plays scripts: text files that say, in the words of the
// protocol, what happens to a run over virtual time, what it must do, and what
// it did. A script is a world of package sim and has no machinery of its own.
// Every checker of the simulator watches it, and a broken promise always fails
// it.
//
// A line is a statement, and # begins a comment:
//
//	# One learner loses its machine for a while.
//	nodes 4
//	at 10s kill 2 for 5s
//	expect one chain within 1s
//	expect idle at most 1s
//
//	-- outcome --
//	promises      all kept, one chain and one state at the end
//	...
//
// Below the marker, in scripts that have one, are the facts of this one history;
// the seed is a part of it. `go test ./testnet/scenario -update` writes them anew
// and touches nothing above. So a change of the protocol shows as a diff of what it
// did to a world, and cannot hide what the expectations demand.
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
//	heartbeat TIME         the shortest heartbeat period (200ms)
//	link LINK              latency TIME, jitter TIME, loss SHARE, duplicate SHARE, uplink RATE, downlink RATE
//	                       (10ms, 5ms), or as a testnet has it: rate=20mbit,delay=40ms
//	payload AMOUNT         what a delta of every fragment has, so that links with a rate matter (less than 2kB)
//	degree N               connections that a node wants (12)
//	keep N                 bytes that a ledger may take: above, payloads that nobody needs are dropped
//	leave TIME             a leaver goes after that, though others have not taken what it made
//	limit TIME             by then the run has ended (15 minutes after the last event)
//	P, H, C N; codec NAME
//	                       as people choose them of a run, see outer.Spec (3, 8, 16, int4)
//	h_min, W_a, W_u N; grace TIME TIME
//	                       sizes and times that no run has, see outer.Params (H/4, 16, 256, 50ms 4s)
//
// NODES are numbers, ranges such as 1-4, or all (the nodes of the start). A node that joins has
// the next number. TRAITS are
//
//	slow N                 its steps take N times longer
//	observer               it holds and serves, and never trains
//	skew TIME, drift N     its clock is off, and goes wrong by N parts per million
//	protocol N, other-run, newer
//	                       the version of its program: what it speaks, decodes, belongs to; newer says more
//	                       of itself than others can read
//	link LINK              its link, as a testnet has it: up=5mbit,down=100mbit,delay=40ms
//	attack KIND [from TIME] [times X] [ahead N]
//	                       it lies; sim.AttackKind has the kinds
//
// # Events
//
//	at TIME EVENT [for TIME]
//	every TIME from TIME to TIME EVENT [in turn] [for TIME]
//
// With `for` an event is undone after so long, with `in turn` it happens to one of its nodes
// each time. Package fault says how an EVENT is written. A script has all events that the
// simulator executes, so neither any nor shares of the tokens. A node in two groups of a
// partition is a bridge between them, and nodes in none form one more group. What is down at the
// end of a script stays down.
//
// # Expectations
//
//	expect WHAT [of NODE] at most|at least|within|is VALUE
//	expect marked|excluded|turned away NODES|nobody
//	expect said TEXT       some honest node says so of a liar
//	expect refusal TEXT    some node refuses another in these words
//	breaks CHECKER: WHY    a promise is known to be broken
//
// WHAT is the name of a line of the outcome. Tokens may be compared as numbers or
// as a share of those trained, one chain in time or in rounds. An expectation
// that ends in `known to fail: WHY` must not hold. So nobody forgets to remove
// the mark once it holds.
//
// # Outcomes
//
//	trained          tokens of steps
//	folded, unpublished, in flight, discarded, lost
//	                 where they went; discarded with a chain that was left, lost at a crash
//	not counted      folded, and no part of the budget: of learners that made far more than what is usual in its round
//	unaccounted      the rest; below 0 where some are counted twice
//	late             deltas that came after their round had closed
//	late share, planned, over budget, end
//	                 where there is a payload: late of the deltas that others made; steps that the links
//	                 allow a delta to have, at the end; by how much of the budget too much was folded; how
//	                 long after the last step all knew that the run is over
//	returned         deltas that became final outside of the chain
//	unwritten        deltas that could not be written
//	refolds          of rounds that were closed
//	snapshots        how often a node took one
//	idle             how long a learner stood still though tokens were missing, of the worst one
//	one chain        the longest time from the end of a disturbance, or the coming of a node, until all
//	                 nodes had one chain with nobody behind
//	settled          the same from the last event of all
//	contributing     from the start of a node until a delta that it made since was folded
//	received         bytes of all kinds, of honest nodes on average
//
// # Scripts
//
// The scripts of testdata, and what each shows:
//
//	calm                       six equal learners and nothing else: nothing late, lost or folded again
//	bad-network                links that lose, delay, reorder and repeat only slow a run down
//	storm-passes               so do links that become bad for a while
//	join-storm                 nine come at once to three and train within a second
//	join-one-by-one            a run grows from one learner to eight
//	join-after-merge           one comes while two sides reconcile, and takes a snapshot several times
//	churn-slow                 one of six is killed every ten seconds, for three
//	churn-medium               every three seconds, for two
//	churn-fast                 every second, for two: a twelfth of the tokens is lost at the kills, and nothing else
//	churn-comers               new ones come while others are lost for good
//	flapping-link              a node out of reach for two seconds out of four
//	flapping-link-slow         for twelve out of twenty, alone meanwhile
//	partition-halves           three against three, which reconcile without a loss
//	partition-one              one against five
//	partition-three            three parts at once
//	partition-one-way          a node that nobody hears
//	partition-deaf             a node that hears nobody
//	partition-bridge           two halves that both see one node never fork
//	partition-ring             each sees its two neighbours only, and nobody forks
//	partition-again            three partitions of different shapes in a row
//	partition-restart          one node restarts before the merge, and takes no snapshot
//	partition-restarts         a whole side restarts before the merge, and nothing of its work is discarded
//	slow-minority              two of six ten times slower: nobody waits, and their work counts
//	giant                      one a hundred times faster than four
//	sole-survivor              all but one die for good; the last one loses no step
//	all-but-one-return         all but one die and come back far behind
//	power-loss                 all lose power at once, with files damaged
//	power-loss-twice           and again before they had settled
//	old-fork                   three and two parted for longer than W_u: one chain wins whole, and the account is 0.8 % too long
//	old-fork-one               one parted for longer than W_u
//	versions-newer             newer programs of the same protocol go on with the old
//	versions-refused           joiners of another protocol or run are refused by name and disturb nobody
//	versions-upgrade           a rolling upgrade to a program that the old one refuses: two runs, and one again
//	equivocator                two deltas for a round are found and the key is excluded
//	late-proof                 the proof comes twelve rounds later
//	lying-source               wrong chunks of a snapshot are found by their digests, and its source is marked
//	short-source               likewise halves of chunks
//	far-behind                 a lid closed for longer than W_a/2
//	far-behind-unions          a lid closed for longer than W_u
//	far-behind-two             two down for longer than W_u
//	killed-early               one killed in its first second, and back when the others are far
//	clocks-wrong               clocks ahead, some seconds behind, and drifting
//	clock-jumps                restarts find their clocks ahead, back, and right again
//	clock-back-a-minute        a clock that is back before the run was made: no round of its own until then, and one chain
//	clock-behind-two-minutes   a founder whose clock lets it close no round of its own; it closes the rounds that the others close
//	disk-full                  a full disk stops publishing only
//	disk-full-behind           a disk fills in the middle of a repair, which goes on when there is room
//	retention                  old payloads are dropped from small ledgers, and nobody lacks one
//	lost-disk                  a disk is lost and its key goes on; a node is lost with its key
//	leave                      an ordered leave loses nothing
//	paused                     nor does a pause by the owner: nobody waits for it, and it contributes at once after
//	leave-cut-off              a leaver whom nobody hears goes, and what it made goes out after its next start
//	thin-links                 uplinks that carry a little less than payloads take: deltas have more steps
//	thinner-links              uplinks that carry less than half of it
//	thin-latency               far and wide links, and steps of two seconds: nothing is late
//	thin-uplink                one uplink of a twentieth among four
//	thin-fall                  a link falls to a twentieth for a minute, and nothing is discarded
//	thin-end                   a short run over thin links, of which the end is a good part
//	everything                 a bad day
package scenario
