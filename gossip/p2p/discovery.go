package p2p

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/ipfs/go-cid"
	dht "github.com/libp2p/go-libp2p-kad-dht"
	pb "github.com/libp2p/go-libp2p-kad-dht/pb"
	"github.com/libp2p/go-libp2p/core/connmgr"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/peerstore"
	"github.com/libp2p/go-libp2p/core/protocol"
	connrate "github.com/libp2p/go-libp2p/x/rate"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
	ratelimit "golang.org/x/time/rate"

	"atoll/gossip/p2p/address"
	"atoll/gossip/p2p/guard"
	"atoll/gossip/wire"
)

// The nodes that others reach by themselves, members and relays of any run, keep a DHT
// (Kademlia) together: who is in which run. Within a run gossip tells more, and sooner. The DHT is for
// a newcomer whose link names nobody that is up but a relay of other runs, and for parts of
// a run that know nothing of each other.
//
// A record is the claim of a stranger, so what is found is handed up as a Hint.
const (
	dhtPrefix   = protocol.ID("/atoll")
	dhtProtocol = dhtPrefix + "/kad/1.0.0"
)

// sha256 is the number of that hash in multihashes.
const sha256 = 0x12

// discoveryKey is where in the DHT the members of a run are. Who keeps the record does not learn the
// run from it.
func discoveryKey(run wire.RunID) (cid.Cid, error) {
	return cid.V1Builder{Codec: cid.Raw, MhType: sha256}.Sum(append([]byte("atoll run "), run[:]...))
}

// discovery is this node's part in the DHT.
type discovery struct {
	dht     *dht.IpfsDHT
	key     cid.Cid
	records *Records
	limit   *ratelimit.Limiter // of hints
	served  *connrate.Limiter  // streams of others
	open    *guard.Shares      // of those that are open
	renew   chan struct{}      // something that others are told is new
	serve   network.StreamHandler
	serving sync.Once
	stop    context.CancelFunc
}

// startDiscovery begins to take part. A node asks from the start, and answers once others reach
// it.
func (h *Host) startDiscovery() (err error) {
	m := &h.discovery
	m.records, m.limit = h.cfg.Records, newHintLimit()
	if m.records == nil {
		m.records = NewRecords()
	}
	m.served, m.renew = newDiscoveryRates(), make(chan struct{}, 1)
	m.open = guard.NewShares(maxDiscoveryStreams, maxDiscoveryStreams/discoveryAddresses)
	if m.key, err = discoveryKey(h.cfg.Run); err != nil {
		return fmt.Errorf("start the DHT: %w", err)
	}
	ctx, stop := context.WithCancel(context.Background()) // it ends before the host, by Close
	m.stop = stop
	m.dht, err = dht.New(ctx, discoveryHost{h.host, h},
		dht.ProtocolPrefix(dhtPrefix), dht.Mode(dht.ModeServer), dht.DisableValues(), dht.DisableAutoRefresh(),
		dht.ProviderStore(ownRecords{m.records, h}), dht.OnRequestHook(onlyOwnAddrs), dht.AddressFilter(farAddrs),
		dht.WithCustomMessageSender(func(host.Host, []protocol.ID) pb.MessageSenderWithDisconnect { return messenger{h} }))
	if err != nil {
		stop()
		return fmt.Errorf("start the DHT: %w", err)
	}
	h.tasks.start(h.keepAnnouncing)
	return nil
}

func (m *discovery) close() error {
	if m.dht == nil {
		return nil
	}
	m.stop()
	return m.dht.Close()
}

// farAddrs are those that lead here from anywhere.
func farAddrs(addrs []ma.Multiaddr) (far []ma.Multiaddr) {
	for _, a := range addrs {
		if manet.IsPublicAddr(a) && len(far) < maxMemberAddrs {
			far = append(far, a)
		}
	}
	return far
}

// onlyOwnAddrs takes out of an announcement the addresses of other machines than the one that
// it comes from: else members would dial whomever a liar names. Slots at relays stay, as
// a relay connects to nobody who did not reserve.
func onlyOwnAddrs(_ context.Context, s network.Stream, m *pb.Message) {
	if m.GetType() != pb.Message_ADD_PROVIDER {
		return
	}
	from, err := manet.ToIP(s.Conn().RemoteMultiaddr())
	for _, p := range m.GetProviderPeers() {
		p.Addrs = slices.DeleteFunc(p.Addrs, func(b []byte) bool {
			a, bad := ma.NewMultiaddrBytes(b)
			if bad != nil {
				return true
			}
			ip, none := manet.ToIP(a)
			return !has(a, ma.P_CIRCUIT) && (err != nil || none != nil || !ip.Equal(from))
		})
	}
}

// discoveryHost is the libp2p host as the DHT sees it: no question makes a connection of the
// swarm, and none is kept for it.
type discoveryHost struct {
	host.Host
	h *Host
}

// Addrs are those by which others find this node.
func (m discoveryHost) Addrs() (addrs []ma.Multiaddr) {
	for _, text := range m.h.Reach().Outside {
		if place, _, err := address.Parse(text); err == nil {
			addrs = append(addrs, place)
		}
	}
	return addrs
}

// Connect only notes the addresses: messenger dials when there is something to ask.
func (m discoveryHost) Connect(_ context.Context, info peer.AddrInfo) error {
	m.Peerstore().AddAddrs(info.ID, info.Addrs, peerstore.TempAddrTTL)
	return nil
}

// ConnManager keeps the DHT's wishes from the connection manager.
func (m discoveryHost) ConnManager() connmgr.ConnManager { return connmgr.NullConnMgr{} }

// SetStreamHandler keeps the handler until others reach this node; see serveDiscovery.
func (m discoveryHost) SetStreamHandler(_ protocol.ID, f network.StreamHandler) {
	m.h.discovery.serve = f
}

// ownRecords is the store as the DHT of one host sees it, which names this node without its
// addresses.
type ownRecords struct {
	*Records
	h *Host
}

// AddProvider implements records.ProviderStore.
func (r ownRecords) AddProvider(ctx context.Context, key []byte, p peer.AddrInfo) error {
	if p.ID == r.h.pid {
		p.Addrs = farAddrs(discoveryHost{r.h.host, r.h}.Addrs())
	}
	return r.Records.AddProvider(ctx, key, p)
}

// serveDiscovery answers the questions of others from now on. Its caller knows that others
// reach this node.
func (h *Host) serveDiscovery() {
	if h.discovery.dht != nil {
		h.discovery.serving.Do(h.answerDiscovery)
	}
}

// answerDiscovery bounds the streams of the DHT by itself: most askers are of other runs, and never shake hands.
func (h *Host) answerDiscovery() {
	h.host.SetStreamHandler(dhtProtocol, func(s network.Stream) {
		from := guard.Origin(s.Conn().RemoteMultiaddr())
		if !h.discovery.served.Allow(from.Addr()) || !h.tasks.enter() {
			s.Reset()
			return
		}
		defer h.tasks.leave()
		if !h.discovery.open.Acquire(from) {
			s.Reset()
			return
		}
		defer h.discovery.open.Release(from)
		if s.SetDeadline(time.Now().Add(searchTimeout)) == nil {
			h.discovery.serve(&bounded{Stream: s})
		}
	})
}

// announceChanges has this node announced anew where others from far reach it otherwise than before.
func (m *discovery) announceChanges(before, now Addresses) {
	if m.dht == nil || slices.Equal(before.Outside, now.Outside) {
		return
	}
	m.announceSoon()
}

func (m *discovery) announceSoon() {
	select {
	case m.renew <- struct{}{}:
	default:
	}
}

// keepAnnouncing tells the DHT, again and again, where this node is.
func (h *Host) keepAnnouncing() {
	pause := announceFirst
	for {
		select {
		case <-time.After(pause):
		case <-h.discovery.renew:
			if pause = announceFirst; !h.pausedFor(announceFirst / 2) { // more may change
				return
			}
		case <-h.ctx.Done():
			return
		}
		if h.announce() {
			pause = announceEvery
		} else {
			pause = min(2*pause, announceEvery)
		}
	}
}

// pausedFor waits, and reports whether the host is still open then.
func (h *Host) pausedFor(d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-h.ctx.Done():
		return false
	}
}

// announce reports whether somebody keeps now where this node is, or needs not.
func (h *Host) announce() bool {
	if len(h.Reach().Outside) == 0 {
		return false
	}
	ctx, cancel := context.WithTimeout(h.ctx, searchTimeout)
	defer cancel()
	if err := h.discovery.dht.Provide(ctx, h.discovery.key, true); err != nil {
		h.log.Debug("announce this node in the DHT", "err", err)
		return false
	}
	h.log.Info("this node is announced in the DHT")
	return true
}

// Discover looks for peers of the run in the DHT, beginning at what is known of it and at peers
// at these addresses, of whatever run. It returns at once; what is found are Hints.
func (h *Host) Discover(at []string) {
	if h.discovery.dht == nil {
		return
	}
	h.tasks.start(func() {
		ctx, cancel := context.WithTimeout(h.ctx, searchTimeout)
		defer cancel()
		before := h.discovery.dht.RoutingTable().Size()
		h.bootstrap(ctx, at)
		if before == 0 && h.discovery.dht.RoutingTable().Size() > 0 {
			h.discovery.announceSoon() // what was tried before found nobody
		}
		for info := range h.discovery.dht.FindProvidersAsync(ctx, h.discovery.key, maxFound) {
			h.hint(h.discovery.limit, false, info, func(a ma.Multiaddr) bool { return len(farAddrs([]ma.Multiaddr{a})) > 0 })
		}
	})
}

// bootstrap makes peers at addresses known to the DHT, if they answer.
func (h *Host) bootstrap(ctx context.Context, at []string) {
	known := map[peer.ID]bool{}
	var asked []peer.ID
	for _, addr := range at {
		place, id, err := address.Parse(addr)
		p := pidOf(id)
		if err != nil || p == h.pid || len(asked) >= maxBootstraps && !known[p] {
			continue
		}
		h.host.Peerstore().AddAddr(p, place, peerstore.TempAddrTTL)
		if !known[p] {
			known[p], asked = true, append(asked, p)
		}
	}
	answered := make(chan struct{}, len(asked))
	for _, p := range asked {
		h.tasks.start(func() {
			defer func() { answered <- struct{}{} }()
			if err := h.discovery.dht.Ping(ctx, p); err != nil {
				h.log.Debug("ask a peer of the DHT", "peer", p, "err", err)
			} else if _, err := h.discovery.dht.RoutingTable().TryAddPeer(p, true, true); err != nil {
				h.log.Debug("remember a peer of the DHT", "peer", p, "err", err)
			}
		})
	}
	for range asked {
		select {
		case <-answered:
		case <-ctx.Done():
			return
		}
	}
}

// errNoWay says that no address of a peer of the DHT led to it.
var errNoWay = errors.New("no address leads to the peer")
