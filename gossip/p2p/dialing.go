package p2p

import (
	"context"
	"errors"
	"net"
	"syscall"

	"github.com/libp2p/go-libp2p/p2p/transport/tcp"
	"github.com/libp2p/go-libp2p/p2p/transport/tcpreuse"
	"github.com/libp2p/go-reuseport"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
)

// SegmentBytes bounds the segments of TCP, in both directions of a connection that this node dials: the packets pass
// wherever IPv6 does, which carries 1,280 bytes (RFC 8200, section 8.3). Tunnels carry less than 1,500, and where a firewall loses what
// tells senders so, a larger segment is lost again and again: the connection stands, and nothing comes of it. Windows
// has no such bound, nor do the packets of QUIC need it: they have 1,228 bytes.
const SegmentBytes = 1220

// dialer dials TCP. It does what libp2p's own does, which lets nobody set options of a socket.
type dialer struct {
	segment   int                   // bytes of its segments, at most
	listening func() []ma.Multiaddr // addresses whose ports it dials from: holes are punched for these
}

func (d dialer) forAddr(ma.Multiaddr) (tcp.ContextDialer, error) { return d, nil }

// DialContext dials from a port that this node listens on, if it can, as routers remember that one.
func (d dialer) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	plain := net.Dialer{Control: d.smallSegments}
	if from := d.from(network, addr); from != nil && tcpreuse.ReuseportIsAvailable() {
		reusing := net.Dialer{LocalAddr: from, Control: func(network, addr string, c syscall.RawConn) error {
			return errors.Join(reuseport.Control(network, addr, c), d.smallSegments(network, addr, c))
		}}
		c, err := reusing.DialContext(ctx, network, addr)
		if err == nil || !errors.Is(err, syscall.EADDRINUSE) && !errors.Is(err, syscall.EADDRNOTAVAIL) {
			return c, err
		}
	}
	return plain.DialContext(ctx, network, addr)
}

// from is the listening address to dial from, nil for none: one of all interfaces, or of the one that leads there.
func (d dialer) from(network, addr string) *net.TCPAddr {
	way, err := net.Dial("udp"+network[len("tcp"):], addr) // sends nothing
	if err != nil {
		return nil
	}
	defer way.Close()
	source := way.LocalAddr().(*net.UDPAddr).IP
	for _, a := range d.listening() {
		socket, _ := ma.SplitFunc(a, func(c ma.Component) bool { return c.Protocol().Code == ma.P_WS })
		at, err := manet.ToNetAddr(socket)
		l, ok := at.(*net.TCPAddr)
		if err == nil && ok && (l.IP.To4() == nil) == (source.To4() == nil) && (l.IP.IsUnspecified() || l.IP.Equal(source)) {
			return l
		}
	}
	return nil
}

// smallSegments bounds the segments of a socket that is about to dial. One that cannot be bounded dials all the same.
func (d dialer) smallSegments(_, _ string, c syscall.RawConn) error {
	return c.Control(func(fd uintptr) { _ = setSegment(fd, d.segment) })
}
