package p2p

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/client"
	relayv2 "github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/relay"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"

	"atoll/gossip/p2p/address"
	"atoll/gossip/p2p/bulk"
	"atoll/gossip/wire"
)

// relay is a slot that this node reserves at another, which then takes in connections
// for it.
type relay struct {
	addrs []ma.Multiaddr // by which others dial this node there; none before the first success
	stop  context.CancelFunc
}

// serveRelay has this node relay for the run. A relay that others cannot reach serves
// nobody, so only nodes that are Public are asked. Its connections carry everything, for
// as long as they last: what bounds them is this node's budget for all of them together.
func (h *Host) serveRelay() (err error) {
	h.relay, err = relayv2.New(relayHost{h.host, h}, relayv2.WithResources(relayv2.Resources{
		ReservationTTL: reservationTTL, MaxReservations: maxReservations, MaxCircuits: maxCircuits, BufferSize: relayBuffer,
		MaxReservationsPerIP: maxReservations, MaxReservationsPerASN: maxReservations,
	}), relayv2.WithACL(h.slots))
	if err != nil {
		return fmt.Errorf("start relay: %w", err)
	}
	return nil
}

// relayHost is the libp2p host as the relay sees it: only peers that passed the handshake
// of this run get a slot or a connection, and what passes counts against the budget.
type relayHost struct {
	host.Host
	h *Host
}

// SetStreamHandler guards f.
func (r relayHost) SetStreamHandler(id protocol.ID, f network.StreamHandler) {
	r.Host.SetStreamHandler(id, r.h.guarded(func(s network.Stream) { f(budgeted{s, r.h}) }))
}

// NewStream opens the second half of a relayed connection.
func (r relayHost) NewStream(ctx context.Context, p peer.ID, ids ...protocol.ID) (network.Stream, error) {
	s, err := r.Host.NewStream(ctx, p, ids...)
	if err != nil {
		return nil, err
	}
	return budgeted{s, r.h}, nil
}

// budgeted is a stream of a relayed connection. What is read of it waits for the budget, so
// that the muxer's window slows the sender down.
type budgeted struct {
	network.Stream
	h *Host
}

func (b budgeted) Read(p []byte) (int, error) {
	n, err := b.Stream.Read(p[:min(len(p), bulk.Burst)])
	if n > 0 {
		if waited := b.h.relayLimit.Wait(b.h.ctx, n); waited != nil && err == nil {
			err = waited
		}
		b.h.relayed.Add(uint64(n))
	}
	return n, err
}

// Reserve keeps a slot at a connected peer that relays, until Release or until the
// connection is gone. It returns at once; what came of it is a Reserved.
func (h *Host) Reserve(id wire.PeerID) {
	p := pidOf(id)
	if h.cfg.Profile != WAN {
		return
	}
	h.reach.mu.Lock()
	defer h.reach.mu.Unlock()
	if h.reach.relays[p] != nil {
		return
	}
	ctx, cancel := context.WithCancel(h.ctx)
	r := &relay{stop: cancel}
	h.reach.relays[p] = r
	h.tasks.start(func() {
		defer cancel()
		h.keepSlot(ctx, id, p, r)
	})
}

// Release gives a slot up.
func (h *Host) Release(id wire.PeerID) {
	h.leaveRelay(pidOf(id))
}

// leaveRelay forgets the slot at p, if there is one.
func (h *Host) leaveRelay(p peer.ID) {
	h.reach.mu.Lock()
	r := h.reach.relays[p]
	delete(h.reach.relays, p)
	h.reach.mu.Unlock()
	if r != nil {
		r.stop()
		h.notifyReach()
	}
}

// keepSlot reserves, and again before each time that the slot would expire.
func (h *Host) keepSlot(ctx context.Context, id wire.PeerID, p peer.ID, r *relay) {
	h.see(ctx, p)
	for first := true; ; first = false {
		expires, addrs, err := h.reserve(ctx, p)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			h.log.Debug("reserve a slot at a relay", "peer", p, "err", err)
			h.leaveRelay(p)
			h.inbox.put(Reserved{ID: id, Err: err})
			return
		}
		h.reach.mu.Lock()
		r.addrs = addrs
		h.reach.mu.Unlock()
		h.notifyReach()
		if first {
			h.inbox.put(Reserved{ID: id})
		}
		select {
		case <-time.After(max(time.Until(expires)/2, reservePause)):
		case <-ctx.Done():
			return
		}
	}
}

// reserve asks for a slot, and says by which addresses this node is dialled there.
func (h *Host) reserve(ctx context.Context, p peer.ID) (expires time.Time, addrs []ma.Multiaddr, err error) {
	ctx, cancel := context.WithTimeout(network.WithNoDial(ctx, "reserve"), helloTimeout)
	defer cancel()
	place, err := client.Reserve(ctx, h.host, peer.AddrInfo{ID: p})
	if err != nil {
		return expires, nil, oneLine{err}
	}
	if addrs = h.circuits(p, place.Addrs); len(addrs) == 0 {
		return expires, nil, fmt.Errorf("the relay %s names no address of the machine that this node knows it by", p)
	}
	return place.Expiration, addrs, nil
}

// circuits turns the addresses that a relay says it has into those of this node there. A
// relay may lie: an address of another machine than the one at the end of a connection
// would send everybody there.
func (h *Host) circuits(p peer.ID, claimed []ma.Multiaddr) (addrs []ma.Multiaddr) {
	tail := ma.StringCast("/p2p/" + p.String() + "/p2p-circuit")
	for _, a := range claimed {
		transport, _ := ma.SplitFunc(a, func(c ma.Component) bool { return c.Protocol().Code == ma.P_P2P })
		if transport == nil || has(transport, ma.P_CIRCUIT) || !h.leadsTo(p, transport) {
			continue
		}
		addrs = append(addrs, transport.Encapsulate(tail))
	}
	slices.SortStableFunc(addrs, func(a, b ma.Multiaddr) int { return address.TransportRank(a) - address.TransportRank(b) })
	return addrs[:min(len(addrs), maxCircuitAddrs)]
}

// leadsTo reports whether a connection leads to the machine of an address.
func (h *Host) leadsTo(p peer.ID, a ma.Multiaddr) bool {
	want, err := manet.ToIP(a)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(h.host.Network().ConnsToPeer(p), func(c network.Conn) bool {
		ip, err := manet.ToIP(c.RemoteMultiaddr())
		return err == nil && !viaRelay(c) && ip.Equal(want)
	})
}

// viaRelay reports whether a connection is relayed.
func viaRelay(c network.Conn) bool { return has(c.RemoteMultiaddr(), ma.P_CIRCUIT) }
