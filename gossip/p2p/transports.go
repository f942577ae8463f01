package p2p

import (
	"cmp"
	"context"
	"net"
	"sync/atomic"

	"github.com/libp2p/go-libp2p"
	gater "github.com/libp2p/go-libp2p/core/connmgr"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/pnet"
	"github.com/libp2p/go-libp2p/core/transport"
	libp2pquic "github.com/libp2p/go-libp2p/p2p/transport/quic"
	"github.com/libp2p/go-libp2p/p2p/transport/quicreuse"
	"github.com/libp2p/go-libp2p/p2p/transport/tcp"
	"github.com/libp2p/go-libp2p/p2p/transport/tcpreuse"
	"github.com/libp2p/go-libp2p/p2p/transport/websocket"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
)

// wireBytes counts what sockets carry: for TCP all bytes of the connections
// (noise and yamux included, TCP and IP headers not), for QUIC all UDP
// payloads. Relayed connections count as part of those to their relay.
type wireBytes struct{ sent, received atomic.Uint64 }

// transports are TCP, QUIC and WebSocket, counted: of WebSocket what its frames carry.
func (h *Host) transports() []libp2p.Option {
	newTCP := func(key crypto.PrivKey, u transport.Upgrader, rm network.ResourceManager, shared *tcpreuse.ConnMgr) (*tcp.TcpTransport, error) {
		d := dialer{segment: cmp.Or(h.cfg.SegmentBytes, SegmentBytes), listening: func() []ma.Multiaddr { return nil }}
		if h.ours(key) {
			d.listening = func() []ma.Multiaddr { return h.host.Network().ListenAddresses() }
		}
		return tcp.NewTCPTransport(wireUpgrader{u, h.onWire}, rm, shared, tcp.WithDialerForAddr(d.forAddr))
	}
	newWebSocket := func(u transport.Upgrader, rm network.ResourceManager, shared *tcpreuse.ConnMgr) (*websocket.WebsocketTransport, error) {
		return websocket.New(wireUpgrader{u, h.onWire}, rm, shared)
	}
	newQUIC := func(key crypto.PrivKey, cm *quicreuse.ConnManager, psk pnet.PSK, g gater.ConnectionGater, rm network.ResourceManager) (transport.Transport, error) {
		if h.ours(key) {
			h.quic = cm
		}
		return libp2pquic.NewTransport(key, cm, psk, g, rm)
	}
	reuse := append([]quicreuse.Option{quicreuse.OverrideListenUDP(h.listenUDP)}, h.quicOptions...)
	opts := []libp2p.Option{
		libp2p.Transport(newTCP),
		libp2p.Transport(newWebSocket),
		libp2p.Transport(newQUIC),
		libp2p.QUICReuse(quicreuse.NewConnManager, reuse...),
	}
	if h.cfg.Web || sharesPort(h.cfg.Listen) {
		opts = append(opts, libp2p.ShareTCPListener())
	}
	return opts
}

// ours reports whether a transport is this host's, and not of AutoNAT's helper, which dials with a key, and from ports, of its own.
func (h *Host) ours(key crypto.PrivKey) bool {
	id, err := peer.IDFromPrivateKey(key)
	return err == nil && id == h.pid
}

func (h *Host) listenUDP(nw string, addr *net.UDPAddr) (net.PacketConn, error) {
	c, err := h.openUDP(nw, addr)
	if err != nil {
		return nil, err
	}
	return &countingPacketConn{c, &h.wire}, nil
}

func openUDP(nw string, addr *net.UDPAddr) (net.PacketConn, error) {
	return net.ListenUDP(nw, addr)
}

// onWire is a connection of this host as it is between its socket and what secures
// it: counted, with what the configuration puts there.
func (h *Host) onWire(c manet.Conn) manet.Conn {
	if h.cfg.OnConn != nil && h.tasks.enter() { // one that comes while the host closes is closed at once
		on, run := h.cfg.OnConn(c)
		go func() {
			defer h.tasks.leave()
			run()
		}()
		c = onConn{on, c}
	}
	return countingConn{c, &h.wire}
}

// onConn is what is put onto a connection, at the addresses of that.
type onConn struct {
	net.Conn
	below manet.Conn
}

func (c onConn) LocalMultiaddr() ma.Multiaddr  { return c.below.LocalMultiaddr() }
func (c onConn) RemoteMultiaddr() ma.Multiaddr { return c.below.RemoteMultiaddr() }

// wireUpgrader puts something between the socket of every connection that it
// upgrades, in both directions, and what secures it.
type wireUpgrader struct {
	transport.Upgrader
	onWire func(manet.Conn) manet.Conn
}

func (u wireUpgrader) Upgrade(ctx context.Context, t transport.Transport, c manet.Conn, dir network.Direction, p peer.ID, scope network.ConnManagementScope) (transport.CapableConn, error) {
	return u.Upgrader.Upgrade(ctx, t, u.onWire(c), dir, p, scope)
}

func (u wireUpgrader) UpgradeGatedMaListener(t transport.Transport, l transport.GatedMaListener) transport.Listener {
	return u.Upgrader.UpgradeGatedMaListener(t, wireListener{l, u.onWire})
}

type wireListener struct {
	transport.GatedMaListener
	onWire func(manet.Conn) manet.Conn
}

func (l wireListener) Accept() (manet.Conn, network.ConnManagementScope, error) {
	c, scope, err := l.GatedMaListener.Accept()
	if err != nil {
		return c, scope, err
	}
	return l.onWire(c), scope, nil
}

type countingConn struct {
	manet.Conn
	wire *wireBytes
}

func (c countingConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.wire.received.Add(uint64(n))
	return n, err
}

func (c countingConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.wire.sent.Add(uint64(n))
	return n, err
}

// countingPacketConn hides what quic-go would bypass it with (system calls on
// the socket that take many packets at once); QUIC is the second choice here,
// and bulk goes by TCP. Buffer sizes are still set through it.
type countingPacketConn struct {
	net.PacketConn
	wire *wireBytes
}

func (c *countingPacketConn) ReadFrom(b []byte) (int, net.Addr, error) {
	n, addr, err := c.PacketConn.ReadFrom(b)
	c.wire.received.Add(uint64(n))
	return n, addr, err
}

func (c *countingPacketConn) WriteTo(b []byte, addr net.Addr) (int, error) {
	n, err := c.PacketConn.WriteTo(b, addr)
	c.wire.sent.Add(uint64(n))
	return n, err
}

func (c *countingPacketConn) SetReadBuffer(n int) error {
	if s, ok := c.PacketConn.(interface{ SetReadBuffer(int) error }); ok {
		return s.SetReadBuffer(n)
	}
	return nil
}

func (c *countingPacketConn) SetWriteBuffer(n int) error {
	if s, ok := c.PacketConn.(interface{ SetWriteBuffer(int) error }); ok {
		return s.SetWriteBuffer(n)
	}
	return nil
}
