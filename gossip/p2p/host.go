package p2p

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/libp2p/go-libp2p"
	pubsub "github.com/libp2p/go-libp2p-pubsub"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	basichost "github.com/libp2p/go-libp2p/p2p/host/basic"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"
	"github.com/libp2p/go-libp2p/p2p/protocol/autonatv2"
	"github.com/libp2p/go-libp2p/p2p/transport/quicreuse"
	ma "github.com/multiformats/go-multiaddr"

	"atoll/gossip/p2p/address"
	"atoll/gossip/p2p/bulk"
	"atoll/gossip/p2p/guard"
	"atoll/gossip/p2p/traffic"
	"atoll/gossip/wire"
)

// Host is a node's place on the network. All methods may be called from any
// goroutine.
type Host struct {
	cfg  Config
	self wire.PeerID
	pid  peer.ID // self as libp2p has it
	log  *slog.Logger

	ctx   context.Context // ends with Close
	stop  context.CancelFunc
	tasks tasks

	host  host.Host
	made  chan struct{} // closed once host is set
	quic  *quicreuse.ConnManager
	topic *pubsub.Topic

	peers      peers
	strangers  *guard.Strangers
	refusals   *guard.Refusals
	blocked    *guard.Blocked
	reconnects *seldom
	refreshes  *seldom // of gossip's streams
	regains    regains
	inbox      *inbox
	handler    atomic.Pointer[Handler]
	caps       caps
	reach      reach
	ports      basichost.NATManager // asks the router to forward ports; nil if nobody does
	punches    punches
	discovery  discovery
	dialBacks  dialBacks
	relay      io.Closer     // the service; nil without one
	slots      *guard.Slots  // of guests there
	relayLimit *bulk.Limiter // what passes through this node for others
	relayed    atomic.Uint64 // bytes of that

	wire    wireBytes
	traffic *traffic.Counter
	surplus guard.Surplus
	tracer  *tracer
	busy    atomic.Uint64
	reading reading // requests that begin to arrive

	sockets
}

// caps are what a node may send and receive at most. Requests and answers wait for them, and
// all else passes without waiting.
type caps struct{ up, down *bulk.Limiter }

// sockets are the system's; tests have another.
type sockets struct {
	openUDP     func(nw string, addr *net.UDPAddr) (net.PacketConn, error)
	portFree    func(ma.Multiaddr) error
	quicOptions []quicreuse.Option
	alone       bool // asks no router, and dials nobody back: libp2p opens sockets of its own for both
	noPunching  bool
}

// New starts a host: when it returns, the host listens on every address of the
// configuration. The caller reads Events until Close.
func New(cfg Config) (*Host, error) {
	return newHost(cfg, nil)
}

// newHost is New with a hook for tests, which replace the network.
func newHost(cfg Config, hook func(*Host)) (*Host, error) {
	cfg = cfg.withDefaults()
	addrs, err := cfg.validate()
	if err != nil {
		return nil, err
	}
	self := wire.PeerIDOf(cfg.Key)
	h := &Host{
		cfg:        cfg,
		self:       self,
		pid:        pidOf(self),
		log:        cfg.Log,
		peers:      newPeers(bulk.NewUplink(cfg.UploadBytesPerSecond)),
		refusals:   guard.NewRefusals(),
		blocked:    guard.NewBlocked(),
		reconnects: newSeldom(reconnectPause),
		refreshes:  newSeldom(refreshPause),
		regains:    newRegains(),
		inbox:      newInbox(cfg.Inbox),
		caps:       caps{up: bulk.NewLimiter(cfg.UploadBytesPerSecond), down: bulk.NewLimiter(cfg.DownloadBytesPerSecond)},
		reach:      newReach(cfg.Public),
		relayLimit: bulk.NewLimiter(cfg.RelayBytesPerSecond),
		made:       make(chan struct{}),
		dialBacks:  dialBacks{awaited: map[uint64]chan struct{}{}},
		sockets:    sockets{openUDP: openUDP, portFree: portFree},
	}
	h.traffic = traffic.New(h.caps.up, h.caps.down, rpcProtocol)
	h.slots = guard.NewSlots(maxReservations, reservationTTL, h.standing)
	h.tracer = &tracer{inbox: h.inbox, stream: h.regains.stream, lost: h.gossipLost}
	h.ctx, h.stop = context.WithCancel(context.Background())
	if hook != nil {
		hook(h)
	}
	if err := h.start(addrs); err != nil {
		h.Close()
		return nil, err
	}
	return h, nil
}

// start brings up libp2p, then gossip, and last the listeners, so that nobody
// meets a host that is not ready.
func (h *Host) start(addrs []ma.Multiaddr) error {
	h.tasks.start(func() { h.inbox.run(h.ctx) })
	opts, err := h.options()
	if err != nil {
		return fmt.Errorf("configure host: %w", err)
	}
	if h.host, err = libp2p.New(opts...); err != nil {
		return fmt.Errorf("start host: %w", err)
	}
	close(h.made)
	h.host.Network().Notify(&network.NotifyBundle{ConnectedF: h.connected, DisconnectedF: h.disconnected})
	h.host.SetStreamHandler(helloProtocol, h.serveHello)
	h.host.SetStreamHandler(rpcProtocol, h.guarded(h.serveRPC))
	h.host.SetStreamHandler(clockProtocol, h.guarded(serveClock))
	if err := h.startGossip(); err != nil {
		return err
	}
	if h.cfg.Profile == WAN {
		if err := h.startReach(); err != nil {
			return err
		}
	}
	if len(addrs) == 0 {
		err = h.listenAnywhere()
	} else {
		err = h.listen(addrs)
	}
	if err == nil && h.cfg.Web && h.cfg.Profile == WAN {
		err = h.listenWeb()
	}
	if err == nil && h.cfg.Profile != Local && !h.cfg.NoMDNS && !h.alone {
		h.tasks.start(h.findNear)
	}
	return err
}

// startReach begins what a node on the internet does to be reached.
func (h *Host) startReach() error {
	if err := h.watchReach(); err != nil {
		return fmt.Errorf("watch addresses: %w", err)
	}
	if err := h.startRegain(); err != nil {
		return fmt.Errorf("mend gossip: %w", err)
	}
	if h.cfg.Trial {
		h.host.SetStreamHandler(autonatv2.DialBackProtocol, h.dialBacks.serve)
		return nil
	}
	if err := h.serveRelay(); err != nil {
		return err
	}
	if err := h.startDiscovery(); err != nil {
		return err
	}
	if h.cfg.Public {
		h.serveDiscovery()
	}
	if h.noPunching {
		return nil
	}
	return h.startPunching()
}

// ID is this node's name.
func (h *Host) ID() wire.PeerID { return h.self }

// Upload is the most that this node's own link was seen to carry upwards recently, over
// all peers together, in bytes/s of responses, and whether it was full with that. It is
// no more than Config.UploadBytesPerSecond, and 0 before the first response.
func (h *Host) Upload() (bytesPerSecond float64, full bool) { return h.peers.uplink.Rate() }

// Cap changes Config.UploadBytesPerSecond and Config.DownloadBytesPerSecond.
func (h *Host) Cap(up, down int64) {
	h.caps.up.Set(up)
	h.caps.down.Set(down)
	h.peers.uplink.SetLimit(up)
}

// Caps is what the host keeps to now.
func (h *Host) Caps() (up, down int64) { return h.caps.up.Rate(), h.caps.down.Rate() }

// Events returns the channel of what happens. It is closed by Close.
func (h *Host) Events() <-chan Event { return h.inbox.out }

// Addrs returns the addresses at which this node may be dialled, with /p2p/: of
// its interfaces, of port mappings, and those that peers report.
func (h *Host) Addrs() []string {
	if h.cfg.Profile == WAN {
		a := h.Reach()
		return slices.Concat(a.Outside, a.Near, h.loopback())
	}
	all := h.host.Addrs()
	if listening, err := h.host.Network().InterfaceListenAddresses(); err == nil {
		all = ma.Unique(append(all, listening...))
	}
	addrs := make([]string, 0, len(all))
	for _, a := range all {
		if first, _ := ma.SplitFirst(a); first != nil && first.Protocol().Code == ma.P_CIRCUIT {
			continue // the listener for what relays bring: it names none
		}
		addrs = append(addrs, a.String()+"/p2p/"+h.host.ID().String())
	}
	return addrs
}

// Dial connects to the peer at addr, which ends in /p2p/ and its id, and
// returns once the handshake is passed; at once if the peer is up. A peer that
// was refused recently is not dialled again: the error is that refusal (a
// *hello.Refusal, ErrHandshake, ErrRefusedByPeer or ErrDropped). Nor is one that
// Block keeps away: ErrBlocked.
func (h *Host) Dial(ctx context.Context, addr string) (wire.PeerID, error) {
	place, id, err := address.Parse(addr)
	if err != nil {
		return wire.PeerID{}, fmt.Errorf("dial: %w", err)
	}
	if id == h.self {
		return id, fmt.Errorf("dial %s: this is the node's own address; give that of another", addr)
	}
	return id, h.dialNamed(ctx, addr, peer.AddrInfo{ID: pidOf(id), Addrs: []ma.Multiaddr{place}})
}

// DialPeer is Dial with all that is known of where a peer is: addresses, of which those of other
// peers are left out, and where it was met in the last quarter of an hour.
func (h *Host) DialPeer(ctx context.Context, id wire.PeerID, addrs []string) error {
	info := peer.AddrInfo{ID: pidOf(id)}
	for _, addr := range addrs {
		if place, other, err := address.Parse(addr); err == nil && other == id {
			info.Addrs = append(info.Addrs, place)
		}
	}
	info.Addrs = append(info.Addrs, h.holesTo(info.ID)...)
	return h.dialNamed(ctx, info.ID.String(), info)
}

// dialNamed dials; its errors begin with the name by which the caller knows the peer.
func (h *Host) dialNamed(ctx context.Context, name string, info peer.AddrInfo) error {
	if err := h.refusals.Get(info.ID); err != nil {
		return fmt.Errorf("dial %s: %w", name, err)
	}
	if h.blocked.Has(info.ID) {
		return fmt.Errorf("dial %s: %w", name, ErrBlocked)
	}
	if !h.tasks.enter() {
		return fmt.Errorf("dial %s: %w", name, ErrClosed)
	}
	defer h.tasks.leave()
	ctx, cancel := h.within(ctx)
	defer cancel()
	if err := h.dial(ctx, info); err != nil {
		return fmt.Errorf("dial %s: %w", name, h.whyEnded(ctx, err))
	}
	return nil
}

func (h *Host) dial(ctx context.Context, info peer.AddrInfo) error {
	h.forgetBackoff(info.ID)
	if err := h.host.Connect(ctx, info); err != nil {
		return oneLine{err}
	}
	if h.host.Network().Connectedness(info.ID) == network.Limited {
		return h.dialThrough(ctx, info.ID)
	}
	ctx, cancel := context.WithTimeout(ctx, helloTimeout+verdictTimeout) // the handshake's own error comes first
	defer cancel()
	err := h.await(ctx, info.ID)
	if errors.Is(err, ErrNotConnected) || errors.Is(err, context.DeadlineExceeded) {
		return ErrNoHandshake
	}
	return err
}

// forgetBackoff lets the next dial of p happen at once. libp2p refuses to dial an
// address that failed recently, for longer each time. That would come on top of the
// caller's own pauses, and keep peers apart long after a partition has merged.
func (h *Host) forgetBackoff(p peer.ID) {
	if s, ok := h.host.Network().(*swarm.Swarm); ok {
		s.Backoff().Clear(p)
	}
}

// dialThrough waits until hole punching, which a relayed connection has begun,
// has led to a direct one, and for its handshake.
func (h *Host) dialThrough(ctx context.Context, p peer.ID) error {
	ctx, cancel := context.WithTimeout(ctx, punchTimeout)
	defer cancel()
	if err := h.sayHello(ctx, p); err != nil {
		return fmt.Errorf("%w: %w", h.whyNot(p), oneLine{err})
	}
	return h.await(ctx, p)
}

// oneLine is an error of libp2p, which lists attempts on lines of their own.
type oneLine struct{ error }

func (e oneLine) Error() string { return strings.Join(strings.Fields(e.error.Error()), " ") }
func (e oneLine) Unwrap() error { return e.error }

// Close ends all connections and waits for every goroutine of the host; then
// the channel of events is closed. It may be called more than once.
func (h *Host) Close() error {
	first := h.tasks.close()
	h.stop()
	var err error
	if first && h.host != nil {
		err = errors.Join(h.discovery.close(), h.punches.close(), h.closeRelay(), h.regains.close(), h.host.Close(), h.closeQUIC())
	}
	h.tasks.wait()
	if err != nil {
		return fmt.Errorf("close host: %w", err)
	}
	return nil
}

func (h *Host) closeRelay() error {
	if h.relay == nil {
		return nil
	}
	return h.relay.Close()
}

// closeQUIC closes what libp2p leaves open when it is given a constructor.
func (h *Host) closeQUIC() error {
	if h.quic == nil {
		return nil
	}
	return h.quic.Close()
}
