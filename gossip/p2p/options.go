package p2p

import (
	"net/netip"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/protocol"
	rcmgr "github.com/libp2p/go-libp2p/p2p/host/resource-manager"
	"github.com/libp2p/go-libp2p/p2p/muxer/yamux"
	"github.com/libp2p/go-libp2p/p2p/net/connmgr"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"
	"github.com/libp2p/go-libp2p/p2p/security/noise"
	connrate "github.com/libp2p/go-libp2p/x/rate"
	ma "github.com/multiformats/go-multiaddr"

	"atoll/gossip/p2p/address"
	"atoll/gossip/p2p/guard"
)

// options puts the libp2p host together; listening comes later, address by
// address (see listen).
func (h *Host) options() ([]libp2p.Option, error) {
	key, err := crypto.UnmarshalEd25519PrivateKey(h.cfg.Key)
	if err != nil {
		return nil, err
	}
	resources, err := newResources()
	if err != nil {
		return nil, err
	}
	h.strangers = guard.NewStrangers(resources, guard.Peers{Accepted: h.peers.accepted, Origin: h.peers.origin, Drop: h.dropStranger}, dhtProtocol, helloTimeout)
	conns, err := connmgr.NewConnManager(connsLow, connsHigh, connmgr.WithGracePeriod(connsGrace))
	if err != nil {
		return nil, err
	}
	opts := []libp2p.Option{
		libp2p.Identity(key),
		libp2p.NoListenAddrs,
		libp2p.Security(noise.ID, noise.New),
		libp2p.Muxer(yamux.ID, muxer()),
		libp2p.ResourceManager(h.strangers),
		libp2p.ConnectionManager(conns),
		libp2p.ConnectionGater(h.blocked),
		libp2p.BandwidthReporter(h.traffic),
		libp2p.SwarmOpts(swarm.WithDialRanker(tcpFirst)),
		libp2p.WithDialTimeout(dialTimeout),
		libp2p.UserAgent(h.cfg.Agent),
		libp2p.ProtocolVersion("atoll/1"),
		libp2p.Ping(false),
		libp2p.DisableMetrics(),
	}
	opts = append(opts, h.transports()...)
	return append(opts, h.reachOptions()...), nil
}

// reachOptions have what the profile does to be reachable.
func (h *Host) reachOptions() []libp2p.Option {
	if h.cfg.Profile != WAN {
		return []libp2p.Option{
			libp2p.DisableRelay(),
			libp2p.ForceReachabilityPublic(), // no asking around
			libp2p.DisableIdentifyAddressDiscovery(),
			libp2p.UDPBlackHoleSuccessCounter(nil),  // a few dead peers are no reason
			libp2p.IPv6BlackHoleSuccessCounter(nil), // to give up QUIC or IPv6
		}
	}
	opts := []libp2p.Option{libp2p.EnableRelay(), libp2p.AddrsFactory(h.onlyTrue)}
	if h.alone {
		return opts
	}
	opts = append(opts, libp2p.NATManager(h.mapPorts))
	if h.cfg.Trial {
		return opts
	}
	return append(opts, libp2p.EnableNATService(), libp2p.EnableAutoNATv2())
}

// muxer is libp2p's with larger windows from the start. One that grows never tells the sender
// of all that it may send: the sender waits for a round trip with each half of a window, unless
// half of the first window covers the round trip.
func muxer() *yamux.Transport {
	config := *yamux.DefaultTransport
	config.InitialStreamWindowSize = streamWindow
	return &config
}

// newResources makes the resource manager. It limits whole scopes only:
// requests are counted in serve, where the peer can be told that we are busy.
func newResources() (network.ResourceManager, error) {
	limits := rcmgr.PartialLimitConfig{
		System:      rcmgr.ResourceLimits{Conns: guard.ConnsSystem, Streams: streamsSystem, Memory: memorySystem},
		Transient:   rcmgr.ResourceLimits{Conns: guard.ConnsSystem, Streams: streamsSystem, Memory: memoryTransient},
		PeerDefault: rcmgr.ResourceLimits{Conns: guard.ConnsPeer, Streams: streamsPeer, Memory: memoryPeer},
		ProtocolPeer: map[protocol.ID]rcmgr.ResourceLimits{
			helloProtocol: {StreamsInbound: helloStreams, Streams: 2 * helloStreams},
		},
	}
	return rcmgr.NewResourceManager(
		rcmgr.NewFixedLimiter(limits.Build(rcmgr.InfiniteLimits)),
		rcmgr.WithMetricsDisabled(),
		rcmgr.WithConnRateLimiters(newConnRates()),
		rcmgr.WithLimitPerSubnet(
			[]rcmgr.ConnLimitPerSubnet{{PrefixLength: guard.OriginBits4, ConnCount: guard.ConnsAddress}},
			[]rcmgr.ConnLimitPerSubnet{{PrefixLength: guard.OriginBits6, ConnCount: guard.ConnsAddress}},
		),
	)
}

// newDiscoveryRates limits the questions of the DHT that are answered in a second, in all and from one address.
func newDiscoveryRates() *connrate.Limiter {
	limit := connrate.Limit{RPS: float64(discoveryRate) / discoveryAddresses, Burst: discoveryBurst / 2}
	return &connrate.Limiter{GlobalLimit: connrate.Limit{RPS: discoveryRate, Burst: discoveryBurst}, SubnetRateLimiter: perAddress(limit)}
}

// newConnRates limits the connections that one address opens in a second. libp2p's own limit is
// one in five seconds, after the first 16. A node that dials a peer by TCP and QUIC once in five
// seconds makes twice as many, and a router has many of them behind it: where one dialled
// often, as after a peer had died, it got in nowhere for minutes.
func newConnRates() *connrate.Limiter {
	limit := connrate.Limit{RPS: connsRate, Burst: connsBurst}
	return &connrate.Limiter{
		NetworkPrefixLimits: []connrate.PrefixLimit{{Prefix: netip.MustParsePrefix("127.0.0.0/8")}, {Prefix: netip.MustParsePrefix("::1/128")}},
		SubnetRateLimiter:   perAddress(limit),
	}
}

// perAddress is a limit for each address, see guard.Origin.
func perAddress(limit connrate.Limit) connrate.SubnetLimiter {
	return connrate.SubnetLimiter{
		IPv4SubnetLimits: []connrate.SubnetLimit{{PrefixLength: guard.OriginBits4, Limit: limit}},
		IPv6SubnetLimits: []connrate.SubnetLimit{{PrefixLength: guard.OriginBits6, Limit: limit}},
		GracePeriod:      time.Minute,
	}
}

// tcpFirst dials TCP at once and QUIC a little later: under loss TCP moves ten
// times the bulk. libp2p's own order is the reverse. WebSocket and the port of the web are
// for networks that let nothing else out, and wait until the others had their time.
func tcpFirst(addrs []ma.Multiaddr) []network.AddrDelay {
	const quicDelay, webDelay, relayDelay = 300 * time.Millisecond, 800 * time.Millisecond, time.Second
	ranked := make([]network.AddrDelay, 0, len(addrs))
	for _, a := range addrs {
		var delay time.Duration
		switch {
		case has(a, ma.P_CIRCUIT):
			delay = relayDelay
		case address.Web(a):
			delay = webDelay
		case has(a, ma.P_UDP):
			delay = quicDelay
		}
		ranked = append(ranked, network.AddrDelay{Addr: a, Delay: delay})
	}
	return ranked
}

func has(a ma.Multiaddr, code int) bool {
	_, err := a.ValueForProtocol(code)
	return err == nil
}
