// Package peers keeps the table of peers of one node: who is there, who is known, who is live, and what they last said. It
// is a machine without clock, socket or disk, as package gossip is, and knows neither payloads nor rounds beyond their digests.
//
// What a machine of package gossip has to remember of a peer beside, it keeps as a Note, by a type that nobody else can name.
//
// Files, each may use those above it:
//
//	limits      bounds, each with its reason
//	self        what the next heartbeat says
//	rate, way   what was measured of a peer
//	table       the peers, and who of them is trusted
//	class       who is more than a key
//	liveness    who was heard lately, and how often heartbeats are sent
//	heartbeats  what this node says, and how what others say compares
//	watchdog    connect a peer anew from which no heartbeat comes
//	peerlist    who is there, and whom to dial
//	hints       dial where strangers say that peers are, and look for more
//	reserve     slots at peers that relay
//	peers       all of them as one machine
package peers
