package p2p

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/protocol/holepunch"
	"github.com/libp2p/go-libp2p/p2p/protocol/identify"
	"github.com/libp2p/go-libp2p/p2p/protocol/identify/pb"
	"github.com/libp2p/go-msgio/pbio"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"

	"atoll/gossip/p2p/address"
)

// punches is the state of hole punching.
type punches struct {
	service *holepunch.Service
	mu      sync.Mutex
	tried   map[peer.ID][]ma.Multiaddr // while an attempt runs: where the peer says that it is seen
	opened  map[peer.ID][]ma.Multiaddr // the same, once an attempt succeeded
}

// startPunching begins libp2p's hole punching (DCUtR). It is made here and not by libp2p's
// option, because an attempt is to be made again: see keepPunching.
func (h *Host) startPunching() (err error) {
	ids := h.identifier()
	if ids == nil {
		return errors.New("start hole punching: the host of libp2p has no identify service")
	}
	h.punches.tried, h.punches.opened = map[peer.ID][]ma.Multiaddr{}, map[peer.ID][]ma.Multiaddr{}
	h.punches.service, err = holepunch.NewService(h.host, ids, h.punchAddrs,
		holepunch.DirectDialTimeout(punchDial), holepunch.WithTracer(&h.punches))
	if err != nil {
		return fmt.Errorf("start hole punching: %w", err)
	}
	return nil
}

// identifier is libp2p's identify service, nil if there is none.
func (h *Host) identifier() identify.IDService {
	if s, ok := h.host.(interface{ IDService() identify.IDService }); ok {
		return s.IDService()
	}
	return nil
}

// Trace implements holepunch.EventTracer.
func (p *punches) Trace(e *holepunch.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch evt := e.Evt.(type) {
	case *holepunch.StartHolePunchEvt:
		p.tried[e.Remote] = parseAddrs(evt.RemoteAddrs)
	case *holepunch.EndHolePunchEvt:
		if evt.Success {
			p.remember(e.Remote, p.tried[e.Remote])
		}
		delete(p.tried, e.Remote)
	}
}

// remember keeps where a peer was reached through a hole. Of maxOpened others any one goes.
func (p *punches) remember(id peer.ID, addrs []ma.Multiaddr) {
	delete(p.opened, id)
	for other := range p.opened {
		if len(p.opened) < maxOpened {
			break
		}
		delete(p.opened, other)
	}
	p.opened[id] = addrs
}

// parseAddrs leaves out what is no address, and what is more than a peer may tell.
func parseAddrs(texts []string) (addrs []ma.Multiaddr) {
	for _, text := range texts[:min(len(texts), maxHintAddrs)] {
		if a, err := ma.NewMultiaddr(text); err == nil {
			addrs = append(addrs, a)
		}
	}
	return addrs
}

// holesTo is where a lost peer is seen that was reached through a hole: both transports, though
// the connection was of one. Where nobody is left who could introduce the two, both dial, and
// QUIC meets whichever side comes first. TCP does not: both ends of a connection that two dial
// at once take themselves for the one that dialled. Addresses of other machines than the peer
// was met at are left out, so it can have nobody else dialled.
func (h *Host) holesTo(id peer.ID) []ma.Multiaddr {
	h.punches.mu.Lock()
	addrs := slices.Clone(h.punches.opened[id])
	h.punches.mu.Unlock()
	met := map[string]bool{}
	for _, a := range h.host.Peerstore().Addrs(id) {
		met[address.MachineOf(a)] = true
	}
	return slices.DeleteFunc(addrs, func(a ma.Multiaddr) bool { return has(a, ma.P_CIRCUIT) || !met[address.MachineOf(a)] })
}

func (p *punches) running(id peer.ID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, running := p.tried[id]
	return running
}

func (p *punches) close() error {
	if p.service == nil {
		return nil
	}
	return p.service.Close()
}

// punchAddrs is where others may see packets of this node come from.
func (h *Host) punchAddrs() []ma.Multiaddr {
	addrs := slices.DeleteFunc(h.all(), func(a ma.Multiaddr) bool { return !manet.IsPublicAddr(a) || has(a, ma.P_CIRCUIT) })
	h.reach.mu.Lock()
	defer h.reach.mu.Unlock()
	for _, a := range h.reach.seen {
		addrs = append(addrs, a)
	}
	return ma.Unique(addrs)
}

// keepPunching tries again, with growing pauses, for as long as a peer that came in
// through a relay has no direct connection. libp2p itself tries when the relayed connection
// comes, which may be before this node knows where it is seen, or while a router forgets.
func (h *Host) keepPunching(p peer.ID) {
	for pause := punchFirst; ; pause = min(2*pause, punchLongest) {
		select {
		case <-time.After(pause):
		case <-h.ctx.Done():
			return
		}
		relayed, direct := h.conns(p)
		if direct != nil || relayed == nil || relayed.Stat().Direction != network.DirInbound {
			return
		}
		ctx, cancel := context.WithTimeout(h.ctx, punchDial)
		h.see(ctx, relayOf(relayed))
		cancel()
		h.punch(p)
	}
}

// punch makes one attempt.
func (h *Host) punch(p peer.ID) {
	if h.punches.service == nil {
		return
	}
	// The service has a moment in which it waits for an address for ever.
	if !slices.Contains(h.host.Mux().Protocols(), holepunch.Protocol) {
		return
	}
	done := make(chan error, 1)
	go func() { done <- h.punches.service.DirectConnect(p) }()
	select {
	case err := <-done:
		h.log.Debug("punch a hole", "peer", p, "err", err)
	case <-h.ctx.Done():
	}
}

// conns returns a relayed and a direct connection to a peer, nil where there is none.
func (h *Host) conns(p peer.ID) (relayed, direct network.Conn) {
	for _, c := range h.host.Network().ConnsToPeer(p) {
		switch {
		case c.IsClosed() || c.Stat().Limited:
		case viaRelay(c):
			relayed = c
		default:
			direct = c
		}
	}
	return relayed, direct
}

// relayOf is the relay that a connection goes through.
func relayOf(c network.Conn) peer.ID {
	before, _ := ma.SplitFunc(c.RemoteMultiaddr(), func(c ma.Component) bool { return c.Protocol().Code == ma.P_CIRCUIT })
	info, err := peer.AddrInfoFromP2pAddr(before)
	if err != nil {
		return ""
	}
	return info.ID
}

// relayID is the relay of a connection, in hex; empty if there is none.
func relayID(c network.Conn) string {
	id, err := address.PeerID(string(relayOf(c)))
	if err != nil {
		return ""
	}
	return hex.EncodeToString(id[:])
}

// see finds out where a relay sees QUIC of this node come from. Connections to relays are of
// TCP, so without this nothing is known of UDP. What the relay says serves to punch
// holes and nothing else.
func (h *Host) see(ctx context.Context, relay peer.ID) {
	ctx, cancel := context.WithTimeout(ctx, helloTimeout)
	defer cancel()
	h.awaitIdentity(ctx, relay)
	for _, a := range h.host.Peerstore().Addrs(relay) {
		if !has(a, ma.P_QUIC_V1) || has(a, ma.P_CIRCUIT) || has(a, ma.P_WEBTRANSPORT) || !h.leadsTo(relay, a) {
			continue
		}
		seen, err := h.seenBy(ctx, relay, a)
		if err != nil || !manet.IsPublicAddr(seen) || !has(seen, ma.P_QUIC_V1) {
			h.log.Debug("ask a relay where it sees this node", "addr", a, "seen", seen, "err", err)
			continue
		}
		h.recordSeen(seen)
	}
}

// awaitIdentity waits until a connected peer has told its addresses: the link by which it was
// met may name one of TCP alone.
func (h *Host) awaitIdentity(ctx context.Context, p peer.ID) {
	_, direct := h.conns(p)
	ids := h.identifier()
	if direct == nil || ids == nil {
		return
	}
	select {
	case <-ids.IdentifyWait(direct):
	case <-ctx.Done():
	}
}

// recordSeen keeps where a relay saw this node. Another address than before says that a router
// got a new one, of which this machine has no other sign.
func (h *Host) recordSeen(seen ma.Multiaddr) {
	first, _ := ma.SplitFirst(seen)
	h.reach.mu.Lock()
	before := h.reach.seen[first.Protocol().Name]
	h.reach.seen[first.Protocol().Name] = seen
	was, _ := ma.SplitFirst(before)
	if before != nil && !was.Equal(first) {
		h.reach.moved = true
	}
	moved := h.reach.moved
	h.reach.mu.Unlock()
	if moved {
		h.notifyReach()
	}
}

// seenBy asks over a QUIC connection of its own, which the swarm does not know: it
// keeps one connection to a peer.
func (h *Host) seenBy(ctx context.Context, p peer.ID, a ma.Multiaddr) (ma.Multiaddr, error) {
	c, err := h.dialBeside(ctx, p, a)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	s, err := openBeside(ctx, c, identify.ID)
	if err != nil {
		return nil, err
	}
	defer s.Reset()
	var answer pb.Identify
	if err := pbio.NewDelimitedReader(s, maxIdentify).ReadMsg(&answer); err != nil {
		return nil, err
	}
	return ma.NewMultiaddrBytes(answer.GetObservedAddr())
}
