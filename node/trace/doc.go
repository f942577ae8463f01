// Package trace writes down the life of every delta at one node: when it was
// drafted, announced, heard of, asked for, received, verified, held, folded
// and adopted, who gave it, and how it ended. It shows where a delta's time goes.
//
// A Recorder stands around the ports of a replica (Recorder.Wrap), so a node and
// a simulated node are traced alike, and one that is not traced pays nothing. It
// writes one Line of JSON when a delta is adopted or ends here otherwise, and for what is
// still open when the node ends; of an own delta also when it is announced. A later line
// about the same delta and node replaces the earlier one: an own delta that was adopted
// may yet be discarded. It writes a Close of each round that closed, which says why.
//
// The command `atoll trace` merges such files and adds them up (Sum). For all
// else a line is easily asked, as here for those whom rounds waited for in vain, and for the slowest payloads and who gave them:
//
//	jq -c 'select(.close.why == "grace over") | .close | [.round, .for[:8], .waited_ms]' trace.jsonl
//	jq -c 'select(.last_byte) | [.last_byte - .requested, .gave[:8], .size]' trace.jsonl | sort -t[ -k2 -n
//
// A process that is killed takes with it what was open: those deltas have no line there.
//
// Times are Unix milliseconds by the clock of the node that wrote the line. A stage
// between two machines, from announced to heard, is as right as their clocks agree.
//
// Files, each may use those above it:
//
//	line                the life of one delta
//	read                lines of several nodes, merged
//	files               traces in files
//	requests, recorder  what was asked for, and all that is open
//	steps               what happens to a delta here
//	ports               listen at the ports of a replica
//	shares              where the time goes
package trace
