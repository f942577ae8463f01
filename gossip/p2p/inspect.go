package p2p

import (
	"errors"
	"slices"
	"time"

	pubsub "github.com/libp2p/go-libp2p-pubsub"
	pb "github.com/libp2p/go-libp2p-pubsub/pb"
	"github.com/libp2p/go-libp2p/core/peer"

	"atoll/gossip/limit"
	"atoll/gossip/p2p/address"
	"atoll/gossip/wire"
)

// inspect looks at what a peer sends before gossip handles it, in gossip's loop. It reports what messages the
// peer says it has. If a peer brings many messages that go no further, it takes them out, so that neighbours hear
// nothing of them.
func (h *Host) inspect(p peer.ID, rpc *pubsub.RPC) error {
	from, err := address.PeerID(string(p))
	if err != nil {
		return nil // cannot be: the handshake compared it
	}
	if h.cfg.Spares != nil && h.surplus.Over(p, time.Now()) {
		all := len(rpc.Publish)
		rpc.Publish = slices.DeleteFunc(rpc.Publish, func(m *pb.Message) bool { return errors.Is(h.cfg.Spares(from, m.GetData()), limit.ErrHeldBack) })
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
