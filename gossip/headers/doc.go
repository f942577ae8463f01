// Package headers sorts the headers of deltas that one node meets, by gossip or by repair: new, known, none of this run,
// or the second that its author signed for one round. It is a machine without clock, socket or disk, as package gossip is.
//
// Files, each may use those above it:
//
//	base          what both machines go by
//	seen          the last headers that were met
//	equivocation  proofs that an author signed two deltas for one round
//	headers       sort a header
package headers
