package core

import "atoll/gossip/wire"

// cache is what was computed or told before: without it the machine would do the
// same, and take longer.
type cache struct {
	peerList peerListSeen
	linksAt  Time                 // when heartbeats were last looked through for links
	sweepMs  Time                 // what a delta of each fragment takes from one node to all, by then
	sets     map[roundKey]setSeen // digests of the sets of rounds in the window
}

// peerListSeen is what the rounds were last told of the peer list: it is looked
// through when it changed, not at every tick.
type peerListSeen struct {
	told       bool
	live       uint64 // gossip.Peers.LearnersVersion
	peers      uint64 // gossip.Peers.Version
	members    uint64 // member.Table.Changes: a guest may have become a member
	attendance uint64 // attendance.changes
	idle       bool   // this node has stopped itself
}

// setSeen is the digest of a set. A repair asks for the digests of all rounds
// of the window, and few have changed since the last one.
type setSeen struct {
	version uint64 // rounds.Machine.Version
	digest  wire.Digest
}
