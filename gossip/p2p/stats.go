package p2p

import (
	"github.com/libp2p/go-libp2p/core/peer"

	"atoll/gossip/p2p/address"
	"atoll/gossip/p2p/traffic"
	"atoll/gossip/wire"
)

// Stats is what a host has carried since it started.
type Stats struct {
	// Sent and Received are all bytes on the sockets, without the system's TCP,
	// UDP and IP headers: for TCP with everything that noise and yamux add, for
	// QUIC whole UDP payloads.
	Sent, Received uint64
	// Relayed is what passed through this node between others; it is part of both.
	Relayed uint64
	// Protocols splits what streams carried (so without noise and yamux) by
	// protocol; "" is the negotiation of streams.
	Protocols map[string]traffic.Traffic
	// Peers splits the same by peer: those that are connected, and some of those
	// that were and had passed the handshake.
	Peers map[wire.PeerID]PeerStats
	// Gossip counts messages.
	Gossip GossipStats
	// Dropped counts what did not fit into a queue.
	Dropped Dropped
}

// PeerStats is the traffic with one peer and the measured rates of its link.
type PeerStats struct {
	traffic.Traffic
	// UpBytesPerSecond and DownBytesPerSecond are what the link carried when it
	// carried bulk, averaged; 0 if it never did, or is gone.
	UpBytesPerSecond, DownBytesPerSecond float64
}

// GossipStats counts gossip messages.
type GossipStats struct {
	Published  uint64
	Delivered  uint64 // accepted for the first time, from others
	Duplicates uint64 // seen before
	Rejected   uint64 // refused by Config.Check, or not as this topic has them
}

// Dropped counts what was lost because a queue was full, or a peer's was.
type Dropped struct {
	Messages  uint64 // accepted gossip messages that did not fit into the inbox
	Holders   uint64 // reports of who has a message, and of strangers
	Events    uint64 // refusals not reported, handshakes failed for want of room
	Unchecked uint64 // gossip messages that could not wait to be checked
	Outbound  uint64 // gossip messages for a peer that reads too slowly, or that could not wait to be passed on
	Busy      uint64 // requests refused because too many were being served
}

// Stats returns the counters as of now.
func (h *Host) Stats() Stats {
	s := Stats{
		Sent:      h.wire.sent.Load(),
		Received:  h.wire.received.Load(),
		Relayed:   h.relayed.Load(),
		Protocols: map[string]traffic.Traffic{},
		Peers:     h.peerStats(),
		Dropped:   h.inbox.lost(),
	}
	for id, t := range h.traffic.ByProtocol() {
		s.Protocols[string(id)] = t
	}
	h.tracer.read(&s)
	s.Dropped.Busy = h.busy.Load()
	return s
}

func (h *Host) peerStats() map[wire.PeerID]PeerStats {
	stats := map[wire.PeerID]PeerStats{}
	for pid, t := range h.traffic.ByPeer() {
		if id, err := address.PeerID(string(pid)); err == nil {
			stats[id] = PeerStats{Traffic: t}
		}
	}
	h.peers.each(func(_ peer.ID, l *link) {
		if s, ok := stats[l.id]; ok {
			s.UpBytesPerSecond, s.DownBytesPerSecond = l.bulk.Rates()
			stats[l.id] = s
		}
	})
	return stats
}

// Carried is Sent and Received of Stats.
func (h *Host) Carried() (sent, received uint64) {
	return h.wire.sent.Load(), h.wire.received.Load()
}
