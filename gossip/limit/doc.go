// Package limit drops gossip messages before they are passed on: what one author says more often than an honest one does, and
// what the authors of one invite, or strangers, say beyond their share. The network side asks it; a Core of package gossip
// tells it what the run is like.
//
// Files, each may use those above it:
//
//	limits          rates, each with its reason
//	bucket          token buckets, and what was heard recently
//	share, limiter  which messages pass, and what the authors of one invite may say together
package limit
