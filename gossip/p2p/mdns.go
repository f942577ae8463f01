package p2p

import (
	"encoding/hex"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/discovery/mdns"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
	ratelimit "golang.org/x/time/rate"

	"atoll/gossip/wire"
)

// mdnsName is the service that nodes of a run announce by multicast on their own network.
// Who does not know the run learns nothing of it from the name.
func mdnsName(run wire.RunID) string {
	sum := wire.Sum(append([]byte("atoll mdns "), run[:]...))
	return fmt.Sprintf("_atoll-%s._udp", hex.EncodeToString(sum[:8]))
}

// findNear announces this node on its own networks and hears others, until the host closes.
// The service of libp2p tells the addresses that there were when it began. So it is made anew
// when they change, as when a laptop comes to another network.
func (h *Host) findNear() {
	var service mdns.Service
	var at []ma.Multiaddr
	end := func() {
		if service != nil {
			_ = service.Close() // it never fails
			service = nil
		}
	}
	defer end()
	tick := time.NewTicker(lookAround)
	defer tick.Stop()
	for {
		if now := h.insideAddrs(); !slices.EqualFunc(now, at, ma.Multiaddr.Equal) {
			end()
			if at = now; len(now) > 0 {
				service = h.announceNear()
			}
		}
		select {
		case <-tick.C:
		case <-h.ctx.Done():
			return
		}
	}
}

// insideAddrs is where this node listens on networks that it is on.
func (h *Host) insideAddrs() []ma.Multiaddr {
	addrs := slices.DeleteFunc(h.interfaces(), manet.IsIPLoopback)
	slices.SortFunc(addrs, ma.Multiaddr.Compare)
	return addrs
}

// announceNear begins to announce and to listen. Without a network that has multicast there is
// nobody to be found: nil.
func (h *Host) announceNear() mdns.Service {
	service := mdns.NewMdnsService(h.host, mdnsName(h.cfg.Run), nearby{h, newHintLimit()})
	if err := service.Start(); err != nil {
		h.log.Info("finds nobody on this network by itself", "err", err)
		_ = service.Close()
		return nil
	}
	return service
}

// nearby takes what is heard.
type nearby struct {
	h     *Host
	limit *ratelimit.Limiter
}

// HandlePeerFound implements mdns.Notifee.
func (n nearby) HandlePeerFound(info peer.AddrInfo) {
	networks := ownNetworks()
	n.h.hint(n.limit, true, info, func(a ma.Multiaddr) bool {
		ip, err := manet.ToIP(a)
		return err == nil && listenable(a) && slices.ContainsFunc(networks, func(w *net.IPNet) bool { return w.Contains(ip) })
	})
}

// ownNetworks are those that this machine has an address on. What is heard by multicast is
// from there: somebody who names another place wants this node to dial a stranger.
func ownNetworks() (networks []*net.IPNet) {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return nil
	}
	for _, a := range addrs {
		if w, ok := a.(*net.IPNet); ok && !w.IP.IsLoopback() {
			networks = append(networks, w)
		}
	}
	return networks
}
