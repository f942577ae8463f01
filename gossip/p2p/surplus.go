package p2p

import (
	"errors"
	"slices"
	"sync"
	"time"

	pubsub "github.com/libp2p/go-libp2p-pubsub"
	pb "github.com/libp2p/go-libp2p-pubsub/pb"
	"github.com/libp2p/go-libp2p/core/peer"

	"atoll/gossip"
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

// over says whether a peer brought much of it within this second.
func (s *surplus) over(p peer.ID, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return now.Sub(s.began) < time.Second && s.counts[p] >= mostSurplus
}

// inspect looks at what a peer sends before gossip handles it, in gossip's loop. It reports what messages the
// peer says it has. If a peer brings many messages that go no further, it takes them out, so that neighbours hear
// nothing of them.
func (h *Host) inspect(p peer.ID, rpc *pubsub.RPC) error {
	from, err := wireID(p)
	if err != nil {
		return nil // cannot be: the handshake compared it
	}
	if h.cfg.Spares != nil && h.surplus.over(p, time.Now()) {
		all := len(rpc.Publish)
		rpc.Publish = slices.DeleteFunc(rpc.Publish, func(m *pb.Message) bool { return errors.Is(h.cfg.Spares(from, m.GetData()), gossip.ErrHeldBack) })
		h.tracer.rejected.Add(uint64(all - len(rpc.Publish)))
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
