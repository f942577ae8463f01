// Package fault is the language in which people say what happens to the nodes of a run. The
// chaos of a testnet, the simulator's faults, scripts and sweeps all read it here; each says
// which part it can execute (Can), and refuses the rest by name.
//
// Events stand with commas between them, or semicolons; an underscore is a space. An event is
//
//	VERB WHOM HOW @WHEN      once, such as: kill 1 @20s
//	at WHEN VERB WHOM HOW    the same, as scripts write it: at 20s kill 1
//
// WHEN is a time since the start (20s) or a share of the token budget (33%). Words around an
// event say more of when:
//
//	@WHEN..WHEN              undone at the second: partition 0,1|2,3 @40s..80s
//	for TIME                 undone after so long: kill 1 @20s for 10s
//	every TIME               again and again: kill any every 60s for 10s
//	every TIME from TIME to TIME
//	                         between the two: every 3s from 4s to 12s kill 0-3 for 1s
//	in turn                  with every: to one of its nodes each time
//
// WHOM are nodes, by number from 0 in the order in which they joined: 1, or 0,2,5, or 1-4; all
// began together, and any is one that chance picks. Commas may be spaces or plus signs.
//
// # Verbs
//
//	kill NODES               without warning (kill -9); start NODES brings them back
//	kill learner NODES       kills the program that trains for the node; the node starts it again
//	kill learner NODES rank R
//	                         kills one process of that program, where it is a data-parallel group of several
//	power-cut NODES          as kill, and files that were not synced may be damaged; start
//	wipe NODES               as kill, and only the key stays; start
//	lose NODES               gone for good, with disk and key
//	pause NODES              stopped, with its connections open, like a closed lid; resume NODES
//	rest NODES               paused by their owner: they take no steps, and send heartbeats; work NODES
//	leave NODES              in order
//	join [N] [TRAITS]        so many new nodes come
//	slow NODES xN            steps take N times longer from now on
//	partition NODES|NODES|.. nodes reach each other that share a group; merge ends it
//	cut NODES > NODES        nothing gets through in this direction; mend [NODES > NODES] ends it
//	disk-full NODES          writes fail; disk-free NODES ends it
//	network LINK             all links become so
//	link NODES TRAITS        their links become so, such as rate=5mbit,delay=40ms; the rest is as at the start
//	skew NODES by TIME       the clock is off from the next start on
//	upgrade NODES to TRAITS  the program is of another version from the next start on
//	loss NODES N%            the link loses so many packets from now on, also when link changes or ends
//	corrupt NODES            a bit of the model flips in memory
//	miscalculate NODES       the next fold comes out wrong
//	attack KIND NODES        the node lies
//	random [every TIME]      kill, pause, slow, partition, join and leave, by chance
package fault
