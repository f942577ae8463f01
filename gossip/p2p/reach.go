package p2p

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/event"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	basichost "github.com/libp2p/go-libp2p/p2p/host/basic"
	"github.com/libp2p/go-libp2p/p2p/host/eventbus"
	"github.com/libp2p/go-libp2p/p2p/host/observedaddrs"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
)

// libp2p believes an address that one peer sees. Its default of four leaves nodes of a
// small run without any. What one peer says may be a lie, so such an address serves to
// punch holes and to be tested: it is told to nobody before an AutoNAT v2 dial-back
// has confirmed it (see told).
func init() { observedaddrs.ActivationThresh = 1 }

// reach is what a node on the internet knows of how others reach it.
type reach struct {
	mu     sync.Mutex
	met    map[peer.ID]struct{}    // until this node is public: who had a connection with it
	public bool                    // peers from outside come in by themselves
	relays map[peer.ID]*relay      // where this node reserves
	seen   map[string]ma.Multiaddr // by network: what a relay sees QUIC come from
	told   Addresses               // last
	moved  bool                    // a relay sees this node elsewhere than before, which is not told yet
	known  bool                    // told is set
}

func newReach(public bool) reach {
	return reach{public: public, met: map[peer.ID]struct{}{}, relays: map[peer.ID]*relay{}, seen: map[string]ma.Multiaddr{}}
}

// watchReach follows what libp2p finds out about this node's addresses. It subscribes
// before the listeners open, so nothing is missed.
func (h *Host) watchReach() error {
	sub, err := h.host.EventBus().Subscribe([]any{
		new(event.EvtLocalAddressesUpdated), new(event.EvtHostReachableAddrsChanged),
	}, eventbus.Name("atoll"), eventbus.BufSize(reachBuffer))
	if err != nil {
		return err
	}
	h.tasks.start(func() {
		defer sub.Close()
		tick := time.NewTicker(lookAround)
		defer tick.Stop()
		for {
			select {
			case <-sub.Out():
				h.notifyReach()
			case <-tick.C:
				h.notifyReach()
			case <-h.ctx.Done():
				return
			}
		}
	})
	return nil
}

// notifyReach sends an event if this node's addresses differ from what was told last.
func (h *Host) notifyReach() {
	h.reach.mu.Lock()
	defer h.reach.mu.Unlock()
	now := h.addresses()
	now.Moved = h.reach.moved || h.reach.known && now.lacks(h.reach.told)
	if h.reach.known && !now.Moved && now.equal(h.reach.told) || !h.inbox.put(now) {
		return
	}
	if now.Public {
		h.serveDiscovery()
	}
	h.discovery.announceChanges(h.reach.told, now)
	h.reach.told, h.reach.known, h.reach.moved = now, true, false
}

// lacks reports whether this node had an address of its own, not of a relay, that is gone.
func (a Addresses) lacks(before Addresses) bool {
	now := slices.Concat(a.Outside, a.Near)
	return slices.ContainsFunc(slices.Concat(before.Outside, before.Near), func(addr string) bool {
		return !strings.Contains(addr, "/p2p-circuit") && !slices.Contains(now, addr)
	})
}

// Reach is where this node is dialled as of now.
func (h *Host) Reach() Addresses {
	h.reach.mu.Lock()
	defer h.reach.mu.Unlock()
	return h.addresses()
}

// loopback is what the host listens on for this machine.
func (h *Host) loopback() (addrs []string) {
	for _, a := range h.interfaces() {
		if manet.IsIPLoopback(a) {
			addrs = append(addrs, a.String()+"/p2p/"+h.pid.String())
		}
	}
	return addrs
}

// Listening is what the host listens on, with the ports that it got.
func (h *Host) Listening() (addrs []string) {
	for _, a := range h.host.Network().ListenAddresses() {
		if !has(a, ma.P_CIRCUIT) {
			addrs = append(addrs, a.String())
		}
	}
	return addrs
}

func (a Addresses) equal(b Addresses) bool {
	return a.Public == b.Public && slices.Equal(a.Outside, b.Outside) && slices.Equal(a.Near, b.Near)
}

// addresses is where this node is reached as of now. h.reach.mu is held.
func (h *Host) addresses() Addresses {
	if h.cfg.Profile != WAN {
		return Addresses{Outside: h.Addrs()} // nobody is further away than the own network
	}
	reachable, unreachable, _ := h.confirmed()
	if len(reachable) > 0 {
		h.reach.public = true
	}
	a := Addresses{Public: h.reach.public}
	suffix := "/p2p/" + h.pid.String()
	for _, addr := range ma.Unique(slices.Concat(reachable, h.interfaces(), h.forwarded())) {
		switch {
		case ma.Contains(unreachable, addr):
		case manet.IsPublicAddr(addr):
			a.Outside = append(a.Outside, addr.String()+suffix)
		case !manet.IsIPLoopback(addr):
			a.Near = append(a.Near, addr.String()+suffix)
		}
	}
	if !a.Public {
		for _, r := range h.reach.relays {
			for _, addr := range r.addrs {
				a.Outside = append(a.Outside, addr.String()+suffix)
			}
		}
	}
	if len(a.Outside) == 0 && len(a.Near) == 0 {
		a.Near = h.loopback() // a machine without a network
	}
	slices.Sort(a.Outside)
	slices.Sort(a.Near)
	return a
}

// interfaces is what the host listens on, with the addresses of interfaces as of now: what
// libp2p knows of them may be a minute old.
func (h *Host) interfaces() []ma.Multiaddr {
	ours, err := manet.InterfaceMultiaddrs()
	if err != nil {
		h.log.Debug("addresses of interfaces", "err", err)
	}
	all, err := manet.ResolveUnspecifiedAddresses(h.host.Network().ListenAddresses(), ours)
	if err != nil {
		return nil // it listens nowhere yet
	}
	return slices.DeleteFunc(all, func(a ma.Multiaddr) bool { return has(a, ma.P_CIRCUIT) || manet.IsIP6LinkLocal(a) })
}

// mapPorts has libp2p ask the router in front of this node to forward its ports (UPnP, NAT-PMP).
func (h *Host) mapPorts(n network.Network) basichost.NATManager {
	h.ports = basichost.NewNATManager(n)
	return h.ports
}

// forwarded is where the router says that it forwards ports of this node. Its own claim is enough
// to tell the address, until a dial-back shows that it does not: a node that nobody has met
// yet has no other way to be found. Behind two routers the address is not a public one.
func (h *Host) forwarded() (addrs []ma.Multiaddr) {
	if h.ports == nil {
		return nil
	}
	for _, a := range h.host.Network().ListenAddresses() {
		if m := h.ports.GetMapping(a); m != nil && manet.IsPublicAddr(m) {
			addrs = append(addrs, m)
		}
	}
	return addrs
}

// confirmed is what AutoNAT v2 found out.
func (h *Host) confirmed() (reachable, unreachable, unknown []ma.Multiaddr) {
	if c, ok := h.host.(interface {
		ConfirmedAddrs() (_, _, _ []ma.Multiaddr)
	}); ok {
		return c.ConfirmedAddrs()
	}
	return nil, nil, nil
}

// all are the addresses that this node may have, confirmed or not.
func (h *Host) all() []ma.Multiaddr {
	if c, ok := h.host.(interface{ AllAddrs() []ma.Multiaddr }); ok {
		return c.AllAddrs()
	}
	return nil
}

// onlyTrue is libp2p's AddrsFactory: of the public addresses, peers are told those that an
// interface has or that were confirmed. Else they would dial in vain what one of them
// happened to see, and before each attempt to punch a hole.
func (h *Host) onlyTrue(addrs []ma.Multiaddr) []ma.Multiaddr {
	select {
	case <-h.made:
	default:
		return addrs
	}
	reachable, _, _ := h.confirmed()
	sure := slices.Concat(reachable, h.interfaces(), h.forwarded())
	return slices.DeleteFunc(slices.Clone(addrs), func(a ma.Multiaddr) bool {
		return manet.IsPublicAddr(a) && !has(a, ma.P_CIRCUIT) && !ma.Contains(sure, a)
	})
}

// recordConn notes a connection. If it came in from outside, is the first that the two have of
// each other, and this machine has an address that counts as public, then others get in
// as well. Behind a router no such conclusion holds: an earlier flow may have left a hole.
func (h *Host) recordConn(c network.Conn) {
	h.reach.mu.Lock()
	_, again := h.reach.met[c.RemotePeer()]
	room := len(h.reach.met) < maxMet
	if room && !h.reach.public {
		h.reach.met[c.RemotePeer()] = struct{}{}
	}
	proof := room && !again && !h.reach.public && c.Stat().Direction == network.DirInbound &&
		!viaRelay(c) && manet.IsPublicAddr(c.RemoteMultiaddr()) && h.hasPublicInterface()
	if proof {
		h.reach.public = true
	}
	h.reach.mu.Unlock()
	if proof {
		h.notifyReach()
	}
}

func (h *Host) hasPublicInterface() bool {
	return slices.ContainsFunc(h.interfaces(), manet.IsPublicAddr)
}

// near reports whether the other end of a connection is on the same network as this
// node, or on this machine.
func near(c network.Conn) bool {
	a := c.RemoteMultiaddr()
	return !has(a, ma.P_CIRCUIT) && !manet.IsPublicAddr(a)
}
