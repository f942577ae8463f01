package p2p

import (
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
	ratelimit "golang.org/x/time/rate"

	"atoll/gossip/p2p/address"
)

// newHintLimit bounds the hints of one kind that are handed up: whoever makes them up costs the
// loop above no more than that.
func newHintLimit() *ratelimit.Limiter {
	return ratelimit.NewLimiter(ratelimit.Every(hintPause), maxHintsAtOnce)
}

// hint hands up where a peer of the run may be. Only addresses that a condition holds for
// are passed on: a hint must not send this node wherever its author likes.
func (h *Host) hint(limit *ratelimit.Limiter, near bool, info peer.AddrInfo, holds func(ma.Multiaddr) bool) {
	id, err := address.PeerID(string(info.ID))
	if err != nil || info.ID == h.pid || h.blocked.Has(info.ID) || h.peers.up(info.ID) != nil {
		return
	}
	e := Hint{ID: id, Near: near}
	for _, a := range info.Addrs {
		if len(e.Addrs) < maxHintAddrs && holds(a) {
			e.Addrs = append(e.Addrs, a.String()+"/p2p/"+info.ID.String())
		}
	}
	if len(e.Addrs) > 0 && limit.AllowN(time.Now(), 1) {
		h.inbox.put(e)
	}
}
