// Package testnet is a declarative local world of real nodes. It starts
// processes of this program on one machine that train one model together. Some
// of them join, leave or die on a schedule. It shows what happens, and ends
// with a report that checks what the run promised.
//
// A world lives in one folder:
//
//	genesis      the run's document
//	link         the join link of the nodes that are up
//	node0, ...   the folder of each node, with its log and its last status
//	report.json  what Run returned
//	trace.jsonl  with Config.Trace, the life of every delta at every node (package trace)
//
// Chaos is a schedule of what happens to the nodes (package fault, chaos.go). What chance does
// is drawn from the seed before the world begins (chaos_draw.go), and undone when most of the
// budget is used up. Signals kill and stop processes. What needs the process's help, such as
// dropping peers, goes to the controls of `atoll testnet-node` (lab.go; packages controls and
// labnode): a node as any other knows of none.
//
// With Config.Link, or chaos that changes links, every process makes its own link as slow, far and
// lossy as it is told (links.go; package shaping says how). Both ends of a connection take part, so
// a node that joins by hand is an `atoll testnet-node` with --shape rate=none.
//
// With Config.Baseline the processes are members of a baseline instead (package baseline), and
// this one is their coordinator. They are paced, shaped, killed and parted alike. The report
// has the same fields, without the fields of deltas (baseline.go).
//
// The report is made from what the nodes left on disk, not from what they said
// while they ran: ledgers, step logs and the last status of each.
//
// Files, each may use those above it:
//
//	calibrate               a pace that the machine bears
//	report                  what came of a world
//	progress                points of a run over time
//	config                  a world to run
//	data                    what a world trains on and measures with
//	chaos                   what happens to nodes
//	learners                what trains on which node
//	process                 processes of a node
//	links                   links that are slow, far and lossy
//	chaos_draw, chaos_plan  draw chaos from the seed, and order it
//	genesis                 the genesis of a world
//	ledger                  what was folded, by the ledgers
//	world                   the world while it runs
//	account                 where the work went
//	view                    what the screen shows
//	render                  a view as lines
//	screen                  the screen
//	watched                 tell who watches
//	timelimit               end a world without progress
//	observe                 what recovers, and when
//	relatives, process_linux, process_other  programs that nodes start
//	usage                   what nodes take over time
//	nodes                   start nodes, and ask them
//	act                     do what chaos says
//	lab                     tell processes to do harm
//	stall                   tell that nothing is folded
//	trace                   the life of deltas at all nodes
//	checks, checks_chaos    what the run promised
//	page                    the report as a page
//	conclude                make the report
//	baseline                worlds of a baseline
//	text                    the report in words
package testnet
