package headers

import (
	"atoll/gossip/peers"
	"atoll/gossip/wire"
)

// Bounds say which headers fit the run.
type Bounds struct {
	MaxPayload   uint32 // bytes of the largest payload of the run
	WindowAccept uint32 // rounds behind closed that gossip still brings
	WindowUnion  uint32 // rounds that repair reconciles
}

// Chain is what is asked about the rounds that this node holds, see the Chain of package gossip.
type Chain interface {
	Fragments() int
	Closed(f int) uint32
	SignedBy(f int, r uint32, author wire.PeerID) []wire.SignedHeader
	Newest(author wire.PeerID) []wire.SignedHeader
	Has(id wire.Digest) bool
}

// base is what both machines of this package go by.
type base struct {
	*peers.Table
	Bounds
	chain Chain
}

// ofRun reports whether the run has a fragment.
func (b *base) ofRun(fragment uint16) bool { return int(fragment) < b.chain.Fragments() }
