package p2p

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/p2p/protocol/autonatv2"
	"github.com/libp2p/go-libp2p/p2p/protocol/autonatv2/pb"
	"github.com/libp2p/go-msgio/pbio"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"

	"atoll/gossip/wire"
)

// Mapped is what the router in front of this node said to UPnP or NAT-PMP: the addresses
// whose ports it forwards to this node. answers is false before any router answered,
// which takes up to ten seconds.
func (h *Host) Mapped() (addrs []string, answers bool) {
	if h.ports == nil || !h.ports.HasDiscoveredNAT() {
		return nil, false
	}
	for _, a := range h.host.Network().ListenAddresses() {
		if has(a, ma.P_CIRCUIT) {
			continue
		}
		if m := h.ports.GetMapping(a); m != nil {
			addrs = append(addrs, m.String())
		}
	}
	slices.Sort(addrs)
	return slices.Compact(addrs), true
}

// Seen is where a peer sees this node come from.
type Seen struct {
	By      wire.PeerID
	At      netip.AddrPort // of this node, for that peer
	UDP     bool
	Outside bool // the peer has a public address, so this is what the internet sees
}

// SeenBy asks a connected peer where it sees this node come from: for a packet of UDP from the
// port that this node listens on, and for a connection of TCP. What does not get through is
// missing. It does so on connections of its own. The peer may put streams that it opens meanwhile
// on one of them, where they are lost: ask once those that are needed are open.
func (h *Host) SeenBy(ctx context.Context, id wire.PeerID) (seen []Seen, err error) {
	p := pidOf(id)
	_, direct := h.conns(p)
	if direct == nil {
		return nil, fmt.Errorf("ask %v where it sees this node: %w", id, ErrNotConnected)
	}
	ctx, cancel := context.WithTimeout(ctx, helloTimeout)
	defer cancel()
	h.awaitIdentity(ctx, p)
	var udp, tcp bool
	for _, a := range append([]ma.Multiaddr{direct.RemoteMultiaddr()}, h.host.Peerstore().Addrs(p)...) {
		done := &tcp
		if has(a, ma.P_UDP) {
			done = &udp
		}
		if *done || !listenable(a) || !h.leadsTo(p, a) {
			continue
		}
		at, err := h.seenBy(ctx, p, a)
		from, ok := addrPort(at)
		if err != nil || !ok {
			h.log.Debug("ask where a peer sees this node", "addr", a, "err", err)
			continue
		}
		*done = true
		seen = append(seen, Seen{By: id, At: from, UDP: has(a, ma.P_UDP), Outside: manet.IsPublicAddr(a)})
	}
	return seen, nil
}

// addrPort is the machine and the port of an address.
func addrPort(a ma.Multiaddr) (at netip.AddrPort, ok bool) {
	if a == nil {
		return at, false
	}
	raw, err := manet.ToIP(a)
	ip, valid := netip.AddrFromSlice(raw)
	port, tcpErr := a.ValueForProtocol(ma.P_TCP)
	if tcpErr != nil {
		port, tcpErr = a.ValueForProtocol(ma.P_UDP)
	}
	n, numberErr := strconv.ParseUint(port, 10, 16)
	if err != nil || !valid || tcpErr != nil || numberErr != nil {
		return at, false
	}
	return netip.AddrPortFrom(ip.Unmap(), uint16(n)), true
}

// dialBacks are the connections that peers were asked for, by the number that they have to
// bring.
type dialBacks struct {
	mu      sync.Mutex
	awaited map[uint64]chan struct{}
}

// await returns a channel that is closed when a peer brings the number, and what forgets it.
func (d *dialBacks) await(nonce uint64) (came chan struct{}, forget func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	came = make(chan struct{})
	d.awaited[nonce] = came
	return came, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.awaited, nonce)
	}
}

// serve takes a connection that was asked for.
func (d *dialBacks) serve(s network.Stream) {
	defer s.Close()
	var m pb.DialBack
	if s.SetDeadline(time.Now().Add(probeTimeout)) != nil || pbio.NewDelimitedReader(s, maxDialBack).ReadMsg(&m) != nil {
		s.Reset()
		return
	}
	d.mu.Lock()
	if came := d.awaited[m.GetNonce()]; came != nil {
		close(came)
		delete(d.awaited, m.GetNonce())
	}
	d.mu.Unlock()
	_ = pbio.NewDelimitedWriter(s).WriteMsg(&pb.DialBackResponse{Status: pb.DialBackResponse_OK})
}

// ErrNoDialBack says that a peer did not try to reach this node.
var ErrNoDialBack = errors.New("the peer dials nobody back")

// DialBack asks a connected peer to connect to a public address of this node anew (AutoNAT v2),
// and reports whether that came through. The address ends in its transport. The host must
// be a Trial: in others libp2p has a client of its own, which asks a peer once in two minutes.
func (h *Host) DialBack(ctx context.Context, id wire.PeerID, addr string) (through bool, err error) {
	a, err := ma.NewMultiaddr(addr)
	if err != nil {
		return false, fmt.Errorf("dial back %q: %w", addr, err)
	}
	p := pidOf(id)
	if !h.cfg.Trial {
		return false, fmt.Errorf("dial back %q: the host is no trial", addr)
	}
	ctx, cancel := context.WithTimeout(network.WithNoDial(ctx, "dial back"), dialBackTimeout)
	defer cancel()
	s, err := h.host.NewStream(ctx, p, autonatv2.DialProtocol)
	if err != nil {
		return false, fmt.Errorf("%w: %w", ErrNoDialBack, oneLine{err})
	}
	defer s.Reset()
	if deadline, ok := ctx.Deadline(); ok {
		if err := s.SetDeadline(deadline); err != nil {
			return false, err
		}
	}
	nonce := rand.Uint64()
	came, forget := h.dialBacks.await(nonce)
	defer forget()
	answer, err := askDialBack(s, a, nonce)
	if err != nil {
		return false, fmt.Errorf("%w: %w", ErrNoDialBack, err)
	}
	if answer.GetStatus() != pb.DialResponse_OK {
		return false, fmt.Errorf("%w: it answers %v", ErrNoDialBack, answer.GetStatus())
	}
	if answer.GetDialStatus() != pb.DialStatus_OK {
		return false, nil
	}
	select {
	case <-came:
		return true, nil
	case <-time.After(probeTimeout):
	case <-ctx.Done():
	}
	return false, nil // it lies, or what it reached is not this node
}

// askDialBack has the conversation on the stream. A server that sees this node at another address
// than the one to be dialled wants some data first, so that it costs more to have it dial
// than to dial oneself.
func askDialBack(s network.Stream, a ma.Multiaddr, nonce uint64) (*pb.DialResponse, error) {
	w, r := pbio.NewDelimitedWriter(s), pbio.NewDelimitedReader(s, maxDialBack)
	ask := &pb.Message{Msg: &pb.Message_DialRequest{DialRequest: &pb.DialRequest{Addrs: [][]byte{a.Bytes()}, Nonce: nonce}}}
	if err := w.WriteMsg(ask); err != nil {
		return nil, err
	}
	var m pb.Message
	if err := r.ReadMsg(&m); err != nil {
		return nil, err
	}
	if data := m.GetDialDataRequest(); data != nil {
		if data.GetNumBytes() > maxDialBackData {
			return nil, fmt.Errorf("it wants %d bytes first, at most %d", data.GetNumBytes(), maxDialBackData)
		}
		for sent := 0; sent < int(data.GetNumBytes()); sent += dialBackPart {
			part := &pb.Message{Msg: &pb.Message_DialDataResponse{DialDataResponse: &pb.DialDataResponse{Data: make([]byte, dialBackPart)}}}
			if err := w.WriteMsg(part); err != nil {
				return nil, err
			}
		}
		m.Reset()
		if err := r.ReadMsg(&m); err != nil {
			return nil, err
		}
	}
	if m.GetDialResponse() == nil {
		return nil, errors.New("it answers with another message than the protocol says")
	}
	return m.GetDialResponse(), nil
}
