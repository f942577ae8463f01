// Package hello is the capability handshake: what a node says about itself on
// every new connection, before anything else, and what two nodes make of it.
//
// A Record is signed and carries a sequence number: of two records of one node
// the one with the higher number counts. Negotiate says whether two records make a session, or names the field over
// which they do not. Plan turns a node's own record into the batch it trains with.
//
// The package is pure: records in, decisions out. The exchange on a stream is
// gossip/p2p's.
package hello
