// Package fetch fetches the payloads that headers announce: first from the peer that brought the header, then from those
// that forwarded it again, last from its author. Where the author's uplink is thin, one peer asks it, and the others ask
// that one. So each byte arrives about once. It is a machine without clock, socket or disk, as package gossip is.
//
// Files, each may use those above it:
//
//	limits    bounds, each with its reason
//	disk      fetch less while the own disk takes nothing
//	peer      what is remembered of a peer
//	relays    who gives a payload where the author's uplink is thin
//	want      one payload that is missing: its state, and whom it can be asked of
//	table     the wants that there are, and whose come last
//	sources   whom to ask now
//	requests  ask, and take what comes
//	fetch     all of them as one machine
package fetch
