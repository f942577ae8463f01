// Package status is what a node says about itself. Every screen, command and
// report renders one Snapshot struct. The local control API hands it to other
// processes of the same machine.
//
// Files, each may use those above it:
//
//	text      amounts and names as screens show them
//	shell     words for a shell
//	member    what an owner signed of a name
//	way       how a node is asked
//	curve     values over tokens
//	status    one snapshot of a node
//	label     what machines are called
//	standing  who is here, left, is gone
//	condition  how a node is, in a word and a sentence
//	history   snapshots over time
//	alarm     what a person has to look at
//	words     sentences beside the numbers
//	eventlog  events in a node's folder
//	control   the local control API, and its client
package status
