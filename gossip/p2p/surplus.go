package p2p

import (
	"sync"
	"time"

	pubsub "github.com/libp2p/go-libp2p-pubsub"
	"github.com/libp2p/go-libp2p/core/peer"

	"atoll/gossip/wire"
)

// surplus counts the messages of each peer that go no further: held back, or of strangers. Gossip says IDONTWANT for a
// message to all neighbours before it is checked, so what costs its sender nothing would cost them all.
type surplus struct {
	mu     sync.Mutex
	began  time.Time // of the second that is counted
	counts map[peer.ID]int
}

// add counts a message of a peer.
func (s *surplus) add(p peer.ID, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(s.began) >= time.Second {
		s.began, s.counts = now, map[peer.ID]int{}
	}
	s.counts[p]++
}

// over says whether a peer brought so much of it within this second that its messages are not looked at.
func (s *surplus) over(p peer.ID, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return now.Sub(s.began) < time.Second && s.counts[p] >= mostSurplus
}

// inspect looks at what a peer sends before gossip handles it, in gossip's loop. It reports what messages the
// peer says it has, and drops the messages of one that brings too many which go no further. They are as if they were lost:
// neighbours bring those of others.
func (h *Host) inspect(p peer.ID, rpc *pubsub.RPC) error {
	if h.surplus.over(p, time.Now()) {
		h.tracer.unchecked.Add(uint64(len(rpc.Publish)))
		rpc.Publish = nil
	}
	from, err := wireID(p)
	if err != nil {
		return nil // cannot be: the handshake compared it
	}
	told := 0
	for _, unwanted := range rpc.GetControl().GetIdontwant() {
		for _, id := range unwanted.GetMessageIDs() {
			if told++; told > pubsub.GossipSubMaxIDontWantLength {
				return nil // gossip does not look at more either
			}
			if len(id) == len(wire.Digest{}) {
				h.inbox.put(Has{From: from, ID: wire.Digest([]byte(id))})
			}
		}
	}
	return nil
}
