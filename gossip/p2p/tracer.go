package p2p

import (
	"sync/atomic"

	pubsub "github.com/libp2p/go-libp2p-pubsub"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"

	"atoll/gossip/p2p/address"
	"atoll/gossip/wire"
)

// tracer sees what gossip does. Its methods are called by gossip's loop and
// workers, and must not block. Those without a body are of no interest here.
type tracer struct {
	inbox  *inbox
	stream func(p peer.ID, open bool) // gossip has a stream to the peer, or none any more
	lost   func(peer.ID)              // it has none any more

	published, delivered, duplicates, rejected atomic.Uint64
	unchecked, outbound                        atomic.Uint64
}

var _ pubsub.RawTracer = (*tracer)(nil)

// DuplicateMessage reports who else has a message; no validator learns of it.
func (t *tracer) DuplicateMessage(m *pubsub.Message) {
	t.duplicates.Add(1)
	if from, err := address.PeerID(string(m.ReceivedFrom)); err == nil {
		t.inbox.put(Has{From: from, ID: wire.Sum(m.GetData()), Brought: true})
	}
}

// RejectMessage counts a refused message, apart from those that found no room.
func (t *tracer) RejectMessage(_ *pubsub.Message, reason string) {
	switch reason {
	case pubsub.RejectValidationQueueFull:
		t.unchecked.Add(1)
		return
	case pubsub.RejectValidationThrottled: // taken, and not passed on
		t.outbound.Add(1)
		return
	}
	t.rejected.Add(1)
}

// OnClosedOutboundStream tells of peers that gossip cannot reach any more.
func (t *tracer) OnClosedOutboundStream(p peer.ID) {
	t.stream(p, false)
	t.lost(p)
}

// OnNewOutboundStream notes that gossip reaches a peer.
func (t *tracer) OnNewOutboundStream(p peer.ID, _ protocol.ID) { t.stream(p, true) }

// DropRPC counts the messages that a slow peer will not get.
func (t *tracer) DropRPC(rpc *pubsub.RPC, _ peer.ID) {
	t.outbound.Add(uint64(len(rpc.GetPublish())))
}

func (t *tracer) Join(string)                          {}
func (t *tracer) Leave(string)                         {}
func (t *tracer) Graft(peer.ID, string)                {}
func (t *tracer) Prune(peer.ID, string)                {}
func (t *tracer) ValidateMessage(*pubsub.Message)      {}
func (t *tracer) DeliverMessage(*pubsub.Message)       {}
func (t *tracer) UndeliverableMessage(*pubsub.Message) {}
func (t *tracer) ThrottlePeer(peer.ID)                 {}
func (t *tracer) RecvRPC(*pubsub.RPC)                  {}
func (t *tracer) SendRPC(*pubsub.RPC, peer.ID)         {}

// read adds the counters to s.
func (t *tracer) read(s *Stats) {
	s.Gossip = GossipStats{
		Published:  t.published.Load(),
		Delivered:  t.delivered.Load(),
		Duplicates: t.duplicates.Load(),
		Rejected:   t.rejected.Load(),
	}
	s.Dropped.Unchecked = t.unchecked.Load()
	s.Dropped.Outbound = t.outbound.Load()
}
